"""A parameter-server cluster that stays while a cell uses it, and coordinators that run on it one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from helpers.cluster import faults as faults_
from helpers.cluster import shipping
from helpers.cluster.faults import Delay, Fault
from helpers.cluster.leader import Plan
from helpers.cluster.processes import Cluster, WorkerError, cores, died, port_list, seconds, whole
from helpers.cluster.worker import Task

MOST = 8  # tasks of a kind
COORDINATOR = "chief:0"  # its name in TF_CONFIG
RECONNECT = 2.0  # s until those who knew a task find it again after a restart: gRPC tries once a second


@contextmanager
def parameter_servers(
    workers: int = 2, servers: int = 1, timeout: float = 60, ports: Sequence[int] | None = None
) -> Iterator[ParameterServers]:
    """Open a cluster of `workers` and parameter `servers`, each a process; all end when the block does.

    `timeout` is the time in seconds that each start and each `run` may take. The tasks are named "worker:0",
    "ps:0" and so on.

    Raises:
        ValueError, ClusterError: before anything starts, for what cannot work.
    """
    whole("workers", workers, 1, MOST)
    whole("servers", servers, 1, MOST)
    counts = {"chief": 1, "worker": workers, "ps": servers}
    with Cluster(Plan(counts, ports=port_list(ports)), time.monotonic() + seconds("timeout", timeout)) as cluster:
        served = ParameterServers(cluster, counts, timeout)
        served._serve()
        yield served


class ParameterServers:
    """An open cluster. `run` runs a coordinator on it; the other methods do to a task what can befall it."""

    def __init__(self, cluster: Cluster, counts: dict[str, int], timeout: float) -> None:
        self._cluster, self._timeout = cluster, timeout
        self.tasks = [f"{kind}:{index}" for kind in ("worker", "ps") for index in range(counts[kind])]

    def _serve(self) -> None:
        """Start all servers, each worker on a core of its own, and wait until they serve."""
        pinned = iter(cores(sum(name.startswith("worker") for name in self.tasks)))
        parts = [name.split(":") for name in self.tasks]
        tasks = [Task(kind, int(index), core=next(pinned) if kind == "worker" else None) for kind, index in parts]
        self._cluster.send("start", tasks)
        self._until_ready(set(self.tasks))

    def _until_ready(self, missing: set[str]) -> None:
        while missing:
            sort, name, *rest = self._cluster.next(f"no sign of {', '.join(sorted(missing))}")
            if sort == "ready":
                missing.discard(name)
            elif sort == "error":
                raise WorkerError(name, *rest)
            elif sort == "ended" and not rest[0]:
                raise WorkerError(name, *died(name, rest[1]), rest[2])

    def run(
        self,
        coordinate: Callable,
        *args: Any,
        faults: Iterable[Fault] = (),
        on_report: Callable[[str, int, dict], None] | None = None,
        show_output: bool = False,
    ) -> Any:
        """Run `coordinate(*args)` in a process of its own that finds the cluster in TF_CONFIG; return its value.

        There `tf.distribute.experimental.ParameterServerStrategy` and a `ClusterCoordinator` can be made.
        Faults befall servers and workers when the coordinator reports their step; `on_report` is called as
        on_report("coordinator", step, values).

        Raises:
            WorkerError: the coordinator raised (task "coordinator"), or a server died that nobody killed.
            TimeoutError: it took longer than the cluster's `timeout`.
        """
        if not callable(coordinate):
            raise TypeError(f"run() needs a function, not {coordinate!r}: write run(train), not run(train()).")
        planned = faults_.check(faults, self.tasks)
        if any(isinstance(fault, Delay) for fault in planned):
            raise ValueError("A Delay befalls a task that starts, and these run already: use Stop.")
        packed = shipping.pack_function(coordinate, args)
        self._cluster.deadline = time.monotonic() + self._timeout
        self._cluster.send("plan", planned)
        self._cluster.send("start", [Task("chief", 0, packed)])
        try:
            return self._follow(on_report)
        finally:
            self._order("kill", COORDINATOR)
            self._cluster.send("plan", ())
            if show_output:
                for line in self.output("coordinator").splitlines():
                    print(f"[coordinator] {line}")

    def _follow(self, on_report: Callable | None) -> Any:
        last = None
        while True:
            where = "no step reported" if last is None else f"last step reported: {last}"
            sort, name, *rest = self._cluster.next(
                f"the coordinator has not returned ({where}). It waits for a closure as long as its worker is stopped"
            )
            if sort == "report":
                last = rest[0]
                if on_report is not None:
                    on_report("coordinator", last, shipping.unpack_value(rest[1]))
            elif sort == "result":
                return shipping.unpack_value(rest[0])
            elif sort == "error":
                raise WorkerError(_called(name), *rest)
            elif sort == "ended" and not rest[0]:
                raise WorkerError(_called(name), *died(_called(name), rest[1]), rest[2])

    def kill(self, task: str) -> None:
        """End a task (SIGKILL)."""
        self._order("kill", self._known(task))

    def restart(self, task: str) -> None:
        """End a task and start it anew, empty; return when those who knew it can find it again."""
        self._order("restart", self._known(task))
        self._cluster.deadline = time.monotonic() + self._timeout
        self._until_ready({task})
        time.sleep(RECONNECT)

    def stop(self, task: str) -> None:
        """Stop a task (SIGSTOP): it answers nobody, and nobody learns that it is gone."""
        self._order("stop", self._known(task))

    def resume(self, task: str) -> None:
        """Let a stopped task go on."""
        self._order("resume", self._known(task))

    def output(self, task: str) -> str:
        """Return what a task, or the last "coordinator", has printed."""
        name = COORDINATOR if task == "coordinator" else self._known(task)
        self._cluster.send("output", name)
        return self._cluster.answer("output", name)

    def _known(self, task: str) -> str:
        if task not in self.tasks:
            raise ValueError(f"There is no task {task!r} here; this cluster has {', '.join(self.tasks)}.")
        return task

    def _order(self, order: str, name: str) -> bool:
        """Have the leader do something to a task; False where the task is not alive."""
        self._cluster.send(order, name)
        return self._cluster.answer("done", name)


def _called(name: str) -> str:
    return "coordinator" if name == COORDINATOR else name
