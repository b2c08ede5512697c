"""Reference answers of lesson 21, and the mistakes its checkers know by name."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def ring_reduce_scatter(n):
    """Schedule with n chunks after which rank r has the sum of all chunks r: n - 1 steps round the ring."""
    return [[(r, (r + 1) % n, (r - step - 1) % n, "add") for r in range(n)] for step in range(n - 1)]


def _ends_one_further(n):
    return [[(r, (r + 1) % n, (r - step) % n, "add") for r in range(n)] for step in range(n - 1)]


def _copies(n):
    return [[(r, (r + 1) % n, (r - step - 1) % n, "copy") for r in range(n)] for step in range(n - 1)]


def _one_step_more(n):
    return [[(r, (r + 1) % n, (r - step - 1) % n, "add") for r in range(n)] for step in range(n)]


def _own_chunk_always(n):
    return [[(r, (r + 1) % n, r, "add") for r in range(n)] for _ in range(n - 1)]


def _same_chunk_always(n):
    return [[(r, (r + 1) % n, (r - 1) % n, "add") for r in range(n)] for _ in range(n - 1)]


def _wrong_way(n):
    return [[(r, (r + 1) % n, (r + step + 1) % n, "add") for r in range(n)] for step in range(n - 1)]


def _no_wrap(n):
    return [[(r, r + 1, (r - step - 1) % n, "add") for r in range(n)] for step in range(n - 1)]


def _numbers_of_ranks(random: np.random.Generator) -> Iterator[tuple]:
    yield (4,)
    yield (3,)
    yield (2,)
    yield (1,)
    for _ in range(4):
        yield (int(random.integers(5, 18)),)


def fit_alpha_beta(sizes, times):
    """Line alpha + size / beta with the least sum of squared relative errors: (alpha, beta)."""
    x, t = np.asarray(sizes, float), np.asarray(times, float)
    design = np.stack([1 / t, x / t], axis=1)  # each equation alpha + x / beta = t, divided by t
    (alpha, slope), *_ = np.linalg.lstsq(design, np.ones(len(t)), rcond=None)
    return alpha, 1 / slope


def _absolute_errors(sizes, times):
    slope, alpha = np.polyfit(np.asarray(sizes, float), np.asarray(times, float), 1)
    return alpha, 1 / slope


def _slope_for_bandwidth(sizes, times):
    alpha, beta = fit_alpha_beta(sizes, times)
    return alpha, 1 / beta


def _swapped(sizes, times):
    return fit_alpha_beta(sizes, times)[::-1]


def _weighted_by_size(sizes, times):
    x, t = np.asarray(sizes, float), np.asarray(times, float)
    slope, alpha = np.polyfit(x, t, 1, w=1 / x)
    return alpha, 1 / slope


def _logarithms(sizes, times):
    slope, intercept = np.polyfit(np.log(sizes), np.log(times), 1)
    return np.exp(intercept), 1 / slope


def _times(random: np.random.Generator) -> Iterator[tuple]:
    yield [1000, 2000], [15.0, 20.0]
    yield [1000, 10000, 1000000], [20.0, 60.0, 3000.0]
    for _ in range(6):
        sizes = np.unique(10 ** random.uniform(3, 7, size=random.integers(4, 12)))
        alpha, beta = random.uniform(10, 100), random.uniform(100, 10000)
        yield sizes, (alpha + sizes / beta) * random.uniform(0.9, 1.1, size=len(sizes))


def ring_wins_from(n, alpha, beta):
    """Size from which a ring is faster than a butterfly on n = 2^k ranks; infinity if it never is."""
    rounds = np.log2(n)
    more_steps = 2 * (n - 1) - rounds  # the ring's, each of alpha
    fewer_bytes = rounds - 2 * (n - 1) / n  # of each byte of the vector, each of 1 / beta
    return np.inf if fewer_bytes <= 0 else more_steps * alpha * beta / fewer_bytes


def _not_for_two(n, alpha, beta):
    rounds = math.log2(n)
    return (2 * (n - 1) - rounds) * alpha * beta / (rounds - 2 * (n - 1) / n)


def _against_tree(n, alpha, beta):
    rounds = 2 * np.log2(n)
    return (2 * (n - 1) - rounds) * alpha * beta / (rounds - 2 * (n - 1) / n)


def _divided_by_beta(n, alpha, beta):
    wins = ring_wins_from(n, alpha, beta)
    return wins / beta**2 if np.isfinite(wins) else wins


def _whole_messages(n, alpha, beta):
    rounds = np.log2(n)
    fewer = rounds - 2 * (n - 1)
    return np.inf if fewer <= 0 else (2 * (n - 1) - rounds) * alpha * beta / fewer


def _networks(random: np.random.Generator) -> Iterator[tuple]:
    yield 8, 5.0, 10_000.0
    yield 4, 1.0, 100.0
    yield 2, 5.0, 10_000.0
    yield 16384, 5.0, 50_000.0
    for _ in range(6):
        yield 2 ** int(random.integers(2, 12)), float(random.uniform(1, 50)), float(random.uniform(100, 50_000))


EXERCISES = {
    "ring_reduce_scatter": Exercise(
        ring_reduce_scatter,
        _numbers_of_ranks,
        (
            (_ends_one_further, "the sums come out right, one rank too far: rank r is to end with chunk r, not r + 1."),
            (_copies, 'a copy overwrites what the receiver has: the op of a reduction is "add".'),
            (_one_step_more, "there is a step too many: after n - 1 steps every chunk has been on every rank."),
            (_own_chunk_always, "a rank sends on what it has just received: the chunk changes with every step."),
            (_same_chunk_always, "a rank sends on what it has just received: the chunk changes with every step."),
            (_wrong_way, "the chunk number goes up with the step; what came from rank r - 1 has a number one lower."),
            (_no_wrap, "the last rank sends to rank 0: take the number of the receiver modulo n."),
        ),
    ),
    "fit_alpha_beta": Exercise(
        fit_alpha_beta,
        _times,
        (
            (
                _absolute_errors,
                "this fits absolute errors, so the largest size alone decides: divide each row by its time.",
            ),
            (_slope_for_bandwidth, "beta is size per time; the slope of the line is 1 / beta."),
            (_swapped, "the order is (alpha, beta)."),
            (_weighted_by_size, "this divides the errors by the sizes; a relative error is divided by the time."),
            (_logarithms, "a line through the logarithms is a power law; alpha + size / beta is none."),
        ),
    ),
    "ring_wins_from": Exercise(
        ring_wins_from,
        _networks,
        (
            (_not_for_two, "with two ranks both send the same bytes, and the ring takes more steps: it never wins."),
            (
                _against_tree,
                "this compares a ring with a tree, or half a ring with a butterfly: a ring takes 2 (n - 1) steps, a "
                "butterfly log2 n.",
            ),
            (_divided_by_beta, "beta is in bytes per second: a size is a time multiplied by beta."),
            (_whole_messages, "a ring sends chunks of size / n, not the whole vector, in each of its steps."),
        ),
    ),
}
