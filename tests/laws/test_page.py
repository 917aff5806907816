"""The pages of the laws hold the figures that were measured, and none by hand."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from tests.laws import _page as pages
from tests.laws._figures import KEPT

PAGES = pages.with_figures()
OF_TABLES = ("coverage", "methods", "whole", "tau", "family", "power", "models",
             "fairlearn", "streams")  # fmt: skip
"""What records of ``_TABLES`` begin with; all others are named on a page."""


def _blocks() -> list[str]:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    return [match[2] for text in texts for match in pages._BLOCK.finditer(text)]


@pytest.mark.skipif(KEPT, reason="the pages are written when the full run has ended")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_made_of_the_figures(page):
    text = page.read_text(encoding="utf-8")
    assert pages.rendered(text) == text, "run: python -m tests.laws._page"


def test_every_table_is_on_a_page():
    assert set(pages._TABLES) <= set(_blocks())


def test_every_figure_is_in_a_table():
    names = {document["name"] for document in pages.load("*")}
    assert len(names) > 30
    named = [block for block in _blocks() if block not in pages._TABLES]
    assert [
        name
        for name in names
        if not name.startswith(OF_TABLES) and not any(fnmatch(name, block) for block in named)
    ] == []


@pytest.mark.parametrize("key", ["date", "command", "machine", "worlds", "replicates"])
def test_figures_say_how_they_were_made(key):
    for document in pages.load("*"):
        assert document[key], document["name"]
