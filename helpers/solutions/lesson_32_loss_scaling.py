"""Reference answers of lesson 32, and the mistakes its checkers know by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def next_scale(scale, good_steps, finite, growth_interval):
    """Halve after an overflow; double after `growth_interval` good steps in a row, and count anew."""
    if not finite:
        return scale / 2, 0
    if good_steps + 1 >= growth_interval:
        return scale * 2, 0
    return scale, good_steps + 1


def _scale_by_adding(scale, good_steps, finite, growth_interval):
    if not finite:
        return scale - 1, 0
    return (scale + 1, 0) if good_steps + 1 >= growth_interval else (scale, good_steps + 1)


def _counts_on_after_growth(scale, good_steps, finite, growth_interval):
    if not finite:
        return scale / 2, 0
    return (scale * 2 if good_steps + 1 >= growth_interval else scale), good_steps + 1


def _counts_on_after_overflow(scale, good_steps, finite, growth_interval):
    return next_scale(scale, good_steps, True, growth_interval) if finite else (scale / 2, good_steps)


def _one_step_late(scale, good_steps, finite, growth_interval):
    if not finite:
        return scale / 2, 0
    return (scale * 2, 0) if good_steps >= growth_interval else (scale, good_steps + 1)


def _exactly_full(scale, good_steps, finite, growth_interval):
    if not finite:
        return scale / 2, 0
    return (scale * 2, 0) if good_steps + 1 == growth_interval else (scale, good_steps + 1)


def _never_grows(scale, good_steps, finite, growth_interval):
    return (scale, good_steps + 1) if finite else (scale / 2, 0)


def _steps(random: np.random.Generator) -> Iterator[tuple]:
    yield 1024.0, 0, True, 3
    yield 1024.0, 2, True, 3
    yield 1024.0, 2, False, 3
    yield 8.0, 0, True, 1
    yield 8.0, 0, False, 1
    yield 4.0, 3, True, 3
    for _ in range(8):
        interval = int(random.integers(1, 6))
        good = int(random.integers(0, interval))
        yield 2.0 ** int(random.integers(0, 30)), good, bool(random.integers(2)), interval


def unscale_then_clip(scaled_gradients, scale, limit):
    """True gradients, shortened together where their global norm is above `limit`."""
    gradients = [g / scale for g in scaled_gradients]
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
    return [g * min(1.0, limit / norm) if norm > 0 else g for g in gradients]


def _clip(gradients, limit):
    return unscale_then_clip(gradients, 1.0, limit)


def _unscale_after_clipping(scaled_gradients, scale, limit):
    return [g / scale for g in _clip(scaled_gradients, limit)]


def _never_unscaled(scaled_gradients, scale, limit):
    return _clip(scaled_gradients, limit)


def _each_alone(scaled_gradients, scale, limit):
    return [_clip([g / scale], limit)[0] for g in scaled_gradients]


def _always_to_the_limit(scaled_gradients, scale, limit):
    gradients = [g / scale for g in scaled_gradients]
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
    return [g * (limit / norm) if norm > 0 else g for g in gradients]


def _each_value(scaled_gradients, scale, limit):
    return [np.clip(g / scale, -limit, limit) for g in scaled_gradients]


def _scaled_gradients(random: np.random.Generator) -> Iterator[tuple]:
    yield [np.array([3072.0, 4096.0])], 1024.0, 1.0
    yield [np.array([3072.0, 4096.0])], 1024.0, 10.0
    yield [np.array([3.0]), np.array([[0.0, 4.0]])], 1.0, 2.5
    yield [np.zeros(3)], 64.0, 1.0
    for _ in range(8):
        scale = 2.0 ** int(random.integers(1, 20))
        shapes = [tuple(random.integers(1, 4, size=2)) for _ in range(random.integers(1, 4))]
        gradients = [random.normal(size=shape) * scale for shape in shapes]
        yield gradients, scale, float(random.uniform(0.2, 4))


def step_of_all(scaled_gradients, scale):
    """(True, summed and unscaled gradient) where every replica's is finite, else (False, zeros): all skip."""
    if all(np.isfinite(g).all() for g in scaled_gradients):
        return True, sum(scaled_gradients) / scale
    return False, np.zeros_like(scaled_gradients[0])


def _first_decides(scaled_gradients, scale):
    finite = np.isfinite(scaled_gradients[0]).all()
    return (True, sum(scaled_gradients) / scale) if finite else (False, np.zeros_like(scaled_gradients[0]))


