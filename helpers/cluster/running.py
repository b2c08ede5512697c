"""Run a function on workers, and return what each returned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from helpers.cluster import faults as faults_
from helpers.cluster import shipping
from helpers.cluster.faults import Fault
from helpers.cluster.leader import Plan
from helpers.cluster.processes import Cluster, WorkerError, cores, died, port_list, seconds, whole
from helpers.cluster.worker import Task

MOST = 16  # tasks of a kind: more than that on one machine teaches nothing
SECONDARY = {"UnavailableError", "AbortedError", "CancelledError", "InternalError", "DeadlineExceededError"}
GRACE = 0.3  # s in which other workers may still report the error that is the cause


class Results(list):
    """What each worker returned, by rank; None for one that was killed on purpose.

    `output` holds what each printed, by rank; `seconds` how long all took, start included.
    """

    def __init__(self, values: Iterable, output: list[str], seconds: float) -> None:
        super().__init__(values)
        self.output, self.seconds = output, seconds


def run(  # noqa: PLR0913  (each is named by whoever uses it)
    function: Callable,
    *args: Any,
    workers: int = 2,
    timeout: float = 60,
    faults: Iterable[Fault] = (),
    on_report: Callable[[int, int, dict], None] | None = None,
    show_output: bool = False,
    ports: Sequence[int] | None = None,
) -> Results:
    """Run `function(*args)` on `workers` processes at once, and return their values by rank.

    Each process is pinned to a core, computes with one thread, and finds the cluster in TF_CONFIG, as
    `tf.distribute.MultiWorkerMirroredStrategy` wants it. Tensors come back as NumPy arrays.

    Args:
        timeout: seconds for all of it; then every process is ended and TimeoutError raised.
        faults: what is to befall which rank: Kill, Stop, Restart, Delay, Slow.
        on_report: called here as on_report(rank, step, values) for each `cluster.report(step, **values)` there.
        show_output: print what the workers printed, by rank, after they have ended.
        ports: those that may be used; without it the system chooses.

    Raises:
        WorkerError: the function raised in a worker (the lowest rank of those that did), or a worker died.
        TimeoutError: the time is over; the text says which ranks had not answered.
        TypeError, ValueError, ClusterError: before anything starts, for what cannot work.
    """
    whole("workers", workers, 1, MOST)
    if not callable(function):
        raise TypeError(f"run() needs a function, not {function!r}: write run(train), not run(train()).")
    planned = tuple(replace(f, task=f"worker:{f.task}") for f in faults_.check(faults, range(workers)))
    packed = shipping.pack_function(function, args)
    start = time.monotonic()
    plan = Plan({"worker": workers}, planned, port_list(ports))
    with Cluster(plan, start + seconds("timeout", timeout)) as cluster:
        cluster.send("start", [Task("worker", k, packed, core) for k, core in enumerate(cores(workers))])
        race = _Race(workers, cluster, on_report)
        try:
            race.follow()
        finally:
            if show_output:
                _show(race.output)
    return Results(race.values, race.output, time.monotonic() - start)


class _Race:
    """Follow workers until each has answered, was killed on purpose, or one failed."""

    def __init__(self, workers: int, cluster: Cluster, on_report: Callable | None) -> None:
        self.cluster, self.on_report = cluster, on_report
        self.values: list[Any] = [None] * workers
        self.output, self.last_step = [""] * workers, [None] * workers
        self.pending = set(range(workers))
        self.failed: dict[int, WorkerError] = {}

    def follow(self) -> None:
        """Return when nobody is pending; raise what a worker raised, or TimeoutError."""
        while self.pending and not self.failed:
            self.take(self.cluster.next(self.waiting()))
        if self.failed:
            self.cluster.deadline = min(self.cluster.deadline, time.monotonic() + GRACE)
            while self.pending:
                try:
                    self.take(self.cluster.next(""))
                except TimeoutError:
                    break
            raise min(self.failed.items(), key=lambda item: (item[1].type in SECONDARY, item[0]))[1]

    def take(self, message: tuple) -> None:
        """Handle one message from the leader."""
        sort, name, *rest = message
        rank = int(name.partition(":")[2])
        if sort == "report":
            self.last_step[rank] = rest[0]
            if self.on_report is not None:
                self.on_report(rank, rest[0], shipping.unpack_value(rest[1]))
        elif sort == "result":
            self.values[rank], self.output[rank] = shipping.unpack_value(rest[0]), rest[1]
            self.pending.discard(rank)
        elif sort == "error":
            self.output[rank] = rest[3]
            self.fail(rank, *rest)
        elif sort == "started":
            self.pending.add(rank)
        elif sort == "ended":
            killed, code, self.output[rank] = rest
            self.pending.discard(rank)
            if not killed:
                self.fail(rank, *died(rank, code), self.output[rank])

    def fail(self, rank: int, kind: str, text: str, details: str, output: str) -> None:
        self.failed[rank] = WorkerError(rank, kind, text, details, output)
        self.pending.discard(rank)

    def waiting(self) -> str:
        """Say which ranks have not answered, and how far they were."""
        parts = []
        for rank in sorted(self.pending):
            step = self.last_step[rank]
            parts.append(f"{rank} (last step reported: {'none' if step is None else step})")
        return (
            f"no answer from rank {', '.join(parts)}. A collective waits for every rank, so one that is missing "
            "or stopped holds up all; if nothing is wrong, give a longer `timeout`"
        )


def _show(output: list[str]) -> None:
    """Print each worker's lines behind its rank."""
    for rank, text in enumerate(output):
        for line in text.splitlines():
            print(f"[worker {rank}] {line}")
