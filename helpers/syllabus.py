"""The course as a whole, from data/lessons.yaml: its lessons, the routes through them, the strategies they treat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.data import DATA, NOTEBOOKS, Table


@dataclass(frozen=True)
class Lesson:
    """One lesson; `minutes` is study time, planned as long as its notebook does not stand."""

    name: str  # of the notebook, without .ipynb
    title: str
    question: str
    minutes: int

    @property
    def number(self) -> str:
        """Two digits, of which the first is the decade."""
        return self.name[:2]

    @property
    def path(self) -> Path:
        return NOTEBOOKS / f"{self.name}.ipynb"

    @property
    def stands(self) -> bool:
        """Whether its notebook exists today."""
        return self.path.is_file()


@dataclass(frozen=True)
class Route:
    """Lessons in the order in which to take them."""

    name: str
    aim: str
    lessons: tuple[Lesson, ...]

    def minutes(self, *, standing: bool = False) -> int:
        """Study time of the whole route, or of those of its lessons that stand today."""
        return sum(lesson.minutes for lesson in self.lessons if lesson.stands or not standing)


@cache
def _read() -> dict:
    import yaml  # noqa: PLC0415

    return yaml.safe_load((DATA / "lessons.yaml").read_text(encoding="utf-8"))


def lessons() -> list[Lesson]:
    """Return all lessons, by number."""
    return [Lesson(name, **facts) for name, facts in _read()["lessons"].items()]


def lesson(name: str) -> Lesson:
    """Return one lesson by its name or its number.

    Raises:
        ValueError: there is no such lesson.
    """
    for found in lessons():
        if name in (found.name, found.number):
            return found
    raise ValueError(f"There is no lesson {name!r} in data/lessons.yaml; there are: {', '.join(_read()['lessons'])}.")


def decades() -> dict[str, list[Lesson]]:
    """Return the lessons under the title of their decade."""
    return {
        title: [found for found in lessons() if found.number[0] == str(digit)]
        for digit, title in _read()["decades"].items()
    }


def routes() -> list[Route]:
    """Return the routes through the course, the shortest first."""
    return [
        Route(
            route["name"],
            route["aim"],
            tuple(lessons() if route["lessons"] == "all" else map(lesson, route["lessons"])),
        )
        for route in _read()["routes"]
    ]


def strategies() -> list[dict[str, str]]:
    """Return the ways to cut training over devices: strategy, cuts, best for, trade-off, sends, lesson."""
    return _read()["strategies"]


def link(found: Lesson) -> str:
    """Return the lesson's title as Markdown: a link where the notebook stands, else plain text that says so."""
    if found.stands:
        return f"[{found.number} {found.title}]({found.name}.ipynb)"
    return f"{found.number} {found.title} (in preparation)"


def markdown(table: Table) -> str:
    """Return a table as Markdown, which a page wraps to its width and a screen reader reads by column."""

    def line(values: list) -> str:
        return f"| {' | '.join('' if v is None else str(v) for v in values)} |"

    names = list(table.rows[0])
    right = [all(isinstance(row[name], (int, float)) for row in table.rows) for name in names]
    rule = line(["---:" if r else ":---" for r in right])
    return "\n".join([line(names), rule, *(line([row[name] for name in names]) for row in table.rows)])


def show(table: Table) -> None:
    """Display a table in a notebook, as Markdown and, for readers without it, as plain text."""
    from IPython.display import display  # noqa: PLC0415  (only a notebook shows tables)

    display({"text/markdown": markdown(table), "text/plain": str(table)}, raw=True)
