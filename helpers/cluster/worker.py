"""One task of a cluster: what runs in its process, and what the learner's function may ask there."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from helpers.cluster import shipping

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Task:
    """One process: its place in the cluster, and what it is to do there.

    `packed` is a function from `shipping`, or None for a TensorFlow server that serves until it is told to end.
    """

    kind: str  # worker, ps, chief
    index: int
    packed: bytes | None = None
    core: int | None = None  # to be pinned to
    delay: float = 0.0  # s before it begins
    fault_steps: frozenset[int] = frozenset()  # at these it waits until the leader has done what was planned

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.index}"


class _Here:
    """The task that this process is; None in a kernel."""

    task: Task | None = None
    addresses: dict[str, list[str]] = {}  # noqa: RUF012  (set once per process)
    line: Connection | None = None


def rank() -> int:
    """Return this worker's number, from 0. Works inside a function that `cluster.run` runs."""
    return _here("rank").index


def world_size() -> int:
    """Return the number of workers. Works inside a function that a cluster runs."""
    _here("world_size")
    return len(_Here.addresses["worker"])


def report(step: int, **values: Any) -> None:
    """Tell the kernel how far this task is: it reaches `on_report(task, step, values)`, and triggers planned faults."""
    task = _here("report")
    if isinstance(step, bool) or not isinstance(step, int):
        raise TypeError(f"report() needs a whole number as its step, not {step!r}.")
    _Here.line.send(("report", step, shipping.pack_value(values)))
    if step in task.fault_steps:
        _Here.line.recv()


def _here(name: str) -> Task:
    if _Here.task is None:
        raise RuntimeError(
            f"cluster.{name}() has an answer inside a function that a cluster runs, not in this process."
        )
    return _Here.task


def main(task: Task, addresses: dict[str, list[str]], line: Connection, output: int, parent: int) -> None:
    """Be `task` in a freshly forked process; never returns.

    Sends ("report", step, values), then ("result", value), ("error", type, text, traceback) or ("ready",), and
    waits to be killed: a peer may still be in its last collective, which needs this process.
    """
    try:
        _settle(task, addresses, line, output, parent)
        line.send(_answer(task))
    except BaseException as problem:
        line.send(("error", type(problem).__name__, str(problem), _trace(problem)))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    while True:
        signal.pause()


def _settle(task: Task, addresses: dict[str, list[str]], line: Connection, output: int, parent: int) -> None:
    """Bind this process's life to its parent's, its threads to a core and its output to a pipe."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that took effect
        os._exit(1)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    if task.core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {task.core})
    _Here.task, _Here.addresses, _Here.line = task, addresses, line
    os.environ["TF_CONFIG"] = json.dumps({"cluster": addresses, "task": {"type": task.kind, "index": task.index}})
    os.environ["TF_GRPC_REUSE_PORT"] = "1"  # the leader holds the ports
    time.sleep(task.delay)


def _answer(task: Task) -> tuple:
    """Do what the task is for, and return the message that says so."""
    import tensorflow as tf  # noqa: PLC0415  (the fork server has imported it)

    if task.packed is None:
        # With one operation thread, a step that waits for a peer would block the request it waits for.
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=8)
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        spec = resolver.cluster_spec()
        _Here.server = tf.distribute.Server(spec, task.kind, task.index, protocol="grpc", config=config)
        return ("ready",)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    function, arguments = shipping.unpack_function(task.packed)
    return ("result", shipping.pack_value(function(*arguments)))


def _trace(problem: BaseException) -> str:
    """Return the traceback from the learner's function on, without the frames of this module."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__]
    return "".join([*traceback.format_list(own), *traceback.format_exception_only(problem)])
