"""What a reader must know before the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isolux.report.document import Caution


def synthetic(record: Mapping[str, Any]) -> Caution | None:
    """Say that the people are synthetic, where the data or planted truths show it.

    Examples
    --------
    >>> synthetic({"dataset": {"synthetic": True}}).headline
    'These people are synthetic.'
    >>> synthetic({"dataset": {"title": "FACET"}}) is None
    True
    """
    if not (record.get("planted") or (record.get("dataset") or {}).get("synthetic")):
        return None
    return Caution(
        "These people are synthetic.",
        "A program drew them and, where there are pictures, painted them. The numbers show what "
        "an audit finds in such data, and nothing about real people.",
    )
