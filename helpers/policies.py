"""Use a Keras dtype policy for a block of code, and always come back; say what a machine makes of bfloat16."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

NAMES = ("float32", "mixed_bfloat16", "mixed_float16", "bfloat16", "float16", "float64")


@contextmanager
def using(name: str) -> Iterator[str]:
    """Make `name` the policy of every layer built in the block; restore the one before, also after an exception.

    Yields the name. The policy is global to the process, so two threads must not use different ones at once.

    Raises:
        ValueError: `name` is not one of `NAMES`.
    """
    if name not in NAMES:
        raise ValueError(f"There is no policy {name!r}: choose one of {', '.join(NAMES)}.")
    import keras  # noqa: PLC0415  (helpers import no TensorFlow until it is needed)

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield name
    finally:
        keras.config.set_dtype_policy(before)


def bfloat16_unit(instruction_sets: Sequence[str], gpus: Sequence[str] = ()) -> str | None:
    """Return what multiplies bfloat16 matrices here: a name, or None where nothing is made for it.

    The instruction sets are named as in `devices.machine()`; a GPU counts before the CPU, since work goes there.
    """
    if gpus:
        return "the matrix units of a GPU (from Ampere on)"
    for flag, unit in (
        ("amx_bf16", "AMX tiles"),
        ("avx512_bf16", "AVX512-BF16 dot products"),
        ("bf16", "Arm's BF16 extension"),
    ):
        if flag in instruction_sets:
            return unit
    return None


def expectation(unit: str | None) -> str:
    """Say in a sentence what a machine with this `bfloat16_unit` lets us expect of bfloat16 arithmetic."""
    if unit is None:
        return (
            "Nothing here multiplies bfloat16 itself: expect ratios of 1 and above, since every product takes a "
            "detour through float32. The memory is saved all the same."
        )
    if "GPU" in unit or "AMX" in unit:
        return (
            f"Here work {unit}: expect large matrix products and convolutions several times as fast in bfloat16, "
            "and small layers hardly faster."
        )
    return (
        f"Here work {unit}: expect ratios clearly below 1 for large matrix products, and about 1 or above for small "
        "layers and for kernels that the library has not got in bfloat16."
    )
