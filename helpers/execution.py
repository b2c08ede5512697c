"""Run one notebook alone, in processes of its own, and leave none of them behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from helpers import notebook_format as form

SAMPLES_PER_SECOND = 5
ROLLUP = "/proc/{}/smaps_rollup"
MARK = "COURSE_RUN"  # in the environment of a run's processes, so that even one that escaped is found
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PAPERMILL_NOTE = "papermill-error-cell-tag"  # cells that papermill adds to a copy that failed


@dataclass
class Outcome:
    """What became of one notebook. `result` is ok, failed, timeout, left processes or interrupted."""

    notebook: str
    result: str
    seconds: float
    peak_mib: float  # kernel and all its descendants, MiB
    memory_measure: str  # PSS counts shared pages once in all; RSS counts them once per process
    problem: str = ""
    cells: list[dict] = field(default_factory=list)  # {"cell": number, "seconds": s}, in order

    @property
    def ok(self) -> bool:
        return self.result == "ok"


def execute(source: str, target: str, folder: str) -> None:
    """Execute a notebook with papermill in this process's Python; the kernel's directory is `folder`.

    The kernel is the interpreter that runs this, whatever kernel the learner has registered under the name
    python3: else a lesson might be tested in one environment and read in another.
    """
    import papermill  # noqa: PLC0415  (two seconds that only the child process pays)
    from ipykernel.kernelspec import RESOURCES, get_kernel_dict  # noqa: PLC0415
    from jupyter_client import AsyncKernelManager  # noqa: PLC0415
    from jupyter_client.kernelspec import KernelSpec  # noqa: PLC0415

    class ThisPython(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())

    papermill.execute_notebook(
        form.normalise(form.read(source)),
        target,
        kernel_name=form.KERNEL["name"],
        kernel_manager_class=ThisPython,
        progress_bar=False,
        cwd=folder,
    )


def run_notebook(  # noqa: PLR0913  (each is named by whoever uses it)
    source: Path,
    target: Path,
    *,
    folder: Path | None = None,
    timeout: float = 600,
    strict: bool = False,
    stop: threading.Event | None = None,
) -> Outcome:
    """Execute `source` into `target` in a session of its own, watching time (s) and memory.

    The kernel starts in the notebook's folder, as it does in JupyterLab and under nbval, so that a relative
    path means the same thing everywhere. Scores go to a throw-away file: neither does a run write into the
    learner's scores, nor does what it prints depend on them. `strict` makes an unsolved exercise an error.
    """
    stop = stop or threading.Event()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    mark = uuid.uuid4().hex
    command = [sys.executable, "-c", "import sys; from helpers.execution import execute; execute(*sys.argv[1:])"]
    command += [str(source), str(target), str(folder or source.parent)]
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as scratch:
        log = Path(scratch) / "log"
        with log.open("wb") as out:
            start = time.perf_counter()
            process = subprocess.Popen(
                command,
                env=_environment(mark, scratch, strict),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            watch = _Watch(process, mark)
            try:
                reason = watch.until_end(start + timeout, stop)
            finally:
                seconds = time.perf_counter() - start
                left = watch.kill_all(grace=0 if process.poll() is None else 2)
        outcome = Outcome(source.stem, reason or "ok", seconds, watch.peak / 2**20, watch.measure)
        _judge(outcome, target, process.returncode, left, log.read_text(errors="replace"))
    return outcome


def _environment(mark: str, scratch: str, strict: bool) -> dict[str, str]:
    # PYTEST_CURRENT_TEST makes ipykernel hide native stderr, which a learner would see.
    env = {k: v for k, v in os.environ.items() if k not in ("PYTEST_CURRENT_TEST", "COURSE_STRICT")}
    env |= {MARK: mark, "COURSE_SCORES": os.path.join(scratch, "scores.sqlite"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    env |= {"COURSE_CLUSTER_EXPOSED": "accepted"}  # what is stored must not say whether this system isolates clusters
    return env | ({"COURSE_STRICT": "1"} if strict else {})


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Give an event that tells running notebooks to stop, and make Ctrl-C and termination set it."""
    stop = threading.Event()
    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Watch:
    """Follow a process and all its descendants: their memory while they live, their end at the end."""

    def __init__(self, process: subprocess.Popen, mark: str) -> None:
        self.process, self.mark = process, mark
        self.seen: dict[int, psutil.Process] = {}
        self.peak, self.measure = 0.0, "PSS" if os.path.exists(ROLLUP.format("self")) else "RSS"

    def until_end(self, deadline: float, stop: threading.Event) -> str:
        """Sample until the process ends; return "" or why it must be ended: timeout, interrupted."""
        while True:
            self.sample()
            try:
                self.process.wait(1 / SAMPLES_PER_SECOND)
                return ""
            except subprocess.TimeoutExpired:
                pass
            if stop.is_set():
                return "interrupted"
            if time.perf_counter() > deadline:
                return "timeout"

    def sample(self) -> None:
        """Add up the memory of the kernel and its descendants; the process that drives it is not counted."""
        with suppress(psutil.Error):
            descendants = psutil.Process(self.process.pid).children(recursive=True)
            self.seen.update((child.pid, child) for child in descendants)
            self.peak = max(self.peak, sum(self._bytes(child) for child in descendants))

    def _bytes(self, process: psutil.Process) -> float:
        with suppress(psutil.Error, OSError, StopIteration, ValueError):
            if self.measure == "RSS":
                return process.memory_info().rss
            with open(ROLLUP.format(process.pid), "rb") as rollup:
                return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith(b"Pss:"))
        return 0.0

    def kill_all(self, grace: float) -> list[str]:
        """Kill whatever belongs to this run; return the commands of what outlived its run by `grace` s."""
        psutil.wait_procs(self._alive(), timeout=grace)
        left = [_command(process) for process in self._alive()]
        for _ in range(10):  # a process may start another one while it is being killed
            alive = self._alive()
            if self.process.poll() is None:
                self.process.kill()
            for process in alive:
                with suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(alive, timeout=1)
            if self.process.poll() is not None and not self._alive():
                break
        self.process.wait()
        return left

    def _alive(self) -> list[psutil.Process]:
        """Processes of this run by descent or by the mark in their environment, without zombies."""
        with suppress(psutil.Error):
            self.seen.update((c.pid, c) for c in psutil.Process(self.process.pid).children(recursive=True))
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.pid != self.process.pid and process.environ().get(MARK) == self.mark:
                    self.seen[process.pid] = process
        return [process for process in self.seen.values() if _lives(process)]


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _command(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())[:80] or process.name()
    return f"process {process.pid}"


