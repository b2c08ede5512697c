"""The machine check judges as it should and never raises; the syllabus names what is there."""

from __future__ import annotations

import builtins
import importlib
import shutil
import subprocess
import sys
from collections import namedtuple

import psutil
import pytest
import yaml

from helpers import checkup, devices, syllabus
from helpers.data import DATA, ROOT, Table

PROJECT = """
[project]
requires-python = ">=3.11,<3.14"
dependencies = ["numpy>=2.1,<3", "Scikit_Learn>=1.7"]
"""
LOCK = """# a comment
numpy==2.3.0 ; python_full_version < '3.12'
numpy==2.4.0 ; python_full_version >= '3.12'
scikit-learn==1.7.2  # why
other==1.0
-e .
"""
THERE = {"numpy": "2.4.0", "Scikit_Learn": "1.7.2"}


@pytest.fixture
def course(tmp_path):
    """A course with two dependencies, whose check takes what is installed as a dictionary."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements.txt").write_text(LOCK)

    def check(there: dict[str, str], python: str = "3.12.4") -> dict[str, checkup.Finding]:
        return {f.name: f for f in checkup.requirements(tmp_path, version_of=there.get, python=python)}

    check.folder = tmp_path
    return check


def test_everything_right_is_ok(course):
    found = course(THERE)
    assert [f.ok for f in found.values()] == [True] * 3
    assert str(found["numpy"]) == "OK     numpy         2.4.0, within >=2.1,<3"
    assert checkup.verdict(list(found.values())) == "All 3 requirements are met."


def test_the_pin_is_the_one_for_this_python(course):
    assert course({**THERE, "numpy": "2.3.0"}, "3.11.9")["numpy"].ok
    assert not course({**THERE, "numpy": "2.3.0"}, "3.12.4")["numpy"].ok


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "not installed: run `"),
        ("1.26.4", "1.26.4 is too old, the course needs >=2.1,<3: run `"),
        ("3.0.1", "3.0.1 is too new, the course needs >=2.1,<3: run `"),
        ("2.2.0", "2.2.0 is within >=2.1,<3, but the course is tested with 2.4.0: run `"),
        ("rubbish", "installed with a version that cannot be read, 'rubbish': run `"),
    ],
)
def test_what_is_wrong_with_a_package_is_said_with_the_remedy(course, version, said):
    found = course({**THERE, "numpy": version})
    assert not found["numpy"].ok and found["Scikit_Learn"].ok
    assert str(found["numpy"]).startswith(f"TO DO  numpy         {said}")
    assert "pip install -r requirements.txt`" in found["numpy"].text
    assert checkup.verdict(list(found.values())) == (
        "1 of 3 requirements are not met: numpy. Their lines say what to do."
    )


@pytest.mark.parametrize("python", ["3.10.12", "3.14.0", "3.15.0a1"])
def test_a_wrong_python_is_the_one_thing_said(course, python):
    [(name, found)] = course(THERE, python).items()
    assert (name, found.ok) == ("Python", False)
    assert found.text.startswith(f"{python} is not within >=3.11,<3.14: install one of those")


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.txt"])
def test_a_missing_or_broken_list_is_a_sentence(course, name):
    (course.folder / name).write_text("[project\n= 5 ==" + PROJECT)
    assert "cannot be read" in course(THERE)["requirements"].text
    (course.folder / name).unlink()
    assert course(THERE)["requirements"].text.startswith(f"{name} cannot be read: clone the course again")


def test_a_dependency_that_the_lock_forgot_is_told(course):
    (course.folder / "requirements.txt").write_text("scikit-learn==1.7.2\n")
    assert "the lock names no version" in course(THERE)["numpy"].text


def test_without_packaging_it_says_so(course, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("packaging"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert course(THERE)["packaging"].text.startswith("not installed, so no version can be compared: run `")


def test_another_kernel_than_the_course_s_is_told_how_to_get_that(tmp_path, monkeypatch):
    monkeypatch.setattr(checkup, "ROOT", tmp_path)
    assert checkup.remedy().startswith("run `python -m pip install -r requirements.txt`")
    (tmp_path / ".venv").mkdir()
    assert "not the course's own: close JupyterLab and open it with `make lab`" in checkup.remedy()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert ".venv" in checkup.remedy() and "-m pip install -r requirements.txt" in checkup.remedy()


def test_this_environment_meets_each_requirement():
    missed = [str(found) for found in checkup.requirements() if not found.ok]
    assert not missed, "\n".join(missed)


def test_a_bare_python_gets_sentences_and_no_traceback(tmp_path):
    """As in a kernel that has none of the packages: nothing but the standard library can be imported."""
    code = f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + [{str(ROOT)!r}]"
    code += "; import runpy; runpy.run_module('helpers.checkup', run_name='__main__')"
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    assert "TO DO  packaging" in result.stdout and "TO DO  TensorFlow" in result.stdout


def of_machine(name: str) -> checkup.Finding:
    return next(found for found in checkup.machine() if found.name == name)


@pytest.fixture
def no_tensorflow(monkeypatch):
    """TensorFlow is not to be imported here; it stands for one without a GPU."""
    config = namedtuple("config", "list_physical_devices")(lambda kind: [])
    fake = namedtuple("tensorflow", "config")(config)
    monkeypatch.setattr(importlib, "import_module", lambda name: fake)


@pytest.mark.usefixtures("no_tensorflow")
def test_memory_counts_what_is_free_within_the_limit(monkeypatch):
    memory = namedtuple("memory", "available")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory(2**33))
    monkeypatch.setattr(devices, "machine", lambda: namedtuple("m", "memory_gib gpus")(2.0, ()))
    assert (of_machine("memory").ok, of_machine("memory").text) == (True, "2.0 GiB free of 2.0 GiB")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory(2**29))
    assert not of_machine("memory").ok
    assert "0.5 GiB free of 2.0 GiB, and a lesson may use 1 GiB: shut down other kernels" in of_machine("memory").text


@pytest.mark.usefixtures("no_tensorflow")
def test_a_full_disk_and_a_scores_file_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: namedtuple("usage", "free")(2**27))
    assert "0.1 GiB free, and the course wants 0.5 GiB: remove" in of_machine("disk").text
    monkeypatch.setenv("COURSE_SCORES", str(tmp_path / "scores.sqlite"))
    assert of_machine("scores").ok
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_SCORES", str(tmp_path / "file" / "scores.sqlite"))
    assert not of_machine("scores").ok
    assert "in memory" in of_machine("scores").text and "COURSE_SCORES" in of_machine("scores").text


@pytest.mark.usefixtures("no_tensorflow")
def test_no_gpu_is_fine_and_one_that_is_not_used_is_told(monkeypatch):
    machine = namedtuple("m", "memory_gib gpus")
    monkeypatch.setattr(devices, "machine", lambda: machine(8.0, ()))
    assert of_machine("GPU").ok and "none is needed" in of_machine("GPU").text
    monkeypatch.setattr(devices, "machine", lambda: machine(8.0, ("Tesla T4",)))
    assert of_machine("GPU").ok and "Tesla T4 is here, but TensorFlow does not see it" in of_machine("GPU").text


def test_a_tensorflow_that_does_not_start_is_a_sentence(monkeypatch):
    def broken(name):
        raise ImportError("DLL load failed while importing _pywrap_tensorflow_internal\nmore")

    monkeypatch.setattr(importlib, "import_module", broken)
    found = of_machine("TensorFlow")
    assert not found.ok
    assert found.text.startswith("does not start (DLL load failed while importing _pywrap_tensorflow_internal):")
    assert of_machine("GPU").text.startswith("cannot be checked (ImportError")


# The syllabus


def test_every_notebook_is_in_the_syllabus_and_names_have_their_form():
    there = {path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    listed = [lesson.name for lesson in syllabus.lessons()]
    assert there <= set(listed), f"add to data/lessons.yaml: {sorted(there - set(listed))}"
    assert listed == sorted(listed)
    assert len({lesson.number for lesson in syllabus.lessons()}) == len(listed)
    assert {lesson.name for lesson in syllabus.lessons() if lesson.stands} == there


def test_a_lesson_s_question_and_minutes_are_those_of_its_notebook():
    """What the map says of a lesson is what its first cell says."""
    from helpers.notebook_format import read  # noqa: PLC0415

    for lesson in syllabus.lessons():
        if lesson.stands:
            first = read(lesson.path).cells[0].source
            assert first.startswith(f"# {lesson.question}\n"), f"{lesson.name}: the titles differ"
            assert f"{lesson.minutes} minutes" in first, f"{lesson.name}: the study times differ"


def test_every_lesson_belongs_to_a_decade():
    grouped = [lesson for lessons in syllabus.decades().values() for lesson in lessons]
    assert grouped == syllabus.lessons()
    assert all(syllabus.decades().values()), "a decade has no lesson"


def test_routes_keep_what_their_names_promise():
    promised = {"2 hours": 120, "8 hours": 480}
    for route in syllabus.routes():
        assert route.lessons[0].number == "00"
        assert len(set(route.lessons)) == len(route.lessons)
        assert route.minutes() <= promised.get(route.name, route.minutes())
    assert list(syllabus.routes()[-1].lessons) == syllabus.lessons()
    shortest = syllabus.routes()[0]
    assert shortest.minutes(standing=True) == shortest.minutes(), "the shortest route must stand"


def test_strategies_name_their_lessons():
    fields = {"strategy", "cuts", "best for", "trade-off", "sends", "lesson"}
    for strategy in syllabus.strategies():
        assert set(strategy) == fields and all(strategy.values())
        assert syllabus.lesson(strategy["lesson"])
    assert [strategy["strategy"] for strategy in syllabus.strategies()] == ["data", "tensor", "pipeline", "hybrid"]


def test_links_lead_somewhere_or_are_none(tmp_path, monkeypatch):
    first = syllabus.lesson("00")
    assert syllabus.link(first) == "[00 Start here](00_start_here.ipynb)"
    monkeypatch.setattr(syllabus, "NOTEBOOKS", tmp_path)
    assert syllabus.link(first) == "00 Start here (in preparation)"
    assert syllabus.routes()[0].minutes(standing=True) == 0


def test_an_unknown_lesson_is_told_those_there_are():
    with pytest.raises(ValueError, match=r"no lesson '19' in data/lessons.yaml; there are: 00_start_here"):
        syllabus.lesson("19")


def test_the_file_holds_what_is_read_and_nothing_else():
    content = yaml.safe_load((DATA / "lessons.yaml").read_text(encoding="utf-8"))
    assert set(content) == {"decades", "lessons", "routes", "strategies"}


def test_a_table_as_markdown():
    table = Table([{"word": "a", "n": 1}, {"word": "b", "n": None}])
    assert syllabus.markdown(table).splitlines()[:3] == ["| word | n |", "| :--- | :--- |", "| a | 1 |"]
    assert syllabus.markdown(Table([{"n": 1}])).splitlines()[1] == "| ---: |"
