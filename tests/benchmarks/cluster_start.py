"""From asking for two workers to their first all-reduce: separate interpreters against `cluster.run`, in one run.

`make bench` prints both, with the network of its own and without, and the memory that belongs to a worker alone.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from helpers import cluster
from helpers.cluster import isolation
from helpers.devices import machine

REPEATS = 5
WORKERS = 2
SEPARATE = Path(__file__).with_name("separate_worker.py")


def first_all_reduce() -> tuple[float, float]:
    """(when the first all-reduce was done, the worker's own memory in MiB)"""
    import psutil  # noqa: PLC0415  (in the workers alone)
    import tensorflow as tf  # noqa: PLC0415

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function(autograph=False)
    def count():
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.0)))

    assert float(count()) == strategy.num_replicas_in_sync
    return time.time(), psutil.Process().memory_full_info().uss / 2**20


def separate() -> float:
    """Seconds with an interpreter per worker, as `python worker.py` in two terminals."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in held]
    for each in held:
        each.close()
    began, processes = time.time(), []
    for index in range(WORKERS):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
        command = [sys.executable, str(SEPARATE)]
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    return max(float(process.communicate(timeout=120)[0].split()[-1]) for process in processes) - began


def warm() -> tuple[float, float]:
    """(seconds, most memory of its own in a worker, MiB) with `cluster.run`."""
    began = time.time()
    ended, own = zip(*cluster.run(first_all_reduce, workers=WORKERS), strict=True)
    return max(ended) - began, max(own)


def bench() -> None:
    """Print medians, in turns so that a slow moment strikes all."""
    os.environ["COURSE_CLUSTER_EXPOSED"] = "accepted"  # of the runs without a network of their own
    times: dict[str, list[float]] = {"separate": [], "isolated": [], "not isolated": []}
    memory = []
    warm()  # the fork server starts, and imports TensorFlow, once per kernel
    for _ in range(REPEATS):
        times["separate"].append(separate())
        for name, switch in (("isolated", "on"), ("not isolated", "off")):
            os.environ[isolation.OFF] = switch
            seconds, own = warm()
            times[name].append(seconds)
            memory.append(own)
    reference = statistics.median(times["separate"])
    print(f"two workers from nothing to their first all-reduce, median of {REPEATS}; {machine()}")
    print(f"{'separate interpreters':24} {reference:6.2f} s")
    for name, bar in (("isolated", 6), ("not isolated", 10)):
        median = statistics.median(times[name])
        print(f"cluster.run, {name:12} {median:6.2f} s   {reference / median:5.1f} times faster (bar: {bar})")
    print(f"own memory of a worker {max(memory):6.1f} MiB at most (bar: 90)")


if __name__ == "__main__":
    bench()
