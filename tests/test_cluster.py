"""Functions on real processes: what comes back, what befalls them, what is refused. What is left: test_cluster_ends."""

from __future__ import annotations

import linecache
import os
import signal
import socket
import threading
import time

import numpy as np
import pytest
from cluster_support import all_reduce, listening

from helpers import cluster, devices
from helpers.cluster import isolation, processes


def whoami(*args):
    print(f"I am {cluster.rank()}")
    return cluster.rank(), cluster.world_size(), *args


def steps(count, pause):
    """Report each step; return how long the longest took."""
    longest = 0.0
    for step in range(count):
        start = time.monotonic()
        cluster.report(step)
        time.sleep(pause)
        longest = max(longest, time.monotonic() - start)
    return longest


# What comes back


def test_a_value_and_the_output_of_each_worker_by_rank(capsys):
    results = cluster.run(whoami, "x", workers=3, show_output=True)
    assert results == [(0, 3, "x"), (1, 3, "x"), (2, 3, "x")]
    assert results.output == ["I am 0\n", "I am 1\n", "I am 2\n"]
    assert 0 < results.seconds < 60
    assert capsys.readouterr().out == "[worker 0] I am 0\n[worker 1] I am 1\n[worker 2] I am 2\n"


def test_a_collective_between_real_processes():
    assert [total for total, _ in cluster.run(all_reduce, workers=4)] == [10.0] * 4


def test_tensors_come_back_as_arrays_in_their_nests():
    def nested():
        import tensorflow as tf  # noqa: PLC0415

        return {"a": [tf.constant([1.0, 2.0])], "b": (tf.Variable(3), "text")}

    (value,) = cluster.run(nested, workers=1)
    assert isinstance(value["a"][0], np.ndarray)
    assert value["a"][0].tolist() == [1.0, 2.0]
    assert value["b"] == (3, "text")


def test_reports_reach_the_kernel_in_order():
    seen = []
    cluster.run(steps, 3, 0.0, on_report=lambda rank, step, values: seen.append((rank, step)))
    assert [step for rank, step in seen if rank == 1] == [0, 1, 2]
    assert len(seen) == 6


CELL = """
def loop(n):
    import tensorflow as tf
    @tf.function
    def count(limit):
        total = tf.constant(0)
        while total < limit:
            total += 1
        return total
    return int(count(tf.constant(n)))
"""


def test_autograph_finds_the_source_of_a_cell():
    linecache.cache["<cell 1>"] = (len(CELL), None, CELL.splitlines(keepends=True), "<cell 1>")
    names = {}
    exec(compile(CELL, "<cell 1>", "exec"), names)
    assert cluster.run(names["loop"], 5, workers=1) == [5]


def test_each_worker_has_a_core_and_a_thread():
    def place():
        import tensorflow as tf  # noqa: PLC0415

        return os.sched_getaffinity(0), tf.config.threading.get_intra_op_parallelism_threads()

    cores = sorted(os.sched_getaffinity(0))
    assert cluster.run(place, workers=3) == [({cores[k % len(cores)]}, 1) for k in range(3)]


# Wrong input, in words, before anything starts


@pytest.fixture
def nothing_starts(monkeypatch):
    """A machine on which no cluster may be started."""
    monkeypatch.setattr(processes.multiprocessing, "Pipe", lambda: pytest.fail("a cluster was started"))


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"workers": 0}, ValueError, r"`workers` must be a whole number from 1 to 16, not 0\."),
        ({"workers": 2.0}, ValueError, r"whole number from 1 to 16, not 2\.0"),
        ({"workers": True}, ValueError, "not True"),
        ({"workers": 17}, ValueError, "from 1 to 16, not 17"),
        ({"timeout": 0}, ValueError, "`timeout` must be a positive number of seconds, not 0"),
        ({"timeout": float("nan")}, ValueError, "not nan"),
        ({"ports": [80]}, ValueError, r"from 1024 to 65535, not \[80\]"),
        ({"ports": []}, ValueError, r"`ports` must hold whole numbers"),
        ({"faults": ["kill"]}, TypeError, "A fault is one of Kill, Stop, Restart, Delay or Slow, not 'kill'"),
        ({"faults": [cluster.Kill(2, 0)]}, ValueError, "names task 2; this cluster has 0, 1"),
        ({"faults": [cluster.Kill(0, 0.5)]}, TypeError, "a step is a whole number"),
        ({"faults": [cluster.Slow(0, 0.5)]}, ValueError, "a factor is at least 1"),
        ({"faults": [cluster.Delay(0, -1)]}, ValueError, "seconds must not be negative"),
    ],
)
def test_wrong_input_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        cluster.run(whoami, **arguments)


