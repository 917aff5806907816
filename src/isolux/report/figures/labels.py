"""Names short enough for an axis that still tell groups apart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from isolux.report.wording import plain

__all__ = ["headings", "short_names"]


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Cut names to ``width`` characters; names that would become alike are numbered.

    Examples
    --------
    >>> short_names(["Black", "a long name one", "a long name two"], 8)
    ['Black', 'a long …', 'a long … 2']
    """
    found: list[str] = []
    seen: dict[str, int] = {}
    for name in names:
        text = " ".join(plain(name).split()) or "(empty)"
        cut = text if len(text) <= width else text[: width - 1] + "…"
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
    parts = textwrap.wrap(name.replace("_", "_ "), width, max_lines=lines, placeholder="…")
    return [part.replace("_ ", "_") for part in parts]
