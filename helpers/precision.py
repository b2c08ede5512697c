"""Floating-point formats as data: decode, encode and round in any of them, exactly, in plain NumPy.

Every format here but float64 has so few bits that float64 holds each of its values, so values travel as
float64 and are rounded once, by arithmetic on powers of two that is itself exact.

The trap that this avoids is *double rounding*: a float64 that is cast to float32 and from there to 16 bits
may land on the wrong neighbour, since the first cast can move it onto a tie of the second. 1 + 2⁻⁸ + 2⁻⁴⁰
belongs to the bfloat16 above 1; `ml_dtypes` goes by way of float32 and makes it 1. One sum or product of two
16-bit numbers is safe in float32, which has at least 2p + 2 bits for their p (Figueroa 1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

MODES = ("nearest", "toward_zero", "stochastic")


@dataclass(frozen=True)
class Format:
    """A binary format: one sign bit, `exponent_bits`, `mantissa_bits`, in that order.

    A finite pattern with exponent field e and mantissa field m stands for 2^(e - bias) · (1 + m / 2^mantissa_bits),
    or, where e is 0, for the subnormal 2^(1 - bias) · m / 2^mantissa_bits. With `has_infinity` the
    largest exponent field means infinity (m = 0) or NaN, as IEEE 754 has it; without, only the pattern of
    all ones is NaN and there is no infinity.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    has_infinity: bool = True

    @property
    def bits(self) -> int:
        """Bits of a pattern, the sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal value."""
        return 1 - self.bias

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest finite value."""
        return (1 << self.exponent_bits) - 1 - self.has_infinity - self.bias

    @property
    def largest(self) -> float:
        """Largest finite value."""
        mantissa = 2 ** (self.mantissa_bits + 1) - (1 if self.has_infinity else 2)  # all ones is NaN
        return math.ldexp(mantissa, self.max_exponent - self.mantissa_bits)

    @property
    def smallest_normal(self) -> float:
        """Smallest positive value with full precision."""
        return math.ldexp(1.0, self.min_exponent)

    @property
    def smallest_subnormal(self) -> float:
        """Smallest positive value; below half of it everything rounds to 0."""
        return math.ldexp(1.0, self.min_exponent - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """Gap between 1 and the next value."""
        return math.ldexp(1.0, -self.mantissa_bits)

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of one rounding to nearest, in the normal range: half of epsilon."""
        return self.epsilon / 2

    @property
    def dtype(self) -> np.dtype:
        """The unsigned integer in which a pattern is kept: tfloat32's 19 bits in 32."""
        return np.dtype(next(f"u{size}" for size in (1, 2, 4, 8) if 8 * size >= self.bits))


FORMATS = {
    fmt.name: fmt
    for fmt in (
        Format("float64", 11, 52, 1023),
        Format("float32", 8, 23, 127),
        Format("tfloat32", 8, 10, 127),  # float32's range, float16's precision; a format of registers, not of memory
        Format("bfloat16", 8, 7, 127),
        Format("float16", 5, 10, 15),
        Format("float8_e4m3", 4, 3, 7, has_infinity=False),  # "e4m3fn" elsewhere: finite, NaN
        Format("float8_e5m2", 5, 2, 15),
    )
}


def get(fmt: str | Format) -> Format:
    """Return the format of that name; a Format is returned as it is.

    Raises:
        ValueError: there is no such format.
    """
    if isinstance(fmt, Format):
        return fmt
    if not isinstance(fmt, str) or fmt not in FORMATS:
        raise ValueError(f"There is no format {fmt!r}; there are: {', '.join(FORMATS)}.")
    return FORMATS[fmt]


def _float64(values: object) -> np.ndarray:
    """Values as float64, refused where that would already round them."""
    array = np.asarray(values)
    try:
        if array.dtype.kind not in "biufV" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
            raise TypeError
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            wide = array.astype(np.float64)  # kind V: the 16- and 8-bit types of ml_dtypes
    except (TypeError, ValueError):
        raise ValueError(
            f"Values must be numbers that float64 can hold, not {array.dtype}: convert them first."
        ) from None
    if array.dtype.kind in "iu" and np.any(np.abs(wide) >= 2**53):
        raise ValueError(
            f"Whole numbers of 2**53 and more, such as {array.ravel()[np.abs(wide).argmax()]}, may be rounded on "
            "the way to float64: pass float64 values instead."
        )
    return wide


def _exponent(magnitude: np.ndarray, fmt: Format) -> np.ndarray:
    """Exponent of the binade that holds each finite magnitude, as the format has it: subnormals share the lowest."""
    return np.frexp(np.maximum(magnitude, fmt.smallest_normal))[1] - 1  # frexp: m · 2^e with m in [1/2, 1)


