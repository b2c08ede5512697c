"""Look after the notebooks: check them, put them in normal form, store fresh outputs, start a new one.

python -m helpers.notebooks {check,normalise,refresh,new} [pattern ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from helpers.execution import run_notebook
from helpers.notebook_format import find, is_normal, normalise, read, solved, write

__all__ = ["find", "is_normal", "normalise", "read", "refresh", "solved", "write"]


def refresh(path: Path) -> str:
    """Execute a notebook and store it with its outputs in normal form; return "" or what went wrong.

    A notebook that fails is left as it was.
    """
    executed = path.resolve().parent.parent / "build" / "refresh" / path.name
    outcome = run_notebook(path, executed)
    if outcome.ok:
        write(normalise(read(executed)), path)
        print(f"{path.name}: stored after {outcome.seconds:.1f} s, {outcome.peak_mib:.0f} MiB")
    return outcome.problem


def main(arguments: list[str]) -> int:
    command, *patterns = arguments or ["help"]
    problems = 0
    for path in find(*patterns):
        if command == "refresh":
            problem = refresh(path)
            if problem:
                print(problem, file=sys.stderr)
                problems += 1
        elif command == "normalise" and not is_normal(path):
            write(normalise(read(path)), path)
            print(f"{path.name}: put in normal form")
    return problems


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as problem:
        sys.exit(str(problem))
