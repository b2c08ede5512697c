"""The public address stands in one place; the README's badge follows it."""

import pytest

from helpers.address import address, badge, with_badge
from helpers.data import ROOT


def test_readme_has_the_badge_of_the_address():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_badge(readme, address()) == readme, "run `make badge`"


def test_badge_opens_the_first_notebook():
    assert "/v2/gh/someone/course/HEAD?urlpath=lab/tree/notebooks/00_start_here.ipynb" in badge(
        "https://github.com/someone/course"
    )


def test_without_an_address_it_says_what_to_do():
    assert "mybinder.org" in badge("")
    assert "](http" not in badge("")


def test_other_addresses_are_refused():
    with pytest.raises(ValueError, match="should look like"):
        badge("git@github.com:someone/course.git")
