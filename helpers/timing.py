"""How long does it take, and which is faster: with a spread, an interval and the machine's name."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from helpers.devices import machine


def _finish(result: object) -> None:
    """Wait until devices have done what was asked: on a GPU a call returns before its work is done."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
        tensorflow.test.experimental.sync_devices()


def _seconds(fn: Callable[[], object]) -> float:
    start = time.perf_counter()
    _finish(fn())
    return time.perf_counter() - start


def _check_repeats(repeats: int, least: int) -> None:
    if not isinstance(repeats, int) or repeats < least:
        raise ValueError(f"repeats must be a whole number of at least {least}, not {repeats!r}.")


@dataclass(frozen=True)
class Measurement:
    """Times of one function, in seconds, after warm-up."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Interquartile range, s: half of all runs lie within it."""
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return high - low

    def __str__(self) -> str:
        return (
            f"{self.median * 1e3:.3g} ms (middle half within {self.spread * 1e3:.2g} ms, "
            f"{len(self.seconds)} runs) on {machine()}"
        )


@dataclass(frozen=True)
class Comparison:
    """How many times as long `a` takes as `b`: the median of the paired ratios and its interval."""

    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def conclusive(self) -> bool:
        """Whether the interval leaves out 1, so that one of the two is really faster."""
        return not self.low <= 1.0 <= self.high

    def __str__(self) -> str:
        return (
            f"ratio {self.ratio:.2f} (95% interval {self.low:.2f} to {self.high:.2f}, "
            f"{self.pairs} pairs) on {machine()}"
        )


def measure(fn: Callable[[], object], *, repeats: int = 15, warmup: int = 2) -> Measurement:
    """Time `fn()` `repeats` times after `warmup` calls that do not count (tracing, caches).

    Raises:
        ValueError: fewer than 3 repeats, which have no spread worth the name.
    """
    _check_repeats(repeats, 3)
    for _ in range(warmup):
        _finish(fn())
    return Measurement(tuple(_seconds(fn) for _ in range(repeats)))


def median_interval(n: int, confidence: float = 0.95) -> tuple[int, int]:
    """Return the 0-based ranks of `n` sorted values between which their median lies, at `confidence`.

    No distribution is assumed: the number of values below the true median is binomial(n, 1/2)
    (Conover, Practical Nonparametric Statistics, section 3.2). Fewer than 6 values cannot give 95%.
    """
    below = 0.0
    for rank in range(n // 2):
        below += math.comb(n, rank) / 2**n
        if 2 * below > 1 - confidence:
            return max(rank - 1, 0), n - 1 - max(rank - 1, 0)
    return max(n // 2 - 1, 0), n - 1 - max(n // 2 - 1, 0)


def compare(a: Callable[[], object], b: Callable[[], object], *, repeats: int = 15, warmup: int = 2) -> Comparison:
    """Time `a()` against `b()` in turns (a b, b a, a b, …), so that a slow minute strikes both.

    Returns the median of the paired ratios time(a) / time(b), with its 95% interval.

    Raises:
        ValueError: fewer than 6 repeats, from which no 95% interval can be had.
    """
    _check_repeats(repeats, 6)
    for _ in range(warmup):
        _finish(a())
        _finish(b())
    ratios = []
    for turn in range(repeats):
        if turn % 2:
            seconds_b, seconds_a = _seconds(b), _seconds(a)
        else:
            seconds_a, seconds_b = _seconds(a), _seconds(b)
        ratios.append(seconds_a / max(seconds_b, 1e-9))
    ratios.sort()
    low, high = median_interval(repeats)
    return Comparison(statistics.median(ratios), ratios[low], ratios[high], repeats)
