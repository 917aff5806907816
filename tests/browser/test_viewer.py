"""The viewer as people meet it: what it shows of a run, sorted, searched, by its address."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.statements.numbers import format_bare_value, format_interval
from tests.browser._viewing import DESK, DIGITS, PHONE, TALL, names, numbers, resized, shown, silent
from tests.report import _runs as runs
from tests.viewer._runs import audited

pytestmark = pytest.mark.browser

VIEWS = "groups", "findings", "about", "compare", "people", "figures"


@pytest.mark.parametrize("name", ["people", "two", "hostile", "full", "comparison", "thousand"])
def test_it_is_silent_and_fits(look, name):
    page, watch = look(name)
    for size in (DESK, PHONE):
        resized(page, size)
        for view in VIEWS:
            shown(page, view=view)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], (size, view)
    assert silent(page, watch), watch


READ = """([group, title]) => {
  for (const row of document.querySelectorAll('.row:not(.head .row)')) {
    const name = row.querySelector('.name');
    if (!name || name.title !== group) continue;
    const value = row.querySelector('.cell.value [data-v]');
    const small = row.querySelector('.cell.value small');
    const cell = (one) => row.querySelector(`.cell.${one} [data-v]`);
    return {value: value.dataset.v, text: value.textContent, low: small.dataset.low,
            high: small.dataset.high, interval: small.textContent, n: cell('n').dataset.v,
            difference: cell('difference').dataset.v, status: row.querySelector('.status').title};
  }
  return null; }"""


def test_a_hundred_random_cells_are_the_runs_own_digit_for_digit(look):
    table = audited().group_metrics
    told_of = audited().disparities.filter(kind="difference_to_overall")
    against = {(d["attribute"], d["group_a"]): d for d in told_of.iter_rows(named=True)}
    page, _ = look("audit", TALL)
    drawn = np.random.default_rng(0).integers(table.height, size=100)
    last = None
    for row in table[drawn].sort("attribute").iter_rows(named=True):
        if row["attribute"] != last:
            shown(page, by=row["attribute"] or "light")
            last = row["attribute"]
        found = page.evaluate(READ, [row["group"], row["attribute"]])
        assert int(found["n"]) == row["n_units"]
        if row["value"] is None:
            assert (found["value"], found["text"]) == ("", "–")
            assert row["reason"] in found["status"]
            continue
        assert [float(found[k]) for k in ("value", "low", "high")] == [
            row[k] for k in ("value", "low", "high")
        ]
        assert found["text"] == format_bare_value(row["value"])
        assert found["interval"] == format_interval(row["low"], row["high"])
        told = against.get((row["attribute"], row["group"]))
        assert found["difference"] == "" or float(found["difference"]) == told["value"]


def test_numbers_are_rounded_as_the_report_rounds_them(look):
    page, _ = look("digits", TALL, by="race")
    shown = page.locator(".body .cell.value .big").all_inner_texts()
    assert shown == [format_bare_value(value) for value in sorted(DIGITS)]  # worst first


def test_groups_are_in_order_of_their_values_worst_first(look):
    page, _ = look("full", TALL, by="race*gender")
    *values, last = numbers(page, "value")
    assert last is None  # too small to judge
    assert values == sorted(values)
    assert page.get_by_role("columnheader", name="Accuracy").get_attribute("aria-sort") == "none"


def test_sorting_by_value_puts_groups_without_one_last_both_ways(look):
    page, _ = look("full", TALL, by="race*gender")
    heading = page.get_by_role("columnheader", name="Accuracy")
    assert heading.get_attribute("aria-sort") == "none"
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    *values, last = numbers(page, "value")
    assert last is None
    assert values == sorted(values)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    *values, last = numbers(page, "value")
    assert last is None
    assert values == sorted(values, reverse=True)


def test_search_and_filters_and_what_they_say(look):
    page, _ = look("full", TALL, by="race*gender")
    page.get_by_label("Search groups").fill("female bl")
    assert names(page) == ["Black × Female"]
    assert page.get_by_role("status").inner_text() == "1 of 14 groups"
    page.get_by_label("Search groups").fill("nothing of the kind")
    page.get_by_role("button", name="Show all groups").click()
    assert len(names(page)) == 14
    page.get_by_role("combobox", name="Show").select_option("unjudged")
    assert names(page) == ["Middle Eastern × Female"]
    assert "fewer than 50 units" in page.locator(".body .status").inner_text()
    page.get_by_role("combobox", name="Show").select_option("differ")
    assert "Black × Female" in names(page)


def test_an_address_shows_what_was_seen(look):
    page, _ = look("full")
    page.get_by_label("Metric").select_option("recall~Female")
    page.get_by_label("Groups by").select_option("race")
    page.get_by_label("Search groups").fill("asian")
    page.get_by_role("columnheader", name="Units").get_by_role("button").click()
    page.locator(".body .name").first.click()
    seen = [names(page), page.locator(".detail").inner_text(), page.url]
    again = page.context.new_page()
    again.goto(seen[2])
    again.wait_for_selector(".detail")
    assert [names(again), again.locator(".detail").inner_text(), again.url] == seen
    again.go_back()


def test_back_closes_what_was_opened(look):
    page, _ = look("full", by="race")
    page.locator(".body .name").first.click()
    page.wait_for_selector(".detail")
    page.go_back()
    page.wait_for_selector(".detail", state="detached")


def test_a_group_tells_its_pairs_with_the_sign_turned(look):
    page, _ = look("full", by="race", group="White", of="race")
    pair = next(d for d in runs.full_run().disparities.iter_rows(named=True)
                if d["kind"] == "difference" and d["metric"] == "accuracy"
                and {d["group_a"], d["group_b"]} == {"White", "Black"})  # fmt: skip
    sign = 1 if pair["group_a"] == "White" else -1
    row = page.locator(".detail tr", has_text="Black").first.inner_text()
    assert format_bare_value(sign * pair["value"], with_sign=True) in row
    low, high = sorted((sign * pair["low"], sign * pair["high"]))
    assert format_interval(low, high) in row


def test_a_finding_leads_to_its_groups(look):
    page, _ = look("audit", view="findings")
    first = page.locator("ol.findings a").first
    first.click()
    page.wait_for_selector(".table.groups")
    assert "by=" in page.url
    assert page.get_by_role("link", name="Groups").get_attribute("aria-current") == "page"


def test_warnings_stand_before_any_number(look):
    page, _ = look("full")
    warning = page.get_by_text("Half of the people are missing.")
    assert warning.is_visible()
    assert warning.bounding_box()["y"] < page.locator(".answer").bounding_box()["y"]


def test_the_spread_of_a_group_is_drawn_and_told(look):
    page, _ = look("audit", by="light", group="dusk", of="light")
    counted = audited().scores.join(
        audited().attributes.filter(attribute="light", value="dusk"), on="unit_id"
    )["value"]
    told = page.locator(".histogram .plot").get_attribute("aria-label")
    assert f"{int(counted.sum()):,} scored 1, {int((counted == 0).sum()):,} scored 0" in told
    page.get_by_label("Draw").select_option("spread")
    shown = page.locator(".body .row:has(.spark) .name").all_inner_texts()
    assert shown == [name for name in names(page) if name != "dawn"]
    page.locator(".body .row", has_text="dawn").click()
    assert "No spread of groups of fewer than 10" in page.locator(".detail").inner_text()
