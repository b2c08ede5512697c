"""The course's public address stands in pyproject.toml, [tool.course]; whatever needs it is made from it."""

from __future__ import annotations

import re
import tomllib

from helpers.data import ROOT
from helpers.lab import FIRST

_BEGIN, _END = "<!-- badge: made by `make badge` -->", "<!-- end of badge -->"


def address() -> str:
    """Return the address of the public repository on GitHub, or "" as long as there is none."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["course"]["address"].rstrip("/")


def badge(public: str) -> str:
    """Return the Binder badge for a repository's address; a sentence where there is no address yet.

    Raises:
        ValueError: the address is not one of GitHub.
    """
    if not public:
        return (
            "**On Binder:** give the address of your copy of this repository to mybinder.org, and "
            f"`{FIRST}` as the file to open. Nothing is installed on your machine."
        )
    match = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", public)
    if not match:
        raise ValueError(f"The address {public!r} should look like https://github.com/owner/repository.")
    target = f"https://mybinder.org/v2/gh/{match[1]}/HEAD?urlpath=lab/tree/{FIRST}"
    return f"[![Open on Binder](https://mybinder.org/badge_logo.svg)]({target})"


def with_badge(readme: str, public: str) -> str:
    """Return the text of a README with the badge for `public` between its two marks."""
    before, _, rest = readme.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{badge(public)}\n{_END}{after}"


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_badge(path.read_text(encoding="utf-8"), address()), encoding="utf-8")