@pytest.mark.usefixtures("nothing_starts")
def test_what_is_no_function_or_cannot_be_shipped_is_refused():
    with pytest.raises(TypeError, match=r"write run\(train\), not run\(train\(\)\)"):
        cluster.run(3)
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"<lambda> cannot be sent to another process.*only in this kernel"):
        cluster.run(lambda: lock)


def test_more_than_memory_allows_is_refused(monkeypatch):
    monkeypatch.setattr(devices, "memory_available", lambda: 2**29)
    with pytest.raises(
        cluster.ClusterError, match="4 processes need about 700 MiB, and 512 MiB are free: ask for fewer"
    ):
        cluster.run(whoami, workers=4)


def test_a_value_that_cannot_come_back():
    with pytest.raises(cluster.WorkerError, match="Worker 0 raised TypeError: A value of type lock cannot leave"):
        cluster.run(threading.Lock, workers=1)


def test_busy_ports_are_refused(monkeypatch):
    monkeypatch.setenv(isolation.OFF, "off")
    monkeypatch.setenv(processes.ACCEPTED, "accepted")
    with socket.socket() as busy:
        busy.bind(("0.0.0.0", 0))
        port = busy.getsockname()[1]
        with pytest.raises(cluster.ClusterError, match="0 of the 1 ports offered are free, and 1 are needed"):
            cluster.run(whoami, workers=1, ports=[port])
    assert cluster.run(whoami, workers=1, ports=[port]) == [(0, 1)]


def test_what_belongs_inside_says_so_outside():
    for function in (cluster.rank, cluster.world_size, lambda: cluster.report(1)):
        with pytest.raises(RuntimeError, match="has an answer inside a function that a cluster runs"):
            function()


# What goes wrong inside


def test_an_exception_comes_back_with_rank_traceback_and_output():
    def fail():
        print("before")
        return 1 // cluster.rank()

    with pytest.raises(cluster.WorkerError, match="Worker 0 raised ZeroDivisionError") as caught:
        cluster.run(fail)
    assert caught.value.task == 0
    assert caught.value.type == "ZeroDivisionError"
    assert "return 1 // cluster.rank()" in str(caught.value)
    assert "helpers/cluster" not in str(caught.value)
    assert caught.value.output == "before\n"


def test_the_cause_is_named_and_not_what_it_led_to():
    def fail():
        import tensorflow as tf  # noqa: PLC0415

        all_reduce()
        if cluster.rank() == 1:
            raise KeyError("the cause")
        context = tf.distribute.get_replica_context
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        strategy.run(lambda: context().all_reduce("sum", tf.ones(2)))

    with pytest.raises(cluster.WorkerError, match="Worker 1 raised KeyError"):
        cluster.run(fail)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os._exit(3), "Worker 0 ended with exit code 3 and gave no answer"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended with signal 9.*memory ran out"),
    ],
)
def test_a_worker_that_dies(end, words):
    with pytest.raises(cluster.WorkerError, match=words):
        cluster.run(end, workers=1)


def test_a_deadline_names_the_missing_and_how_far_they_were():
    def hang():
        if cluster.rank() == 1:
            cluster.report(7)
            time.sleep(60)

    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer from rank 1 \(last step reported: 7\)"):
        cluster.run(hang, timeout=1)
    assert time.monotonic() - start < 5


# What befalls on purpose


def test_kill():
    results = cluster.run(steps, 3, 0.0, faults=[cluster.Kill(1, step=1)])
    assert results[0] is not None
    assert results[1] is None


def test_stop_holds_a_worker_up_for_a_time():
    longest = cluster.run(steps, 3, 0.0, faults=[cluster.Stop(1, step=1, seconds=0.6)])
    assert longest[1] >= 0.6 > longest[0]


def test_restart_begins_anew():
    seen = []
    results = cluster.run(
        steps, 3, 0.0, faults=[cluster.Restart(1, step=1)], on_report=lambda rank, step, _: seen.append((rank, step))
    )
    assert [step for rank, step in seen if rank == 1] == [0, 1, 0, 1, 2]
    assert None not in results


def test_delay_begins_late():
    first, second = cluster.run(time.time, faults=[cluster.Delay(1, seconds=0.7)])
    assert second - first > 0.4  # the rest is what the first needed to begin


