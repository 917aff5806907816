"""What a search shows of each page it finds, also where the site is opened from a folder.

Sphinx's search fetches each page that it found and shows the words around what was searched for. A
browser fetches nothing for a page that was opened from a file. So the pages' words stand in a
script that the search's page loads, and gives them where a page is fetched.
"""

from __future__ import annotations

import json
from html import escape
from html.parser import HTMLParser
from pathlib import Path

__all__ = ["embed_summaries"]

_SCRIPT = "_static/summaries.js"
_BEFORE = '<script src="_static/searchtools.js'
_SILENT = {"script", "style", "nav", "template"}
_GIVE = """(() => {
  const pages = PAGES;
  const fetched = window.fetch.bind(window);
  window.fetch = (address, ...more) => {
    const text = pages[String(address).replace(/^\\.\\//, "")];
    return text === undefined ? fetched(address, ...more) : Promise.resolve(new Response(text));
  };
})();
"""


class _Words(HTMLParser):
    """The words of a page's article; of its markup only where each section begins and ends."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._open: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article" or self._open:
            if tag in ("article", "section"):
                name = dict(attrs).get("id")
                self._open.append(tag)
                self.said.append(f'<section id="{escape(name)}">' if name else "<section>")
            link = tag == "a" and "headerlink" in (dict(attrs).get("class") or "")
            self._silent += tag in _SILENT or link or (tag == "a" and self._silent > 0)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("article", "section") and self._open:
            self._open.pop()
            self.said.append("</section>")
        if self._silent and (tag in _SILENT or tag == "a"):
            self._silent -= 1

    def handle_data(self, data: str) -> None:
        if self._open and not self._silent:
            self.said.append(escape(" ".join(data.split()), quote=False) + " ")


def embed_summaries(site: Path) -> None:
    """Write the words of every page that the search knows into a script, for the search's page.

    Parameters
    ----------
    site : Path
        The folder of the built site.
    """
    pages: dict[str, str] = {}
    for page in sorted(site.rglob("*.html")):
        words = _Words()
        words.feed(page.read_text(encoding="utf-8"))
        if words.said:
            name = page.relative_to(site).as_posix()
            pages[name] = f'<div role="main">{"".join(words.said)}</div>'
    said = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    (site / _SCRIPT).write_text(_GIVE.replace("PAGES", said), encoding="utf-8")
    search = site / "search.html"
    text = search.read_text(encoding="utf-8")
    if _BEFORE not in text:
        raise SystemExit("the search's page no longer loads searchtools.js as it did")
    script = f'<script src="{_SCRIPT}"></script>\n  {_BEFORE}'
    search.write_text(text.replace(_BEFORE, script, 1), encoding="utf-8")
