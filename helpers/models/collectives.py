"""Collective operations: schedules as data, one executor that counts, α–β times, and fits to what was measured.

A schedule is a list of steps, a step a list of sends `(src, dst, chunk, op)`: rank `src` sends its chunk number
`chunk` to rank `dst`, which stores it ("copy") or adds it to its own ("add"). All parcels of a step leave before
any arrives; those from one rank to one other travel as one message. Every schedule here is one-ported: in a step
no rank sends to two ranks or receives from two.

Times in seconds, sizes in bytes, bandwidths in bytes/s in each direction; `alpha` is the latency of a message.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Send(NamedTuple):
    """One chunk on its way from rank `src` to rank `dst`; `op` is "copy" or "add"."""

    src: int
    dst: int
    chunk: int
    op: str


Schedule = list[list[Send]]

# ---- the executor ------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What came of a schedule: `chunks[rank][chunk]`, and what travelled, counted."""

    chunks: list[list[np.ndarray | None]]
    steps: int
    sent: list[int]  # bytes by rank
    received: list[int]  # bytes by rank
    critical: int  # bytes: the largest message of each step, added up

    @property
    def busiest(self) -> int:
        """Bytes that the busiest rank sends or receives, whichever is more."""
        return max(self.sent + self.received)


def cut(vectors: Sequence[np.ndarray], chunks: int) -> list[list[np.ndarray]]:
    """Cut each rank's vector into `chunks` nearly equal parts: what `execute` works on."""
    return [np.array_split(np.asarray(vector), chunks) for vector in vectors]


