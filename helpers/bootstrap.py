"""Make `.venv` from the lock, or say in one sentence what stands in the way.

Runs before anything is installed, perhaps on a Python that is too old for the course, so it uses the
standard library alone and no syntax younger than Python 3.6.
"""

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
OLDEST, NEWEST = (3, 11), (3, 13)
NEEDED_GIB = 4.0  # the environment takes 2.9 GiB on Linux; pip unpacks beside it


class SetUpError(Exception):
    """Something the learner can put right; the message says how."""


def version_of(python):
    """Return (major, minor) of an interpreter, or None where it does not run."""
    probe = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        out = subprocess.run(probe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=True)
        major, minor = out.stdout.split()
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def choose_python(wanted=None):
    """Return the command of a suitable Python: the one named, else this one, else any on PATH."""
    names = [wanted] if wanted else [sys.executable] + ["python3.%d" % m for m in (13, 12, 11)]
    found = [(name, version_of(name)) for name in names]
    for name, version in found:
        if version and OLDEST <= version <= NEWEST:
            return name
    seen = ", ".join("%s is %d.%d" % ((os.path.basename(n),) + v) for n, v in found if v) or "none runs"
    raise SetUpError(
        "The course needs Python %d.%d to %d.%d, because TensorFlow is published for those; here: %s. "
        "Install one of them, then name it: make lab PYTHON=python3.12" % (OLDEST + NEWEST + (seen,))
    )


def check_disk(path=ROOT, needed_gib=NEEDED_GIB):
    """Refuse to start an installation that the disk cannot hold."""
    free = shutil.disk_usage(path).free / 2**30
    if free < needed_gib:
        raise SetUpError(
            "The disk that holds %s has %.1f GiB free, and the environment needs about %.0f GiB. "
            "Free some space, or clone the course to another disk." % (path, free, needed_gib)
        )


def run(*command):
    """Run one set-up command; its own output is the explanation when it fails."""
    try:
        subprocess.run(command, cwd=ROOT, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise SetUpError(
            "This step failed: %s. The lines above say why; with no network, or a proxy in the way, "
            "pip cannot reach its package index. Run the same make target again to go on." % " ".join(command[1:])
        ) from None


def set_up(wanted=None):
    """Create or update `.venv` so that it holds exactly what the lock names."""
    python = choose_python(wanted)
    inside = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin", "python")
    current = version_of(inside)
    if current is None or (wanted and current != version_of(python)):
        check_disk()
        print("Making .venv with Python %d.%d" % version_of(python), flush=True)
        run(python, "-m", "venv", "--clear", VENV)
    print("Installing the lock (requirements.txt); the first time takes one to five minutes", flush=True)
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt")
    with open(os.path.join(VENV, ".ready"), "w") as stamp:
        stamp.write("The lock is installed. Make compares this file's age with the lock's.\n")


if __name__ == "__main__":
    try:
        set_up(sys.argv[1] if len(sys.argv) > 1 else None)
    except SetUpError as problem:
        sys.exit("Set-up stopped. %s" % problem)
