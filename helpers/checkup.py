"""Does this machine meet the course's requirements? One line each: OK, or what to do about it.

The requirements are read where they stand, in pyproject.toml and requirements.txt, so this list cannot age.
Whatever is missing or broken ends in a sentence, never in a traceback: this is the first thing a learner runs.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.data import ROOT

MEMORY_GIB = 1.0  # what one lesson may use
DISK_GIB = 0.5  # executed notebooks, checkpoints, saved scores


@dataclass(frozen=True)
class Finding:
    """One requirement and whether it is met; `text` says what is there or, if it is not met, what to do."""

    name: str
    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'OK' if self.ok else 'TO DO':6} {self.name:13} {self.text}"


def installed(package: str) -> str | None:
    """Return the installed version of a package, or None where there is none or it is damaged."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def remedy() -> str:
    """Say how this kernel gets the packages of the lock: `make setup` sees only that the lock was installed once."""
    venv = ROOT / ".venv"
    if venv.is_dir() and Path(sys.prefix).resolve() != venv.resolve():
        return "this kernel is not the course's own: close JupyterLab and open it with `make lab`"
    python = r".venv\Scripts\python" if os.name == "nt" else ".venv/bin/python"
    python = python if venv.is_dir() else "python"
    return f"run `{python} -m pip install -r requirements.txt` in the course's folder, then restart this kernel"


def requirements(
    folder: Path = ROOT,
    *,
    version_of: Callable[[str], str | None] = installed,
    python: str | None = None,
) -> list[Finding]:
    """Check Python and each direct dependency against pyproject.toml and requirements.txt in `folder`.

    `python`, such as "3.12.4", stands for this interpreter's version, and `version_of` for what is installed.
    """
    python = python or platform.python_version()
    try:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        lock = (folder / "requirements.txt").read_text(encoding="utf-8")
    except OSError as problem:
        name = Path(problem.filename or "requirements").name
        return [Finding("requirements", False, f"{name} cannot be read: clone the course again, and {remedy()}.")]
    try:
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415
    except ImportError:
        return [Finding("packaging", False, f"not installed, so no version can be compared: {remedy()}.")]
    wanted = re.search(r'^requires-python\s*=\s*"([^"]+)"', text, re.MULTILINE)
    pythons = SpecifierSet(wanted[1] if wanted else "")
    if not pythons.contains(python, prereleases=True):
        text = (
            f"{python} is not within {_range(pythons)}: install one of those, then `make lab PYTHON=python3.12`, say."
        )
        return [Finding("Python", False, text)]
    import tomllib  # noqa: PLC0415  (absent from the Pythons refused above)

    try:
        direct = [Requirement(line) for line in tomllib.loads(text)["project"]["dependencies"]]
        pins = _pins(lock, python)
    except (tomllib.TOMLDecodeError, KeyError, InvalidRequirement) as problem:
        reason = str(problem).splitlines()[0]
        return [Finding("requirements", False, f"cannot be read ({reason}): clone the course again.")]
    found = [Finding("Python", True, f"{python}, within {_range(pythons)}")]
    return found + [_judge(need, version_of(need.name), pins.get(_canonical(need.name))) for need in direct]


