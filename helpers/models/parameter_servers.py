"""Parameter servers: asynchronous updates as events, what staleness does to stability, and what travels where.

Times in seconds or in units of a worker's mean step, sizes in bytes, bandwidths in bytes/s in each direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# ---- asynchronous updates, one event at a time -------------------------------------------------------------

UNBOUNDED = 20  # a bound of so many steps or more stands for none
FARTHEST = 1e12  # where a diverging error is held, so that it stays a number
LIMITS = {
    "workers": (1, 16),
    "rate": (0.0, 2.0),  # learning rate times curvature
    "slow": (1.0, 20.0),  # how many times as long worker 0 takes
    "bound": (0, UNBOUNDED),  # steps that a worker may be ahead of the slowest
    "spread": (0.0, 0.9),  # a step takes from 1 - spread to 1 + spread, all equally likely
    "noise": (0.0, 1.0),  # standard deviation of a gradient
}
START = {"workers": 4, "rate": 0.2, "slow": 1.0, "bound": UNBOUNDED, "spread": 0.3, "noise": 0.0}


def uniform(seed: int) -> tuple[int, float]:
    """One draw of mulberry32: (next seed, number in [0, 1)). Public domain, by T. Ettinger."""
    seed = (seed + 0x6D2B79F5) % 2**32
    mixed = (seed ^ seed >> 15) * (seed | 1) % 2**32
    mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) % 2**32
    return seed, (mixed ^ mixed >> 14) / 2**32


def new_state(seed: int = 23) -> dict:
    """Return the state before the first update: `error` is the distance from the minimum of error²/2."""
    return {"time": 0.0, "version": 0, "error": 1.0, "seed": seed % 2**32, "workers": [], "last": None}


def may_begin(clocks: Sequence[int], worker: int, bound: float) -> bool:
    """Whether bounded staleness lets a worker begin: at most `bound` finished steps ahead of the slowest.

    Ho et al. 2013, More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server.
    """
    return clocks[worker] - min(clocks) <= bound


def _begin(worker: dict, number: int, state: dict, parameters: dict) -> dict:
    """Let a worker read the weights now; it will write `gradient` when its step ends."""
    state["seed"], length = uniform(state["seed"])
    state["seed"], noise = uniform(state["seed"])
    length = 1 + parameters["spread"] * (2 * length - 1)
    if number == 0:
        length *= parameters["slow"]
    return {
        "clock": worker["clock"],
        "read": state["version"],
        "gradient": state["error"] + parameters["noise"] * (2 * noise - 1) * math.sqrt(3),
        "began": state["time"],
        "ends": state["time"] + length,
    }


def step(state: dict, parameters: dict) -> dict:
    """Return the state after the next update: who may begin reads, and the first to end writes.

    A worker that waits has `ends` None. `last` is the update: worker, began, ended, read (the version that its
    gradient belongs to), wrote (the version that it was applied to) and staleness = wrote - read.
    """
    state = {**state, "workers": state["workers"][: parameters["workers"]]}
    clock = min((worker["clock"] for worker in state["workers"]), default=0)
    while len(state["workers"]) < parameters["workers"]:  # newcomers start level with the slowest
        state["workers"].append({"clock": clock, "read": 0, "gradient": 0.0, "began": 0.0, "ends": None})
    bound = math.inf if parameters["bound"] >= UNBOUNDED else parameters["bound"]
    clocks = [worker["clock"] for worker in state["workers"]]
    for number, worker in enumerate(state["workers"]):
        if worker["ends"] is None and may_begin(clocks, number, bound):
            state["workers"][number] = _begin(worker, number, state, parameters)
    running = [number for number, worker in enumerate(state["workers"]) if worker["ends"] is not None]
    first = min(running, key=lambda number: state["workers"][number]["ends"])
    worker = state["workers"][first]
    error = state["error"] - parameters["rate"] * worker["gradient"]
    state["workers"][first] = {**worker, "clock": worker["clock"] + 1, "ends": None}
    last = {"worker": first, "began": worker["began"], "ended": worker["ends"], "read": worker["read"]}
    return {
        **state,
        "time": worker["ends"],
        "version": state["version"] + 1,
        "error": min(max(error, -FARTHEST), FARTHEST),
        "last": {**last, "wrote": state["version"], "staleness": state["version"] - worker["read"]},
    }


def checked(parameters: dict) -> dict:
    """Return all parameters of the event model, those given and the defaults of the rest.

    Raises:
        ValueError: an unknown parameter, or one outside its limits.
    """
    for name, value in parameters.items():
        if name not in LIMITS:
            raise ValueError(f"The simulation has no parameter {name!r}; it has: {', '.join(LIMITS)}.")
        least, most = LIMITS[name]
        kind = int if name in ("workers", "bound") else (int, float)
        if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
            what = "whole number" if kind is int else "number"
            raise ValueError(f"{name} must be a {what} from {least:g} to {most:g}, not {value!r}.")
    return {**START, **parameters}


def run(updates: int, parameters: dict | None = None, state: dict | None = None) -> list[dict]:
    """Return the states after each of `updates` updates, from `state` or a new one."""
    parameters, states = checked(parameters or {}), [state or new_state()]
    for _ in range(updates):
        states.append(step(states[-1], parameters))
    return states[1:]


def largest_staleness(workers: int, bound: int) -> int:
    """Return the largest staleness that bounded staleness lets happen: (n - 1)(2s + 1) versions.

    While one worker computes its step c, each other one can get from step c - s to step c + s + 1.
    """
    return (workers - 1) * (2 * bound + 1)


# ---- gradient descent with old gradients -------------------------------------------------------------------


def delayed_descent(rate: float, staleness: int, steps: int, curvature: float = 1.0) -> np.ndarray:
    """Return x_0 … x_steps of x_{t+1} = x_t - rate·curvature·x_{t-staleness}, from x = 1 and before; (steps + 1,)."""
    x = np.ones(steps + staleness + 1)  # x[t + staleness] is x_t
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps):
            x[t + staleness + 1] = x[t + staleness] - rate * curvature * x[t]
    return x[staleness:]


def growth(rate: float, staleness: int, curvature: float = 1.0) -> float:
    """Return by what factor the delayed descent grows per step in the end: the largest |z| with z^(τ+1) = z^τ - a."""
    polynomial = np.zeros(staleness + 2)  # z^(τ+1) - z^τ + a, from the highest power down
    polynomial[0] += 1
    polynomial[1] -= 1
    polynomial[-1] += rate * curvature
    return float(np.abs(np.roots(polynomial)).max())


def largest_stable_rate(staleness: float, curvature: float = 1.0) -> float:
    """Return the rate at which delayed descent stops converging: 2 sin(π / (2(2τ + 1))) / curvature.

    Levin and May 1976, doi:10.1016/0040-5809(76)90043-5; with a proof in Kuruklis 1994,
    doi:10.1006/jmaa.1994.1457. The staleness is constant; a mean need not be whole.
    """
    return 2 * math.sin(math.pi / (2 * (2 * staleness + 1))) / curvature


def fastest_rate(staleness: int, curvature: float = 1.0) -> float:
    """Return the rate at which delayed descent converges fastest, τ^τ / (τ + 1)^(τ + 1) / curvature: a double root."""
    return staleness**staleness / (staleness + 1) ** (staleness + 1) / curvature


# ---- synchronous steps, with and without backup workers ----------------------------------------------------


def step_seconds(times: np.ndarray, wait_for: int) -> np.ndarray:
    """Return how long each synchronous step takes; times (steps, n) of n workers, of which `wait_for` must finish."""
    workers = np.shape(times)[1]
    if not 1 <= wait_for <= workers:
        raise ValueError(f"wait_for must be from 1 to {workers}, the number of workers, not {wait_for!r}.")
    return np.sort(times, axis=1)[:, wait_for - 1]


def expected_kth_fastest(workers: int, kth: int, mean: float = 1.0) -> float:
    """Return the expected time of the k-th fastest of n exponential times: mean · (1/n + … + 1/(n - k + 1)).

    David and Nagaraja, Order Statistics, 3rd edition, section 2.5. With kth = workers it is about mean · ln n.
    """
    return mean * sum(1 / (workers - i) for i in range(kth))


# ---- what travels ------------------------------------------------------------------------------------------


def server_seconds(workers: int, servers: int, size: float, bandwidth: float, *, overlap: bool = True) -> float:
    """Return the time of one exchange: each worker sends `size` bytes to the servers and receives as many.

    The busier link sets it: a server's, with workers · size / servers, or a worker's, with size. With `overlap`
    both directions are used at once, as when one part of the model returns while the next is on its way (Jiang
    et al. 2020, OSDI, table 1); without it, weights come only after the last gradient.
    """
    return max(workers / servers, 1) * size / bandwidth * (1 if overlap else 2)


def ring_seconds(workers: int, size: float, bandwidth: float) -> float:
    """Return the time of a ring all-reduce of `size` bytes: 2(n - 1)/n · size / bandwidth, latency left out."""
    return 2 * (workers - 1) / workers * size / bandwidth


def gather_seconds(workers: int, size: float, bandwidth: float) -> float:
    """Return the time of an all-gather in which each of n workers contributes `size` bytes of its own rows."""
    return (workers - 1) * size / bandwidth


def zipf(rows: int, exponent: float = 1.0) -> np.ndarray:
    """Return probabilities ∝ 1 / rank^exponent; (rows,). Words and clicks are roughly so."""
    weights = 1 / np.arange(1, rows + 1) ** exponent
    return weights / weights.sum()


def touched_rows(probabilities: np.ndarray, lookups: int) -> float:
    """Return how many different rows `lookups` independent look-ups are expected to touch: Σ 1 - (1 - p)^lookups."""
    return float(-np.expm1(lookups * np.log1p(-np.minimum(np.asarray(probabilities), 1 - 1e-16))).sum())


# ---- what lies where ---------------------------------------------------------------------------------------


def round_robin(sizes: Sequence[int], servers: int) -> list[int]:
    """Return each variable's server, in turn, whatever its size. This is what TensorFlow does."""
    return [index % servers for index in range(len(sizes))]


