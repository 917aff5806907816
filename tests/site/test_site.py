"""The site holds together: no broken link, nothing from elsewhere, a page for all there is."""

from __future__ import annotations

import re
from urllib.parse import unquote

import isolux
from isolux.cli.app import build_cli_program
from isolux.cli.listing import LISTABLE_KINDS, find_package_of_kind
from isolux.core import registry
from tests.site import _built as built

_ELSEWHERE = re.compile(r"(?:[a-z]+:)?//")


def test_every_link_leads_to_a_page_and_every_anchor_to_a_place():
    pages, broken = built.pages(), []
    for path, page in pages.items():
        for link in page.links:
            if _ELSEWHERE.match(link) or link.startswith("mailto:"):
                continue
            name, _, anchor = unquote(link).partition("#")
            there = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not there.exists():
                broken.append(f"{path.name}: {link}")
            elif anchor and there in pages and anchor not in pages[there].ids:
                broken.append(f"{path.name}: {link}: no such place")
    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def test_nothing_is_loaded_from_elsewhere():
    loads = {load for page in built.pages().values() for load in page.loads}
    assert [load for load in loads if _ELSEWHERE.match(load)] == []
    assert any(load.endswith(".css") or ".css?" in load for load in loads)
    for sheet in built.site().rglob("*.css"):
        assert built._CSS.findall(sheet.read_text(encoding="utf-8", errors="replace")) == []


def test_every_plugin_function_and_command_has_its_page():
    top = built.site()
    wanted = [
        f"plugins/{kind}/{name}.html"
        for kind in LISTABLE_KINDS
        for name in registry.names(find_package_of_kind(kind))
    ]
    wanted += [f"reference/command_{name}.html" for name in build_cli_program([]).commands]
    for name in isolux.__all__:
        if not name.startswith("_"):
            kind = "class" if isinstance(getattr(isolux, name), type) else "function"
            wanted.append(f"reference/{kind}_{name}.html")
    assert [name for name in wanted if not (top / name).is_file()] == []
    assert len(wanted) > 150


def test_a_plugins_page_says_what_it_says_of_itself():
    page = (built.site() / "plugins/tasks/detection.html").read_text("utf-8")
    for metric in registry.task_info("detection").metrics:
        assert f">{metric.name}<" in page
    assert registry.load_info("tasks", "detection").references[0].url in page


def test_the_demonstration_lies_in_it():
    page = (built.site() / "demo.html").read_text("utf-8")
    for name in ("report", "viewer"):
        assert f'src="demo/{name}.html"' in page
        assert (built.site() / "demo" / f"{name}.html").stat().st_size > 100_000
