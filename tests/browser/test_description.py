"""The page of ``isolux describe`` in a browser: silent, and no wider than the window."""

from __future__ import annotations

import pytest

from isolux.report.description import write_description
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
@pytest.mark.parametrize("width", [1280, 390])
def test_the_browser_is_silent_and_the_page_fits(chromium, tmp_path, width):
    tables = {"Sizes": SIZES, f"By {HOSTILE}": TONES, "Side by side": SIDE, **DIVERSE}
    infos = {"one": INFO, "two": INFO}
    path = write_description(tmp_path / "page.html", tables, infos, drawn=DRAWN)
    page = chromium.new_page(viewport={"width": width, "height": 900})
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    page.on("request", lambda request: heard.append(request.url))
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [text for text in heard if text != page.url] == []
    cut = page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
          const box = svg.getBoundingClientRect();
          return [...svg.querySelectorAll('text')].filter(t => {
            const r = t.getBoundingClientRect();
            return r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1;
          }).map(t => t.textContent);
        })"""
    )
    assert cut == []
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("n", [34, 120])
def test_a_description_is_read_on_eight_screens(chromium, tmp_path, n):
    path = write_description(tmp_path / "page.html", many(n), {"one": INFO}, ["A note."] * 12)
    page = chromium.new_page(viewport={"width": 1440, "height": 900})
    page.goto(path.as_uri())
    tall = page.evaluate("document.documentElement.scrollHeight")
    assert tall <= 8 * 900, f"{tall / 900:.1f} screens"
    assert not page.locator(f"#table-{n} table").is_visible()
    page.goto(f"{path.as_uri()}#table-{n}")  # a link opens what it leads to
    assert page.locator(f"#table-{n} table").is_visible()
    page.close()
