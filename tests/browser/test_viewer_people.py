"""The viewer of single people: chosen by several attributes, and one by one."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.report.wording import insert_nonbreaking_spaces
from isolux.statements.numbers import format_with_unit
from tests.viewer._runs import people

pytestmark = pytest.mark.browser


def facet(page, title):
    """Read an attribute's groups, their counts and their means, as the page shows them."""
    rows = page.get_by_role("group", name=title, exact=True).locator("li button")
    parts = [[row.locator(f".{part}").inner_text() for part in ("label", "count", "mean")]
             for row in rows.all()]  # fmt: skip
    return {label: (n, mean) for label, n, mean in parts}


def test_choosing_by_several_attributes_counts_as_polars_does(look):
    page, _ = look("people", view="people")
    page.wait_for_selector(".facets")
    for name in ("dusk", "night", "small"):
        page.locator(".facet .label", has_text=name).click()
    frame = people()
    light, size = pl.col("light").is_in(["dusk", "night"]), pl.col("size") == "small"
    chosen = frame.filter(light, size)
    said = page.get_by_role("status").inner_text()
    assert said.startswith(f"{chosen.height:,} units of 3,000 chosen")
    assert insert_nonbreaking_spaces(format_with_unit(chosen["value"].mean())) in said
    assert "Descriptive." in page.locator(".selection").inner_text()
    # An attribute's own counts leave out its own choice, so that one sees what else there is.
    for title, rows in (
        ("light", frame.filter(size)),
        ("size", frame.filter(light)),
        ("tone", chosen),
    ):
        shown = facet(page, title)
        scored = rows.drop_nulls("value")
        for (group,), part in scored.group_by(title):
            assert shown[group] == (
                f"{part.height:,}",
                insert_nonbreaking_spaces(format_with_unit(part["value"].mean())),
            )
    assert "pick=light%3Ddusk" in page.url
    page.get_by_role("button", name="Choose everyone again").click()
    assert page.get_by_role("status").inner_text().startswith("3,000 units of 3,000")


def test_from_a_group_to_its_people_and_to_one_of_them(look):
    page, _ = look("people", by="light*tone", group="dusk × 4-6", of="light*tone")
    page.get_by_role("link", name="Its people, one by one").click()
    page.wait_for_selector(".facets")
    cell = people().filter(light="dusk", tone="4-6")
    assert page.get_by_role("status").inner_text().startswith(f"{cell.height:,} units")
    page.locator(".body .name").first.click()
    told = page.locator(".detail").inner_text()
    row = people().filter(unit_id=page.locator(".detail h2").inner_text())
    assert row["tone"][0] == "4-6"
    assert (
        insert_nonbreaking_spaces(format_with_unit(row["value"][0]))
        if row["value"][0] is not None
        else "no score"
    ) in told
    again = page.context.new_page()
    again.goto(page.url)
    again.wait_for_selector(".detail")
    assert again.locator(".detail").inner_text() == told


def test_a_page_without_people_has_no_way_to_them(look):
    page, _ = look("audit", view="people", pick="light=dusk")
    assert page.get_by_role("link", name="People").count() == 0
    assert page.locator(".table.groups").count() == 1
    assert (
        "no score of a single person" in look("audit", view="about")[0].locator("main").inner_text()
    )
