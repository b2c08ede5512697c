"""Reference answers of lesson 23, and the mistakes its checkers know by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def place(sizes, servers):
    """Largest first, each to the server that holds the fewest bytes so far."""
    loads, placement = [0] * servers, [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i]):  # stable: equal sizes keep their order
        server = loads.index(min(loads))
        placement[index] = server
        loads[server] += sizes[index]
    return np.array(placement)


def _in_turn(sizes, servers):
    return [index % servers for index in range(len(sizes))]


def _as_they_come(sizes, servers):
    loads, placement = [0] * servers, []
    for size in sizes:
        placement.append(loads.index(min(loads)))
        loads[placement[-1]] += size
    return placement


def _smallest_first(sizes, servers):
    loads, placement = [0] * servers, [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        placement[index] = loads.index(min(loads))
        loads[placement[index]] += sizes[index]
    return placement


def _fewest_variables(sizes, servers):
    counts, placement = [0] * servers, [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        placement[index] = counts.index(min(counts))
        counts[placement[index]] += 1
    return placement


def _in_order_of_size(sizes, servers):
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    right = place(sizes, servers)
    return [right[index] for index in order]


def _variables(random: np.random.Generator) -> Iterator[tuple]:
    yield [1000, 10, 1000, 10, 1000, 10], 2
    yield [3, 3, 2, 2, 2], 2
    yield [], 3
    yield [7], 3
    yield [5, 4, 3], 1
    for _ in range(8):
        count = int(random.integers(2, 12))
        yield random.choice(np.arange(1, 200), size=count, replace=False).tolist(), int(random.integers(2, 5))


def must_wait(clocks, bound):
    """A worker waits while it is more than `bound` finished steps ahead of the slowest."""
    return np.array(clocks) - min(clocks) > bound


def _waits_at_the_bound(clocks, bound):
    return [clock - min(clocks) >= bound for clock in clocks]


def _behind_the_fastest(clocks, bound):
    return [max(clocks) - clock > bound for clock in clocks]


def _from_the_mean(clocks, bound):
    return [clock - sum(clocks) / len(clocks) > bound for clock in clocks]


def _everybody_stops(clocks, bound):
    return [max(clocks) - min(clocks) > bound] * len(clocks)


def _only_the_leader(clocks, bound):
    return [clock == max(clocks) and clock - min(clocks) > bound for clock in clocks]


def _next_slower(clocks, bound):
    below = [max((other for other in clocks if other < clock), default=clock) for clock in clocks]
    return [clock - other > bound for clock, other in zip(clocks, below, strict=True)]


def _clocks(random: np.random.Generator) -> Iterator[tuple]:
    yield [7, 5, 9, 6], 2
    yield [3, 5], 2
    yield [4, 4, 4], 0
    yield [4, 5, 4], 0
    yield [0], 0
    for _ in range(8):
        workers = int(random.integers(2, 9))
        yield random.integers(0, 15, size=workers).tolist(), int(random.integers(0, 6))


def exchange_seconds(workers, servers, table_bytes, touched_bytes, bandwidth):
    """(servers with the touched rows, ring all-reduce of the whole table), both directions used at once."""
    by_servers = max(workers / servers, 1) * touched_bytes / bandwidth
    by_ring = 2 * (workers - 1) / workers * table_bytes / bandwidth
    return np.array([by_servers, by_ring])


def _uncapped(workers, servers, table_bytes, touched_bytes, bandwidth):
    _, ring = exchange_seconds(workers, servers, table_bytes, touched_bytes, bandwidth)
    return workers / servers * touched_bytes / bandwidth, ring


def _servers_do_not_share(workers, servers, table_bytes, touched_bytes, bandwidth):
    _, ring = exchange_seconds(workers, servers, table_bytes, touched_bytes, bandwidth)
    return workers * touched_bytes / bandwidth, ring


def _no_queue(workers, servers, table_bytes, touched_bytes, bandwidth):
    _, ring = exchange_seconds(workers, servers, table_bytes, touched_bytes, bandwidth)
    return touched_bytes / bandwidth, ring


def _sparse_ring(workers, servers, table_bytes, touched_bytes, bandwidth):
    own, _ = exchange_seconds(workers, servers, table_bytes, touched_bytes, bandwidth)
    return own, 2 * (workers - 1) / workers * touched_bytes / bandwidth


def _whole_table_from_servers(workers, servers, table_bytes, touched_bytes, bandwidth):
    _, ring = exchange_seconds(workers, servers, table_bytes, touched_bytes, bandwidth)
    return max(workers / servers, 1) * table_bytes / bandwidth, ring


def _half_a_ring(workers, servers, table_bytes, touched_bytes, bandwidth):
    own, ring = exchange_seconds(workers, servers, table_bytes, touched_bytes, bandwidth)
    return own, ring / 2


def _exchanges(random: np.random.Generator) -> Iterator[tuple]:
    yield 8, 2, 1e9, 1e6, 1e9
    yield 4, 8, 1e9, 1e9, 1e9
    yield 1, 1, 1e6, 1e3, 1e9
    for _ in range(8):
        table = float(random.uniform(1e6, 1e9))
        share = float(random.uniform(0.001, 1))
        workers, servers = int(random.integers(2, 64)), int(random.integers(1, 20))
        yield workers, servers, table, share * table, float(10 ** random.uniform(8, 10))


EXERCISES = {
    "place": Exercise(
        place,
        _variables,
        (
            (_in_turn, "this deals them out in turn, whatever their bytes: that is the round robin you want to beat."),
            (_as_they_come, "this places them as they come, so a large one that comes last finds no room: sort first."),
            (_smallest_first, "this places the smallest first; the large ones then land on top of full servers."),
            (_fewest_variables, "this counts variables per server; count their bytes."),
            (_in_order_of_size, "the servers are listed in order of size: list them in the order of `sizes`."),
        ),
    ),
    "must_wait": Exercise(
        must_wait,
        _clocks,
        (
            (_waits_at_the_bound, "a worker exactly `bound` steps ahead may still begin: wait only beyond it."),
            (_behind_the_fastest, "this stops the slow ones. The fast ones have to wait for the slowest."),
            (_from_the_mean, "this compares with the mean, which a straggler hardly moves: compare with the slowest."),
            (_everybody_stops, "this stops everybody, the slowest too, and then nobody ever goes on."),
            (_only_the_leader, "this stops only the leader; every worker beyond the bound has to wait."),
            (
                _next_slower,
                "this compares with the next slower worker: a chain of them can run far ahead of the slowest.",
            ),
        ),
    ),
    "exchange_seconds": Exercise(
        exchange_seconds,
        _exchanges,
        (
            (
                _servers_do_not_share,
                "this has every byte pass through one server: the rows are spread over all of them.",
            ),
            (_uncapped, "with more servers than workers a worker's own link is the limit: n/m is at least 1."),
            (_no_queue, "n workers share m servers' links: a server moves n/m times the bytes of one worker."),
            (_sparse_ring, "a ring adds up whole arrays; it does not know which rows are zero."),
            (_whole_table_from_servers, "workers ask the servers only for the rows that they touch."),
            (_half_a_ring, "an all-reduce is a reduce-scatter and an all-gather: twice (n - 1)/n."),
        ),
    ),
}
