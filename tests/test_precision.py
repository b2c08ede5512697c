"""The formats agree with ml_dtypes, NumPy and TensorFlow on every pattern, and round without bias."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from helpers import precision
from helpers.precision import FORMATS, decode, encode, round_to, spacing, ulp

SMALL = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
TENSORFLOW = {
    "bfloat16": "bfloat16",
    "float16": "half",
    "float8_e4m3": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
}
small = pytest.mark.parametrize("name", SMALL)


def patterns(name):
    return np.arange(1 << FORMATS[name].bits).astype(FORMATS[name].dtype)


def as_values(name, bits):
    with np.errstate(invalid="ignore"):  # signalling NaN
        return bits.view(SMALL[name]).astype(np.float64)


def same_patterns(name, got, wanted):
    """Equal bit for bit, but that any NaN is as good as another."""
    nan = np.isnan(as_values(name, wanted))
    return np.array_equal(np.isnan(as_values(name, got)), nan) and np.array_equal(got[~nan], wanted[~nan])


def float32_samples():
    """Random float32 patterns, so all magnitudes and NaN, and near each format's own values and ties."""
    random = np.random.default_rng(30)
    values = [random.integers(0, 2**32, 300_000, dtype=np.uint32).view(np.float32)]
    values.append(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 65504, 65519, 65520, 61440], np.float32))
    for name in SMALL:
        own = decode(patterns(name), name)
        own = np.sort(own[np.isfinite(own)])
        ties = ((own[1:] + own[:-1]) / 2).astype(np.float32)
        values += [own.astype(np.float32), ties, np.nextafter(ties, np.float32(9e9)), np.nextafter(ties, np.float32(0))]
    return np.concatenate(values)


@small
def test_every_pattern_decodes_and_comes_back(name):
    bits = patterns(name)
    values = decode(bits, name)
    assert values.dtype == np.float64
    assert len(bits) == 1 << FORMATS[name].bits
    np.testing.assert_array_equal(values, as_values(name, bits))
    np.testing.assert_array_equal(np.signbit(values)[values == 0], [False, True])
    assert same_patterns(name, encode(values, name), bits)


@small
def test_float32_rounds_to_the_same_pattern(name):
    values = float32_samples()
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = values.astype(SMALL[name]).view(FORMATS[name].dtype)
    assert same_patterns(name, encode(values, name), wanted)


@small
def test_tensorflow_casts_to_the_same_pattern(name):
    import tensorflow as tf  # noqa: PLC0415  (this test alone needs it)

    values = float32_samples()
    with np.errstate(all="ignore"):
        wanted = tf.cast(values, TENSORFLOW[name]).numpy()
        back = tf.cast(tf.constant(patterns(name).view(SMALL[name])), tf.float32).numpy()
    np.testing.assert_array_equal(back, decode(patterns(name), name).astype(np.float32))
    assert same_patterns(name, encode(values, name), wanted.view(FORMATS[name].dtype))


@pytest.mark.parametrize(("name", "unsigned"), [("float32", np.uint32), ("float64", np.uint64)])
def test_wide_formats_are_the_machine_s_own(name, unsigned):
    bits = np.random.default_rng(1).integers(0, np.iinfo(unsigned).max, 200_000, dtype=unsigned, endpoint=True)
    bits[:4] = 0, 1, np.iinfo(unsigned).max // 2 + 1, 2
    with np.errstate(all="ignore"):
        values = bits.view(name).astype(np.float64)
    np.testing.assert_array_equal(decode(bits, name), values)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(encode(values[finite], name), bits[finite])
    info = np.finfo(name)
    wide = FORMATS[name]
    assert (wide.largest, wide.smallest_normal, wide.smallest_subnormal, wide.epsilon) == (
        float(info.max), float(info.smallest_normal), float(info.smallest_subnormal), float(info.eps)
    )  # fmt: skip


def test_float64_rounds_to_float32_as_numpy_does():
    random = np.random.default_rng(2)
    values = np.ldexp(random.normal(size=100_000), random.integers(-160, 135, size=100_000))
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(round_to(values, "float32"), values.astype(np.float32).astype(np.float64))


