"""A measurement has a spread, a comparison an interval that covers what it should."""

import math
import random

import numpy as np
import pytest

from helpers import timing


def clock_of(durations, monkeypatch):
    """Replace the clock: each timed call lasts the next of `durations`."""
    now, times = 0.0, []
    for duration in durations:
        times += [now, now + duration]
        now += duration
    feed = iter(times)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(feed))


def test_measure_reports_median_and_middle_half(monkeypatch):
    clock_of([1, 2, 3, 4, 5], monkeypatch)
    result = timing.measure(lambda: None, repeats=5, warmup=1)
    assert result.median == pytest.approx(3)
    assert result.spread == pytest.approx(2)
    assert "5 runs" in str(result)
    assert "cores of" in str(result)


def test_warm_up_calls_do_not_count():
    calls = []
    result = timing.measure(lambda: calls.append(1), repeats=3, warmup=4)
    assert len(calls) == 7
    assert len(result.seconds) == 3


def test_compare_takes_turns():
    order = []
    timing.compare(lambda: order.append("a"), lambda: order.append("b"), repeats=6, warmup=1)
    assert "".join(order) == "ab" + "abba" * 3


def test_compare_gives_the_ratio_of_the_first_to_the_second(monkeypatch):
    pairs = [2, 1, 1, 2] * 5  # a b, b a, …: a takes twice as long
    clock_of(pairs, monkeypatch)
    result = timing.compare(lambda: None, lambda: None, repeats=10, warmup=0)
    assert (result.ratio, result.low, result.high) == (2, 2, 2)
    assert result.conclusive


def test_ratios_on_both_sides_of_one_are_inconclusive(monkeypatch):
    pairs = [3, 2, 3, 2] * 5  # a b, b a, …: each is the slower one in half of the turns
    clock_of(pairs, monkeypatch)
    result = timing.compare(lambda: None, lambda: None, repeats=10, warmup=0)
    assert (result.low, result.high) == (2 / 3, 3 / 2)
    assert not result.conclusive


@pytest.mark.parametrize("n", [6, 7, 9, 15, 20, 51, 100])
def test_interval_covers_the_median_in_at_least_95_of_100_cases(n):
    low, high = timing.median_interval(n)
    outside = 2 * sum(math.comb(n, rank) for rank in range(low + 1)) / 2**n
    assert outside <= 0.05
    tighter = 2 * sum(math.comb(n, rank) for rank in range(low + 2)) / 2**n
    assert tighter > 0.05, "a narrower interval would do"
    assert high == n - 1 - low


def test_interval_covers_in_a_simulation():
    generator = np.random.default_rng(0)
    low, high = timing.median_interval(15)
    samples = np.sort(generator.lognormal(size=(4000, 15)), axis=1)
    covered = np.mean((samples[:, low] <= 1) & (samples[:, high] >= 1))
    assert covered > 0.95


@pytest.mark.parametrize(("function", "repeats"), [("measure", 2), ("compare", 5)])
def test_too_few_repeats_are_refused(function, repeats):
    arguments = [random.random] * (2 if function == "compare" else 1)
    with pytest.raises(ValueError, match=f"not {repeats}"):
        getattr(timing, function)(*arguments, repeats=repeats)