def greedy_by_bytes(sizes: Sequence[int], servers: int) -> list[int]:
    """Return each variable's server: largest first, each to the server that holds the fewest bytes so far.

    At most (4/3 - 1/(3·servers)) times the best possible largest load (Graham 1969, doi:10.1137/0117039).
    """
    loads, placement = [0] * servers, [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        placement[index] = min(range(servers), key=loads.__getitem__)
        loads[placement[index]] += sizes[index]
    return placement


def bytes_per_server(sizes: Sequence[int], placement: Sequence[int], servers: int) -> list[int]:
    """Return the bytes on each server."""
    return [sum(s for s, where in zip(sizes, placement, strict=True) if where == server) for server in range(servers)]


def imbalance(loads: Sequence[float]) -> float:
    """Return the largest load over the mean load: 1 is even, the number of servers is all on one."""
    return max(loads) / (sum(loads) / len(loads))


def shard_rows(rows: int, shards: int) -> list[int]:
    """Return the rows of each shard as TensorFlow cuts a variable: nearly equal, the first ones one row longer."""
    shards = min(shards, rows)
    return [rows // shards + (index < rows % shards) for index in range(shards)]


def min_size_shards(shape: Sequence[int], min_shard_bytes: int, max_shards: int, itemsize: int = 4) -> int:
    """Return how many shards TensorFlow's MinSizePartitioner makes: rounded up, so shards can be smaller."""
    total = math.prod(shape) * itemsize
    return max(1, min(shape[0], max_shards, math.ceil(total / min_shard_bytes)))


def max_size_shards(
    shape: Sequence[int], max_shard_bytes: int, max_shards: int | None = None, itemsize: int = 4
) -> int:
    """Return how many shards TensorFlow's MaxSizePartitioner makes: whole rows, each shard at most that large."""
    row = math.prod(shape[1:]) * itemsize
    shards = math.ceil(shape[0] / max(1, max_shard_bytes // row))
    return min(max_shards, shards) if max_shards else shards
