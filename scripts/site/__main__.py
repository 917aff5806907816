"""Build the site, without a network: ``python -m scripts.site [FOLDER]``, or ``make site``.

    docs/ and the pages at the root ─┐
    each plugin's INFO ──────────────┤
    functions, tables, commands ─────┼─► sources ─► Sphinx ─► FOLDER/index.html
    isolux demo, its report, viewer ─┘

Sources are made anew in ``build/site``; nothing of them is committed. A page that Sphinx warns of
(a link that leads nowhere, a heading that is not there, markup that does not close) ends the build.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from scripts.site.copied import copy_pages
from scripts.site.demonstration import write_demonstration
from scripts.site.plugins import write_plugins
from scripts.site.reference import write_reference
from scripts.site.summaries import embed_summaries

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / "build" / "site"
_ARROW = '<span class="toctree-toggle" role='
_NAMELESS = {
    '<th class="head"><p></p></th>': "<td></td>",
    f'{_ARROW}"presentation">': f'{_ARROW}"img" aria-label="pages below">',
}


def build(out: Path, *, work: Path = BUILD) -> int:
    """Build the site into a folder and return Sphinx's exit code: 0, or 1 with what it warned of.

    Parameters
    ----------
    out : Path
        The folder; pages of an earlier build in it are replaced.
    work : Path
        Where sources and the demonstration are made.
    """
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        print("the site needs Sphinx: pip install --group site, or `make site`")  # noqa: T201
        return 2
    source = work / "source"
    shutil.rmtree(source, ignore_errors=True)
    copy_pages(TOP, source)
    write_plugins(source)
    write_reference(source)
    write_demonstration(source, work / "demo")
    here = Path(__file__).parent
    code: int = build_main(
        ["-q", "-W", "--keep-going", "-b", "html", "-c", str(here), "-d", str(work / "doctrees"),
         "-D", f"html_extra_path={source / 'extra'}", str(source), str(out)]
    )  # fmt: skip
    _name_what_has_no_name(out)
    embed_summaries(out)
    return code


def _name_what_has_no_name(out: Path) -> None:
    """Mend what a screen reader would announce as nothing: axe-core found both.

    A table's heading without words becomes a cell, and the arrow that opens a part of the menu gets
    a name.
    """
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        mended = text
        for nameless, named in _NAMELESS.items():
            mended = mended.replace(nameless, named)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TOP / "site"
    code = build(target)
    if code == 0:
        print(f"site: {target / 'index.html'}")  # noqa: T201
    raise SystemExit(code)
