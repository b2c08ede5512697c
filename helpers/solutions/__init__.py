"""The single copy of each exercise's reference answer: one module per lesson, judged by `helpers.checks`.

`lesson_NN_concept.py` defines the reference functions, the plausible mistakes, and a table `EXERCISES`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Exercise:
    """One exercise: `solution` is the reference, `cases` yields argument tuples from a random generator.

    `mistakes` are plausible wrong answers as functions, each with the hint that names the mistake:
    a learner whose results equal theirs is told so.
    """

    solution: Callable
    cases: Callable[[np.random.Generator], Iterator[tuple]]
    mistakes: tuple[tuple[Callable, str], ...] = ()
    tolerance: float = 1e-5  # relative, and absolute below 1


def exercises(lesson: str) -> dict[str, Exercise]:
    """Return the exercises of one lesson by name; empty where the lesson has none."""
    name = f"helpers.solutions.lesson_{lesson}"
    if importlib.util.find_spec(name) is None:
        return {}
    return importlib.import_module(name).EXERCISES


def source(lesson: str, name: str) -> str:
    """Return the source code of one exercise's reference answer."""
    found = exercises(lesson)
    if name not in found:
        raise ValueError(f"There is no exercise {name!r} in {lesson!r}.")
    return inspect.getsource(found[name].solution)
