"""Fixtures that several test files share."""

from browser import chromium, jupyter, lab, offline

__all__ = ["chromium", "jupyter", "lab", "offline"]