def decode(bits: object, fmt: str | Format) -> np.ndarray:
    """Return the values of patterns, float64, in the shape of `bits`; every NaN becomes the usual one.

    Raises:
        ValueError: `bits` are not whole numbers from 0 to 2**fmt.bits - 1.
    """
    fmt, array = get(fmt), np.asarray(bits)
    if array.dtype.kind not in "iu":
        raise ValueError(f"Patterns must be whole numbers, not {array.dtype}: for values use encode.")
    if array.size and (array.min() < 0 or int(array.max()) >= 1 << fmt.bits):
        wrong = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"{wrong} is no pattern of {fmt.name}: it must be from 0 to 2**{fmt.bits} - 1.")
    array = array.astype(np.uint64)
    one, shift = np.uint64(1), np.uint64(fmt.mantissa_bits)
    mantissa = array & ((one << shift) - one)
    exponent = (array >> shift) & np.uint64((1 << fmt.exponent_bits) - 1)
    integer = np.where(exponent > 0, mantissa | (one << shift), mantissa).astype(np.float64)
    scale = np.maximum(exponent.astype(np.int64), 1) - fmt.bias - fmt.mantissa_bits
    last = exponent == (1 << fmt.exponent_bits) - 1
    if fmt.has_infinity:
        finite, special = ~last, np.where(mantissa == 0, np.inf, np.nan)
    else:
        finite, special = ~(last & (mantissa == (one << shift) - one)), np.nan
    magnitude = np.where(finite, np.ldexp(integer, np.where(finite, scale, 0)), special)
    return np.where(array >> np.uint64(fmt.bits - 1), -magnitude, magnitude)


def round_to(
    values: object, fmt: str | Format, mode: str = "nearest", rng: np.random.Generator | None = None
) -> np.ndarray:
    """Return the values rounded to a format, as float64 of the same shape.

    mode "nearest": ties go to the even mantissa; what lies half a gap or more above the largest value becomes
    infinity, or NaN in a format without infinity. "toward_zero": cut off; a finite value never overflows.
    "stochastic": up or down with a chance that makes the mean right; needs `rng`. Infinity stays infinity
    (NaN where there is none), NaN stays NaN, and -0.0 keeps its sign.

    Raises:
        ValueError: unknown format or mode, no generator for "stochastic", or values that are no numbers.
    """
    fmt, wide = get(fmt), _float64(values)
    if mode not in MODES:
        raise ValueError(f"There is no rounding mode {mode!r}; there are: {', '.join(MODES)}.")
    if mode == "stochastic" and not isinstance(rng, np.random.Generator):
        raise ValueError(f"Stochastic rounding needs rng=np.random.default_rng(seed), not {rng!r}.")
    finite = np.isfinite(wide)
    magnitude = np.where(finite, np.abs(wide), 0.0)
    scale = _exponent(magnitude, fmt) - fmt.mantissa_bits
    count = np.ldexp(magnitude, -scale)  # in units of the gap between neighbours: exact
    if mode == "nearest":
        count = np.rint(count)
    elif mode == "toward_zero":
        count = np.floor(count)
    else:
        count = np.floor(count) + (rng.random(count.shape) < count - np.floor(count))
    with np.errstate(over="ignore"):
        rounded = np.ldexp(count, scale)
    beyond = fmt.largest if mode == "toward_zero" else np.inf if fmt.has_infinity else np.nan
    rounded = np.where(rounded > fmt.largest, beyond, rounded)
    special = np.abs(wide) if fmt.has_infinity else np.nan
    return np.copysign(np.where(finite, rounded, special), wide)


def encode(
    values: object, fmt: str | Format, mode: str = "nearest", rng: np.random.Generator | None = None
) -> np.ndarray:
    """Return the patterns of the values rounded to a format: unsigned integers (`fmt.dtype`) in the same shape.

    Raises:
        ValueError: as `round_to`.
    """
    fmt = get(fmt)
    rounded = round_to(values, fmt, mode, rng)
    finite = np.isfinite(rounded)
    magnitude = np.where(finite, np.abs(rounded), 0.0)
    exponent = _exponent(magnitude, fmt)
    count = np.ldexp(magnitude, fmt.mantissa_bits - exponent).astype(np.uint64)
    # The leading 1 of a normal value adds 1 to the exponent field: so subnormals need no case of their own.
    pattern = ((exponent - fmt.min_exponent).astype(np.uint64) << np.uint64(fmt.mantissa_bits)) + count
    infinity = ((1 << fmt.exponent_bits) - 1) << fmt.mantissa_bits
    quiet = 1 << (fmt.mantissa_bits - 1) if fmt.has_infinity else (1 << fmt.mantissa_bits) - 1
    special = np.where(np.isnan(rounded), np.uint64(infinity | quiet), np.uint64(infinity))
    sign = np.signbit(rounded).astype(np.uint64) << np.uint64(fmt.bits - 1)
    return (np.where(finite, pattern, special) | sign).astype(fmt.dtype)


def ulp(values: object, fmt: str | Format) -> np.ndarray:
    """Return the gap between the format's neighbours around each real value, float64; NaN out of range.

    A value need not be representable. Rounding it to nearest moves it by half of this at most.
    """
    fmt, wide = get(fmt), np.abs(_float64(values))
    within = wide < math.inf if fmt.name == "float64" else wide < math.ldexp(1.0, fmt.max_exponent + 1)
    gap = np.ldexp(1.0, _exponent(np.where(within, wide, 0.0), fmt) - fmt.mantissa_bits)
    return np.where(within, gap, np.nan)


def spacing(values: object, fmt: str | Format) -> np.ndarray:
    """Return the step from each value, rounded to the format, to its neighbour further from zero, float64.

    It is infinite at the largest value, as `numpy.spacing` has it, and NaN at infinity and NaN.
    """
    fmt = get(fmt)
    rounded = np.abs(round_to(values, fmt))
    return np.where(rounded == fmt.largest, np.inf, ulp(rounded, fmt))
