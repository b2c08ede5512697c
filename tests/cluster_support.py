"""For the tests of clusters: what runs on them, and what is left of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver
from pathlib import Path

import psutil

from helpers import cluster
from helpers.data import ROOT

MARK = "COURSE_CLUSTER_TEST"  # in the environment of whatever a test starts, and so of whatever that starts
PATIENCE = 10.0  # s after which nothing may be left


def all_reduce():
    """Return the sum over ranks of (rank + 1), from a real collective, and the port that this task serves on."""
    import json  # noqa: PLC0415
    import os  # noqa: PLC0415

    import tensorflow as tf  # noqa: PLC0415

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    mine = tf.constant([cluster.rank() + 1.0])
    total = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", mine))
    here = json.loads(os.environ["TF_CONFIG"])
    address = here["cluster"]["worker"][here["task"]["index"]]
    port = int(address.rpartition(":")[2])
    cluster.report(0, port=port)
    return float(total[0]), port


def serve_for(seconds):
    """Serve on a port, report it, and stay."""
    all_reduce()
    time.sleep(seconds)


def marked(mark: str) -> list[psutil.Process]:
    """The processes that carry a mark, without this one and without the dead."""
    found = []
    for process in psutil.process_iter(["pid", "status"]):
        with suppress(psutil.Error):
            if process.info["status"] != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(process)
    return [process for process in found if process.pid != psutil.Process().pid]


def listening() -> set[int]:
    """The TCP ports on which anybody listens in this process's network, of either family."""
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        fields = [line.split() for line in lines]
        found |= {int(field[1].rpartition(":")[2], 16) for field in fields if field[3] == "0A"}
    return found


def assert_nothing_left(mark: str, spared: set[int] = frozenset(), ports: set[int] = frozenset()) -> float:
    """Wait until no process carries the mark, but for the spared, and no port of theirs is open; return the seconds."""
    start = time.monotonic()
    while True:
        left = [process for process in marked(mark) if process.pid not in spared]
        still_open = ports & listening()
        if not left and not still_open:
            return time.monotonic() - start
        assert time.monotonic() - start < PATIENCE, f"after {PATIENCE} s: {left}, ports {still_open}"
        time.sleep(0.02)


@contextmanager
def own_fork_server() -> Iterator[None]:
    """A fork server that has this moment's environment, and no other test's."""
    forkserver._forkserver._stop()
    try:
        yield
    finally:
        forkserver._forkserver._stop()


def script(source: str, folder: Path, **environment: str) -> subprocess.Popen:
    """Start a Python script of its own session, which finds the helpers and this module."""
    import os  # noqa: PLC0415

    path = folder / "script.py"
    path.write_text(source)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