def test_tfloat32_is_float32_with_ten_bits_of_mantissa():
    fmt = FORMATS["tfloat32"]
    assert (fmt.bits, fmt.epsilon, fmt.smallest_normal) == (19, 2.0**-10, 2.0**-126)
    assert fmt.largest == (2 - 2.0**-10) * 2.0**127
    values = np.random.default_rng(3).integers(0, 2**32, 200_000, dtype=np.uint32)
    values = values[(values & 0x7F800000) != 0x7F800000]
    low = values & np.uint32(0x1FFF)  # the 13 bits to round away
    odd = (values >> np.uint32(13)) & np.uint32(1)
    wanted = (values >> np.uint32(13)) + ((low > 0x1000) | ((low == 0x1000) & (odd == 1)))
    np.testing.assert_array_equal(encode(values.view(np.float32), "tfloat32"), wanted)
    bits = np.arange(1 << 19, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        wanted = (bits << np.uint32(13)).view(np.float32).astype(np.float64)
    np.testing.assert_array_equal(decode(bits, "tfloat32"), wanted)


def test_numbers_that_the_lesson_states():
    facts = {name: (f.largest, f.smallest_normal, f.smallest_subnormal, f.epsilon) for name, f in FORMATS.items()}
    assert facts["float16"] == (65504, 2.0**-14, 2.0**-24, 2.0**-10)
    assert facts["bfloat16"] == ((2 - 2**-7) * 2.0**127, 2.0**-126, 2.0**-133, 2.0**-7)
    assert facts["float8_e4m3"] == (448, 2.0**-6, 2.0**-9, 2.0**-3)
    assert facts["float8_e5m2"] == (57344, 2.0**-14, 2.0**-16, 2.0**-2)
    assert round_to(257, "bfloat16") == 256
    assert round_to([1e-7, 1e-8], "float16").tolist() == [2 * 2.0**-24, 0]


def test_double_rounding_by_way_of_float32_goes_wrong_and_this_does_not():
    value = 1 + 2.0**-8 + 2.0**-40
    assert round_to(value, "bfloat16") == 1 + 2.0**-7
    assert round_to(round_to(value, "float32"), "bfloat16") == 1


@small
def test_toward_zero_never_grows_and_never_overflows(name):
    fmt, values = FORMATS[name], float32_samples()
    values = values[np.isfinite(values)].astype(np.float64)
    cut, near = round_to(values, name, "toward_zero"), round_to(values, name)
    assert np.all(np.abs(cut) <= np.abs(values))
    assert np.abs(cut).max() == fmt.largest
    within = np.abs(values) <= fmt.largest
    assert np.all(np.abs(values - cut)[within] < ulp(values, name)[within])
    assert np.all(np.abs(near - values)[within] <= ulp(values, name)[within] / 2)
    np.testing.assert_array_equal(np.signbit(cut), np.signbit(values))


@pytest.mark.parametrize("name", [*SMALL, "tfloat32"])
def test_stochastic_rounding_has_no_bias_and_takes_the_neighbours_only(name):
    random, n = np.random.default_rng(4), 40_000
    for share in (0.1, 0.5, 0.93):
        for start in (1.0, -FORMATS[name].smallest_normal / 2):
            gap = float(ulp(start, name))
            value = start + math.copysign(share * gap, start)
            got = np.abs(round_to(np.full(n, value), name, "stochastic", random))
            assert set(np.unique(got)) == {abs(start), abs(start) + gap}
            deviation = gap * math.sqrt(share * (1 - share) / n)
            assert abs(got.mean() - abs(value)) < 5 * deviation  # would fail for 1 in a million seeds
    own = decode(patterns(name), name) if name in SMALL else np.array([0.0, 1.0, np.inf])
    np.testing.assert_array_equal(round_to(own, name, "stochastic", random), own)


def test_ulp_and_spacing_agree_with_numpy():
    values = decode(patterns("float16")[: 1 << 15], "float16")  # NumPy's own differs at negative powers of two
    with np.errstate(all="ignore"):
        wanted = np.abs(np.spacing(values.astype(np.float16))).astype(np.float64)
    np.testing.assert_array_equal(spacing(values, "float16"), wanted)
    np.testing.assert_array_equal(spacing(-values, "float16"), wanted)
    assert ulp([1.0, 1.9, 2.0, 0.0, 65504, 1e9, np.nan], "float16").tolist()[:5] == [
        2.0**-10, 2.0**-10, 2.0**-9, 2.0**-24, 32
    ]  # fmt: skip
    assert np.isnan(ulp([1e9, np.nan, -np.inf], "float16")).all()
    assert spacing([448.0], "float8_e4m3")[0] == np.inf


def test_shapes_and_kinds_of_input():
    assert encode([[1, 2], [3, 4]], "bfloat16").shape == (2, 2)
    assert encode(1.0, "bfloat16") == 0x3F80
    assert encode(1.0, "tfloat32").dtype == np.uint32
    assert round_to(np.array([1.5], ml_dtypes.bfloat16), "float16") == 1.5
    assert round_to([True, False], "float16").tolist() == [1.0, 0.0]
    assert decode(np.array([], int), "float16").shape == round_to([], "float16").shape == (0,)
    own = precision.Format("float8_e3m4", 3, 4, 3)
    assert (own.bits, own.largest) == (8, 15.5)
    np.testing.assert_array_equal(
        decode(np.arange(256), own), np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e3m4).astype(np.float64)
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: decode([1], "float12"), "There is no format 'float12'; there are: float64, float32"),
        (lambda: round_to(1.0, None), "There is no format None"),
        (lambda: decode([256], "float8_e4m3"), r"256 is no pattern of float8_e4m3: it must be from 0 to 2\*\*8 - 1"),
        (lambda: decode([-1], "float16"), "-1 is no pattern of float16"),
        (lambda: decode([1.0], "float16"), "Patterns must be whole numbers, not float64"),
        (lambda: round_to("1.0", "float16"), "Values must be numbers that float64 can hold, not <U3"),
        (lambda: round_to([1j], "float16"), "not complex128"),
        (lambda: encode([2**53 + 1], "float64"), r"of 2\*\*53 and more, such as 9007199254740993, may be rounded"),
        (lambda: encode(1.0, "float16", "up"), "There is no rounding mode 'up'; there are: nearest"),
        (lambda: encode(1.0, "float16", "stochastic"), r"needs rng=np.random.default_rng\(seed\), not None"),
        (lambda: round_to(1.0, "float16", "stochastic", 7), "not 7"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
