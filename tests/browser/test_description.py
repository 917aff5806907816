"""The page of ``isolux describe`` in a browser: silent, and no wider than the window."""

from __future__ import annotations

import pytest

from isolux.report.description import write_description_page
from tests.browser._viewing import CUT
from tests.report.test_description import (
    DIVERSE,
    DRAWN,
    HOSTILE,
    INFO,
    SIDE,
    SIZES,
    TONES,
    many,
)


@pytest.mark.browser
def test_the_browser_is_silent_and_the_page_fits(tab, tmp_path):
    tables = {"Sizes": SIZES, f"By {HOSTILE}": TONES, "Side by side": SIDE, **DIVERSE}
    infos = {"one": INFO, "two": INFO}
    path = write_description_page(tmp_path / "page.html", tables, infos, figure_data=DRAWN)
    page, watch = tab.open(path.as_uri())
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == []
    assert watch.quiet(page), watch


@pytest.mark.browser
@pytest.mark.parametrize("n", [34, 120])
def test_a_description_is_read_on_eight_screens(tab, tmp_path, n):
    path = write_description_page(tmp_path / "page.html", many(n), {"one": INFO}, ["A note."] * 12)
    page, _ = tab.open(path.as_uri(), 1440, 900)
    tall = page.evaluate("document.documentElement.scrollHeight")
    assert tall <= 8 * 900, f"{tall / 900:.1f} screens"
    assert not page.locator(f"#table-{n} table").is_visible()
    page.goto(f"{path.as_uri()}#table-{n}")  # a link opens what it leads to
    assert page.locator(f"#table-{n} table").is_visible()
