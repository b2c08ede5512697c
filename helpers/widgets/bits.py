"""The bit explorer: flip the bits of a number, or type a number and see it rounded in every format."""

from __future__ import annotations

import html
from dataclasses import asdict

import traitlets

from helpers import precision
from helpers.data import Table
from helpers.widgets.base import Base

_NOTE = "Run this cell in JupyterLab to flip bits and to type other numbers."
SHOWN = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2")


class BitExplorer(Base):
    """A number as bits. `formats` are those of `helpers.precision`, so the page and Python count alike."""

    script = "bits.js"
    content = ("formats", "start", "value")

    formats = traitlets.List(traitlets.Dict()).tag(sync=True)
    start = traitlets.Unicode().tag(sync=True)
    value = traitlets.Unicode().tag(sync=True)

    def _table(self) -> Table:
        value = float(self.value)
        rows = []
        for name in SHOWN:
            fmt = precision.FORMATS[name]
            kept = float(precision.round_to(value, fmt))
            bits = f"{int(precision.encode(value, fmt)):0{fmt.bits}b}"
            parts = bits[0], bits[1 : 1 + fmt.exponent_bits], bits[1 + fmt.exponent_bits :]
            rows.append({"format": name, "what it keeps": repr(kept), "sign exponent mantissa": " ".join(parts)})
        return Table(rows)

    def text(self) -> str:
        """Return the start value in every format, as plain text."""
        return f"{self.value} rounded to nearest:\n{self._table()}\n{_NOTE}"

    def html(self) -> str:
        """Return the start value in every format, as HTML."""
        return (
            f"<div><p>{html.escape(self.value)} rounded to nearest:</p>"
            f"{self._table().html()}<p><em>{_NOTE}</em></p></div>"
        )


def bit_explorer(value: float = 0.1, start: str = "bfloat16") -> BitExplorer:
    """Return the explorer, showing `value` as a `start` format.

    Raises:
        ValueError: `value` is no number, or `start` no format that is shown.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"bit_explorer shows a number such as 0.1, not {value!r}.")
    if start not in SHOWN:
        raise ValueError(f"bit_explorer shows no format {start!r}; it shows: {', '.join(SHOWN)}.")
    formats = [asdict(precision.FORMATS[name]) for name in SHOWN]
    return BitExplorer(formats=formats, start=start, value=repr(float(value)))