def _judge(outcome: Outcome, target: Path, code: int, left: list[str], log: str) -> None:
    """Fill in the result, the problem in words and the seconds per cell."""
    cells = _cells(target)
    outcome.cells = [
        {"cell": number, "seconds": cell.metadata.papermill.duration}
        for number, cell in cells
        if cell.cell_type == "code" and cell.metadata.papermill.get("duration") is not None
    ]
    if outcome.result == "ok" and code:
        outcome.result = "failed"
    elif outcome.result == "ok" and left:
        outcome.result = "left processes"
        outcome.problem = f"{outcome.notebook}.ipynb ended and left running: {'; '.join(left)}"
        return
    if not outcome.ok:
        outcome.problem = f"{outcome.notebook}.ipynb{_what_stopped(outcome, cells, log)}"


def _cells(target: Path) -> list[tuple[int, form.NotebookNode]]:
    """Return the executed copy's cells with the numbers they have in the source, from 1."""
    try:
        nb = form.read(target)
    except (OSError, ValueError):  # not written yet, or killed while being written
        return []
    nb.cells = [cell for cell in nb.cells if PAPERMILL_NOTE not in cell.metadata.get("tags", [])]
    return list(enumerate(nb.cells, start=1))


def _what_stopped(outcome: Outcome, cells: list, log: str) -> str:
    """Say at which cell a run ended and how, from the copy that papermill saves after each cell."""
    for number, cell in cells:
        for error in (out for out in cell.get("outputs", []) if out.output_type == "error"):
            traceback = _indent("\n".join(error.traceback), -12)
            return f", cell {number}: {error.ename}: {error.evalue}\n{traceback}"
    started = [(number, cell) for number, cell in cells if cell.metadata.papermill.get("start_time")]
    if not started:
        return f": {outcome.result} before its first cell\n{_indent(log, -8)}"
    number, cell = started[-1]
    if outcome.result == "failed":
        return f", cell {number}: the kernel died in this cell:\n{_indent(cell.source, 3)}\n{_indent(log, -1)}"
    return f", cell {number}: {outcome.result} after {outcome.seconds:.0f} s in this cell:\n{_indent(cell.source, 3)}"


def _indent(text: str, lines: int) -> str:
    """Return the first (or, where negative, last) lines of a text without colours, indented."""
    kept = ANSI.sub("", text).strip().splitlines()
    return "\n".join("    " + line for line in (kept[:lines] if lines > 0 else kept[lines:]))
