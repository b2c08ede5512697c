"""Reference answers of lesson 20, and the mistakes its checkers know by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def average_gradients(gradients, shard_sizes):
    """Gradient of the mean loss over all examples: shards weighted by their sizes, empty ones left out."""
    total = sum(shard_sizes)
    return sum(size / total * g for g, size in zip(gradients, shard_sizes, strict=True) if size > 0)


def _plain_mean(gradients, shard_sizes):
    return np.mean([g for g, size in zip(gradients, shard_sizes, strict=True) if size > 0], axis=0)


def _plain_sum(gradients, shard_sizes):
    return np.sum([g for g, size in zip(gradients, shard_sizes, strict=True) if size > 0], axis=0)


def _divided_by_workers(gradients, shard_sizes):
    return np.sum([size * g for g, size in zip(gradients, shard_sizes, strict=True) if size > 0], axis=0) / len(
        gradients
    )


def _divided_by_all_workers(gradients, shard_sizes):
    return sum(gradients) / len(gradients)


def _nan_hidden(gradients, shard_sizes):
    return np.average(np.nan_to_num(gradients), axis=0, weights=np.asarray(shard_sizes, float))


def _empty_shard_counts(gradients, shard_sizes):
    return np.average(gradients, axis=0, weights=np.asarray(shard_sizes, float))


def _shards(random: np.random.Generator) -> Iterator[tuple]:
    yield [np.array([1.0, 0.0]), np.array([3.0, 4.0])], [2, 2]
    yield [np.array([1.0, 0.0]), np.array([3.0, 4.0])], [3, 1]
    yield [np.array([[1.0]]), np.array([[np.nan]])], [5, 0]
    yield [np.array([1.0]), np.array([np.nan])], [5, 3]  # a NaN that comes from data must not be hidden
    for _ in range(8):
        shape = tuple(random.integers(1, 5, size=random.integers(1, 4)))
        workers = int(random.integers(1, 6))
        yield [random.normal(size=shape) for _ in range(workers)], random.integers(1, 9, size=workers).tolist()


def replica_loss(losses, global_batch_size):
    """One replica's share of the global mean loss: its own sum over the size of the whole batch."""
    return np.sum(losses) / global_batch_size


def _local_mean(losses, global_batch_size):
    return np.mean(losses) if len(losses) else np.nan


def _local_mean_or_zero(losses, global_batch_size):
    return np.mean(losses) if len(losses) else 0.0


def _mean_over_global(losses, global_batch_size):
    return np.mean(losses) / global_batch_size if len(losses) else 0.0


def _sum_only(losses, global_batch_size):
    return np.sum(losses)


def _losses(random: np.random.Generator) -> Iterator[tuple]:
    yield np.array([1.0, 4.0]), 4
    yield np.array([]), 4
    yield np.array([2.0]), 1
    for _ in range(8):
        size = int(random.integers(0, 9))
        yield random.exponential(size=size), size + int(random.integers(1, 30))


def scaled_learning_rate(step, base, k, warmup_steps):
    """Gradual warm-up of Goyal et al. 2017, section 2.2: a line from base to k·base, then constant."""
    progress = min(1.0, step / warmup_steps) if warmup_steps > 0 else 1.0
    return base + (k * base - base) * progress


def _from_zero(step, base, k, warmup_steps):
    return k * base * (min(1.0, step / warmup_steps) if warmup_steps > 0 else 1.0)


def _from_zero_unguarded(step, base, k, warmup_steps):
    return k * base * min(1.0, step / warmup_steps)


def _square_root(step, base, k, warmup_steps):
    return scaled_learning_rate(step, base, np.sqrt(k), warmup_steps)


def _constant_warmup(step, base, k, warmup_steps):
    return base if step < warmup_steps else k * base


def _never_stops(step, base, k, warmup_steps):
    return base + (k * base - base) * (step / warmup_steps if warmup_steps > 0 else 1.0)


def _schedules(random: np.random.Generator) -> Iterator[tuple]:
    yield 0, 0.1, 8, 4
    yield 2, 0.1, 8, 4
    yield 9, 0.1, 8, 4
    yield 0, 0.1, 8, 0
    for _ in range(8):
        warmup_steps = int(random.integers(1, 50))
        yield int(random.integers(0, 80)), float(random.uniform(0.01, 1)), int(random.integers(2, 65)), warmup_steps


EXERCISES = {
    "average_gradients": Exercise(
        average_gradients,
        _shards,
        (
            (_plain_mean, "this is the plain mean, which is right only for equal shards: weight each by its size."),
            (_divided_by_all_workers, "this is the plain mean, right only for equal shards: weight each by its size."),
            (_nan_hidden, "a NaN from a shard that has examples is real: it must come out, not be replaced."),
            (_plain_sum, "this is the sum: a gradient of the mean loss has to be divided by the examples."),
            (_divided_by_workers, "divide by the number of examples in all shards, not by the number of workers."),
            (_empty_shard_counts, "an empty shard may report NaN, and 0 · NaN is NaN: leave it out."),
        ),
    ),
    "replica_loss": Exercise(
        replica_loss,
        _losses,
        (
            (_local_mean, "this divides by the local batch: summed over replicas that is N times too much, or NaN."),
            (_local_mean_or_zero, "this divides by the local batch: summed over N replicas it is N times too much."),
            (_mean_over_global, "this divides twice, by the local and by the global batch size."),
            (_sum_only, "this is the sum: divide it by the size of the whole batch."),
        ),
    ),
    "scaled_learning_rate": Exercise(
        scaled_learning_rate,
        _schedules,
        (
            (_from_zero, "gradual warm-up starts at base, not at 0."),
            (_from_zero_unguarded, "gradual warm-up starts at base, not at 0; and warmup_steps may be 0."),
            (_square_root, "this scales by the square root of k; the rule asked for is linear."),
            (_constant_warmup, "this is constant warm-up, which did worst in Goyal's table; the rate should climb."),
            (_never_stops, "after warmup_steps the rate should stay at k · base; here it goes on climbing."),
        ),
    ),
}
