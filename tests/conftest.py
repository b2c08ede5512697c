"""Fixtures that several test files share."""

from browser import chromium, jupyter, lab

__all__ = ["chromium", "jupyter", "lab"]
