"""A real JupyterLab and a real Chromium for tests: fixtures `chromium`, `offline`, `jupyter` and `lab`.

    def test_lesson(lab):
        notebook = lab.open(ROOT / "notebooks" / "20_data_parallelism.ipynb")  # a copy; or a list of sources
        notebook.run_all()
        notebook.assert_quiet()
        notebook.panel.get_by_role("button", name="Check").first.click()

The server has its own token, port, settings and scores and is gone after the tests, kernels included.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
import pytest

from helpers import widgets
from helpers.lab import SETTINGS

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
SWITCHES = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


# The server ends when the pipe from the tests closes, so even where the tests are killed.
SERVE = """
import os, signal, sys, threading
def watch():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=watch, daemon=True).start()
from jupyterlab.labapp import main
main()
"""


def find_browser() -> str:
    """Return the path of a Chromium; without one, fail in CI and skip elsewhere, saying how to get it."""
    named = os.environ.get("COURSE_BROWSER")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, BROWSERS)), None)
    if found:
        return found
    looked = f"COURSE_BROWSER={named} is not there" if named else "No Chromium was found"
    sentence = f"{looked}: `apt-get install chromium`, or set COURSE_BROWSER to the path of Chromium or Chrome."
    if os.environ.get("CI"):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    """One browser for the tests of a module.

    Not of the session: while it is open, an event loop counts as running in this thread, and other tests
    could not use theirs.
    """
    path = find_browser()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield browser
        browser.close()


def serious(page) -> list[str]:
    """What axe, the accessibility checker, finds serious or critical in the widgets of a page."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    found = Axe().run(page, context=".course").response
    assert found["passes"], "axe looked at nothing"
    return [
        f"{v['id']}: {n['html']} {n['failureSummary']}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
        for n in v["nodes"]
    ]


