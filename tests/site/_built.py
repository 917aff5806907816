"""The built site: its pages, and what each of them links to and loads."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "video": "src"}
_CSS = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')\s]+)")


def site() -> Path:
    """Give the site that `make site` has just built; the suite itself builds none."""
    said = os.environ.get("ISOLUX_SITE")
    if said is None:
        pytest.skip("THE SITE WAS NOT BUILT HERE: `make site` builds it and asks these tests")
    return Path(said).resolve()


@dataclass
class Page(HTMLParser):
    """A page's links, anchors and what a browser loads with it."""

    text: str
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)
        self.loads += _CSS.findall(self.text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if found.get(_LOADS.get(tag, "")):
            self.loads.append(found[_LOADS[tag]])
        if tag == "link" and found.get("rel") not in (
            "next",
            "prev",
            "canonical",
            "search",
            "index",
        ):
            self.loads.append(found["href"])


@cache
def pages() -> dict[Path, Page]:
    """Read every page of the site but the demonstration's, which have tests of their own."""
    return {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site().rglob("*.html"))
        if path.parent.name != "demo"
    }
