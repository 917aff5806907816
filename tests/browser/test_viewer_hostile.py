"""The viewer of names, addresses, tables and drawings that mean harm."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.viewer import Contents, DisplayedRun, build_page_contents, build_standalone_page
from tests.browser._viewing import hashed, names, shown, silent
from tests.report import _runs as runs

pytestmark = pytest.mark.browser


def test_hostile_names_are_read_not_run(look):
    page, watch = look("hostile")
    assert any("<script>alert(1)</script>" in name for name in names(page))
    assert page.locator("main img, main script").count() == 0
    page.locator(".body .name").first.click()
    page.wait_for_selector(".detail")
    for view in ("findings", "about", "figures"):
        shown(page, view=view)
    assert page.title().startswith(f"Audit of {runs.HOSTILE[0]}")
    assert silent(page, watch), watch


NONSENSE = [
    {"metric": "<script>"}, {"by": "x" * 500}, {"group": "?", "of": "?"}, {"view": "<img>"},
    {"sort": "-nothing"}, {"model": "none"},
]  # fmt: skip


def test_an_address_that_means_nothing_shows_the_first_there_is(look):
    page, watch = look("full", **NONSENSE[0])
    for state in NONSENSE:
        shown(page, **state)
        assert len(names(page)) > 1, state
    assert silent(page, watch)


def test_the_policy_stops_a_script_and_a_request_that_got_in(look):
    page, watch = look("audit")
    page.evaluate(
        """() => { const s = document.createElement('script'); s.textContent = 'alert(2)';
                   document.body.append(s); }"""
    )
    page.wait_for_timeout(100)
    assert watch.dialogs == []
    with pytest.raises(Exception, match=r"Failed to fetch|Content Security Policy"):
        page.evaluate("fetch('https://example.org/')")


def test_a_page_whose_tables_are_damaged_says_so(look, page_of, tmp_path):
    page, _ = look("audit")
    text = page_of("audit").read_text(encoding="utf-8")
    damaged = tmp_path / "damaged.html"
    at = text.index('id="table-groups">') + 400
    damaged.write_text(text[:at] + "AAAA" * 50 + text[at + 200 :], encoding="utf-8")
    page.goto(damaged.as_uri())
    page.wait_for_selector("[role=alert]")
    assert "cannot be read" in page.locator("[role=alert]").inner_text()


def test_a_drawing_that_holds_more_than_shapes_and_words_is_not_shown(look, tmp_path):
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><g onclick="alert(3)"><text>x</text></g></svg>'
    held = build_page_contents([DisplayedRun(runs.full_run(), "a")], figures=True)
    table = held.tables["figures"].with_columns(svg=pl.lit(svg))
    path = tmp_path / "hostile.html"
    path.write_text(
        build_standalone_page(Contents(held.manifest, {**held.tables, "figures": table})), "utf-8"
    )
    page, watch = look("full")
    page.goto(path.as_uri() + hashed(view="figures"))
    page.wait_for_selector("figure")
    assert page.locator("figure svg").count() == 0
    assert page.locator("figure .scroll").first.inner_text() == "This drawing cannot be read."
    assert watch.dialogs == []
