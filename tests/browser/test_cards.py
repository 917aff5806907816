"""Cards in a browser: quiet on the network, no script of a group's name, no sideways page."""

from __future__ import annotations

import pytest

import isolux
from tests.cards._cards import HOSTILE, run_of_people
from tests.report import _runs as runs

KINDS = ("annex-iv", "bias-profile")


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cards")
    made = {"people": run_of_people(HOSTILE), "report": runs.hostile_run()}
    for name, run in made.items():
        for kind in KINDS:
            isolux.card(run, kind=kind).write(folder / name)
    return folder


@pytest.mark.browser
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["people", "report"])
def test_a_card_is_quiet_and_fits(tab, cards, name, kind):
    page, watch = tab.open((cards / name / f"{kind}.html").as_uri())
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert watch.quiet(page), (watch.messages, watch.dialogs, watch.requests)
    assert page.locator("h1").count() == 1
    assert page.locator("table script, h1 script").count() == 0