def test_slow_takes_most_of_the_time_away():
    def share():
        start, used = time.monotonic(), time.process_time()
        while time.monotonic() - start < 1.5:
            pass
        return (time.process_time() - used) / (time.monotonic() - start)

    slowed = cluster.run(share, workers=1, faults=[cluster.Slow(0, factor=4)])[0]
    assert slowed < 0.4


# A network of its own


def looker():
    """Return a list, and an on_report that adds to it whether the port reported is open in this process's network."""
    seen: list[bool] = []
    return seen, lambda rank, step, values: seen.append(values["port"] in listening())


def test_nobody_outside_reaches_a_cluster(monkeypatch, capsys):
    """Seen from this process's network: where clusters have their own, no port of theirs is open here."""
    monkeypatch.setattr(processes, "_warned", [])

    seen, look = looker()
    cluster.run(all_reduce, on_report=look)
    exposed = not isolation.possible()
    assert seen == [exposed] * 2
    assert ("can be reached from outside" in capsys.readouterr().out) == exposed


def test_without_such_a_network_it_works_and_says_so_once(monkeypatch, capsys):
    monkeypatch.setattr(processes, "_warned", [])
    monkeypatch.setenv(isolation.OFF, "off")
    monkeypatch.delenv(processes.ACCEPTED, raising=False)
    seen, look = looker()
    for _ in range(2):
        results = cluster.run(all_reduce, on_report=look)
        assert [total for total, _ in results] == [3.0, 3.0]
    assert seen == [True] * 4  # so the test above can see a port that is open
    assert capsys.readouterr().out.count("can be reached from outside this machine") == 1


# Parameter servers


def train(rounds):
    """Add one on the workers, `rounds` times; return the sum, and where the variable lies."""
    import tensorflow as tf  # noqa: PLC0415

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variable = tf.Variable(0.0)

    @tf.function
    def add():
        variable.assign_add(1.0)

    for step in range(rounds):
        coordinator.schedule(add)
        coordinator.join()
        cluster.report(step, value=float(variable.numpy()))
    print("done")
    return float(variable.numpy()), variable.device


def test_parameter_servers_survive_a_worker_and_not_a_server():
    with cluster.parameter_servers(workers=2, servers=1) as served:
        value, device = served.run(train, 3)
        assert value == 3.0
        assert "/job:ps/" in device
        assert served.output("coordinator") == "done\n"

        seen = []
        value, _ = served.run(
            train, 4, faults=[cluster.Kill("worker:0", step=1)], on_report=lambda *report: seen.append(report)
        )
        assert value == 4.0
        assert [(task, step, values["value"]) for task, step, values in seen] == [
            ("coordinator", step, step + 1.0) for step in range(4)
        ]

        served.restart("worker:0")  # a coordinator that begins waits for every task
        with pytest.raises(cluster.WorkerError, match="coordinator raised UnavailableError"):
            served.run(train, 4, faults=[cluster.Kill("ps:0", step=1)])
        served.restart("ps:0")
        assert served.run(train, 2)[0] == 2.0


def test_a_stopped_server_goes_on_when_resumed():
    with cluster.parameter_servers(workers=1, servers=1) as served:
        stop = cluster.Stop("ps:0", step=0, seconds=0.8)
        times = []
        served.run(train, 3, faults=[stop], on_report=lambda *_: times.append(time.monotonic()))
        assert times[1] - times[0] >= 0.7
        served.stop("ps:0")
        served.resume("ps:0")
        assert served.run(train, 1)[0] == 1.0


def test_wrong_input_to_parameter_servers():
    with pytest.raises(ValueError, match="`servers` must be a whole number from 1 to 8, not 0"):
        cluster.parameter_servers(servers=0).__enter__()
    with cluster.parameter_servers(workers=1) as served:
        with pytest.raises(ValueError, match="There is no task 'worker:1' here; this cluster has worker:0, ps:0"):
            served.kill("worker:1")
        with pytest.raises(ValueError, match="A Delay befalls a task that starts"):
            served.run(train, 1, faults=[cluster.Delay("ps:0", 1)])
        with pytest.raises(TypeError, match=r"write run\(train\)"):
            served.run(None)

        def fail():
            raise KeyError("mine")

        with pytest.raises(cluster.WorkerError, match="Task coordinator raised KeyError"):
            served.run(fail)
        assert served.run(train, 1)[0] == 1.0
