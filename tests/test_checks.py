"""Every checker accepts its reference, refuses every known mistake with its hint, and never lets a stub pass."""

import importlib
import json

import numpy as np
import pytest

from helpers import checks, data, solutions

LESSONS = [
    path.stem for path in sorted((data.ROOT / "notebooks").glob("[0-9]*.ipynb")) if solutions.exercises(path.stem)
]
EXERCISES = [(lesson, name) for lesson in LESSONS for name in solutions.exercises(lesson)]
MISTAKES = [
    (lesson, name, number)
    for lesson, name in EXERCISES
    for number in range(len(solutions.exercises(lesson)[name].mistakes))
]


@pytest.fixture(autouse=True)
def own_scores(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_SCORES", str(tmp_path / "scores.sqlite"))
    monkeypatch.delenv("COURSE_STRICT", raising=False)


def answer(function, name):
    """A copy of `function` under the name that the exercise asks for."""

    def learner(*arguments):
        return function(*arguments)

    learner.__name__ = name
    return learner


@pytest.mark.parametrize(("lesson", "name"), EXERCISES)
def test_reference_is_correct(lesson, name, capsys):
    learner = answer(solutions.exercises(lesson)[name].solution, name)
    assert checks.Checker(lesson)(learner) is learner
    assert "correct" in capsys.readouterr().out


@pytest.mark.parametrize(("lesson", "name", "number"), MISTAKES)
def test_mistake_is_refused_with_its_hint(lesson, name, number, capsys):
    exercise = solutions.exercises(lesson)[name]
    mistake, hint = exercise.mistakes[number]
    assert checks.Checker(lesson)(answer(mistake, name)) is exercise.solution
    said = capsys.readouterr().out
    assert "not right yet" in said
    assert hint in said


@pytest.mark.parametrize(("lesson", "name"), EXERCISES)
def test_at_least_two_mistakes_are_known(lesson, name):
    assert len(solutions.exercises(lesson)[name].mistakes) >= 2


@pytest.mark.parametrize(("lesson", "name"), EXERCISES)
def test_stub_in_the_notebook_is_not_attempted(lesson, name, capsys):
    notebook = json.loads((data.ROOT / "notebooks" / f"{lesson}.ipynb").read_text(encoding="utf-8"))
    (stub,) = [cell for cell in notebook["cells"] if cell["metadata"].get("exercise") == name]
    scope = {"np": np}
    exec("".join(stub["source"]), scope)
    assert checks.Checker(lesson)(scope[name]) is solutions.exercises(lesson)[name].solution
    assert "not attempted yet" in capsys.readouterr().out


def test_strict_raises_for_stub_and_for_wrong(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    check = checks.Checker("20_data_parallelism")

    def replica_loss(losses, global_batch_size):
        raise NotImplementedError

    with pytest.raises(checks.NotSolved, match="unsolved"):
        check(replica_loss)
    with pytest.raises(checks.NotSolved, match="wrong"):
        check(answer(lambda losses, global_batch_size: 1.0, "replica_loss"))


def test_an_exception_is_reported_with_the_arguments(capsys):
    def replica_loss(losses, global_batch_size):
        return 1 / 0

    checks.Checker("20_data_parallelism")(replica_loss)
    said = capsys.readouterr().out
    assert "ZeroDivisionError" in said
    assert "global_batch_size = 4" in said


def test_changing_the_arguments_does_not_spoil_the_oracle():
    def replica_loss(losses, global_batch_size):
        total = losses.sum() / global_batch_size
        losses[:] = 0
        return total

    assert checks.Checker("20_data_parallelism")(replica_loss) is replica_loss


def test_checking_again_after_the_reference_took_over(capsys):
    check = checks.Checker("20_data_parallelism")
    check(check.exercises["replica_loss"].solution)
    assert "not attempted yet" in capsys.readouterr().out


def test_unknown_names_are_refused_plainly():
    with pytest.raises(ValueError, match="no exercises for the lesson '99_nothing'"):
        checks.Checker("99_nothing")
    with pytest.raises(ValueError, match="there are: average_gradients"):
        checks.Checker("20_data_parallelism")(answer(len, "wrong_name"))


@pytest.mark.parametrize(
    ("got", "wanted", "equal"),
    [
        (1.0, 1.0 + 1e-7, True),
        (np.float32(1), 1, True),
        ([1, 2], (1, 2), True),
        ([1, 2], [1, 2, 3], False),
        (np.ones(2), np.ones((2, 1)), False),
        (np.nan, np.nan, False),
        (None, 1.0, False),
        ("a", "a", True),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"b": 1}, False),
        ("text", 1.0, False),
    ],
)
def test_same(got, wanted, equal):
    assert checks.same(got, wanted, 1e-5) is equal


def test_source_is_the_function_itself():
    scope = {"np": np}
    exec(solutions.source("20_data_parallelism", "replica_loss"), scope)
    assert scope["replica_loss"](np.array([1.0, 4.0]), 4) == 1.25
    assert importlib.util.find_spec("helpers.solutions.lesson_20_data_parallelism")


def test_a_wrong_result_is_told_before_a_later_exception(capsys):
    def scaled_learning_rate(step, base, k, warmup_steps):
        return k * base * min(1, step / warmup_steps)  # wrong in the first case, raises in the fourth

    checks.Checker("20_data_parallelism")(scaled_learning_rate)
    said = capsys.readouterr().out
    assert "ZeroDivisionError" not in said
    assert "starts at base, not at 0" in said


def test_checking_again_keeps_the_last_verdict(capsys):
    check = checks.Checker("20_data_parallelism")
    again = check(answer(lambda losses, global_batch_size: 1.0, "replica_loss"))
    capsys.readouterr()
    check(again)
    assert "not right yet" in capsys.readouterr().out


def test_leaving_and_warning_do_not_escape(capsys):
    import sys  # noqa: PLC0415

    check = checks.Checker("20_data_parallelism")
    check(answer(lambda losses, global_batch_size: sys.exit(1), "replica_loss"))
    check(answer(lambda losses, global_batch_size: np.mean(losses), "replica_loss"))
    captured = capsys.readouterr()
    assert "SystemExit" in captured.out
    assert captured.err == ""


def test_something_without_a_name_is_refused_plainly():
    import functools  # noqa: PLC0415

    with pytest.raises(ValueError, match="Keep its name"):
        checks.Checker("20_data_parallelism")(functools.partial(print))
