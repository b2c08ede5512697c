"""The loss scaling simulation: a dynamic scale that hunts a moving cloud of gradients through float16's range.

`step` is the model, a pure function of (state, parameters); static/loss_scale.js has the same one for the page.
Its random numbers come from a 32-bit generator and sums of uniforms, so that both draw the very same gradients.
"""

from __future__ import annotations

import html
import math

import traitlets

from helpers.data import Table
from helpers.widgets.base import Base

OVERFLOW = math.log2(65520)  # from here on float16 rounds to infinity
UNDERFLOW = -25.0  # half the smallest subnormal: from here down float16 rounds to 0
DRAWN = 64  # gradients per step
LARGEST, SMALLEST = 127.0, -126.0  # exponents of the scale itself, a float32
MEANING = {
    "interval": ("Growth interval", "steps", 1, 500, 1),
    "growth": ("Growth factor", "", 1.1, 4, 0.1),
    "backoff": ("Backoff factor", "", 0.1, 0.9, 0.05),
    "mean": ("Mean gradient exponent", "powers of 2", -40, 10, 1),
    "spread": ("Spread of the exponents", "powers of 2", 0, 8, 0.5),
    "drift": ("Drift of the mean", "powers of 2 per 1,000 steps", -40, 40, 2),
}  # parameter: label, unit, least, most, step of its slider
START = {"interval": 50, "growth": 2.0, "backoff": 0.5, "mean": -16.0, "spread": 3.0, "drift": 0.0}
_NOTE = "Run this cell in JupyterLab to move the sliders while it runs."


def new_state(seed: int = 32, exponent: float = 15.0) -> dict:
    """Return the state before the first step; the scale is 2**exponent."""
    return {
        "step": 0, "exponent": exponent, "good": 0, "skipped": 0, "moved": 0.0, "lost": 0.0, "finite": True,
        "seed": seed % 2**32,
    }  # fmt: skip


def uniform(seed: int) -> tuple[int, float]:
    """One draw of mulberry32: (next seed, number in [0, 1)). Public domain, by T. Ettinger."""
    seed = (seed + 0x6D2B79F5) % 2**32
    mixed = (seed ^ seed >> 15) * (seed | 1) % 2**32
    mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) % 2**32
    return seed, (mixed ^ mixed >> 14) / 2**32


def step(state: dict, parameters: dict) -> dict:
    """Return the state after one training step: draw gradients, look for overflow, move the scale.

    Twelve uniforms less 6 are nearly a standard normal number, and the same in every language. `lost` is the
    share of this step's gradients that float16 rounds to zero, `moved` how far the mean has drifted so far.
    """
    seed, lost, finite = state["seed"], 0, True
    for _ in range(DRAWN):
        normal = -6.0
        for _ in range(12):
            seed, drawn = uniform(seed)
            normal += drawn
        scaled = parameters["mean"] + state["moved"] + parameters["spread"] * normal + state["exponent"]
        finite = finite and scaled < OVERFLOW
        lost += scaled <= UNDERFLOW
    good = state["good"] + 1 if finite else 0
    grown = finite and good >= parameters["interval"]
    move = math.log2(parameters["growth"]) if grown else 0.0 if finite else math.log2(parameters["backoff"])
    return {
        "step": state["step"] + 1,
        "exponent": min(max(state["exponent"] + move, SMALLEST), LARGEST),
        "good": 0 if grown else good,
        "skipped": state["skipped"] + (not finite),
        "moved": state["moved"] + parameters["drift"] / 1000,
        "lost": lost / DRAWN,
        "finite": finite,
        "seed": seed,
    }


def run(steps: int, parameters: dict | None = None, state: dict | None = None) -> list[dict]:
    """Return the states after each of `steps` steps, from `state` or a new one.

    Raises:
        ValueError: an unknown parameter, or one outside its slider.
    """
    parameters, states = checked(parameters or {}), [state or new_state()]
    for _ in range(steps):
        states.append(step(states[-1], parameters))
    return states[1:]


def checked(parameters: dict) -> dict:
    """Return all parameters, those given and the defaults of the rest."""
    for name, value in parameters.items():
        if name not in MEANING:
            raise ValueError(f"The simulation has no parameter {name!r}; it has: {', '.join(MEANING)}.")
        _, _, least, most, _ = MEANING[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise ValueError(f"{name} must be a number from {least} to {most}, not {value!r}.")
    return {**START, **parameters}


class LossScaleSimulation(Base):
    """Sliders that act while the simulation runs. `parameters` and `start` are what it begins with."""

    script = "loss_scale.js"
    content = ("sliders", "parameters", "start")

    sliders = traitlets.List(traitlets.Dict()).tag(sync=True)
    parameters = traitlets.Dict().tag(sync=True)
    start = traitlets.Dict().tag(sync=True)

    def _table(self) -> Table:
        states = run(1000, self.parameters, self.start)
        rows = []
        for end in (10, 100, 300, 1000):
            now, last = states[end - 1], states[max(0, end - 100) : end]
            lost = sum(s["lost"] for s in last) / len(last)
            scale = f"2^{now['exponent']:.1f}".removesuffix(".0")
            row = {"step": end, "scale": scale, "skipped so far": now["skipped"]}
            rows.append({**row, "lost to underflow, last 100 steps": f"{lost:.1%}"})
        return Table(rows)

    def _settings(self) -> str:
        return ", ".join(f"{MEANING[name][0].lower()} {value:g}" for name, value in self.parameters.items())

    def text(self) -> str:
        """Return 1,000 steps of the starting settings, as plain text."""
        return f"Loss scaling simulation: {self._settings()}.\n{self._table()}\n{_NOTE}"

    def html(self) -> str:
        """Return 1,000 steps of the starting settings, as HTML."""
        return (
            f"<div><p>Loss scaling simulation: {html.escape(self._settings())}.</p>"
            f"{self._table().html()}<p><em>{_NOTE}</em></p></div>"
        )


def loss_scale_simulation(*, seed: int = 32, **parameters: float) -> LossScaleSimulation:
    """Return the simulation, with these parameters to start with (see `MEANING`).

    Raises:
        ValueError: an unknown parameter, one outside its slider, or a seed that is no whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ValueError(f"seed must be a whole number such as 32, not {seed!r}.")
    names = ("name", "label", "unit", "min", "max", "step")
    sliders = [dict(zip(names, (name, *meaning), strict=True)) for name, meaning in MEANING.items()]
    return LossScaleSimulation(sliders=sliders, parameters=checked(parameters), start=new_state(seed))