def join(chunks: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Put each rank's chunks together again."""
    return [np.concatenate(parts) for parts in chunks]


def execute(schedule: Schedule, chunks: Sequence[Sequence[np.ndarray | None]]) -> Run:
    """Run a schedule on `chunks[rank][chunk]` (None where a rank has nothing), which stay as they are.

    Raises:
        ValueError: a rank, chunk or op that there is not, a chunk sent or added to by a rank that lacks it, or
            two parcels that are written to one chunk in one step.
    """
    state = [list(parts) for parts in chunks]
    sent, received, critical = [0] * len(state), [0] * len(state), 0
    for number, step in enumerate(schedule):
        parcels = [(Send(*send), _parcel(state, number, Send(*send))) for send in step]
        messages: dict[tuple[int, int], int] = {}
        copied = {(send.dst, send.chunk) for send, _ in parcels if send.op == "copy"}
        if len(copied) < sum(send.op == "copy" for send, _ in parcels):
            raise ValueError(f"Step {number} copies two parcels to one place: only one would be left.")
        for (src, dst, chunk, op), parcel in parcels:
            if op == "add" and state[dst][chunk] is None:
                raise ValueError(f"Step {number} adds to chunk {chunk} of rank {dst}, which has none: copy it there.")
            state[dst][chunk] = parcel if op == "copy" else state[dst][chunk] + parcel
            messages[src, dst] = messages.get((src, dst), 0) + parcel.nbytes
        for (src, dst), size in messages.items():
            sent[src] += size
            received[dst] += size
        critical += max(messages.values(), default=0)
    return Run(state, len(schedule), sent, received, critical)


def _parcel(state: list, number: int, send: Send) -> np.ndarray:
    """Return what is sent, or say why it cannot be."""
    src, dst, chunk, op = send
    ranks = len(state)
    if not (0 <= src < ranks and 0 <= dst < ranks and src != dst):
        raise ValueError(f"Step {number} sends from rank {src} to rank {dst}; there are ranks 0 to {ranks - 1}.")
    if op not in ("copy", "add"):
        raise ValueError(f'Step {number} has the op {op!r}: write "copy" or "add".')
    if not 0 <= chunk < len(state[src]) or state[src][chunk] is None:
        raise ValueError(f"Step {number} sends chunk {chunk} of rank {src}, which does not have it at that time.")
    return state[src][chunk]


# ---- the schedules -----------------------------------------------------------------------------------------


def _ranks(n: int, least: int = 1) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < least:
        raise ValueError(f"The number of ranks must be a whole number of at least {least}, not {n!r}.")


def _power_of_two(n: int) -> None:
    _ranks(n)
    if n & (n - 1):
        below = 1 << (int(n).bit_length() - 1)
        raise ValueError(
            f"This schedule pairs ranks whose numbers differ in one bit, so it needs a power of two, not {n}: "
            f"take {below} or {2 * below} ranks, or a ring or tree, which work with {n}."
        )


def log2_ceil(n: int) -> int:
    """Return ⌈log₂ n⌉, exactly."""
    return (int(n) - 1).bit_length()


def broadcast(n: int, root: int = 0) -> Schedule:
    """Binomial tree: chunk 0 of `root` to all. Each step doubles those who have it: ⌈log₂ n⌉ steps."""
    _ranks(n)
    pairs = [[(r, r + have) for r in range(min(have, n - have))] for have in (1 << k for k in range(log2_ceil(n)))]
    return [[Send((a + root) % n, (b + root) % n, 0, "copy") for a, b in step] for step in pairs]


def reduce(n: int, root: int = 0) -> Schedule:
    """Binomial tree, the broadcast backwards: chunk 0 of all ranks is added up at `root`."""
    return [[Send(dst, src, chunk, "add") for src, dst, chunk, _ in step] for step in reversed(broadcast(n, root))]


def reduce_scatter(n: int) -> Schedule:
    """Ring with n chunks: rank r ends with the sum of all chunks r. n - 1 steps of one chunk."""
    _ranks(n)
    return [[Send(r, (r + 1) % n, (r - step - 1) % n, "add") for r in range(n)] for step in range(n - 1)]


def all_gather(n: int) -> Schedule:
    """Ring with n chunks, of which rank r has chunk r: all end with all. n - 1 steps of one chunk."""
    _ranks(n)
    return [[Send(r, (r + 1) % n, (r - step) % n, "copy") for r in range(n)] for step in range(n - 1)]


def all_to_all(n: int) -> Schedule:
    """Each rank sends a chunk of its own to each other: n - 1 steps, at distance 1, 2, … n - 1.

    There are n² chunks; number src·n + dst is what `src` has for `dst`.
    """
    _ranks(n)
    return [[Send(r, (r + d) % n, r * n + (r + d) % n, "copy") for r in range(n)] for d in range(1, n)]


def naive(n: int) -> Schedule:
    """All-reduce at rank 0, which takes the others in one after the other and answers each: 2(n - 1) whole messages."""
    _ranks(n)
    return [[Send(r, 0, 0, "add")] for r in range(1, n)] + [[Send(0, r, 0, "copy")] for r in range(1, n)]


def tree(n: int) -> Schedule:
    """All-reduce as reduce and broadcast along a binomial tree: 2⌈log₂ n⌉ whole messages."""
    return reduce(n) + broadcast(n)


def butterfly(n: int) -> Schedule:
    """All-reduce by recursive doubling: partners at distance 1, 2, 4, … exchange all they have: log₂ n whole messages.

    Raises:
        ValueError: n is no power of two.
    """
    _power_of_two(n)
    return [[Send(r, r ^ 1 << k, 0, "add") for r in range(n)] for k in range(log2_ceil(n))]


def halving_doubling(n: int) -> Schedule:
    """All-reduce with n chunks: halves are exchanged and added at distance n/2, … 1, then gathered at 1, … n/2.

    Rabenseifner 2004, doi:10.1007/978-3-540-24685-5_1.

    Raises:
        ValueError: n is no power of two.
    """
    _power_of_two(n)
    halving = []
    for k in reversed(range(log2_ceil(n))):  # rank r keeps the chunks that agree with r in bits k and above
        halving.append([Send(r, r ^ 1 << k, c, "add") for r in range(n) for c in range(n) if (c ^ r) >> k == 1])
    doubling = [[Send(dst, src, c, "copy") for src, dst, c, _ in step] for step in reversed(halving)]
    return halving + doubling


def ring(n: int) -> Schedule:
    """All-reduce with n chunks: reduce-scatter, then all-gather, along a ring: 2(n - 1) messages of a chunk."""
    return reduce_scatter(n) + all_gather(n)


def hierarchical(n: int, group: int) -> Schedule:
    """All-reduce with n chunks on nodes of `group` ranks: reduce-scatter within, all-reduce across, all-gather within.

    Rank node·group + local. Within a node the vector is cut into `group` slices, of which local rank l gets slice
    l; the ranks with one l form a ring across the nodes, which all-reduces that slice, cut into n/group chunks.

    Raises:
        ValueError: `group` does not divide n.
    """
    _ranks(n)
    _ranks(group)
    if n % group:
        raise ValueError(f"Nodes of {group} ranks do not add up to {n} ranks: group must divide n.")
    nodes = n // group
    within = lambda phase: [  # noqa: E731
        [
            Send(v * group + src, v * group + dst, part * nodes + c, op)
            for v in range(nodes)
            for src, dst, part, op in step
            for c in range(nodes)
        ]
        for step in phase(group)
    ]
    across = [
        [
            Send(src * group + local, dst * group + local, local * nodes + c, op)
            for local in range(group)
            for src, dst, c, op in step
        ]
        for step in ring(nodes)
    ]
    return within(reduce_scatter) + across + within(all_gather)


def pipelined_tree(n: int, chunks: int) -> Schedule:
    """All-reduce along a binary tree (children 2r + 1 and 2r + 2), chunk after chunk, so that levels work at once.

    A node has two children, so a step of this schedule may take in two messages: time it with `arrivals`.
    """
    _ranks(n)
    _ranks(chunks)
    level = [(r + 1).bit_length() - 1 for r in range(n)]
    deepest = level[-1]
    waves: list[list[Send]] = [[] for _ in range(2 * deepest + chunks - 1)] if n > 1 else []
    for c in range(chunks):
        for r in range(1, n):
            waves[c + deepest - level[r]].append(Send(r, (r - 1) // 2, c, "add"))
            waves[c + deepest + level[r] - 1].append(Send((r - 1) // 2, r, c, "copy"))
    return waves


# ---- closed forms ------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """Steps, and bytes of the largest message of each step added up, of an all-reduce of a given size."""

    steps: int
    bytes: float

    def seconds(self, alpha: float, bandwidth: float) -> float:
        """Return the time on equal links: alpha a step, and the bytes at the bandwidth."""
        return self.steps * alpha + self.bytes / bandwidth


class Algorithm(NamedTuple):
    """An all-reduce: its schedule, into how many chunks it cuts n ranks' vectors, and its closed form."""

    schedule: Callable[[int], Schedule]
    chunks: Callable[[int], int]
    cost: Callable[[int, float], Cost]
    power_of_two: bool = False


ALGORITHMS = {
    "naive": Algorithm(naive, lambda n: 1, lambda n, s: Cost(2 * (n - 1), 2 * (n - 1) * s)),
    "tree": Algorithm(tree, lambda n: 1, lambda n, s: Cost(2 * log2_ceil(n), 2 * log2_ceil(n) * s)),
    "butterfly": Algorithm(butterfly, lambda n: 1, lambda n, s: Cost(log2_ceil(n), log2_ceil(n) * s), True),
    "halving-doubling": Algorithm(
        halving_doubling, lambda n: n, lambda n, s: Cost(2 * log2_ceil(n), 2 * (n - 1) / n * s), True
    ),
    "ring": Algorithm(ring, lambda n: n, lambda n, s: Cost(2 * (n - 1), 2 * (n - 1) / n * s)),
}


def least_steps(n: int) -> int:
    """Return the lower bound on steps, ⌈log₂ n⌉: one step at most doubles what a result can depend on."""
    _ranks(n)
    return log2_ceil(n)


def least_bytes(n: int, size: float) -> float:
    """Return the lower bound 2(n - 1)/n · size on the bytes that the busiest rank sends (or receives).

    Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002, theorem 1: for sums made of the ranks' own numbers.
    """
    _ranks(n)
    return 2 * (n - 1) / n * size


class Level(NamedTuple):
    """One level of a network: latency of a message, bandwidth of a rank's link in one direction."""

    alpha: float  # s
    bandwidth: float  # bytes/s


def two_level_seconds(name: str, n: int, size: float, group: int, levels: tuple[Level, Level]) -> float:
    """Return the time of an all-reduce of `size` bytes on n ranks, on nodes of `group` ranks in order.

    `levels` is (within a node, between nodes); each rank has a link of its own on both. A step takes as long as its
    slowest message. `name` is one of ALGORITHMS, "hierarchical ring" or "hierarchical halving": within a node a
    ring, and across the nodes a ring, or halving and doubling.

    Raises:
        ValueError: `group` does not divide n, or the algorithm needs powers of two and n or `group` is none.
    """
    if n % group:
        raise ValueError(f"Nodes of {group} ranks do not add up to {n} ranks: group must divide n.")
    nodes, (inner, outer) = n // group, levels
    if name.startswith("hierarchical"):
        across = ALGORITHMS["ring" if name == "hierarchical ring" else "halving-doubling"]
        within = ALGORITHMS["ring"].cost(group, size).seconds(*inner)
        return within + across.cost(nodes, size / group).seconds(*outer)
    if name == "ring":  # every step has a message that leaves its node
        return ALGORITHMS[name].cost(n, size).seconds(*(outer if nodes > 1 else inner))
    if name == "naive":
        return Cost(2 * (group - 1), 2 * (group - 1) * size).seconds(*inner) + Cost(
            2 * (n - group), 2 * (n - group) * size
        ).seconds(*outer)
    _power_of_two(n)
    _power_of_two(group)
    total = 0.0
    for distance in (1 << k for k in range(log2_ceil(n))):
        steps = 1 if name == "butterfly" else 2
        message = size * distance / n if name == "halving-doubling" else size
        total += Cost(steps, steps * message).seconds(*(inner if distance < group else outer))
    return total


def cable_load(step: Sequence[Send], n: int, chunk_bytes: float) -> float:
    """Return the bytes on the busiest cable in one direction, if rank r has cables to r - 1 and r + 1 alone.

    Messages take the shorter way round; half-way round, the way up.
    """
    up, down = np.zeros(n), np.zeros(n)
    for src, dst, _, _ in step:
        distance = (dst - src) % n
        if 2 * distance <= n:
            up[(src + np.arange(distance)) % n] += chunk_bytes
        else:
            down[(src - np.arange(n - distance)) % n] += chunk_bytes
    return float(max(up.max(), down.max()))


# ---- time of a schedule, message by message ----------------------------------------------------------------


def arrivals(schedule: Schedule, ranks: int, seconds: Callable[[int, int, int], float]) -> float:
    """Return when the last message of a schedule has arrived, with no barrier between steps.

    A message starts when its chunks are there, when the sender has sent what came before, and when the receiver
    has taken in what came before. `seconds(src, dst, chunks)` is how long one of so many chunks takes.
    """
    state = begin_timing(ranks)
    for step in schedule:
        together = messages(step)
        there = [ready(state, src, chunks) for src, _, chunks in together]  # before any of them arrives
        for (src, dst, chunks), since in zip(together, there, strict=True):
            pass_message(state, (src, dst, chunks), seconds(src, dst, len(chunks)), since)
    return max(state["takes"], default=0.0)


def messages(step: Sequence[Send]) -> list[tuple[int, int, list[int]]]:
    """Return the messages (src, dst, chunks) of a step, in the order of its sends."""
    together: dict[tuple[int, int], list[int]] = {}
    for src, dst, chunk, _ in step:
        together.setdefault((src, dst), []).append(chunk)
    return [(src, dst, chunks) for (src, dst), chunks in together.items()]


def begin_timing(ranks: int, time: float = 0.0) -> dict:
    """Return the state of `pass_message`: until when each rank sends and takes in, and since when it has what."""
    return {"sends": [time] * ranks, "takes": [time] * ranks, "has": [{} for _ in range(ranks)], "start": time}


def ready(state: dict, rank: int, chunks: Sequence[int]) -> float:
    """Return since when a rank has all of these chunks as it is to send them."""
    return max(state["has"][rank].get(c, state["start"]) for c in chunks)


def pass_message(state: dict, message: tuple, seconds: float, since: float) -> tuple[float, float]:
    """Let a message (src, dst, chunks), there since `since`, pass, and change `state`; return (began, ended)."""
    src, dst, chunks = message
    began = max(state["sends"][src], state["takes"][dst], since)
    ended = began + seconds
    state["sends"][src] = state["takes"][dst] = ended
    for c in chunks:
        state["has"][dst][c] = max(state["has"][dst].get(c, state["start"]), ended)
    return began, ended


# ---- fits --------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """t = alpha + size / bandwidth, fitted; `first` and `last` are the sizes between which it was."""

    alpha: float
    bandwidth: float
    first: float
    last: float

    def seconds(self, size: float | np.ndarray) -> float | np.ndarray:
        """Return the time that the line gives for messages of `size` bytes."""
        return self.alpha + np.asarray(size) / self.bandwidth


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> Line:
    """Return the line with the least sum of squared *relative* errors: sizes span decades, and all shall count.

    Raises:
        ValueError: fewer than two sizes, sizes all the same, lengths that differ, or times that are not positive.
    """
    x, t = np.asarray(sizes, float), np.asarray(seconds, float)
    if x.shape != t.shape or len(np.unique(x)) < 2:
        raise ValueError(f"A fit needs a time for each of at least two different sizes, not {len(x)} and {len(t)}.")
    if not (t > 0).all():
        raise ValueError(f"Times must be positive; the smallest is {t.min()!r}.")
    design = np.stack([1 / t, x / t], axis=1)  # (points, 2): each row of α + x/β = t, divided by t
    (alpha, slope), *_ = np.linalg.lstsq(design, np.ones(len(t)), rcond=None)
    return Line(float(alpha), math.inf if slope <= 0 else float(1 / slope), float(x.min()), float(x.max()))


def relative_errors(line: Line, sizes: Sequence[float], seconds: Sequence[float]) -> np.ndarray:
    """Return (predicted - measured) / measured, one per size."""
    t = np.asarray(seconds, float)
    return (line.seconds(np.asarray(sizes, float)) - t) / t


def fit_two(sizes: Sequence[float], seconds: Sequence[float], least: int = 3) -> tuple[Line, Line]:
    """Return the lines below and above the knee, tried between all neighbouring sizes; `least` points on each side.

    Raises:
        ValueError: fewer than 2·least points.
    """
    order = np.argsort(sizes)
    x, t = np.asarray(sizes, float)[order], np.asarray(seconds, float)[order]
    if len(x) < 2 * least:
        raise ValueError(f"Two regimes of at least {least} points need {2 * least} points, not {len(x)}.")

    def both(k: int) -> tuple[Line, Line]:
        return fit(x[:k], t[:k]), fit(x[k:], t[k:])

    def squared(k: int) -> float:
        low, high = both(k)
        return float((relative_errors(low, x[:k], t[:k]) ** 2).sum() + (relative_errors(high, x[k:], t[k:]) ** 2).sum())

    return both(min(range(least, len(x) - least + 1), key=squared))


# ---- a race of ring and tree, message by message -----------------------------------------------------------

LIMITS = {
    "workers": (2, 16),
    "exponent": (8, 30),  # a vector has 2^exponent bytes
    "chunks": (1, 32),  # that the tree cuts the vector into; the ring cuts it into one for each worker
    "alpha": (1, 100),  # µs
    "bandwidth": (1, 100),  # GB/s in each direction
    "slow": (1, 20),  # how many times as long a message between workers 0 and 1 takes
}
START = {"workers": 8, "exponent": 20, "chunks": 4, "alpha": 10, "bandwidth": 10, "slow": 1}
LANES = ("ring", "tree")


def checked(parameters: dict) -> dict:
    """Return all parameters of the race, those given and the defaults of the rest.

    Raises:
        ValueError: an unknown parameter, or one that is no whole number within its limits.
    """
    for name, value in parameters.items():
        if name not in LIMITS:
            raise ValueError(f"The simulation has no parameter {name!r}; it has: {', '.join(LIMITS)}.")
        least, most = LIMITS[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")
    return {**START, **parameters}


@functools.cache
def plan(lane: str, workers: int, chunks: int) -> tuple[tuple[int, int, int], ...]:
    """Return the messages (src, dst, chunk) of one all-reduce, in order."""
    schedule = ring(workers) if lane == "ring" else pipelined_tree(workers, chunks)
    return tuple((send.src, send.dst, send.chunk) for step in schedule for send in step)


def new_race() -> dict:
    """Return the state before the first message. Times in µs; a race is one all-reduce by each of LANES."""
    return {"race": 0, "begun": 0.0, "ring": None, "tree": None, "last": None}


def finished(state: dict, lane: str) -> bool:
    """Whether this all-reduce of the race is over."""
    return state[lane] is not None and state[lane]["next"] == len(
        plan(lane, state["workers"], state["chunks"] if lane == "tree" else 0)
    )


def _line_up(state: dict, parameters: dict) -> dict:
    """Return the state at the start of the next race: workers, size and chunks as they are set now."""
    begun = max((state[lane]["clock"] for lane in LANES if state[lane]), default=0.0)
    n, size = parameters["workers"], 2.0 ** parameters["exponent"]
    new = {"race": state["race"] + 1, "begun": begun, "workers": n, "size": size, "chunks": parameters["chunks"]}
    for lane in LANES:
        parts = n if lane == "ring" else parameters["chunks"]
        has = [[begun] * parts for _ in range(n)]
        new[lane] = {"next": 0, "clock": begun, "parts": parts, "sent": [0.0] * n, "messages": [0] * n}
        new[lane] |= {"sends": [begun] * n, "takes": [begun] * n, "has": has}
    return {**new, "last": None}


def race_step(state: dict, parameters: dict) -> dict:
    """Return the state after one more message, of the all-reduce that is behind in time.

    A message starts when its chunk is there, the sender has sent and the receiver taken in what came before.
    `alpha`, `bandwidth` and `slow` act on it at once; workers, exponent and chunks with the next race. `last` is
    the message: lane, src, dst, chunk, began, ended.
    """
    if all(finished(state, lane) for lane in LANES):
        state = _line_up(state, parameters)
    if state["race"] == 0:
        state = _line_up(state, parameters)
    name = min((lane for lane in LANES if not finished(state, lane)), key=lambda lane: state[lane]["clock"])
    lane = {key: list(value) if isinstance(value, list) else value for key, value in state[name].items()}
    src, dst, chunk = plan(name, state["workers"], state["chunks"] if name == "tree" else 0)[lane["next"]]
    size = state["size"] / lane["parts"]
    took = parameters["alpha"] + size / (parameters["bandwidth"] * 1000)
    if src + dst == 1:
        took *= parameters["slow"]
    began = max(lane["sends"][src], lane["takes"][dst], lane["has"][src][chunk])
    ended = began + took
    lane["sends"][src] = lane["takes"][dst] = ended
    lane["has"][dst] = [max(since, ended) if c == chunk else since for c, since in enumerate(lane["has"][dst])]
    lane["sent"][src] += size
    lane["messages"][src] += 1
    lane |= {"next": lane["next"] + 1, "clock": max(lane["clock"], ended)}
    last = {"lane": name, "src": src, "dst": dst, "chunk": chunk, "began": began, "ended": ended}
    return {**state, name: lane, "last": last}


def race(parameters: dict | None = None, state: dict | None = None) -> dict:
    """Return the state at the end of the race that `state` is in, or of the next one if that is over."""
    parameters = checked(parameters or {})
    state = race_step(state or new_race(), parameters)
    while not all(finished(state, lane) for lane in LANES):
        state = race_step(state, parameters)
    return state
