"""Look after the notebooks: check them, put them in normal form, store fresh outputs, start a new one.

python -m helpers.notebooks {check,normalise,refresh} [pattern ...], or new NN_concept
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from helpers.execution import interruptible, run_notebook
from helpers.notebook_format import NOTEBOOKS, find, is_normal, normalise, read, solved, write
from helpers.notebook_rules import Finding, check

__all__ = [
    "TEMPLATE",
    "Finding",
    "check",
    "find",
    "is_normal",
    "new",
    "normalise",
    "read",
    "refresh",
    "solved",
    "write",
]

TEMPLATE = NOTEBOOKS / "_template.ipynb"


def report(path: Path) -> int:
    """Print what `check` finds in a notebook; return how much that is."""
    findings = check(path)
    for cell, name, text in findings:
        where = f", cell {cell}" if cell else ""
        print(f"{path.name}{where}: {text} [{name}]")
    return len(findings)


def tidy(path: Path) -> int:
    """Put a notebook in normal form."""
    if not is_normal(path):
        write(normalise(read(path)), path)
        print(f"{path.name}: put in normal form")
    return 0


def refresh(path: Path, timeout: float = 600) -> int:
    """Execute a notebook, store it with its outputs in normal form, and check it; return the problems found.

    A notebook that fails is left as it was, and the cell that failed is shown.
    """
    executed = path.resolve().parent.parent / "build" / "refresh" / path.name
    before = path.read_bytes()
    with interruptible() as stop:
        outcome = run_notebook(path, executed, timeout=timeout, stop=stop)
    if outcome.result == "interrupted":
        raise KeyboardInterrupt(outcome.problem)
    if outcome.ok and path.read_bytes() != before:
        outcome.problem = f"{path.name} was edited while it ran: refresh it again."
    if outcome.problem:
        print(f"{outcome.problem}\n{path.name}: no output was stored.", file=sys.stderr)
        return 1
    write(normalise(read(executed)), path)
    print(
        f"{path.name}: stored after {outcome.seconds:.1f} s; peak {outcome.peak_mib:.0f} MiB {outcome.memory_measure}"
    )
    return report(path)


def new(name: str, folder: Path = NOTEBOOKS) -> Path:
    """Start a lesson called `name`, such as 35_my_concept, from the template.

    Raises:
        ValueError: the name has another form, or its number is taken.
    """
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", name):
        raise ValueError(f"A lesson is named by two digits and a concept, such as 35_my_concept, not {name!r}.")
    taken = [path.stem for path in folder.glob(f"{name[:2]}_*.ipynb")]
    if taken:
        raise ValueError(f"The number {name[:2]} belongs to {taken[0]}: choose another.")
    nb, title = read(TEMPLATE), name[3:].replace("_", " ").capitalize()
    for cell in nb.cells:
        cell.source = cell.source.replace("NN_concept", name).replace("Title of the lesson", title)
        cell.pop("id")  # each lesson has ids of its own
    path = folder / f"{name}.ipynb"
    write(normalise(nb), path)
    return path


COMMANDS: dict[str, Callable[[Path], int]] = {"check": report, "normalise": tidy, "refresh": refresh}


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; return 0 where nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m helpers.notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=[*COMMANDS, "new"])
    parser.add_argument("names", nargs="*", help="parts of names, or files; for new: NN_concept")
    options = parser.parse_args(arguments)
    try:
        if options.command == "new":
            if len(options.names) != 1:
                raise ValueError("Name the new lesson: make new NB=35_my_concept")
            print(f"Made notebooks/{new(options.names[0]).name}. CONTRIBUTING.md says what comes next.")
            return 0
        paths = find(*options.names)
        if not options.names and options.command != "refresh" and TEMPLATE.exists():
            paths.append(TEMPLATE)
        return int(sum(COMMANDS[options.command](path) for path in paths) > 0)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(interrupt, file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
