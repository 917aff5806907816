"""The pages that people read, and what stands in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda p: p.relative_to(ROOT)
)

_FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
_HTML = re.compile(r"<(?:img|a|source)\b[^>]*\b(?:src|href|srcset)=\"(?P<target>[^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block: what its fence says, its text, and the line it starts on."""

    kind: str
    body: str
    line: int


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["kind"].strip(), m["body"], text.count("\n", 0, m.start("body")) + 1)
        for m in _FENCE.finditer(text)
    ]


def prose(text: str) -> str:
    """Blank fenced blocks out, so that lines keep their numbers."""
    return _FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)


def links(text: str) -> list[str]:
    """List the targets of links and pictures, code left out."""
    bare = re.sub(r"`[^`\n]*`", "", prose(text))
    return [m["target"] for pattern in (_LINK, _HTML) for m in pattern.finditer(bare)]


def anchors(text: str) -> set[str]:
    """Give the names that headings get on a forge: lower case, words joined by hyphens."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.replace("`", "").lower()).replace(" ", "-") for h in headings}
