"""The page on confounders holds the figures that were measured, and none by hand."""

from __future__ import annotations

import pytest

from tests.laws import _confounders_page as pages
from tests.laws._figures import FULL
from tests.laws._page import load

TEXT = pages.PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(FULL, reason="the page is written when the full run has ended")
def test_the_page_is_made_of_the_figures():
    assert pages.rendered(TEXT) == TEXT, "run: python -m tests.laws._confounders_page"


def test_every_table_is_on_the_page_and_every_figure_in_a_table():
    assert {match[2] for match in pages._BLOCK.finditer(TEXT)} == set(pages.TABLES)
    assert pages.known(load("confounders-*"))
