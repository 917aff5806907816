"""The pages that people also read in the repository, and where each stands in the site."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

__all__ = ["ADDRESS", "copy_pages"]

ADDRESS = "https://github.com/isolux/isolux/blob/main/"
"""Where files that are no pages of the site are read."""

AT_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?(?=\))")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_LISTED = re.compile(r"^- \[[^\]]+\]\(([^)#]+\.md)\)", re.MULTILINE)


def copy_pages(top: Path, source: Path) -> None:
    """Copy the pages with their pictures, and make a page of each section of their index.

    A link to a file that is no page becomes one to the repository; links between pages stay.

    Parameters
    ----------
    top : Path
        The repository.
    source : Path
        The folder of sources, which is made.
    """
    shutil.copytree(top / "docs", source / "docs")
    for name in AT_THE_ROOT:
        shutil.copy(top / name, source / name)
    pages = [*(source / name for name in AT_THE_ROOT), *sorted((source / "docs").rglob("*.md"))]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        page.write_text(_linked(text, page, source, top), encoding="utf-8")
    index = (source / "docs" / "README.md").read_text(encoding="utf-8")
    for title, name in SECTIONS.items():
        (source / f"{name}.md").write_text(_section(index, title), encoding="utf-8")
    (source / "docs" / "README.md").unlink()
    shutil.copy(Path(__file__).with_name("index.md"), source / "index.md")


SECTIONS = {
    "Start here": "start",
    "Guides by reader": "guides",
    "How to": "how_to",
    "Tutorials": "tutorials",
    "Methods": "methods",
    "Design": "design",
    "Decisions": "decisions",
    "For contributors": "contributing",
}
"""Sections of ``docs/README.md``, and the page that each becomes."""


def _linked(text: str, page: Path, source: Path, top: Path) -> str:
    def target(found: re.Match[str]) -> str:
        there = (page.parent / found[1]).resolve()
        inside = there.relative_to(source.resolve())
        if inside == Path("docs/README.md"):
            return "/index.md"
        if there.is_file():
            return found[0]
        if not (top / inside).exists():
            raise SystemExit(f"{page.relative_to(source)}: {found[0]} leads nowhere")
        return ADDRESS + inside.as_posix()

    return _LINK.sub(target, text)


def _section(index: str, title: str) -> str:
    """Make a page of a section: its list, and the same pages for the menu at the side."""
    parts = _SECTION.split(index)
    body = dict(zip(parts[1::2], parts[2::2], strict=True))[title].strip()
    moved = re.sub(r"\]\((?!https?:|/|\.\./)", "](docs/", body).replace("](../", "](")
    listed = [name for name in _LISTED.findall(moved) if name != "docs/decisions"]
    menu = "\n".join(["```{toctree}", ":hidden:", *listed, "```"])
    return f"# {title}\n\n{moved}\n\n{menu}\n"
