"""The viewer of two models, of a paper's tables and of the report's figures."""

from __future__ import annotations

import pytest

import isolux
from isolux.statements.numbers import format_bare_value, format_interval
from tests.api.test_view import audit_two_months
from tests.browser._viewing import CUT, DESK, PHONE, hashed, resized, silent, violations
from tests.report import _runs as runs

pytestmark = pytest.mark.browser


def test_two_models_side_by_side_say_who_gained_and_what_is_tested(look):
    page, _ = look("comparison", view="compare", by="race")
    table = runs.comparison_run()
    row = page.locator(".body .row", has_text="Indian").first
    a, b = (table.group_metrics.filter(model=model, metric="accuracy", group="Indian")["value"][0]
            for model in ("erm", "arl"))  # fmt: skip
    assert [float(text) for text in row.locator("[data-v]").evaluate_all(
        "all => all.slice(0, 2).map(one => one.dataset.v)")] == [a, b]  # fmt: skip
    tested = table.disparities.filter(metric="accuracy", group_a="Indian")
    change = row.locator(".cell.change").inner_text()
    assert format_bare_value(tested["value"][0], with_sign=True) in change
    assert format_interval(tested["low"][0], tested["high"][0]) in change
    page.get_by_label("From").select_option("arl")  # the other way round
    turned = (
        page.locator(".body .row", has_text="Indian").first.locator(".cell.change").inner_text()
    )
    assert format_bare_value(-tested["value"][0], with_sign=True) in turned


def test_two_runs_side_by_side_are_plainly_not_tested(look):
    page, _ = look("two", view="compare", by="light")
    assert "Changes are descriptive here" in page.locator(".lead").inner_text()
    changes = page.locator(".body .cell.change").all_inner_texts()
    assert all("not tested" in text or text.strip() == "–" for text in changes), changes


def test_two_runs_of_the_same_people_have_tested_changes_in_place(tab, tmp_path):
    page_path = isolux.view(audit_two_months(), tmp_path / "two.html")
    page, watch = tab.open(page_path.as_uri() + hashed(view="compare", by="light"))
    page.wait_for_selector("main .body .row")
    assert "Changes are descriptive" not in page.locator(".lead").inner_text()
    dusk = page.locator(".body .row", has_text="dusk").first
    change = dusk.locator(".cell.change").inner_text()
    assert change.startswith("+")
    assert "not tested" not in change
    assert dusk.locator(".cell.p").inner_text().strip() not in ("", "–")
    page.get_by_label("From").select_option("june")  # the other way round
    turned = page.locator(".body .row", has_text="dusk").first.locator(".cell.change").inner_text()
    assert turned.startswith("−")
    assert silent(page, watch)


def test_the_tables_of_a_paper_stand_about_the_run(look):
    page, watch = look("printed", view="about")
    table = page.locator(".printed table")
    assert table.locator("caption").inner_text() == "Table 1: <b>recall</b>"
    assert table.locator("td").all_inner_texts() == ["A", "75.9", "12", "B", "–", "3"]
    told = page.locator(".about").inner_text()
    assert "Table 2: not printed, as no one was found." in told
    assert "It says two things." in told
    assert violations(page) == []
    assert silent(page, watch)


def test_figures_are_the_reports_with_words_for_who_cannot_see_them(look):
    page, watch = look("full", view="figures", by="race*gender")
    figure = page.get_by_role("img", name="Accuracy by perceived race × perceived gender")
    assert figure.locator("svg text").all_text_contents().count("n = 31") == 1
    assert "Darker is lower, hence worse." in page.locator("figcaption").first.inner_text()
    for size in (DESK, PHONE):
        resized(page, size)
        assert page.evaluate(CUT) == []
    page.get_by_label("Groups by").select_option("")
    n = page.locator("figure").count()
    assert n > 4
    assert page.get_by_role("status").inner_text() == f"{n} figures, as the report draws them"
    assert silent(page, watch)
