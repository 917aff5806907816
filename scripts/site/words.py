"""Markdown of the site's generated pages: text as it stands, tables, code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["code", "plain", "table"]

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|$~@])")


def plain(text: object) -> str:
    r"""Write text of which no part is read as markup.

    Examples
    --------
    >>> print(plain("a|b <i> *c*"))
    a\|b \<i\> \*c\*
    """
    return _MARKUP.sub(r"\\\1", " ".join(str(text).split()))


def code(text: object) -> str:
    """Write text as code; in a table its bars are escaped."""
    said = str(text).replace("|", "\\|")
    return f"`{said}`" if said else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay rows of Markdown out as a table; no rows: nothing."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    rule = f"|{'---|' * len(columns)}"
    return "\n".join([f"| {' | '.join(columns)} |", rule, *lines, ""]) if lines else ""
