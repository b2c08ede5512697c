"""Widgets of the lessons: plain ES modules that run in JupyterLab and, without a kernel, in a page."""

from helpers.widgets.base import Base, static_fragment, static_html
from helpers.widgets.bits import BitExplorer, bit_explorer
from helpers.widgets.collective import CollectiveSimulation, collective_simulation
from helpers.widgets.loss_scale import LossScaleSimulation, loss_scale_simulation
from helpers.widgets.questions import QuestionError, course_items
from helpers.widgets.quiz import Quiz, quiz
from helpers.widgets.save import SaveAndLoad, save_and_load
from helpers.widgets.staleness import StalenessSimulation, staleness_simulation

__all__ = [
    "Base",
    "BitExplorer",
    "CollectiveSimulation",
    "LossScaleSimulation",
    "QuestionError",
    "Quiz",
    "SaveAndLoad",
    "StalenessSimulation",
    "bit_explorer",
    "collective_simulation",
    "course_items",
    "loss_scale_simulation",
    "quiz",
    "save_and_load",
    "staleness_simulation",
    "static_fragment",
    "static_html",
]
