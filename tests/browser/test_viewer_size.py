"""The viewer of a thousand groups and of fifty thousand people."""

from __future__ import annotations

import pytest

from tests.browser._viewing import PHONE, SETTLED, silent

pytestmark = pytest.mark.browser

CLICK = """async (selector) => {
  const button = document.querySelector(selector);
  const before = performance.now();
  button.click();
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - before; }"""
TYPE = """async (text) => {
  const box = document.querySelector('input[type=search]');
  const before = performance.now();
  box.value = text;
  box.dispatchEvent(new Event('input', {bubbles: true}));
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - before; }"""


def fastest(act):
    """Give the fastest of some times: a machine that others share holds one up now and then."""
    took = [act()]
    while min(took) >= 100 and len(took) < 12:
        took.append(act())
    return min(took)


def test_a_thousand_groups_sort_and_filter_within_a_tenth_of_a_second(look):
    page, _ = look("thousand")
    assert page.get_by_role("status").inner_text() == "1,000 groups"
    assert page.locator(".body .row").count() < 60
    for column in ("group", "n", "value", "difference"):
        took = fastest(lambda column=column: page.evaluate(CLICK, f".head .{column} button"))
        assert took < 100, (column, took)
    for text in ("9", "region 01", ""):
        took = fastest(lambda text=text: [page.evaluate(TYPE, one) for one in ("7", text)][-1])
        assert took < 100, (text, took)


def test_rows_far_below_are_drawn_when_they_are_reached(look):
    page, _ = look("thousand")
    page.evaluate("window.scrollTo(0, document.querySelector('.body').offsetHeight * 0.7)")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.body .name')].some(n => n.title > 'region 0690')"
    )
    assert page.locator(".body .row").count() < 60


def test_rows_that_begin_below_a_phones_window_are_drawn_when_they_are_reached(look):
    page, _ = look("people", PHONE, view="people")
    page.wait_for_selector(".facets")
    page.evaluate(SETTLED)
    assert page.locator(".body").bounding_box()["y"] > PHONE[1]
    assert 0 < page.locator(".body .row").count() < 60  # of 3,000
    for share in (0.5, 1.0):
        page.evaluate(f"window.scrollTo(0, {share} * document.documentElement.scrollHeight)")
        page.wait_for_function(
            """share => [...document.querySelectorAll('.body [data-at]')]
                 .some(one => one.dataset.at > 2900 * share)""",
            arg=share,
        )
        assert page.locator(".body .row").count() < 60


def test_fifty_thousand_people_are_open_in_two_seconds(look):
    page, watch = look("crowd")
    took = page.evaluate(
        """() => { const [own] = performance.getEntriesByType('navigation');
                   return performance.now() - own.startTime; }"""
    )
    assert took < 2000
    page.evaluate("location.hash = '#view=people'")
    page.wait_for_selector(".facets")
    picks = [
        page.evaluate(CLICK, f".facet:nth-child({i}) li:nth-child(2) button") for i in (1, 2, 3)
    ]
    assert min(picks) < 300, picks
    assert silent(page, watch)
