"""The page of ``isolux describe`` in a browser: silent, and no wider than the window."""

from __future__ import annotations

import pytest

from isolux.report.description import write_description
from tests.report.test_description import DIVERSE, DRAWN, HOSTILE, INFO, SIDE, SIZES, TONES


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
