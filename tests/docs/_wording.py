"""Words that this project does not use, and places that no committed file may name."""

from __future__ import annotations

import re

BANNED = {
    r"\b(un|de|non)-?bias(ed|ing|es)?\b": "say what was measured, and how large it was",
    r"\bbias-free\b": "no audit can show that",
    r"\b(un)?fair (model|classifier|algorithm|ai)s?\b": "name the disparity instead",
    r"\bgender (classification|classifier|recognition|detection)s?\b": (
        "say 'perceived gender presentation'; a paper's title may stand in quotes or italics"
    ),
    r"\b(normal|default) (group|race|skin)s?\b": "name the group as its dataset does",
    r"\b(TODO|FIXME|XXX)\b": "finish it, or leave it out",
}
_PATTERNS = {re.compile(k, re.IGNORECASE): why for k, why in BANNED.items()}

# A title in quotes or italics is cited, a word in code is mentioned: neither is the project's own.
_CITED = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|(?<!\*)\*[^*\n]+\*(?!\*)")

_MACHINE = ("Users", "home", "mnt", "opt", "root", "srv", "work")
_PATH = re.compile(rf"(?<![\w./~\]-])/({'|'.join(_MACHINE)})/\w+")


def banned_words(text: str) -> list[str]:
    """Say line, word and advice for each banned word in a page."""
    return [
        f"line {number}: {found[0]!r}: {why}"
        for number, line in enumerate(text.splitlines(), start=1)
        for pattern, why in _PATTERNS.items()
        for found in pattern.finditer(_CITED.sub("", line))
    ]


def machine_paths(text: str) -> list[str]:
    """Find paths that exist on one person's machine only."""
    return [
        f"line {number}: {found[0]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in _PATH.finditer(line)
    ]
