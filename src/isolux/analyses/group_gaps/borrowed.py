"""What may be said of groups too small to be judged: estimates that borrow strength.

They stand beside what was measured and are no claims; see ``isolux.stats.small_groups``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.statements.numbers import value_text
from isolux.statements.words import Words, level_of, lowered
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import crossed

__all__ = ["borrowed"]


def borrowed(run: Run, groups: Sequence[Mapping[str, Any]], words: Words) -> str:
    """Say that estimates stand beside small groups, and which of them is worst.

    Parameters
    ----------
    run : Run
    groups : sequence of mapping
        Rows of ``unjudged_of``, of one attribute.
    words : Words

    Returns
    -------
    str
        A sentence that begins with a space; empty where no such estimate stands beside a group
        that is too small for its own measure.
    """
    if "shrunken" not in run.group_metrics.columns:  # a run of an earlier version
        return ""
    first = groups[0]
    rows = run.group_metrics.filter(
        pl.col("model") == first["model"],
        pl.col("attribute") == first["attribute"],
        pl.col("group").is_in([g["group"] for g in groups]),
        pl.col("shrunken").is_not_null(),
        pl.col("value").is_null(),  # too few for this measure, not for another alone
    )
    order = [name for name in words.metrics if name in set(rows["metric"])]
    if rows.is_empty() or not order:
        return ""
    main = rows.filter(metric=order[0])
    main = main.filter(pl.col("threshold").eq_missing(main["threshold"][0]))
    names = [words.title(part) for part in crossed(first["attribute"])]
    kin = f"{', '.join(names[:-1])} and {names[-1]}"
    told = f" Estimates that borrow strength from {kin} are shown beside them in the report"
    direction = words.metrics[order[0]].direction
    if direction == "none":
        return f"{told}."
    lower = direction == "lower"
    worst = main.sort("shrunken", "group", descending=[lower, False]).row(0, named=True)
    unit = words.unit(worst)
    shown = {
        name: value_text(worst[name], unit)
        for name in ("shrunken", "shrunken_low", "shrunken_high", "shrunken_from")
        if worst[name] is not None
    }
    where = "highest" if lower else "lowest"
    percent = " %" if unit == "fraction" else f" {unit}".rstrip()
    raw = f", {shown['shrunken_from']}{percent} as measured" if "shrunken_from" in shown else ""
    return (
        f"{told}: {where} {lowered(words.measure(worst))} {shown['shrunken']}{percent} for "
        f"{worst['group']} ({level_of(words)} interval {shown['shrunken_low']} to "
        f"{shown['shrunken_high']}; n = {worst['n_units']:,}{raw}). No claim rests on them."
    )
