"""Widgets of the lessons: plain ES modules that run in JupyterLab and, without a kernel, in a page."""

from helpers.widgets.base import Base, static_fragment, static_html
from helpers.widgets.questions import QuestionError
from helpers.widgets.quiz import Quiz, quiz

__all__ = ["Base", "QuestionError", "Quiz", "quiz", "static_fragment", "static_html"]
