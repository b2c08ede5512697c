"""Functions by value, with their source, to another process; values back."""

from __future__ import annotations

import io
import linecache
import pickle
import sys
import types
from collections import ChainMap
from typing import Any, ClassVar

import cloudpickle
import numpy as np
from cloudpickle import cloudpickle as internals

HIDDEN = "<dynamic-code>"  # what cloudpickle writes for a file name; AutoGraph then finds no source


def pack_function(function: Any, args: tuple) -> bytes:
    """Pickle a function with its arguments by value, and the source of the cells that it comes from.

    Raises:
        TypeError: something that the function uses exists only in this process.
    """
    files: set[str] = set()

    def reduce_code(code: types.CodeType) -> tuple:
        files.add(code.co_filename)
        make, arguments = internals._code_reduce(code)
        return make, tuple(code.co_filename if value == HIDDEN else value for value in arguments)

    class Pickler(cloudpickle.Pickler):
        dispatch_table: ClassVar = ChainMap({types.CodeType: reduce_code}, cloudpickle.Pickler.dispatch_table)

    buffer = io.BytesIO()
    try:
        Pickler(buffer).dump((function, args))
    except Exception as problem:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(
            f"{name} cannot be sent to another process: {problem}. Something that it uses, or one of its arguments, "
            "exists only in this kernel. Make models, strategies, locks and open files inside the function, and "
            "give it numbers, texts and arrays."
        ) from problem
    sources = {name: linecache.getlines(name) for name in files}
    return pickle.dumps(({name: lines for name, lines in sources.items() if lines}, buffer.getvalue()))


def unpack_function(packed: bytes) -> tuple[Any, tuple]:
    """Return (function, args); their source is known to this process before they are."""
    sources, body = pickle.loads(packed)
    for name, lines in sources.items():
        linecache.cache.setdefault(name, (sum(map(len, lines)), None, lines, name))
    return pickle.loads(body)


def plain(value: Any) -> Any:
    """Return a value with NumPy arrays in place of tensors and variables, nests kept."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(plain, value))
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    if isinstance(value, np.generic | np.ndarray):
        return value
    if "tensorflow" in sys.modules and callable(getattr(value, "numpy", None)):
        return value.numpy()  # tensors, variables, Keras variables
    return value


def pack_value(value: Any) -> bytes:
    """Pickle what a function returns or reports.

    Raises:
        TypeError: the value exists only in this process.
    """
    try:
        return cloudpickle.dumps(plain(value))
    except Exception as problem:
        raise TypeError(
            f"A value of type {type(value).__name__} cannot leave its process: {problem}. "
            "Return numbers, texts or arrays, for example model.get_weights() in place of a model."
        ) from problem


def unpack_value(packed: bytes) -> Any:
    """Return the value again."""
    return pickle.loads(packed)
