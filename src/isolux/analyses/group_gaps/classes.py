"""What is said of all classes together, where a metric is measured class by class.

Of twenty classes one leads by chance alone, and a person who decides asks first in how many classes
groups differ. So one finding speaks for all of them, and the classes' own findings follow later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.analyses.group_gaps.sentences import unseen
from isolux.statements.numbers import interval, points
from isolux.statements.words import Words, level_of, lowered

__all__ = ["by_class", "classes_claim"]

_OF = ("model", "task", "metric", "threshold", "attribute")
_LISTED = 6
_KINDS = {"counts": "measures", "keypoints": "keypoints", "face_parsing": "parts"}
"""What a task's labels are, where they are no classes."""


def by_class(placed: pl.DataFrame) -> list[list[dict[str, Any]]]:
    """Collect the blocks that differ in nothing but the class: two classes or more.

    Parameters
    ----------
    placed : polars.DataFrame
        Blocks in the order in which to read them; ``place`` is that order.

    Returns
    -------
    list of list of dict
        A list of a metric's and attribute's classes, those with a difference first. Where only
        people of unknown value differ, the two known groups that are farthest apart speak, and no
        difference was found.
    """
    known = ("group_a", "group_b", "value"), ("known_a", "known_b", "known_gap")
    instead = [
        pl.when("aside").then(other).otherwise(own).alias(own)
        for own, other in zip(*known, strict=True)
    ]
    classes = (
        placed.filter(pl.col("label").is_not_null())
        .with_columns(*instead, found=pl.col("found") & ~pl.col("aside"))
        .drop_nulls("value")
        .sort(pl.col("found").not_(), "place")
    )
    parts = classes.partition_by(_OF, maintain_order=True)
    return [part.to_dicts() for part in parts if part["label"].n_unique() > 1]


def classes_claim(rows: Sequence[Mapping[str, Any]], words: Words) -> str:
    """Say in how many classes groups differ, and in which most; or that none was found to.

    Parameters
    ----------
    rows : sequence of mapping
        Of ``by_class``: the first class leads.
    words : Words
    """
    first = rows[0]
    what = words.measure({**first, "label": None})
    title = words.title(first["attribute"])
    found = [row for row in rows if row["found"]]
    if not found:
        return words.start(first["model"], _none(rows, words, what, title))
    most = "most in" if len(found) > 1 else "in"
    told = (
        f"{what} differs across {title} in {len(found):,} of {len(rows):,} {_kind(first)}, all "
        f"tests taken together: {most} {words.label(first)}, where {_gap(first, words)}"
        f"{_interval(first, words)}; {words.p(first['p_adjusted'])}."
    )
    others = [f"{words.label(row)} ({_gap(row, words)})" for row in found[1 : 1 + _LISTED]]
    if others:
        more = len(found) - 1 - len(others)
        also = ", ".join(others) + (f" and {more:,} more" if more else "")
        told += f" It also differs in {also}."
    others_left = len(rows) - len(found)
    if others_left:
        kind = _kind(first)[: -1 if others_left == 1 else None]
        kind = "class" if kind == "classe" else kind
        told += f" In the other {kind} no difference was found."
    return words.start(first["model"], told)


def _kind(row: Mapping[str, Any]) -> str:
    return _KINDS.get(row["task"], "classes")


def _none(rows: Sequence[Mapping[str, Any]], words: Words, what: str, title: str) -> str:
    overall = [row for row in rows if row["any_found"] and not row["aside"]]
    p = min((row["any_p"] for row in rows if row["any_p"] is not None), default=None)
    widest = max(rows, key=lambda row: abs(row["value"]))
    known = " known" if any(row["aside"] for row in rows) else ""
    told = (
        f"no two{known} groups of {title} were found to differ in {lowered(what)} in any of "
        f"{len(rows):,} {_kind(rows[0])}"
        if overall or known
        else f"no difference in {lowered(what)} was found across {title} in any of {len(rows):,} "
        f"{_kind(rows[0])} (smallest {words.p(p)})"
    )
    told += (
        "; all groups judged have the same value. "
        if widest["value"] == 0
        else f"; the widest gap is in {words.label(widest)}, {_gap(widest, words)}. "
    )
    if overall:
        named = ", ".join(words.label(row) for row in overall[:_LISTED])
        told += f"Overall, the groups differ in {named} ({words.p(p)}). "
    return told + _could_see(rows, words)


def _could_see(rows: Sequence[Mapping[str, Any]], words: Words) -> str:
    known = [row for row in rows if row["detectable_best"] is not None]
    if not known:
        return unseen(words)
    unit = words.unit(rows[0])
    best = min(known, key=lambda row: row["detectable_best"])
    worst = max(known, key=lambda row: row["detectable_best"])
    told = (
        "This audit could have detected (power 0.8) a difference of "
        f"{points(best['detectable_best'], unit)} in {words.label(best)}"
    )
    if best is not worst:
        told += f" and none below {points(worst['detectable_best'], unit)} in {words.label(worst)}"
    return f"{told}; smaller ones may exist."


def _gap(row: Mapping[str, Any], words: Words) -> str:
    way = "below" if row["value"] < 0 else "above"
    far = points(row["value"], words.unit(row), (row["low"], row["high"]))
    return f"{row['group_a']} is {far} {way} {row['group_b']}"


def _interval(row: Mapping[str, Any], words: Words) -> str:
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return ""
    ends = (-high, -low) if row["value"] < 0 else (low, high)
    told = interval(*ends, words.unit(row), row["value"])
    return f" ({level_of(words)} interval {told})"
