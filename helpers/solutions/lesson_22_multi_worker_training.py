"""Reference answers of lesson 22, and the mistakes its checkers know by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def tf_config(addresses, own):
    """TF_CONFIG as a dictionary: the same list on every process, and the place of `own` in it."""
    return {"cluster": {"worker": list(addresses)}, "task": {"type": "worker", "index": addresses.index(own)}}


def _sorted(addresses, own):
    return tf_config(sorted(addresses), own)


def _index_of_sorted(addresses, own):
    return tf_config(addresses, own) | {"task": {"type": "worker", "index": sorted(addresses).index(own)}}


def _own_first(addresses, own):
    return tf_config([own, *(address for address in addresses if address != own)], own)


def _others_only(addresses, own):
    config = tf_config(addresses, own)
    config["cluster"]["worker"].remove(own)
    return config


def _from_one(addresses, own):
    config = tf_config(addresses, own)
    config["task"]["index"] += 1
    return config


def _address_books(random: np.random.Generator) -> Iterator[tuple]:
    nodes = [f"node{number}:4000" for number in range(1, 13)]  # as strings, node10 comes before node2
    yield nodes, "node2:4000"
    yield ["127.0.0.1:5000"], "127.0.0.1:5000"
    yield ["b:1", "a:1"], "a:1"
    for _ in range(5):
        chosen = [str(node) for node in random.permutation(nodes)[: random.integers(2, 12)]]
        yield chosen, chosen[random.integers(len(chosen))]


def audit_shards(seen, n):
    """Ids from 0 to n - 1 that no worker saw, and those seen more than once: two sorted lists."""
    every = [number for worker in seen for number in worker]
    return [i for i in range(n) if i not in every], sorted({i for i in every if every.count(i) > 1})


def _within_a_worker(seen, n):
    missing, _ = audit_shards(seen, n)
    return missing, sorted({i for worker in seen for i, times in Counter(worker).items() if times > 1})


def _between_workers(seen, n):
    missing, _ = audit_shards(seen, n)
    counts = Counter(i for worker in seen for i in set(worker))
    return missing, sorted(i for i, times in counts.items() if times > 1)


def _by_number_alone(seen, n):
    total = sum(map(len, seen))
    return list(range(total, n)), list(range(n, total))


def _from_one_to_n(seen, n):
    missing, repeated = audit_shards([[i - 1 for i in worker] for worker in seen], n)
    return [i + 1 for i in missing], [i + 1 for i in repeated]


def _missing_by_a_worker(seen, n):
    return sorted({i for worker in seen for i in range(n) if i not in worker}), audit_shards(seen, n)[1]


def _shards(random: np.random.Generator) -> Iterator[tuple]:
    yield [[0, 2, 2], [1, 0, 4]], 6
    yield [[0, 1], [2, 3]], 4
    yield [[], []], 3
    yield [[0, 1, 2], []], 3
    yield [[1, 1, 0], [3, 2]], 4
    yield [[3, 0], [0, 1]], 4
    for _ in range(5):
        n, workers = int(random.integers(4, 30)), int(random.integers(2, 5))
        yield [random.integers(0, n, size=n // workers).tolist() for _ in range(workers)], n


def batch_for_efficiency(target, seconds_per_example, communication, overlap):
    """Examples per worker and step from which the efficiency is `target`; infinity if none are enough."""
    room = overlap + 1 / target - 1  # seconds of communication that a second of compute makes room for
    return np.inf if room <= 0 else communication / room / seconds_per_example


def _no_overlap(target, seconds_per_example, communication, overlap):
    return batch_for_efficiency(target, seconds_per_example, communication, 0.0)


def _lost_share_of_compute(target, seconds_per_example, communication, overlap):
    room = overlap + 1 - target
    return np.inf if room <= 0 else communication / room / seconds_per_example


def _seconds(target, seconds_per_example, communication, overlap):
    return batch_for_efficiency(target, 1.0, communication, overlap)


def _hides_share_of_communication(target, seconds_per_example, communication, overlap):
    return batch_for_efficiency(target, seconds_per_example, communication * (1 - overlap), 0.0)


def _efficiency_as_ratio(target, seconds_per_example, communication, overlap):
    room = overlap + 1 / target
    return communication / room / seconds_per_example


def _plans(random: np.random.Generator) -> Iterator[tuple]:
    yield 0.9, 0.001, 0.02, 0.0
    yield 0.5, 0.001, 0.02, 0.5
    yield 1.0, 0.001, 0.02, 0.0
    yield 1.0, 0.001, 0.02, 0.5
    for _ in range(6):
        yield (
            float(random.uniform(0.5, 0.99)),
            float(random.uniform(1e-4, 1e-2)),
            float(random.uniform(1e-3, 0.1)),
            float(random.uniform(0.1, 0.66)),
        )


EXERCISES = {
    "tf_config": Exercise(
        tf_config,
        _address_books,
        (
            (_sorted, "the order of the list is the order of the ranks: pass it on as it is, unsorted."),
            (
                _index_of_sorted,
                "the index is the place in the list as it was given; sorted as text, node10 precedes node2.",
            ),
            (_own_first, "the list must be the same on every process: do not move the own address to its front."),
            (_others_only, "the list holds all workers, this one included."),
            (_from_one, "the index counts from 0."),
        ),
    ),
    "audit_shards": Exercise(
        audit_shards,
        _shards,
        (
            (_within_a_worker, "an id is repeated too if two different workers see it once each."),
            (_between_workers, "an id is repeated too if one worker sees it twice."),
            (_by_number_alone, "the right number of examples can still be the wrong examples: look at the ids."),
            (_from_one_to_n, "the ids run from 0 to n - 1."),
            (_missing_by_a_worker, "an id is missing only if no worker at all saw it."),
        ),
    ),
    "batch_for_efficiency": Exercise(
        batch_for_efficiency,
        _plans,
        (
            (_no_overlap, "this pays for all of the communication: the share `overlap` of the compute hides some."),
            (
                _lost_share_of_compute,
                "1 - target of the whole step may be lost, which is 1 / target - 1 of the compute.",
            ),
            (_seconds, "this is the compute in seconds: divide by the seconds per example."),
            (_hides_share_of_communication, "`overlap` is a share of the compute, not of the communication."),
            (_efficiency_as_ratio, "a step of compute / target includes the compute: subtract it."),
        ),
    ),
}
