"""Plumbing for the lessons. Each module holds one idea; import the module you need.

Importing this package imports no TensorFlow. It does set TensorFlow's logging level, which is read
once, when TensorFlow's library is loaded: start-up notices would otherwise be stored as red blocks
in every notebook.
"""

import os

# 2 hides notices and warnings and keeps errors; a value that the learner has set wins.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

__version__ = "0.1.0"
