"""The race of ring and tree: two all-reduces of one vector on one network, message by message.

The model is `helpers.models.collectives.race_step`; static/collective.js has the same one for the page.
"""

from __future__ import annotations

import html

import traitlets

from helpers.data import Table
from helpers.models.collectives import LANES, LIMITS, checked, new_race, race
from helpers.widgets.base import Base

MEANING = {
    "workers": ("Workers", ""),
    "exponent": ("Vector", "bytes"),
    "chunks": ("Chunks of the tree", ""),
    "alpha": ("Latency α", "µs"),
    "bandwidth": ("Bandwidth β", "GB/s"),
    "slow": ("Link 0–1 takes", "times as long"),
}  # parameter: label, unit
_NOTE = "Run this cell in JupyterLab to move the sliders while it runs."


def amount(size: float) -> str:
    """Return a number of bytes in IEC units, such as 1.75 MiB."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


class CollectiveSimulation(Base):
    """Sliders that act while the simulation runs. `parameters` and `start` are what it begins with."""

    script = "collective.js"
    content = ("sliders", "parameters", "start")

    sliders = traitlets.List(traitlets.Dict()).tag(sync=True)
    parameters = traitlets.Dict().tag(sync=True)
    start = traitlets.Dict().tag(sync=True)

    def _table(self) -> Table:
        rows = []
        for exponent in (10, 20, 30):
            end = race({**self.parameters, "exponent": exponent}, self.start)
            for lane in LANES:
                times = {"µs": f"{end[lane]['clock'] - end['begun']:.1f}", "messages": end[lane]["next"]}
                busiest = amount(max(end[lane]["sent"]))
                rows.append({"vector": amount(end["size"]), "all-reduce": lane, **times, "busiest sends": busiest})
        return Table(rows)

    def _settings(self) -> str:
        values = {name: f"{value}" for name, value in self.parameters.items()}
        values["exponent"] = amount(2.0 ** self.parameters["exponent"])
        units = {name: f" {unit}" if unit and name != "exponent" else "" for name, (_, unit) in MEANING.items()}
        return ", ".join(f"{MEANING[name][0].lower()} {value}{units[name]}" for name, value in values.items())

    def text(self) -> str:
        """Return the races of three sizes with the other starting settings, as plain text."""
        return f"Race of ring and tree: {self._settings()}.\n{self._table()}\n{_NOTE}"

    def html(self) -> str:
        """Return the races of three sizes with the other starting settings, as HTML."""
        return (
            f"<div><p>Race of ring and tree: {html.escape(self._settings())}.</p>"
            f"{self._table().html()}<p><em>{_NOTE}</em></p></div>"
        )


def collective_simulation(**parameters: int) -> CollectiveSimulation:
    """Return the race, with these parameters to start with (see `LIMITS` of the model).

    Raises:
        ValueError: an unknown parameter, or one that is no whole number within its slider.
    """
    sliders = [
        {"name": name, "label": label, "unit": unit, "min": LIMITS[name][0], "max": LIMITS[name][1]}
        for name, (label, unit) in MEANING.items()
    ]
    return CollectiveSimulation(sliders=sliders, parameters=checked(parameters), start=new_race())
