"""Reference answers of lesson 30, and the mistakes its checkers know by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def decode_float16(pattern):
    """Value of a finite float16 pattern: normal with a leading 1, subnormal without."""
    sign = -1 if pattern >> 15 else 1
    exponent = (pattern >> 10) & 0b11111
    mantissa = pattern & 0b1111111111
    if exponent == 0:
        return sign * mantissa / 1024 * 2.0**-14
    return sign * (1 + mantissa / 1024) * 2.0 ** (exponent - 15)


def _fields(pattern):
    return (-1 if pattern >> 15 else 1), (pattern >> 10) & 31, pattern & 1023


def _no_subnormals(pattern):
    sign, exponent, mantissa = _fields(pattern)
    return sign * (1 + mantissa / 1024) * 2.0 ** (exponent - 15)


def _subnormal_exponent(pattern):
    sign, exponent, mantissa = _fields(pattern)
    return sign * ((exponent > 0) + mantissa / 1024) * 2.0 ** (exponent - 15)


def _flushed(pattern):
    return decode_float16(pattern) if (pattern >> 10) & 31 else 0.0


def _no_bias(pattern):
    sign, exponent, mantissa = _fields(pattern)
    return sign * ((exponent > 0) + mantissa / 1024) * 2.0 ** max(exponent, 1)


def _no_leading_one(pattern):
    sign, exponent, mantissa = _fields(pattern)
    return sign * mantissa / 1024 * 2.0 ** (max(exponent, 1) - 15)


def _no_sign(pattern):
    return abs(decode_float16(pattern))


def _sign_kept(pattern):
    return (-1 if pattern >> 15 else 1) * (1 + (pattern & 1023) / 1024) * 2.0 ** ((pattern >> 10) - 15)


def _patterns(random: np.random.Generator) -> Iterator[tuple]:
    yield (0x3C00,)  # 1
    yield (0xC500,)  # -5
    yield (0x0001,)  # the smallest subnormal
    yield (0x83FF,)  # the largest subnormal, negative
    yield (0x0400,)  # the smallest normal
    yield (0x7BFF,)  # the largest
    for _ in range(20):
        pattern = int(random.integers(0, 1 << 16))
        if (pattern >> 10) & 31 != 31:
            yield (pattern,)


def kahan_sum(values):
    """Sum in the values' own type, with what each addition lost given back to the next."""
    total = lost = values.dtype.type(0)
    for value in values:
        corrected = value - lost
        new_total = total + corrected
        lost = (new_total - total) - corrected
        total = new_total
    return total


def _naive(values):
    total = values.dtype.type(0)
    for value in values:
        total = total + value
    return total


def _wrong_sign(values):
    total = lost = values.dtype.type(0)
    for value in values:
        corrected = value + lost
        new_total = total + corrected
        lost = (new_total - total) - corrected
        total = new_total
    return total


def _wide(values):
    return np.sum(values.astype(np.float64))


def _wide_then_cast(values):
    return values.dtype.type(np.sum(values.astype(np.float64)))


def _pairwise(values):
    while len(values) > 1:
        odd, even = values[1::2], values[::2].copy()
        even[: len(odd)] += odd
        values = even
    return values[0] if len(values) else values.dtype.type(0)


def _compares_sizes(values):  # Neumaier's variant
    total = lost = values.dtype.type(0)
    for value in values:
        new_total = total + value
        lost = lost + ((total - new_total) + value if abs(total) >= abs(value) else (value - new_total) + total)
        total = new_total
    return total + lost


def _addends(random: np.random.Generator) -> Iterator[tuple]:
    yield (np.ones(4096, np.float16),)
    yield (np.array([], np.float16),)
    yield (np.array([2048, 1, 1, 1, 1], np.float16),)
    yield (np.array([2048, 1, -2048, 0], np.float16),)  # where Kahan gets 1, and pairwise summation 0
    yield (np.array([1, 30000, 1, -30000], np.float16),)  # where Kahan fails, and a wider format does not
    for _ in range(6):
        yield (random.uniform(0, 2, size=int(random.integers(1000, 6000))).astype(np.float16),)


def e4m3_scale(x):
    """The factor that moves the largest magnitude onto 448; 1 where there is nothing to scale."""
    largest = np.max(np.abs(x), initial=0.0)
    return 448 / largest if largest > 0 else 1.0


def _signed_maximum(x):
    largest = np.max(x, initial=0.0)
    return 448 / largest if largest > 0 else 1.0


def _inverse(x):
    largest = np.max(np.abs(x), initial=0.0)
    return largest / 448 if largest > 0 else 1.0


def _to_one(x):
    largest = np.max(np.abs(x), initial=0.0)
    return 1 / largest if largest > 0 else 1.0


def _zero_divides(x):
    with np.errstate(divide="ignore"):
        return np.float64(448) / np.max(np.abs(x), initial=0.0)


def _tensors(random: np.random.Generator) -> Iterator[tuple]:
    yield (np.array([1.0, -2.0, 4.0]),)
    yield (np.array([1.0, -8.0]),)
    yield (np.zeros((2, 3)),)
    for _ in range(8):
        shape = tuple(random.integers(1, 6, size=random.integers(1, 4)))
        yield (random.normal(size=shape) * 10.0 ** random.uniform(-6, 4),)


EXERCISES = {
    "decode_float16": Exercise(
        decode_float16,
        _patterns,
        (
            (_no_subnormals, "an exponent field of 0 is special: there is no leading 1, and the exponent is -14."),
            (_subnormal_exponent, "subnormal values use the exponent -14, that of the smallest normal value, not -15."),
            (_flushed, "an exponent field of 0 does not mean 0: the mantissa counts there too."),
            (_no_bias, "the exponent field is stored with a bias: subtract 15."),
            (_no_leading_one, "a normal value has a leading 1 that is not stored: 1 + mantissa / 1024."),
            (_no_sign, "the highest bit is the sign."),
            (_sign_kept, "pattern >> 10 still holds the sign bit: & 31 keeps the five bits of the exponent field."),
        ),
        tolerance=0.0,
    ),
    "kahan_sum": Exercise(
        kahan_sum,
        _addends,
        (
            (_naive, "this is the naive sum: what an addition loses has to be given back to the next value."),
            (_wrong_sign, "lost is what was added too much, so it is to be subtracted from the next value."),
            (_wide, "this adds in a wider format: keep total and lost in the type of the values."),
            (_wide_then_cast, "this is better than Kahan's rule can be: it has a wider format, or another rule."),
            (_pairwise, "this adds in pairs: go through the values one by one, and keep what each addition lost."),
            (_compares_sizes, "this compares sizes, which is a later variant: Kahan's rule has no case distinction."),
        ),
        tolerance=1e-7,
    ),
    "e4m3_scale": Exercise(
        e4m3_scale,
        _tensors,
        (
            (_signed_maximum, "the largest value is not the largest magnitude: negative values overflow too."),
            (_inverse, "this is the inverse: multiplied by the scale, the largest magnitude should become 448."),
            (_to_one, "this moves the largest magnitude onto 1 and leaves the range from 1 to 448 unused."),
            (_zero_divides, "for a tensor of zeros this divides by zero: any finite scale will do there, say 1."),
        ),
        tolerance=1e-9,
    ),
}
