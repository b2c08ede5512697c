"""The kernel's side of a cluster: one connection to its leader, and plain words for what goes wrong."""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import time
import types
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from helpers import devices
from helpers.cluster import leader
from helpers.cluster.leader import Plan

EACH = 100 * 2**20  # bytes of its own that a task needs before it holds any data
SERVER = 300 * 2**20  # bytes of the fork server, which all tasks share
PRELOAD = ["helpers", "tensorflow", "keras", "psutil", "helpers.cluster.leader"]
ACCEPTED = "COURSE_CLUSTER_EXPOSED"  # "accepted" in the environment: whoever set it knows what the warning says
WARNING = (
    "This system gives the cluster no network of its own: while a cell runs it, its TensorFlow servers, which ask "
    "nobody who they are, can be reached from outside this machine. On a network that you do not trust, stop here."
)


class ClusterError(RuntimeError):
    """A cluster could not be made, or has lost a process that nobody meant to end."""


class WorkerError(ClusterError):
    """A task raised an exception or died. `task` is its rank or name, `type` the exception's name,
    `details` its traceback, `output` what the task had printed."""

    def __init__(self, task: int | str, type: str, text: str, details: str, output: str) -> None:
        super().__init__(f"{label(task)} raised {type}: {text}\n\n{details}".rstrip() if details else text)
        self.task, self.type, self.details, self.output = task, type, details, output


def label(task: int | str) -> str:
    """Return how a task is called in a sentence."""
    return f"Worker {task}" if isinstance(task, int) else f"Task {task}"


def died(task: int | str, code: int) -> tuple[str, str, str]:
    """Return (type, text, details) for a task that ended without an answer; `code` is negative for a signal."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    hint = " Signal 9 without a planned fault usually means that the memory ran out." if code == -9 else ""
    return "Died", f"{label(task)} ended with {how} and gave no answer.{hint}", ""


class Cluster:
    """A leader, and through it the tasks. A context: leaving it, however, ends them all."""

    def __init__(self, plan: Plan, deadline: float) -> None:
        self.deadline = deadline  # time.monotonic() at which whoever still waits gives up
        check_memory(sum(plan.counts.values()))
        plan.environment = dict(os.environ)
        plan.sockets = multiprocessing.util.get_temp_dir()
        self.early: deque[tuple] = deque()  # what the leader said while an answer was awaited
        self.line, far = multiprocessing.Pipe()
        with far, _quiet_start():
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(PRELOAD)
            self.process = context.Process(target=leader.main, args=(plan, far), daemon=True)
            self.process.start()
        try:
            self._open(plan)
        except BaseException:
            self.close()
            raise

    def _open(self, plan: Plan) -> None:
        message = self.next("the cluster did not start")
        if message[0] == "refused":
            raise ClusterError(
                f"The cluster needs a port for each task: {message[1]}. Offer others, or leave `ports` out."
            )
        _, self.isolated, self.addresses = message
        if not self.isolated:
            warn_once()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def send(self, *message) -> None:
        """Send the leader an order."""
        try:
            self.line.send(message)
        except OSError:
            raise ClusterError(LOST) from None

    def next(self, otherwise: str) -> tuple:
        """Return the leader's next message; at the deadline raise TimeoutError, saying what `otherwise` says."""
        if self.early:
            return self.early.popleft()
        return self._receive(otherwise)

    def answer(self, sort: str, name: str) -> object:
        """Return the last part of the leader's answer of this sort about a task; keep what it says before."""
        self.deadline = time.monotonic() + PROMPT
        while (message := self._receive(f"no answer about {name}"))[:2] != (sort, name):
            self.early.append(message)
        return message[-1]

    def _receive(self, otherwise: str) -> tuple:
        if not self.line.poll(max(0.0, self.deadline - time.monotonic())):
            raise TimeoutError(f"The time given to the cluster is over: {otherwise}.")
        try:
            return self.line.recv()
        except (EOFError, OSError):
            raise ClusterError(LOST) from None

    def close(self) -> None:
        """End every process of the cluster, and wait until they are gone."""
        with suppress(OSError):
            self.line.send(("close",))
        self.line.close()  # enough for the leader even where it did not get the message
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()  # each task has asked the system to die with it
            self.process.join()
        self.process.close()


PROMPT = 10.0  # s in which a leader answers
LOST = "The cluster's leading process has ended unexpectedly, and all tasks with it. Out of memory is the usual cause."


def check_memory(tasks: int) -> None:
    """Refuse a cluster that this machine's free memory cannot hold."""
    free, needed = devices.memory_available(), tasks * EACH + SERVER
    if needed > free:
        raise ClusterError(
            f"{tasks} processes need about {needed / 2**20:.0f} MiB, and {free / 2**20:.0f} MiB are free: "
            "ask for fewer, or shut down other kernels."
        )


def cores(tasks: int) -> list[int | None]:
    """Return a core for each task, in turn; None where a process cannot be pinned."""
    if not hasattr(os, "sched_getaffinity"):
        return [None] * tasks
    mine = sorted(os.sched_getaffinity(0))
    return [mine[index % len(mine)] for index in range(tasks)]


def whole(name: str, value: object, least: int, most: int) -> int:
    """Return a number of tasks, or refuse it in words."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"`{name}` must be a whole number from {least} to {most}, not {value!r}.")
    return value


def seconds(name: str, value: object) -> float:
    """Return a time, or refuse it in words."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"`{name}` must be a positive number of seconds, not {value!r}.")
    return float(value)


def port_list(ports: Sequence[int] | None) -> tuple[int, ...]:
    """Return the ports that may be used; (0,) where the system chooses."""
    if ports is None:
        return (0,)
    wrong = [port for port in ports if isinstance(port, bool) or not isinstance(port, int) or not 1024 <= port < 65536]
    if wrong or not ports:
        raise ValueError(f"`ports` must hold whole numbers from 1024 to 65535, not {(wrong or list(ports))[:3]}.")
    return tuple(dict.fromkeys(ports))


_warned: list[bool] = []


def warn_once() -> None:
    """Say, once in a kernel, that a cluster can be reached from outside."""
    if not _warned and os.environ.get(ACCEPTED) != "accepted":
        print(WARNING)
    _warned.append(True)


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Let no interrupt reach a process that is being started, and let it not import the caller's main module.

    What starts inherits the blocked signal, so Ctrl-C stays a matter between the learner and the kernel. A
    script without a guard around its main part would run once more in each child.
    """
    main, mask = sys.modules["__main__"], signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
