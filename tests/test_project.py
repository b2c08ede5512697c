"""The repository: dependency files that agree, a Makefile that explains itself, set-up that says what is wrong."""

from __future__ import annotations

import ast
import collections
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from helpers import bootstrap
from helpers.data import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = [line for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
DIRECT = [
    Requirement(text)
    for group in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for text in group
]
PYTHONS = ("3.11.9", "3.12.9", "3.13.9")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


PINS = collections.defaultdict(list)
for line in LOCK[:-1]:
    PINS[canonical(Requirement(line).name)].append(Requirement(line))


def pinned(name: str, python: str | None = None) -> list[str]:
    """Versions that the lock pins for a package, for the Python that runs this or another one."""
    environment = {"python_version": python[:4], "python_full_version": python} if python else None
    applying = [pin for pin in PINS[canonical(name)] if pin.marker is None or pin.marker.evaluate(environment)]
    return [next(iter(pin.specifier)).version for pin in applying]


def tracked() -> list[Path]:
    """Files that git tracks or would, or all that are here where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") and (ROOT / ".git").exists():
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not {".venv", "build"} & set(path.parts)]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("requirement", DIRECT, ids=lambda requirement: requirement.name)
def test_the_lock_pins_each_direct_dependency_within_its_range(requirement, python):
    versions = pinned(requirement.name, python)
    assert len(versions) == 1, f"{requirement.name} has {len(versions)} pins for Python {python}: run make lock"
    assert versions[0] in requirement.specifier, f"{versions[0]} is outside {requirement}: run make lock"


def test_the_lock_is_complete_exact_and_ends_with_the_course_itself():
    assert LOCK[-1] == "-e ."
    inexact = [str(pin) for pins in PINS.values() for pin in pins if not re.fullmatch(r"==[^*,]+", str(pin.specifier))]
    assert not inexact, f"not pinned exactly: {inexact}"


def test_what_is_installed_is_what_the_lock_names():
    stale = [
        f"{name} {version(name)} (the lock: {pinned(name)[0]})"
        for name in PINS
        if pinned(name) and version(name) != pinned(name)[0]
    ]
    assert not stale, f"The environment is older than the lock; make setup brings it up to date: {', '.join(stale)}"


def test_each_dependency_says_why_it_is_there():
    block = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[build-system]")[0]
    silent = [line for line in block.splitlines() if re.match(r'\s+"[a-z]', line) and "#" not in line]
    assert not silent, f"no reason given for: {silent}"


def test_binder_gets_the_same():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    [python] = [line for line in environment["dependencies"] if str(line).startswith("python=")]
    [from_pip] = [line["pip"] for line in environment["dependencies"] if isinstance(line, dict)]
    assert python.removeprefix("python=") + ".1" in SpecifierSet(PROJECT["requires-python"])
    assert from_pip == ["-r requirements.txt"]


def test_the_set_up_accepts_the_pythons_that_the_project_names():
    bounds = SpecifierSet(PROJECT["requires-python"])
    accepted = [minor for minor in range(8, 20) if f"3.{minor}.5" in bounds]
    assert ((3, accepted[0]), (3, accepted[-1])) == (bootstrap.OLDEST, bootstrap.NEWEST)
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert all(f'"3.{minor}"' in workflow for minor in accepted)


@pytest.mark.parametrize(("seen", "word"), [((3, 9), "3.9"), ((3, 14), "3.14")])
def test_a_python_too_old_or_too_new_is_named_with_the_remedy(seen, word, monkeypatch):
    monkeypatch.setattr(bootstrap, "version_of", lambda python: seen)
    with pytest.raises(bootstrap.SetUpError) as problem:
        bootstrap.choose_python("python3")
    sentence = str(problem.value)
    assert f"python3 is {word}" in sentence and "3.11 to 3.13" in sentence and "PYTHON=python3.12" in sentence


def test_another_suitable_python_is_found(monkeypatch):
    monkeypatch.setattr(bootstrap, "version_of", {sys.executable: (3, 9), "python3.12": (3, 12)}.get)
    assert bootstrap.choose_python() == "python3.12"


def test_a_full_disk_is_told_before_anything_is_installed(monkeypatch):
    usage = collections.namedtuple("usage", "total used free")(2**40, 2**40 - 2**30, 2**30)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(
        bootstrap.SetUpError, match=r"1\.0 GiB free, and the environment needs about \d GiB\. Free some"
    ):
        bootstrap.check_disk()


def test_a_failed_step_says_where_to_look():
    with pytest.raises(bootstrap.SetUpError, match="The lines above say why"):
        bootstrap.run(sys.executable, "-c", "raise SystemExit(1)")


def test_the_set_up_runs_on_the_pythons_it_refuses():
    """A Python that is too old must be able to read the file, or it shows a syntax error and no sentence."""
    source = (ROOT / "helpers/bootstrap.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 7))
    assert not re.search(r"\bf\"|:=|\bmatch .*:$", source, re.MULTILINE)


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make here")
def test_make_alone_lists_every_target():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  make ([a-z]+)  +\S", shown, re.MULTILINE) == targets


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make here")
def test_a_missing_python_is_told_in_a_sentence(tmp_path):
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    result = subprocess.run(
        ["make", "setup", "PYTHON=python9.9"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0 and "There is no python9.9 here: install Python 3.11" in result.stdout


def test_nothing_names_a_machine_or_a_mirror():
    """Addresses of package indexes and folders of whoever made this have no business in the course."""
    patterns = [
        r"(?<![\w.])/(?:home|root|Users|work)/[A-Za-z][\w.-]*/[\w.-]+",
        r"(?m)^\s*--?(?:i|index-url|extra-index-url|find-links)\b",
        r"\bfile:///[a-z]",
        r"\b(?:artifactory|nexus|devpi)\b",
    ]
    allowed = {ROOT / "tests" / "test_project.py", ROOT / "tests" / "test_notebook_tools.py"}
    found = []
    for path in set(tracked()) - allowed:
        text = path.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for p in patterns if (match := re.search(p, text))]
    assert not found, "\n".join(found)


def test_the_top_level_holds_what_it_should_and_nothing_else():
    expected = {
        "README.md", "CONTRIBUTING.md", "LICENSE", "CITATION.cff", "Makefile", "pyproject.toml", "requirements.txt",
        "environment.yml", ".ci", ".github", ".gitignore", ".pre-commit-config.yaml",
        "notebooks", "helpers", "data", "tests",
    }  # fmt: skip
    there = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert there == expected, f"missing: {sorted(expected - there)}; not expected: {sorted(there - expected)}"


MODULES = sorted(path.stem for path in (ROOT / "helpers").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("module", ["helpers", *(f"helpers.{name}" for name in MODULES)])
def test_importing_a_helper_imports_no_tensorflow(module):
    script = (
        "import sys, time; start = time.perf_counter(); import {0}; seconds = time.perf_counter() - start; "
        "print(seconds, 'tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", script.format(module)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert {tensorflow for _, tensorflow in runs} == {"False"}
    if module == "helpers":
        assert min(float(seconds) for seconds, _ in runs) < 0.2


def test_this_is_a_python_that_the_course_supports():
    assert platform.python_version() in SpecifierSet(PROJECT["requires-python"])


@pytest.mark.parametrize("arguments", [["check"], ["format", "--check"]], ids=lambda words: words[0])
def test_ruff_finds_nothing_in_modules_and_notebooks(arguments):
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", "."]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{result.stdout}{result.stderr}\nmake format mends most of this."
