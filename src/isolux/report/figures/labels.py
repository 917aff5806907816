"""Names short enough for an axis that still tell groups apart."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

from isolux.report.wording import plain


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Cut names to ``width`` characters; names that would become alike are numbered.

    Examples
    --------
    >>> short_names(["Black", "a long name one", "a long name two"], 8)
    ['Black', 'a long …', 'a long … 2']
    >>> short_names(["東京都の人々"], 8)
    ['東京都…']
    """
    found: list[str] = []
    seen: dict[str, int] = {}
    for name in names:
        text = " ".join(plain(name).split()) or "(empty)"
        room = _letters(text, width)
        cut = text if len(text) <= room else text[: room - 1] + "…"
        seen[cut] = seen.get(cut, 0) + 1
        found.append(cut if seen[cut] == 1 else f"{cut} {seen[cut]}")
    return found


def headings(names: Sequence[str], width: int, lines: int = 3) -> list[str]:
    r"""Break names over lines, all over the same number of them, the last line filled.

    Examples
    --------
    >>> headings(["Latino_Hispanic", "White"], 9)
    ['Latino_\nHispanic', '\nWhite']
    """
    split = [_broken(name, width, lines) for name in short_names(names, width * lines - 4)]
    most = max((len(parts) for parts in split), default=1)
    return ["\n".join([""] * (most - len(parts)) + parts) for parts in split]


def _broken(name: str, width: int, lines: int) -> list[str]:
    room = _letters(name, width)
    parts = textwrap.wrap(name.replace("_", "_ "), room, max_lines=lines, placeholder="…")
    return [part.replace("_ ", "_") for part in parts]


def _letters(name: str, width: int) -> int:
    """Return how many of a name's letters stand in ``width`` Latin ones: half as many squares."""
    return width // 2 if any(unicodedata.east_asian_width(one) in "WF" for one in name) else width