@pytest.fixture
def offline(chromium, tmp_path: Path) -> Iterator:
    """A function that opens a widget in a page with no kernel and no network, in a colour scheme."""
    contexts = []

    def show(widget: widgets.Base, scheme: str = "light"):
        context = chromium.new_context(color_scheme=scheme, viewport={"width": 820, "height": 1200})
        contexts.append(context)
        context.set_default_timeout(10000)
        context.set_offline(True)
        context.route("http*://**", lambda route: pytest.fail(f"the page asked for {route.request.url}"))
        file = tmp_path / "page.html"
        file.write_text(widgets.static_html(widget), encoding="utf-8")
        page = context.new_page()
        page.on("pageerror", lambda error: pytest.fail(f"the page raised {error}"))
        page.goto(file.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()


@dataclass
class Server:
    """A running JupyterLab server: its address with token, the folder it serves, where scores go."""

    url: str
    token: str
    root: Path
    scores: Path


def _environment(home: Path) -> dict[str, str]:
    """Give the server its own folders, and the settings that `make lab` gives it."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {name: str(home / name.lower()) for name in names}
    for folder in own.values():
        Path(folder).mkdir()
    return {**os.environ, **own, "JUPYTER_CONFIG_PATH": str(SETTINGS), "COURSE_SCORES": str(home / "scores.sqlite")}


def _address(runtime: Path, process: subprocess.Popen, log: Path) -> dict:
    """Wait until the server has written where it listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for file in runtime.glob("jpserver-*.json"):
            try:
                return json.loads(file.read_text())
            except ValueError:
                break  # half written
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


def end(process: subprocess.Popen) -> None:
    """End a process and all its descendants, politely for five seconds, then surely."""
    try:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    family[0].terminate()
    for survivor in psutil.wait_procs(family, timeout=5)[1]:
        survivor.kill()
    process.wait()
    psutil.wait_procs(family, timeout=5)


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests; it listens on the loopback only."""
    find_browser()
    home = tmp_path_factory.mktemp("jupyter")
    root, log, token = home / "root", home / "server.log", secrets.token_hex(16)
    root.mkdir()
    environment = _environment(home)
    command = [
        sys.executable, "-c", SERVE, "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--ServerApp.port={_free_port()}", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=root, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        url = _address(Path(environment["JUPYTER_RUNTIME_DIR"]), process, log)["url"]
        yield Server(url, token, root, Path(environment["COURSE_SCORES"]))
    finally:
        end(process)


def _free_port() -> int:
    import socket  # noqa: PLC0415

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]  # taken meanwhile? the server then tries others and says which


class Notebook:
    """A notebook open in a tab of the page."""

    def __init__(self, page, name: str) -> None:
        self.page, self.name = page, name
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def _do(self, body: str) -> object:
        """Run JavaScript with `app` and `panel`, this notebook's."""
        return self.page.evaluate(
            f"""async (name) => {{
              const app = window.jupyterapp;
              const panel = await app.commands.execute("docmanager:open", {{ path: name }});
              await panel.context.ready;
              {body}
            }}""",
            self.name,
        )

    def ready(self) -> Notebook:
        """Wait until the kernel answers. The page's own idle mark is no sign of that."""
        self._do("await panel.sessionContext.ready; await panel.sessionContext.session.kernel.info;")
        return self

    def run_all(self) -> None:
        """Run every cell and wait for the last."""
        self.ready()
        self._do('await app.commands.execute("notebook:run-all-cells");')

    def restart(self) -> None:
        """Restart the kernel, as the menu does after its question, and wait until it answers."""
        self._do("await panel.sessionContext.session.kernel.restart();")
        self.ready()

    def cells(self) -> list[dict]:
        """Return the cells with their outputs as they are now."""
        return self._do("return panel.content.model.toJSON().cells;")

    def state(self) -> list:
        """Return what keys could change in the notebook: its cells' sources, kinds and counts."""
        return [(cell["cell_type"], cell["source"], cell.get("execution_count")) for cell in self.cells()]

    def close(self) -> None:
        """End the kernel and close the tab, with nothing saved."""
        self._do("await panel.sessionContext.shutdown(); panel.context.model.dirty = false; panel.dispose();")

    def assert_quiet(self) -> None:
        """No cell has failed or written to stderr."""
        for cell in self.cells():
            for output in cell.get("outputs", []):
                loud = output["output_type"] == "error" or output.get("name") == "stderr"
                assert not loud, f"{cell['source']}\n{output}"


class Lab:
    """JupyterLab in a page; `open` shows a notebook and starts its kernel, and ends the one before."""

    def __init__(self, page, server: Server) -> None:
        self.page, self.server = page, server
        self._open: Notebook | None = None
        page.goto(f"{server.url}lab?reset&token={server.token}")
        page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")

    def open(self, source: Path | list[str] | nbformat.NotebookNode) -> Notebook:
        """Open a copy of a notebook file, a notebook in memory, or one made of these cells."""
        if self._open:
            self._open.close()
        name = f"test_{secrets.token_hex(4)}.ipynb"
        if isinstance(source, list):
            cells = [nbformat.v4.new_code_cell(text) for text in source]
            spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            source = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})
        if isinstance(source, Path):
            shutil.copy(source, self.server.root / name)
        else:
            nbformat.write(source, self.server.root / name)
        self._open = Notebook(self.page, name)
        return self._open.ready()

    def theme(self, name: str) -> None:
        """Change the theme: "JupyterLab Light" or "JupyterLab Dark"."""
        self.page.evaluate('name => window.jupyterapp.commands.execute("apputils:change-theme", { theme: name })', name)
        light = "true" if name.endswith("Light") else "false"
        self.page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")

    def assert_accessible(self) -> None:
        """Axe finds nothing serious in the widgets on screen, in the dark theme and in the light one."""
        try:
            for theme in ("JupyterLab Dark", "JupyterLab Light"):
                self.theme(theme)
                assert serious(self.page) == []
        finally:
            self.theme("JupyterLab Light")


@pytest.fixture(scope="module")
def lab(chromium, jupyter: Server) -> Iterator[Lab]:
    """JupyterLab, open in one page for all tests of a module."""
    context = chromium.new_context(viewport={"width": 1200, "height": 1000}, accept_downloads=True)
    context.set_default_timeout(20000)
    yield Lab(context.new_page(), jupyter)
    context.close()
