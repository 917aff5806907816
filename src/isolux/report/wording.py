"""Words of the report: marks of statuses, lists, and what must not break over lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from isolux.core.tables import CAUTION_STATUSES, Status
from isolux.statements.numbers import NO_VALUE

NBSP = "\N{NO-BREAK SPACE}"

SHAPE: dict[str, str] = {
    **dict.fromkeys(CAUTION_STATUSES, "○"),
    Status.OK: "●",
    Status.INSUFFICIENT_UNITS: "×",
    Status.INSUFFICIENT_CLUSTERS: "×",
    Status.UNDEFINED: "÷",
    Status.NOT_SCORED: NO_VALUE,
}
"""A mark for each status, so that no status is shown by colour alone."""


def format_stratum_title(column: str) -> str:
    """Say what people are divided by, as a dataset's column calls it.

    Examples
    --------
    >>> format_stratum_title("size"), format_stratum_title("visible_torso")
    ('size', 'visible torso')
    """
    return column.replace("_", " ")


def join_with_and(names: Sequence[str], *, max_names: int | None = None) -> str:
    """Join names as in a sentence; beyond ``max_names``, say how many more there are.

    Examples
    --------
    >>> join_with_and(["race", "age", "gender"]), join_with_and(["a", "b", "c", "d"], max_names=2)
    ('race, age and gender', 'a, b and 2 more')
    """
    listed_names = list(names)
    if max_names is not None and len(listed_names) > max_names:
        listed_names = [*listed_names[:max_names], f"{len(names) - max_names} more"]
    if len(listed_names) <= 1:
        return "".join(listed_names)
    return ", ".join(listed_names[:-1]) + " and " + listed_names[-1]


def insert_nonbreaking_spaces(text: str) -> str:
    """Keep a number and its unit, or a letter and its value, on one line.

    Examples
    --------
    >>> text = "95 % interval of 3.1 points; p < 0.001; n = 5"
    >>> insert_nonbreaking_spaces(text).replace(NBSP, "_")
    '95_% interval of 3.1_points; p_<_0.001; n_=_5'
    """
    return _LOOSE.sub(lambda text_match: text_match.group().replace(" ", NBSP), text)


_LOOSE = re.compile(r"\d (?:%|points?\b)|\b[np] [<=] \d|[<=] \d")


def keep_http_url_only(url: str) -> str:
    """Return an http or https address as it is, and anything else as nothing.

    Examples
    --------
    >>> keep_http_url_only("https://example.org/a"), keep_http_url_only("javascript:alert(1)")
    ('https://example.org/a', '')
    """
    try:
        url_parts = urlsplit(url)
    except ValueError:
        return ""
    return url if url_parts.scheme in {"http", "https"} and url_parts.netloc else ""
