"""Run a function from a cell on real processes, which talk over real gRPC and leave nothing behind.

>>> from helpers import cluster
>>> def hello():
...     return cluster.rank(), cluster.world_size()
>>> cluster.run(hello, workers=2)
[(0, 2), (1, 2)]

A kernel asks the fork server, which has imported TensorFlow once, for a leader; the leader forks the workers.
So a cluster starts in a fraction of a second, and a worker's memory is little more than its own data.
Needs Linux, on this machine, in WSL or in a container.
"""

from __future__ import annotations

import sys

if not sys.platform.startswith("linux"):
    raise ImportError(
        f"helpers.cluster needs Linux, not {sys.platform}: on Windows open the course in WSL, on a Mac in a "
        "Linux container or on Binder. The lessons that start no cluster work here."
    )

from helpers.cluster.faults import Delay, Kill, Restart, Slow, Stop
from helpers.cluster.processes import ClusterError, WorkerError
from helpers.cluster.running import Results, run
from helpers.cluster.serving import ParameterServers, parameter_servers
from helpers.cluster.worker import rank, report, world_size

__all__ = [
    "ClusterError",
    "Delay",
    "Kill",
    "ParameterServers",
    "Restart",
    "Results",
    "Slow",
    "Stop",
    "WorkerError",
    "parameter_servers",
    "rank",
    "report",
    "run",
    "world_size",
]
