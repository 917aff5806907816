"""A real browser for pages: Debian's Chromium, quiet, and watched for anything it asks for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from isolux.report.html import write_report
from tests.browser._viewing import DESK, hashed, written
from tests.report import _runs as runs
from tests.report._facet import facet_run, fhibe_run
from tests.viewer._runs import audited

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Watch:
    """What a page did that a report must not do."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def quiet(self, page) -> bool:
        return not self.messages and not self.dialogs and self.requests == [page.url]

    def forget(self) -> None:
        for heard in (self.messages, self.requests, self.dialogs):
            heard.clear()


def watched(page) -> Watch:
    """Note what a page says and asks for from now on."""
    watch = Watch()
    page.on("console", lambda message: watch.messages.append(message.text))
    page.on("pageerror", lambda error: watch.messages.append(str(error)))
    page.on("request", lambda request: watch.requests.append(request.url))
    page.on("dialog", lambda dialog: (watch.dialogs.append(dialog.message), dialog.dismiss()))
    return watch


class Tab:
    """One tab that all tests read in, as a browser takes longer to open one than to fill it."""

    def __init__(self, browser) -> None:
        self.page = browser.new_context().new_page()
        self.watch = watched(self.page)

    def open(self, address: str, width: int = 1280, height: int = 900, *, dark: bool = False):
        """Open a page anew, with nothing left of the one before: ``(page, watch)``."""
        self.page.goto("about:blank")  # else an address that differs after its # alone is no visit
        self.page.set_viewport_size({"width": width, "height": height})
        scheme = "dark" if dark else "light"  # colours that fade in would be read half-way
        self.page.emulate_media(media="screen", color_scheme=scheme, reduced_motion="reduce")
        self.watch.forget()
        self.page.goto(address)
        return self.page, self.watch

    def close_others(self) -> None:
        """Close what a test opened beside it."""
        for page in self.page.context.pages[1:]:
            page.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip(
            "CHROMIUM ABSENT: no report was opened, so sorting, printing, phone width and silence "
            "on the network were NOT checked; `apt-get install chromium` brings it"
        )
    api = pytest.importorskip("playwright.sync_api", reason="PLAYWRIGHT ABSENT: no report opened")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def kept_tab(chromium) -> Tab:
    return Tab(chromium)


@pytest.fixture
def tab(kept_tab) -> Iterator[Tab]:
    yield kept_tab
    kept_tab.close_others()


MAKERS = {
    "full": runs.full_run,
    "hostile": runs.hostile_run,
    "injected": runs.injected_run,
    "small": runs.small_run,
    "classes": runs.classes_run,
    "detector": runs.detector_run,
    "comparison": runs.comparison_run,
    "facet": facet_run,
    "fhibe": fhibe_run,
    "found": audited,  # a real audit, whose findings name their attributes
}


@pytest.fixture(scope="session")
def report_of(tmp_path_factory) -> Callable[[str], Path]:
    """Write a kind of page when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")
    return cache(lambda name: write_report(MAKERS[name](), folder / f"{name}.html"))


@pytest.fixture
def open_report(tab, report_of):
    """Open a page of a given width, with a record of what it does: ``(page, watch)``."""

    def opened(name, width=1280, height=900, *, dark=False):
        return tab.open(report_of(name).as_uri(), width, height, dark=dark)

    return opened


@pytest.fixture(scope="session")
def page_of(tmp_path_factory) -> Callable[[str], Path]:
    """Write a kind of the viewer's page when it is first asked for."""
    folder = tmp_path_factory.mktemp("viewer")
    return cache(lambda name: written(folder, name))


@pytest.fixture
def look(tab, page_of):
    """Open a page of the viewer in a state: ``(page, watch)``."""

    def opened(name, size=DESK, *, dark=False, **state):
        address = page_of(name).as_uri() + hashed(**state)
        page, watch = tab.open(address, *size, dark=dark)
        page.wait_for_selector("main")
        return page, watch

    return opened
