"""Plumbing for the lessons. Each module holds one idea; import the module you need.

Importing this package imports no TensorFlow. It only makes sure that TensorFlow, whenever it is
imported, starts quietly: its start-up notices would be stored as red blocks in every notebook. And
that Keras brings nothing along that the lessons have no use for.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

__version__ = "0.1.0"

# 2 hides notices and warnings and keeps errors; a value that the learner has set wins.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@contextmanager
def native_stderr_hidden() -> Iterator[None]:
    """Hide what native code writes to stderr; show it after all where the block raises."""
    with tempfile.TemporaryFile() as kept:
        saved = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(saved, kept.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


class _QuietTensorFlow(importlib.abc.MetaPathFinder):
    """Load TensorFlow with native stderr hidden.

    The logging level alone is not enough: what is written before the log is initialised ignores it,
    and so does the complaint about an absent CUDA driver, made when devices are first listed.
    """

    def find_spec(self, name, path, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_quietly(module):
            with native_stderr_hidden():
                load(module)
                module.config.list_physical_devices()
            module.get_logger().setLevel("WARNING")  # its Python half announces every strategy otherwise

        spec.loader.exec_module = load_quietly
        return spec


class _LightKeras(importlib.abc.MetaPathFinder):
    """Load Keras without scikit-learn: 0.6 s and 58 MiB of each kernel and worker, for wrappers that no lesson uses.

    Whoever wants `keras.wrappers` imports sklearn before Keras, and gets them.
    """

    def find_spec(self, name, path, target=None):
        if name != "keras.src.wrappers":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None or "sklearn" in sys.modules:
            return spec
        load = spec.loader.exec_module

        def load_alone(module):
            sys.modules["sklearn"] = None  # so it is not found, as where it is not installed
            try:
                load(module)
            finally:
                del sys.modules["sklearn"]

        spec.loader.exec_module = load_alone
        return spec


if "tensorflow" not in sys.modules:
    sys.meta_path.insert(0, _QuietTensorFlow())
if "keras" not in sys.modules:
    sys.meta_path.insert(0, _LightKeras())
