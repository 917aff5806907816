"""What the site's pages are made of, where no Sphinx is needed; `make site` asks the whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isolux.cli.listing import LISTABLE_KINDS, find_package_of_kind
from isolux.core import registry
from scripts.site.copied import ADDRESS, SECTIONS, copy_pages
from scripts.site.plugins import write_plugins
from scripts.site.summaries import embed_summaries
from scripts.site.words import code, plain, table

TOP = Path(__file__).resolve().parents[2]


def test_text_is_no_markup_and_a_table_without_rows_is_none():
    assert plain("a_b|c <script>\n[x](y)") == r"a\_b\|c \<script\> \[x\](y)"
    assert code("a|b") == r"`a\|b`"
    assert table(["x"], []) == ""
    assert table(["x", "y"], [["1", "2"]]) == "| x | y |\n|---|---|\n| 1 | 2 |\n"


def test_pages_keep_their_links_and_files_are_read_in_the_repository(tmp_path):
    copy_pages(TOP, tmp_path / "source")
    readme = (tmp_path / "source" / "README.md").read_text(encoding="utf-8")
    assert "](docs/how_to/gate.md)" in readme
    gate = (tmp_path / "source" / "docs" / "how_to" / "gate.md").read_text(encoding="utf-8")
    assert f"]({ADDRESS}ci/github-action/action.yml)" in gate
    for name in SECTIONS.values():
        page = (tmp_path / "source" / f"{name}.md").read_text(encoding="utf-8")
        assert page.count("\ndocs/") + page.count("\nCONTRIBUTING") + page.count("\nCHANGELOG") >= 1


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path):
    top = tmp_path / "top"
    (top / "docs").mkdir(parents=True)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/README.md"):
        (top / name).write_text("[gone](nothing.md)\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"README.md: nothing.md leads nowhere"):
        copy_pages(top, tmp_path / "source")


def test_every_plugin_has_a_page_with_what_it_says(tmp_path):
    write_plugins(tmp_path)
    for kind in LISTABLE_KINDS:
        for name in registry.names(find_package_of_kind(kind)):
            page = (tmp_path / "plugins" / kind / f"{name}.md").read_text(encoding="utf-8")
            assert plain(registry.load_info(find_package_of_kind(kind), name).summary) in page
    page = (tmp_path / "plugins" / "cards" / "ll144.md").read_text(encoding="utf-8")
    assert "| key | what it is |" in page


def _page(body: str) -> str:
    return f"<html><body><nav>menu</nav>{body}<p>foot</p></body></html>"


def test_the_words_of_each_page_stand_in_a_script_for_the_searchs_page(tmp_path):
    """A site that was opened from a folder cannot fetch the pages that its search found."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.html").write_text(_page(
        '<article><section id="top"><h1>Gaps<a class="headerlink" href="#top">#</a></h1>'
        "<p>of  <a href='x'>two</a> &lt;groups&gt;</p><script>alert(1)</script><nav>more</nav>"
        '<section id="how"><p>measured</p></section></section></article>'
    ), "utf-8")  # fmt: skip
    (tmp_path / "frame.html").write_text(_page("<p>no article</p>"), "utf-8")
    loads = '<script src="_static/searchtools.js?v=1"></script>'
    (tmp_path / "search.html").write_text(_page(loads), "utf-8")
    embed_summaries(tmp_path)
    text = (tmp_path / "_static" / "summaries.js").read_text("utf-8")
    (line,) = [one for one in text.splitlines() if "const pages" in one]
    words = json.loads(line.partition(" = ")[2].removesuffix(";"))
    assert words == {"a/b.html": (
        '<div role="main"><section><section id="top">Gaps of two &lt;groups&gt; '
        '<section id="how">measured </section></section></section></div>'
    )}  # fmt: skip
    search = (tmp_path / "search.html").read_text("utf-8")
    assert search.index("summaries.js") < search.index("searchtools.js")


def test_a_search_that_loads_otherwise_ends_the_build(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "search.html").write_text(_page(""), "utf-8")
    with pytest.raises(SystemExit, match="no longer loads"):
        embed_summaries(tmp_path)
