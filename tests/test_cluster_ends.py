"""However a cell or its kernel ends, no process of its cluster, no port and no file stays: each way, 20 times."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from cluster_support import (
    MARK,
    all_reduce,
    assert_nothing_left,
    marked,
    own_fork_server,
    script,
    serve_for,
)
from jupyter_client.manager import KernelManager

from helpers import cluster
from helpers.cluster import isolation, processes
from helpers.data import ROOT

TIMES = 20


@pytest.fixture(scope="module")
def mark():
    """A mark on whatever this process starts; its fork server runs already."""
    with pytest.MonkeyPatch.context() as patch:
        value = uuid.uuid4().hex
        patch.setenv(MARK, value)
        with own_fork_server():
            cluster.run(all_reduce)
            yield value


@pytest.fixture(scope="module")
def spared(mark):
    """The processes that stay as long as this one: the fork server and the tracker of its resources."""
    return {process.pid for process in marked(mark)}


@pytest.fixture(params=["a network of its own", "the machine's network"])
def network(request, monkeypatch):
    """Both ways in which a cluster may run; the second shows ports that stay."""
    if request.param == "the machine's network":
        monkeypatch.setenv(isolation.OFF, "off")
        monkeypatch.setenv(processes.ACCEPTED, "accepted")


def fail_after_serving():
    all_reduce()
    raise KeyError("planned")


def leave_a_child_behind():
    """A worker may start processes of its own, and they may start others and leave them."""
    all_reduce()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize("end", ["success", "exception", "deadline", "interrupt", "callback", "orphans"])
def test_nothing_is_left_of_a_cluster(mark, spared, end):
    for _ in range(TIMES // 2):  # in each of the two networks
        ports: set[int] = set()

        def note(rank, step, values, ports=ports):
            ports.add(values["port"])
            if len(ports) == 2 and end == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            if end == "callback":
                raise LookupError("planned")

        if end == "success":
            cluster.run(all_reduce, on_report=note)
        elif end == "orphans":
            cluster.run(leave_a_child_behind, on_report=note)
        else:
            function, error, timeout = {
                "exception": (fail_after_serving, cluster.WorkerError, 60),
                "deadline": (lambda: serve_for(60), TimeoutError, 1.5),
                "interrupt": (lambda: serve_for(60), KeyboardInterrupt, 60),
                "callback": (all_reduce, LookupError, 60),
            }[end]
            with pytest.raises(error):
                cluster.run(function, on_report=note, timeout=timeout)
        assert ports
        assert_nothing_left(mark, spared, ports)


def test_an_interrupt_at_any_moment_leaves_nothing(mark, spared):
    """From the first step of the start to the last of the end, on parameter servers too."""
    interrupted = 0
    moments = random.Random(0)
    for index in range(TIMES):
        timer = threading.Timer(moments.uniform(0.0, 0.7), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            if index % 2:
                with cluster.parameter_servers(workers=1):
                    time.sleep(1)
            else:
                cluster.run(serve_for, 1)
            timer.join()
        except KeyboardInterrupt:
            interrupted += 1
        assert_nothing_left(mark, spared)
    assert interrupted == TIMES


def test_a_hundred_starts_in_a_row(mark):
    def held():
        here = psutil.Process()
        return here.num_fds(), here.num_threads(), len(marked(mark))

    cluster.run(cluster.rank)
    before, temporary = held(), folders()
    for _ in range(100):
        assert cluster.run(cluster.rank) == [0, 1]
    assert held() == before
    assert folders() <= temporary


def folders() -> set[Path]:
    """What clusters keep their temporary files in."""
    return set(Path(tempfile.gettempdir()).glob("course-cluster-*"))


# Kernels that are restarted or killed while their cluster runs

LONG = """
from cluster_support import all_reduce, serve_for
from helpers import cluster
cluster.run(serve_for, 60, on_report=lambda rank, step, values: print("serves on", values["port"], flush=True))
"""


@contextmanager
def kernel(mark: str, temporary: str):
    """A Jupyter kernel with its client, and with a folder for temporary files; yields its manager and the client."""
    manager = KernelManager()
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    mine = {MARK: mark, "PYTHONPATH": paths, "TMPDIR": temporary, processes.ACCEPTED: "accepted"}
    manager.start_kernel(env=os.environ | mine)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run_long(client) -> set[int]:
    """Run LONG in a kernel until both workers serve; return their ports."""
    client.execute(LONG)
    text = ""
    while text.count("serves on") < 2:
        content = client.get_iopub_msg(timeout=120)["content"]
        text += content.get("text", "")
        assert "traceback" not in content, "\n".join(content["traceback"])
    return {int(line.rpartition(" ")[2]) for line in text.splitlines()}


def end_a_kernel(how: str) -> None:
    """Start a kernel and its cluster, end them one way, and look for what is left."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as temporary, kernel(mark, temporary) as (manager, client):
        ports, process = run_long(client), manager.provisioner.process
        if how == "restart":
            manager.restart_kernel(now=True)
            assert_nothing_left(mark, {manager.provisioner.process.pid}, ports)
        elif how == "interrupt":
            manager.interrupt_kernel()
            started = time.monotonic()
            while client.get_shell_msg(timeout=20)["content"].get("ename") != "KeyboardInterrupt":
                assert time.monotonic() - started < 20
            forked = {child.pid for child in psutil.Process(process.pid).children()}
            assert_nothing_left(mark, {process.pid} | forked, ports)  # the fork server and its helper stay
        else:
            os.kill(process.pid, signal.SIGKILL)
            assert_nothing_left(mark, set(), ports)
        sockets = 1 if how == "interrupt" else 0  # the folder of the fork server, which stays with the kernel
        assert len(os.listdir(temporary)) == sockets


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize("how", ["interrupt", "restart", "kill"])
def test_nothing_is_left_of_a_kernel(how):
    with ThreadPoolExecutor(4) as pool:  # side by side, so that none disturbs another either
        list(pool.map(end_a_kernel, [how] * (TIMES // 2)))


# Scripts

BARE = """
import sys
from cluster_support import all_reduce
from helpers import cluster

print("once")
print([total for total, _ in cluster.run(all_reduce)], "tensorflow" in sys.modules)
"""


def test_a_script_without_a_main_guard_and_a_kernel_without_tensorflow(tmp_path):
    process = script(BARE, tmp_path, **{processes.ACCEPTED: "accepted"})
    assert process.communicate(timeout=120)[0] == "once\n[3.0, 3.0] False\n"


REPEATED = """
from cluster_support import all_reduce
from helpers import cluster

for _ in range(10):
    assert [total for total, _ in cluster.run(all_reduce)] == [3.0, 3.0]
"""


@pytest.mark.usefixtures("network")
def test_two_at_once_do_not_disturb_each_other(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    both = [script(REPEATED, tmp_path / name, **{processes.ACCEPTED: "accepted"}) for name in "ab"]
    for process in both:
        output = process.communicate(timeout=240)[0]
        assert process.returncode == 0, output
        assert output == ""
