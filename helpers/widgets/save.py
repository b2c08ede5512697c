"""Save all scores to the learner's own computer and load them again: a Binder session is thrown away."""

from __future__ import annotations

import traitlets

from helpers import scores
from helpers.widgets.base import Base, rich

_TEXT = (
    "Save and load your scores: run this cell in JupyterLab for the buttons, or call "
    f'`scores.export("{scores.FILE_NAME}")` and `scores.load("{scores.FILE_NAME}")`.'
)


class SaveAndLoad(Base):
    """Two buttons. The file's text travels to the page and is saved there, so it also works far from home."""

    script = "save.js"
    content = ("where",)

    where = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        super().__init__(where=scores.where())
        self.on_msg(self._receive)

    def _receive(self, _widget: Base, message: dict, _buffers: list) -> None:
        try:
            if message.get("type") == "save":
                self.send({"type": "file", "name": scores.FILE_NAME, "text": scores.to_json()})
            elif message.get("type") == "load":
                new = scores.load(message["text"], name=message["name"])
                self.send({"type": "loaded", "new": new})
        except Exception as problem:  # whatever it is, the learner must read it where they clicked
            self.send({"type": "problem", "text": str(problem)})

    def text(self) -> str:
        """Return how to save and load without the buttons, as plain text."""
        return _TEXT

    def html(self) -> str:
        """Return how to save and load without the buttons, as HTML."""
        return f"<p>{rich(_TEXT)}</p>"


def save_and_load() -> SaveAndLoad:
    """Return the buttons that save all scores as a file and merge such a file into them."""
    return SaveAndLoad()
