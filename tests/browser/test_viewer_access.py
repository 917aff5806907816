"""The viewer by the keyboard, for who sees little, and in a small window."""

from __future__ import annotations

import pytest

from tests.browser._viewing import DESK, PHONE, resized, shown, silent, violations

pytestmark = pytest.mark.browser

TABS = """() => [...document.querySelectorAll('nav a')]
  .map(a => new URLSearchParams(a.hash.slice(1)).get('view') ?? 'groups')"""


@pytest.mark.parametrize("name", ["people", "full", "comparison", "two"])
def test_axe_finds_nothing(look, name):
    page, _ = look(name)
    for size, dark in ((DESK, False), (PHONE, True)):
        resized(page, size)
        page.emulate_media(color_scheme="dark" if dark else "light")
        for view in page.evaluate(TABS):
            shown(page, view=view)
            assert violations(page) == [], (size, view)
            page.emulate_media(color_scheme="light" if dark else "dark")
            assert violations(page, "color-contrast") == [], (size, view)
            page.emulate_media(color_scheme="dark" if dark else "light")
        shown(page, view="groups")
        page.locator(".body .name").first.click()
        page.wait_for_selector(".detail")
        assert violations(page) == [], size


def test_the_keyboard_alone_can_do_it_all(look):
    page, watch = look("thousand", sort="group")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the tables"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    focused = "document.activeElement.title || document.activeElement.textContent"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('name')"):
            break
    assert page.evaluate(focused) == "region 0000"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "region 0002"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "region 0999"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector(".detail")
    assert page.evaluate(focused) == "region 0998"
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("Escape")
    page.wait_for_selector(".detail", state="detached")
    page.wait_for_function("() => document.activeElement.classList.contains('name')")
    assert page.evaluate(focused) == "region 0998"
    assert silent(page, watch)


def test_a_name_of_500_letters_leaves_room_for_the_way_out(look):
    page, _ = look("hostile")
    page.evaluate("""() => {
      const cut = document.querySelector('.body .row .name'); cut.closest('.row').click(); }""")
    title = page.locator("#detail-title bdi")
    title.evaluate("e => { e.textContent = 'L'.repeat(120); }")  # as long as a title may be
    close = page.locator(".detail .close").bounding_box()
    assert close["height"] < 60
    assert page.locator("#detail-title").bounding_box()["height"] < 250