def _range(specifiers: Iterable) -> str:
    return ",".join(sorted(map(str, specifiers), reverse=True))  # the lower bound first


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pins(lock: str, python: str) -> Mapping[str, str]:
    """The versions that the lock names for this system and this Python."""
    from packaging.requirements import Requirement  # noqa: PLC0415

    lines = [line.split(" #")[0].strip() for line in lock.splitlines()]
    environment = {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    needs = [Requirement(line) for line in lines if line and line[0] not in "#-"]
    return {
        _canonical(need.name): next(iter(need.specifier)).version
        for need in needs
        if len(need.specifier) == 1 and (need.marker is None or need.marker.evaluate(environment))
    }


def _judge(need, there: str | None, pin: str | None) -> Finding:
    """Compare one direct dependency with its range and with its pin in the lock."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    def missed(text: str) -> Finding:
        return Finding(need.name, False, f"{text}: {remedy()}.")

    if there is None:
        return missed("not installed")
    try:
        version = Version(there)
    except InvalidVersion:
        return missed(f"installed with a version that cannot be read, {there!r}")
    if pin is None:
        return Finding(need.name, False, f"{there} is installed, and the lock names no version: run `make lock`.")
    if not need.specifier.contains(version, prereleases=True):
        old = version < Version(pin)
        return missed(f"{there} is too {'old' if old else 'new'}, the course needs {_range(need.specifier)}")
    if version != Version(pin):
        return missed(f"{there} is within {_range(need.specifier)}, but the course is tested with {pin}")
    return Finding(need.name, True, f"{there}, within {_range(need.specifier) or 'any'}")


def machine(folder: Path = ROOT) -> list[Finding]:
    """Check what this machine offers: cores, free memory and disk, a scores file, TensorFlow, a GPU."""
    checks = {
        "cores": _cores,
        "memory": _memory,
        "disk": lambda: _disk(folder),
        "scores": _scores,
        "TensorFlow": _tensorflow,
        "GPU": _gpu,
    }
    return [_carefully(name, check) for name, check in checks.items()]


def _carefully(name: str, check: Callable[[], tuple[bool, str]]) -> Finding:
    try:
        return Finding(name, *check())
    except Exception as problem:  # whatever breaks here, a learner needs a sentence
        reason = (str(problem).strip().splitlines() or [""])[0][:160]
        return Finding(name, False, f"cannot be checked ({type(problem).__name__}: {reason}): {remedy()}.")


def _cores() -> tuple[bool, str]:
    from helpers.devices import usable_cores  # noqa: PLC0415

    cores = usable_cores()
    slow = "" if cores >= 2 else ": enough, but expect twice the run times that the lessons state"
    return True, f"{cores:g} for this kernel{slow}"


def _memory() -> tuple[bool, str]:
    from helpers.devices import machine, memory_available  # noqa: PLC0415

    limit = machine().memory_gib
    free = min(memory_available() / 2**30, limit)
    there = f"{free:.1f} GiB free of {limit:.1f} GiB"
    if free >= MEMORY_GIB:
        return True, there
    return False, f"{there}, and a lesson may use {MEMORY_GIB:g} GiB: shut down other kernels, close other programs."


def _disk(folder: Path) -> tuple[bool, str]:
    free = shutil.disk_usage(folder).free / 2**30
    if free >= DISK_GIB:
        return True, f"{free:.1f} GiB free"
    return False, f"{free:.1f} GiB free, and the course wants {DISK_GIB:g} GiB: remove what you do not need."


def _scores() -> tuple[bool, str]:
    from helpers import scores  # noqa: PLC0415

    sentence = scores.where()
    if "in memory" in sentence:
        return False, sentence
    return True, "a file that can be written; scores.where() says which"


def _tensorflow() -> tuple[bool, str]:
    try:
        importlib.import_module("tensorflow")
    except Exception as problem:  # a missing system library, a processor without AVX, …
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0][:160]
        extra = " On Windows, install Microsoft's Visual C++ redistributable first." if os.name == "nt" else ""
        return False, f"does not start ({reason}): {remedy()}.{extra}"
    return True, "starts"


def _gpu() -> tuple[bool, str]:
    """What computes; no GPU is no fault, a GPU that TensorFlow cannot see is worth a word."""
    from helpers.devices import machine  # noqa: PLC0415

    tensorflow = importlib.import_module("tensorflow")
    seen = len(tensorflow.config.list_physical_devices("GPU"))
    if seen:
        return True, f"{seen} in use; the replicas of each lesson are placed there"
    if machine().gpus:
        return True, (
            f"{', '.join(machine().gpus)} is here, but TensorFlow does not see it, so lessons run on the CPU. To use "
            f"it on Linux: `.venv/bin/python -m pip install 'tensorflow[and-cuda]=={installed('tensorflow')}'`"
        )
    return True, "none, and none is needed: replicas share the CPU, so results are real and speed-ups are not"


def verdict(findings: list[Finding]) -> str:
    """Say in one line whether all of it holds, or name what does not."""
    missed = [finding.name for finding in findings if not finding.ok]
    if missed:
        names = ", ".join(missed)
        return f"{len(missed)} of {len(findings)} requirements are not met: {names}. Their lines say what to do."
    return f"All {len(findings)} requirements are met."


if __name__ == "__main__":
    everything = [*requirements(), *machine()]
    print(*everything, verdict(everything), sep="\n")
    sys.exit(not all(finding.ok for finding in everything))
