"""The page of the laws holds the figures that were measured, and none by hand."""

from __future__ import annotations

import pytest

from tests.laws import _page as pages
from tests.laws._figures import FULL

TEXT = pages.PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(FULL, reason="the page is written when the full run has ended")
def test_the_page_is_made_of_the_figures():
    assert pages.rendered(TEXT) == TEXT, "run: python -m tests.laws._page"


def test_every_table_is_on_the_page_and_every_figure_in_a_table():
    found = {match[2] for match in pages._BLOCK.finditer(TEXT)}
    assert found == set(pages._TABLES)
    names = {document["name"] for document in pages.load("*")}
    assert len(names) > 30
    known = ("coverage", "boundary", "methods", "whole", "tau", "family", "power", "models",
             "fairlearn", "streams")  # fmt: skip
    assert not [name for name in names if not name.startswith(known)]


@pytest.mark.parametrize("key", ["date", "command", "machine", "worlds", "replicates"])
def test_figures_say_how_they_were_made(key):
    for document in pages.load("*"):
        assert document[key], document["name"]
