"""The staleness simulation: workers that read weights, compute for a while, and write to weights that have moved on.

The model is `helpers.models.parameter_servers.step`; static/staleness.js has the same one for the page.
"""

from __future__ import annotations

import html

import traitlets

from helpers.data import Table
from helpers.models.parameter_servers import LIMITS, UNBOUNDED, checked, new_state, run
from helpers.widgets.base import Base

MEANING = {
    "workers": ("Workers", "", 1),
    "rate": ("Learning rate times curvature", "", 0.01),
    "slow": ("Worker 0 takes", "times as long", 0.5),
    "bound": ("Staleness bound", "steps ahead", 1),
    "spread": ("Spread of step times", "", 0.05),
    "noise": ("Noise of a gradient", "", 0.05),
}  # parameter: label, unit, step of its slider
_NOTE = "Run this cell in JupyterLab to move the sliders while it runs."


class StalenessSimulation(Base):
    """Sliders that act while the simulation runs. `parameters` and `start` are what it begins with."""

    script = "staleness.js"
    content = ("sliders", "parameters", "start")

    sliders = traitlets.List(traitlets.Dict()).tag(sync=True)
    parameters = traitlets.Dict().tag(sync=True)
    start = traitlets.Dict().tag(sync=True)

    def _table(self) -> Table:
        states = run(1000, self.parameters, self.start)
        rows = []
        for end in (10, 100, 300, 1000):
            last = states[max(0, end - 100) : end]
            stale = [state["last"]["staleness"] for state in last]
            row = {"writes": end, "mean staleness, last 100": f"{sum(stale) / len(stale):.1f}", "largest": max(stale)}
            row["writes per step time"] = f"{end / states[end - 1]['time']:.2f}"
            rows.append({**row, "distance from the minimum": f"{abs(states[end - 1]['error']):.1e}"})
        return Table(rows)

    def _settings(self) -> str:
        values = {name: f"{value:g}" for name, value in self.parameters.items()}
        if self.parameters["bound"] >= UNBOUNDED:
            values["bound"] = "none"
        return ", ".join(f"{MEANING[name][0].lower()} {value}" for name, value in values.items())

    def text(self) -> str:
        """Return 1,000 writes with the starting settings, as plain text."""
        return f"Staleness simulation: {self._settings()}.\n{self._table()}\n{_NOTE}"

    def html(self) -> str:
        """Return 1,000 writes with the starting settings, as HTML."""
        return (
            f"<div><p>Staleness simulation: {html.escape(self._settings())}.</p>"
            f"{self._table().html()}<p><em>{_NOTE}</em></p></div>"
        )


def staleness_simulation(*, seed: int = 23, **parameters: float) -> StalenessSimulation:
    """Return the simulation, with these parameters to start with (see `LIMITS` of the model).

    Raises:
        ValueError: an unknown parameter, one outside its slider, or a seed that is no whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ValueError(f"seed must be a whole number such as 23, not {seed!r}.")
    sliders = [
        {"name": name, "label": label, "unit": unit, "min": LIMITS[name][0], "max": LIMITS[name][1], "step": by}
        | ({"top": "none"} if name == "bound" else {})
        for name, (label, unit, by) in MEANING.items()
    ]
    return StalenessSimulation(sliders=sliders, parameters=checked(parameters), start=new_state(seed))
