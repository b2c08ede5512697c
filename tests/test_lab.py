"""`make lab`: this machine alone, with a token, and no browser where nobody would see it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from helpers import lab
from helpers.data import ROOT


@pytest.mark.parametrize(
    ("env", "platform", "expected"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "1 2 3 4"}, "linux", False),
        ({"DISPLAY": ":0", "CI": "true"}, "linux", False),
        ({}, "darwin", True),
        ({}, "win32", True),
    ],
)
def test_a_browser_is_opened_where_there_is_a_screen(env, platform, expected):
    assert lab.has_screen(env, platform) is expected


def test_root_is_allowed_only_to_root():
    assert "--allow-root" in lab.options(screen=True, root_user=True)
    assert "--allow-root" not in lab.options(screen=True, root_user=False)
    assert "--no-browser" not in lab.options(screen=True, root_user=False)


def fetch(address: str) -> str:
    """The page at `address`; the server prints it a moment before it listens."""
    give_up = time.monotonic() + 20
    while True:
        try:
            return urllib.request.urlopen(address, timeout=30).read().decode()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_the_address_is_printed_and_needs_its_token(tmp_path, monkeypatch):
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name))
    monkeypatch.setenv("CI", "true")
    command = [sys.executable, "-m", "helpers.lab", "--ServerApp.port=0"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = next(
                found for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line))
            )[0]
            assert f"/lab/tree/{lab.FIRST}?token=" in address
            page = fetch(address)
            assert '"news": {"disabled": true}' in page
            assert '"@jupyterlab/apputils-extension:announcements"' in page  # disabled: no pop-up over the page
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(re.match(r"http://[^/]+", address)[0] + "/api/contents", timeout=30)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)
