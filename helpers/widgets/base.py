"""What all widgets share: one look, plain ES modules without a build step, and a text for every reader.

A widget is shown in three ways. With a kernel, its module runs in JupyterLab. Without one, `static_html`
gives a page in which the same module runs alone. Where nothing can run (a code-hosting page, a terminal)
the widget's own HTML or plain text is shown; it depends on nothing but the widget's content, so it can be
stored and compared.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from pathlib import Path

import anywidget

STATIC = Path(__file__).parent / "static"
_IMPORT = re.compile(r'(?<=from ")\./([\w-]+\.js)(?=")')


@functools.cache
def module(name: str) -> str:
    """Return the text of static/`name` with its imports inlined: a module from a string has no neighbours."""
    return _IMPORT.sub(lambda m: _data_url(module(m[1])), (STATIC / name).read_text(encoding="utf-8"))


def _data_url(source: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"


@functools.cache
def style() -> str:
    """Return the one style sheet."""
    return (STATIC / "course.css").read_text(encoding="utf-8")


def _parts(text: str) -> list[tuple[bool, str]]:
    """Cut a text at its `code`, in which no other mark counts: (is it code, the part with its backticks)."""
    return [(bool(i % 2), part) for i, part in enumerate(re.split(r"(`[^`]+`)", text))]


def plain(text: str) -> str:
    """Marked text (**bold**, *emphasis*, `code`) as plain text, one line per paragraph."""
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text.strip())]

    def bare(words: str) -> str:
        return re.sub(r"\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*", r"\1\2", words)

    return "\n".join("".join(p if code else bare(p) for code, p in _parts(paragraph)) for paragraph in paragraphs)


def rich(text: str) -> str:
    """Marked text as HTML, everything else escaped."""
    text = html.escape(" ".join(text.split()), quote=False)

    def styled(words: str) -> str:
        words = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", words)
        return re.sub(r"\*([^*\s][^*]*)\*", r"<em>\1</em>", words)

    return "".join(f"<code>{part[1:-1]}</code>" if code else styled(part) for code, part in _parts(text))


class Base(anywidget.AnyWidget):
    """A widget with a stable text. Subclasses set `script`, `content` traits and the two texts."""

    script = ""  # the module in static/
    content: tuple[str, ...] = ()  # names of the traits that the module reads

    def __init__(self, **traits: object) -> None:
        self._esm = module(self.script)
        self._css = style()
        super().__init__(**traits)

    def text(self) -> str:
        """Return what a reader without a front end sees, as plain text."""
        raise NotImplementedError

    def html(self) -> str:
        """Return what a reader without a front end sees, as HTML."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/plain": self.text(), "text/html": self.html()}, metadata


def static_fragment(widget: Base) -> str:
    """Return HTML in which the widget runs with no kernel and no network; scores stay in the browser."""
    state = {name: getattr(widget, name) for name in widget.content}
    inside = json.dumps({"module": _data_url(module(widget.script)), "state": state}, ensure_ascii=False)
    inside = inside.replace("<", "\\u003c")
    return (
        f'<div class="course-widget"><noscript>{widget.html()}</noscript>'
        f'<script type="application/json">{inside}</script></div>'
    )


def static_html(*widgets: Base, title: str = "Questions") -> str:
    """Return a whole page with the widgets: one file, for any browser, with no kernel and no network."""
    body = "\n".join(map(static_fragment, widgets))
    name = html.escape(title)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 2rem auto; padding: 0 1rem; max-width: 48rem; font-family: system-ui, sans-serif; }}
{style()}</style>
</head>
<body>
<main>
<h1>{name}</h1>
{body}
</main>
<script type="module">
{module("mount.js")}</script>
</body>
</html>
"""
