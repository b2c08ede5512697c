"""Open the course in JupyterLab: `make lab`. Other options of JupyterLab may follow `python -m helpers.lab`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from helpers.data import ROOT

FIRST = "notebooks/00_start_here.ipynb"
SETTINGS = ROOT / "helpers" / "jupyter"  # labconfig/page_config.json there turns off the pop-up about news


def has_screen(env: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a browser opened here would be seen: not in CI, over SSH, or on Linux without a display."""
    if env.get("CI") or env.get("SSH_CONNECTION"):
        return False
    if platform.startswith("linux"):
        return bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))
    return True


def options(screen: bool, root_user: bool) -> list[str]:
    """Return JupyterLab's command line: this machine alone may connect, and only with the token."""
    chosen = [
        f"--ServerApp.root_dir={ROOT}",  # not notebooks/, or links to other folders would lead nowhere
        f"--LabApp.default_url=/lab/tree/{FIRST}",
        "--ServerApp.ip=127.0.0.1",
        "--LabApp.news_url=None",  # nothing is fetched
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
        "--Application.log_level=ERROR",  # the address and what goes wrong, no line for every kernel
    ]
    if not screen:
        chosen.append("--no-browser")
    if root_user:
        chosen.append("--allow-root")
    return chosen


def main() -> None:
    """Start JupyterLab in this process, until Ctrl-C is pressed twice."""
    from jupyterlab.labapp import LabApp  # noqa: PLC0415  (a second that only this command pays)

    more = os.environ.get("JUPYTER_CONFIG_PATH")
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(SETTINGS), more]))
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel of .venv, whatever the learner has registered
    screen = has_screen()
    how = "opens in your browser" if screen else "has no screen here: open the address below in a browser"
    print(f"JupyterLab {how}. Press Ctrl-C twice to end it.", flush=True)
    root_user = hasattr(os, "geteuid") and os.geteuid() == 0
    LabApp.launch_instance([*options(screen, root_user), *sys.argv[1:]])


if __name__ == "__main__":
    main()
