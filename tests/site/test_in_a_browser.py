"""The site opened from its folder in Chromium: search, silence on the network, axe-core."""

from __future__ import annotations

import pytest

from tests.browser._viewing import violations
from tests.browser.conftest import chromium
from tests.site import _built as built

__all__ = ["chromium"]

pytestmark = pytest.mark.browser
PAGES = (
    "index.html", "docs/guides/auditor.html", "docs/methods/gate.html",
    "plugins/tasks/regression.html", "reference/function_load.html", "search.html?q=confounders",
)  # fmt: skip
"""One of each kind; axe-core takes seconds for a page of ten screens."""
LOOKS = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


@pytest.fixture
def opened(chromium):
    """Open pages of the site from its folder: ``(page, requests)``."""
    contexts = []

    def open_page(**look):
        contexts.append(chromium.new_context(**look))
        page, asked = contexts[-1].new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        return page, asked

    yield open_page
    for context in contexts:
        context.close()


def address(name: str) -> str:
    return f"{built.site().as_uri()}/{name}"


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_and_no_request_leaves(opened, look):
    page, asked = opened(**LOOKS[look])
    found = {}
    for name in PAGES:
        page.goto(address(name))
        found[name] = violations(page)
    assert found == {name: [] for name in PAGES}
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_search_finds_from_a_folder(opened):
    page, _ = opened(**LOOKS["desktop"])
    page.goto(address("search.html?q=confounders"))
    page.wait_for_selector("#search-results li a")
    hits = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
    assert any(hit.partition("?")[0].endswith("docs/methods/confounders.html") for hit in hits)
    page.wait_for_function(
        """() => { const all = [...document.querySelectorAll('#search-results li')];
                   return all.length && all.every(one => one.querySelector('p.context')); }"""
    )
    told = page.locator("#search-results li p.context").all_inner_texts()
    assert sum("confound" in text.lower() for text in told) > len(told) / 2


@pytest.mark.parametrize(
    ("query", "page_name"),
    [
        ("minimum group size", "docs/methods/uncertainty.html"),
        ("confidence interval", "docs/methods/uncertainty.html"),
        ("compare two models", "docs/guides/ml_engineer.html"),
        ("F1", "plugins/tasks/face_parsing.html"),
        ("per-class", "plugins/tasks/classification.html"),
    ],
)
def test_the_page_of_a_common_term_is_among_the_first_three_hits(opened, query, page_name):
    page, _ = opened(**LOOKS["desktop"])
    page.goto(address(f"search.html?q={query.replace(' ', '+')}"))
    page.wait_for_selector("#search-results li a")
    page.wait_for_function("() => !/Searching/.test(document.body.innerText)")
    hits = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
    assert any(page_name in hit for hit in hits[:3]), hits[:6]


def test_the_demonstration_is_read_inside_its_page(opened):
    page, asked = opened(**LOOKS["desktop"])
    page.goto(address("demo.html"))
    for frame in page.query_selector_all("iframe"):
        frame.scroll_into_view_if_needed()
        inside = frame.content_frame()
        inside.wait_for_selector("text=lighting")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
