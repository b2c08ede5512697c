"""Small real data that needs no network, and published tables with their sources."""

from __future__ import annotations

import csv
import html
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"


def digits(test_size: int = 261, seed: int = 0) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return ((x_train, y_train), (x_test, y_test)): 1,797 handwritten digits of 8×8 pixels.

    x: float32 (n, 64), each pixel from 0 to 1. y: int32 (n,), from 0 to 9. The default leaves
    1,536 = 3·2⁹ training images, which many batch sizes divide. The split depends on `seed` alone.
    Source: E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, doi:10.24432/C50P49, as shipped
    with scikit-learn.
    """
    import numpy as np  # noqa: PLC0415

    # The file alone: to import scikit-learn takes half a second and 60 MiB.
    package = Path(importlib.util.find_spec("sklearn").origin).parent
    rows = np.loadtxt(package / "datasets" / "data" / "digits.csv.gz", delimiter=",", dtype=np.float32)
    total = len(rows)
    if not 1 <= test_size < total:
        raise ValueError(f"test_size must be from 1 to {total - 1}, not {test_size!r}.")
    order = np.random.default_rng(seed).permutation(total)
    x = rows[order, :-1] / 16
    y = rows[order, -1].astype(np.int32)
    cut = total - test_size
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def text() -> str:
    """Return the documentation topics that ship with Python: real English prose, about 700 KB.

    The text differs between versions of Python, so nothing computed from it may be stored as expected output.
    """
    from pydoc_data.topics import topics  # noqa: PLC0415

    return "\n\n".join(topics[name] for name in sorted(topics))


@dataclass(frozen=True)
class Table:
    """Rows with named columns; printed, it is aligned text that a screen reader can read too."""

    rows: list[dict]
    source: str = ""

    def column(self, name: str) -> list:
        """Return one column's values, top to bottom."""
        if name not in self.rows[0]:
            raise KeyError(f"There is no column {name!r}; there are: {', '.join(self.rows[0])}.")
        return [row[name] for row in self.rows]

    def html(self) -> str:
        """Return the table as HTML."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.rows[0])
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row.values())}</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __str__(self) -> str:
        names = list(self.rows[0])
        cells = [names] + [["" if row[name] is None else str(row[name]) for name in names] for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
        right = [all(not isinstance(row[name], str) for row in self.rows) for name in names]

        def line(values: list[str]) -> str:
            padded = [v.rjust(w) if r else v.ljust(w) for v, w, r in zip(values, widths, right, strict=True)]
            return "  ".join(padded).rstrip()

        lines = [line(cells[0]), line(["─" * w for w in widths]), *map(line, cells[1:])]
        return "\n".join(lines + ([f"Source: {self.source}"] if self.source else []))


def manifest() -> list[dict]:
    """Return data/manifest.json: path, source, licence, bytes and SHA-256 of every committed data file."""
    return json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))


def _value(cell: str) -> int | float | str | None:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell or None


def table(name: str) -> Table:
    """Return the published table data/published/`name`.csv, numbers as numbers, with its source.

    Raises:
        ValueError: no such table; the message lists those there are.
    """
    path = DATA / "published" / f"{name}.csv"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.csv")))
        raise ValueError(f"There is no published table {name!r}; there are: {there}.")
    source = next(entry["source"] for entry in manifest() if entry["path"] == f"published/{path.name}")
    with path.open(newline="", encoding="utf-8") as file:
        return Table([{k: _value(v) for k, v in row.items()} for row in csv.DictReader(file)], source)