def _finite_ones_only(scaled_gradients, scale):
    kept = [g for g in scaled_gradients if np.isfinite(g).all()]
    return (True, sum(kept) / scale) if kept else (False, np.zeros_like(scaled_gradients[0]))


def _zeroes_what_overflowed(scaled_gradients, scale):
    return True, sum(np.where(np.isfinite(g), g, 0.0) for g in scaled_gradients) / scale


def _infinity_only(scaled_gradients, scale):
    if any(np.isinf(g).any() for g in scaled_gradients):
        return False, np.zeros_like(scaled_gradients[0])
    return True, sum(scaled_gradients) / scale


def _last_decides(scaled_gradients, scale):
    finite = np.isfinite(scaled_gradients[-1]).all()
    return (True, sum(scaled_gradients) / scale) if finite else (False, np.zeros_like(scaled_gradients[0]))


def _nan_only(scaled_gradients, scale):
    if any(np.isnan(g).any() for g in scaled_gradients):
        return False, np.zeros_like(scaled_gradients[0])
    return True, sum(scaled_gradients) / scale


def _times_zero(scaled_gradients, scale):
    finite = all(np.isfinite(g).all() for g in scaled_gradients)
    with np.errstate(invalid="ignore"):
        return finite, finite * sum(scaled_gradients) / scale


def _never_unscales(scaled_gradients, scale):
    applied, update = step_of_all(scaled_gradients, scale)
    return applied, update * scale


def _replicas(random: np.random.Generator) -> Iterator[tuple]:
    yield [np.array([2.0, 4.0]), np.array([6.0, 0.0])], 2.0
    yield [np.array([2.0, 4.0]), np.array([np.inf, 0.0])], 2.0
    yield [np.array([np.nan, 4.0]), np.array([6.0, 0.0])], 2.0
    yield [np.array([1.0, -np.inf])], 8.0
    for _ in range(8):
        shape = tuple(random.integers(1, 4, size=random.integers(1, 3)))
        gradients = [random.normal(size=shape) for _ in range(random.integers(1, 5))]
        if random.integers(2):
            gradients[-1].flat[0] = random.choice([np.inf, -np.inf, np.nan])
        yield gradients, 2.0 ** int(random.integers(1, 16))


EXERCISES = {
    "next_scale": Exercise(
        next_scale,
        _steps,
        (
            (_scale_by_adding, "this adds and subtracts: a scale crosses 40 powers of two only by factors of 2."),
            (_counts_on_after_growth, "after doubling, the count of good steps starts at 0 again."),
            (_counts_on_after_overflow, "an overflow ends the row of good steps: count from 0 again."),
            (_one_step_late, "this step is a good one too: with good_steps + 1 the interval is full."),
            (_exactly_full, "a count that is above the interval already never equals it: compare with >=."),
            (_never_grows, "a scale that only ever falls ends in underflow: double it after growth_interval steps."),
        ),
        tolerance=1e-9,
    ),
    "unscale_then_clip": Exercise(
        unscale_then_clip,
        _scaled_gradients,
        (
            (
                _unscale_after_clipping,
                "this unscales after clipping: the limit then acts on gradients `scale` too large.",
            ),
            (_never_unscaled, "the gradients are still scaled: divide them by the scale first."),
            (_each_alone, "the global norm is one number over all arrays together; this clips each alone."),
            (_always_to_the_limit, "gradients shorter than the limit stay as they are."),
            (_each_value, "this limits each value, which turns the direction; shorten all by one factor instead."),
        ),
    ),
    "step_of_all": Exercise(
        step_of_all,
        _replicas,
        (
            (_first_decides, "here the first replica decides for all: look at the gradients of each."),
            (_finite_ones_only, "this goes on without the replica that overflowed; nobody may update then."),
            (_zeroes_what_overflowed, "an overflow is not a zero: the whole step is worthless, on every replica."),
            (_infinity_only, "NaN is not finite either: inf - inf makes it, and np.isinf does not see it."),
            (_last_decides, "here the last replica decides for all: look at the gradients of each."),
            (_nan_only, "infinity is not finite either, and np.isnan does not see it."),
            (_times_zero, "infinity times 0 is NaN: choose zeros where the step is skipped, do not multiply."),
            (_never_unscales, "the sum is still scaled: divide it by the scale."),
        ),
    ),
}
