"""Analytic and event models: pure Python and NumPy, no TensorFlow."""
