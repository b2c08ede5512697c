"""Every lesson: its file, nbval on what it stores, papermill on it alone, and again with its exercises solved."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest
from notebook_support import nbval

from helpers import run
from helpers.notebook_format import find, read
from helpers.notebook_rules import check

LESSONS = find()
LIMIT = 60  # s for a lesson at its default settings on two cores; COURSE_TIME_FACTOR raises it on slow machines
MEMORY = 1.0  # GiB: half of what a free Binder session has
MOST_MEMORY = 1.2  # GiB for a lesson that needs more processes, and whose table says so
FACTOR = float(os.environ.get("COURSE_TIME_FACTOR", "1"))

every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def has_exercises(path: Path) -> bool:
    return any("exercise" in cell.metadata for cell in read(path).cells)


def memory_limit(path: Path) -> float:
    """GiB that the lesson's own table promises: "under 1 GiB"."""
    promised = re.search(r"\| under ([\d.]+) GiB \|", read(path).cells[0].source)
    return float(promised[1]) if promised else MEMORY


def test_there_are_lessons():
    assert LESSONS, "notebooks/ holds no lesson: each test below would pass for want of a case"


@every_lesson
def test_file(path):
    """The rules of helpers/notebook_rules.py, without executing anything."""
    findings = check(path)
    assert not findings, "\n".join(f"{path.name}, cell {cell}: {text} [{rule}]" for cell, rule, text in findings)


@every_lesson
def test_stored_outputs(path, tmp_path):
    """nbval, strict: the committed outputs are what the cells print today."""
    result = nbval(path, tmp_path / "scores.sqlite", timeout=10 * LIMIT * FACTOR)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]


@every_lesson
def test_alone(path, tmp_path, monkeypatch):
    """papermill, in a process of its own, within the course's bounds of time and memory."""
    monkeypatch.setattr(run, "OUT", tmp_path)
    outcome = run.run_one(path, timeout=10 * LIMIT * FACTOR, strict=False, stop=threading.Event())
    assert outcome.ok, outcome.problem
    assert outcome.seconds <= LIMIT * FACTOR, (
        f"{path.name} took {outcome.seconds:.0f} s and may take {LIMIT * FACTOR:.0f}"
    )
    used, limit = outcome.peak_mib / 1024, memory_limit(path)
    assert limit <= MOST_MEMORY, f"{path.name} promises {limit:g} GiB and may ask for {MOST_MEMORY}"
    assert used <= limit, f"{path.name} used {used:.2f} GiB and promises {limit:g}"
    errors = [
        out.text for cell in read(tmp_path / path.name).cells for out in cell.get("outputs", []) if is_stderr(out)
    ]
    assert not errors, f"{path.name} wrote to stderr: {errors[0][:500]}"


def is_stderr(output) -> bool:
    return output.get("name") == "stderr"


@pytest.mark.parametrize("path", [path for path in LESSONS if has_exercises(path)], ids=lambda path: path.stem)
def test_solved(path, tmp_path, monkeypatch):
    """The same with the reference answer in each exercise, where anything unsolved or wrong is an error."""
    monkeypatch.setattr(run, "OUT", tmp_path)
    outcome = run.run_one(path, timeout=10 * LIMIT * FACTOR, strict=True, stop=threading.Event())
    assert outcome.ok, outcome.problem
