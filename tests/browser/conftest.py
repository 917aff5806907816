"""A real browser for pages: Debian's Chromium, quiet, and watched for anything it asks for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isolux.report.html import write_report
from tests.report import _runs as runs
from tests.report._facet import facet_run, fhibe_run

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
def reports(tmp_path_factory) -> dict[str, Path]:
    """Write every kind of page once."""
    folder = tmp_path_factory.mktemp("reports")
    makers = {
        "full": runs.full_run,
        "hostile": runs.hostile_run,
        "planted": runs.planted_run,
        "small": runs.small_run,
        "classes": runs.classes_run,
        "detector": runs.detector_run,
        "comparison": runs.comparison_run,
        "facet": facet_run,
        "fhibe": fhibe_run,
    }
    return {name: write_report(make(), folder / f"{name}.html") for name, make in makers.items()}


@pytest.fixture
def open_report(chromium, reports) -> Iterator:
    """Open a page of a given width, with a record of what it does: ``(page, watch)``."""
    contexts = []

    def opened(name, width=1280, height=900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page, watch = context.new_page(), Watch()
        page.on("console", lambda message: watch.messages.append(message.text))
        page.on("pageerror", lambda error: watch.messages.append(str(error)))
        page.on("request", lambda request: watch.requests.append(request.url))
        page.on("dialog", lambda dialog: (watch.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(reports[name].as_uri())
        return page, watch

    yield opened
    for context in contexts:
        context.close()
