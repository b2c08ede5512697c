"""Exercise checkers: the learner's function against the reference on random shapes and edge cases.

A checker answers in one of three ways: not attempted yet; not right yet, with the arguments, what came
out and what was wanted; correct. It returns the learner's function when that is correct and the
reference otherwise, so a lesson runs to its end before anything is solved.
"""

from __future__ import annotations

import copy
import inspect
import os
import warnings
from collections.abc import Callable

import numpy as np

from helpers import scores
from helpers.solutions import Exercise, exercises, source


class NotSolved(AssertionError):
    """Raised under COURSE_STRICT=1 where an exercise is unsolved or wrong."""


def same(got: object, wanted: object, tolerance: float, *, equal_nan: bool = False) -> bool:
    """Whether two results agree in structure, shape and value; NaN agrees with NaN only if `equal_nan`."""
    if isinstance(wanted, dict):
        return (
            isinstance(got, dict)
            and got.keys() == wanted.keys()
            and all(same(got[key], wanted[key], tolerance, equal_nan=equal_nan) for key in wanted)
        )
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(got, (list, tuple))
            and len(got) == len(wanted)
            and all(same(g, w, tolerance, equal_nan=equal_nan) for g, w in zip(got, wanted, strict=True))
        )
    if isinstance(wanted, str) or wanted is None:
        return got == wanted
    try:
        got, wanted = np.asarray(got, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return got.shape == wanted.shape and np.allclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=equal_nan)


def _brief(value: object) -> str:
    """A value in a few lines: what fits is shown, what does not is described."""
    value = value.item() if isinstance(value, np.generic) else value
    text = np.array2string(value, precision=6, threshold=12) if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 240 else text[:237] + "…"


def _arguments(function: Callable, arguments: tuple) -> str:
    names = list(inspect.signature(function).parameters)
    return "\n".join(f"    {name} = {_brief(value)}" for name, value in zip(names, arguments, strict=False))


def _call(function: Callable, arguments: tuple) -> object:
    """Call with copies, since a function that changes its arguments must not spoil the oracle, and quietly."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*copy.deepcopy(arguments))


def _outcome(function: Callable, arguments: tuple) -> object:
    """What comes of a call: its result, or the exception that it raised."""
    try:
        return _call(function, arguments)
    except NotImplementedError:
        raise
    except (Exception, SystemExit) as problem:
        return problem


def _agree(exercise: Exercise, one: object, other: object) -> bool:
    if isinstance(one, BaseException) or isinstance(other, BaseException):
        return type(one) is type(other)
    return same(one, other, exercise.tolerance, equal_nan=True)


def _hint(exercise: Exercise, tried: list[tuple[tuple, object]], first: int) -> str:
    """Name the known mistake that does what the learner's function did: in the case shown, and in most others."""
    best, explained = "", 0
    for mistake, hint in exercise.mistakes:
        agrees = [_agree(exercise, got, _outcome(mistake, arguments)) for arguments, got in tried]
        if agrees[first] and sum(agrees) > explained:
            best, explained = f"\nHint: {hint}", sum(agrees)
    return best


def _verdict(exercise: Exercise, function: Callable) -> str | None:
    """Return None where the function is right, "" where it is still a stub, else what is wrong with it."""
    cases = list(exercise.cases(np.random.default_rng(20)))
    try:
        tried = [(arguments, _outcome(function, arguments)) for arguments in cases]
    except NotImplementedError:
        return ""
    wanted = [_call(exercise.solution, arguments) for arguments in cases]
    wrong = [i for i, want in enumerate(wanted) if not _agree(exercise, tried[i][1], want)]
    if not wrong:
        return None
    first = min(wrong, key=lambda i: isinstance(tried[i][1], BaseException))  # a result teaches more than an exception
    arguments, got = tried[first]
    with_these = f"With\n{_arguments(exercise.solution, arguments)}\n"
    hint = _hint(exercise, tried, first)
    if isinstance(got, BaseException):
        return f"{with_these}it raised {type(got).__name__}: {got}{hint}"
    return f"{with_these}it returned   {_brief(got)}\nand should be {_brief(wanted[first])}{hint}"


class Checker:
    """The exercises of one lesson. Call it with the function that the learner wrote."""

    def __init__(self, lesson: str) -> None:
        self.lesson = lesson
        self.exercises = exercises(lesson)
        self._last: dict[str, str | None] = {}
        if not self.exercises:
            raise ValueError(f"There are no exercises for the lesson {lesson!r}: use the notebook's own file name.")

    def _find(self, name: str) -> Exercise:
        if name not in self.exercises:
            there = ", ".join(self.exercises)
            raise ValueError(f"There is no exercise {name!r} in {self.lesson}; there are: {there}. Keep its name.")
        return self.exercises[name]

    def __call__(self, function: Callable) -> Callable:
        """Judge `function` by its name; return it where it is correct, else the reference answer."""
        name = getattr(function, "__name__", repr(function))
        exercise = self._find(name)
        if function is exercise.solution:  # this cell again, after the reference took over
            message = self._last.get(name, "")
        else:
            message = self._last[name] = _verdict(exercise, function)
            if message != "":
                scores.record(self.lesson, f"exercise:{name}", correct=message is None, kind="exercise")
        if message is None:
            print(f"{name}: correct. The lesson goes on with your function.")
            return function
        if message:
            print(
                f"{name}: not right yet. {message}\nUntil it is right the lesson goes on with the reference answer. "
                "Correct the cell above, run that cell, then this one."
            )
        else:
            print(
                f"{name}: not attempted yet. Write its body in the cell above, run that cell, then this one. "
                "Until then the lesson goes on with the reference answer."
            )
        if os.environ.get("COURSE_STRICT") == "1":
            raise NotSolved(f"{self.lesson}: {name} is {'wrong' if message else 'unsolved'}. {message}")
        return exercise.solution

    def solution(self, name: str) -> None:
        """Print the reference answer. Better looked at after an attempt than before."""
        print(source(self.lesson, name))
