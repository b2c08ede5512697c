"""Use a Keras dtype policy for a block of code, and always come back: a policy that stays set is set for all."""

from __future__ import annotations

from collections.abc import Iterator
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
