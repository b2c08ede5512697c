"""For the tests of notebooks: one that breaks no rule, and nbval on a file in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.data import ROOT
from helpers.notebook_format import normalise, write

INTRODUCTION = """# Does one and one make two?

**You will be able to** add.

Before this: [the same](35_good.ipynb)."""
CLOSING = """## References

None.

## Next

[The same](35_good.ipynb)"""
PIXEL = (  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def printed(text: str) -> NotebookNode:
    return new_output("stream", name="stdout", text=text)


def code(source: str, *tags: str, outputs: tuple[NotebookNode, ...] = ()) -> NotebookNode:
    """A code cell that has run."""
    cell = new_code_cell(source, outputs=list(outputs), execution_count=1)
    if tags:
        cell.metadata["tags"] = list(tags)
    return cell


def good() -> NotebookNode:
    """A lesson that breaks no rule and stores what it prints. Its cells: aims, parameters, sum, proof, closing."""
    return new_notebook(
        cells=[
            new_markdown_cell(INTRODUCTION),
            code("one = 1", "parameters"),
            code("print(one + one)", outputs=(printed("2\n"),)),
            code("assert one + one == 2\nprint('proved')", "proof", outputs=(printed("proved\n"),)),
            new_markdown_cell(CLOSING),
        ]
    )


def store(nb: NotebookNode, folder: Path, name: str = "35_good") -> Path:
    """Write a notebook in normal form into a folder and return its path."""
    path = folder / f"{name}.ipynb"
    write(normalise(nb), path)
    return path


def nbval(path: Path, scores: Path, timeout: float = 300) -> subprocess.CompletedProcess:
    """Run `pytest --nbval`, strict, on one notebook, with this interpreter as its kernel and scores of its own."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]
    command += ["-p", "no:cacheprovider", "--color=no", "-q", str(path)]
    env = {key: value for key, value in os.environ.items() if key != "COURSE_STRICT"}
    env |= {"COURSE_SCORES": str(scores), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    env |= {"COURSE_CLUSTER_EXPOSED": "accepted"}  # its warning depends on the system
    return subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
