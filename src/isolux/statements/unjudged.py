"""Groups too small to judge: how many there are, and whether they look worse than those judged.

Nothing is said of a group that can have nobody: where groups fix the target, a class has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.groups.regrouping import can_regroup, regroup, weigh_units
from isolux.groups.unknown import UNKNOWN
from isolux.statements.lines import LINE, Line
from isolux.statements.numbers import value_text
from isolux.statements.text import Names
from isolux.vocabulary.containers import Run
from isolux.vocabulary.words import brief, listed, numbered

_SMALL = ("insufficient units", "insufficient clusters")
_NOBODY = r"(: 0$|^0 )"
"""Of a reason that counts nobody: by construction, and not for want of data."""
_MIN_NAMED = 10
"""People that a group needs for its value to be named."""
_MAX_REASON_WORDS = 10


def find_unjudged(run: Run, line: Mapping[str, Any], direction: str) -> pl.DataFrame:
    """Find the known groups that are too small to be judged by one measure."""
    rows = run.group_metrics.filter(
        *(pl.col(name).eq_missing(pl.lit(line[name])) for name in LINE),
        pl.col("attribute").is_not_null(),
        ~pl.col("values").list.contains(UNKNOWN),
    ).with_columns(pl.col("reason").fill_null(""))
    small = rows.filter(
        pl.col("status").is_in(_SMALL),
        pl.col("n_units") > 0,
        ~pl.col("reason").str.contains(_NOBODY),
    )
    columns = ("attribute", "group", "n_units", "n_clusters", "reason", "value")
    if small.height:
        measured = _measure_small(run, line, small)
        small = small.join(measured, on=["attribute", "group"], how="left")
        small = small.with_columns(value=pl.coalesce("value", "raw"))
    is_lower_better = direction == "lower"
    sense = -1.0 if is_lower_better else 1.0
    judged = rows.filter(~pl.col("status").is_in(_SMALL)).drop_nulls("value")
    worst = judged.group_by("attribute").agg(worst=(sense * pl.col("value")).min())
    return (
        small.select(columns)
        .join(worst, on="attribute", how="left", maintain_order="left")
        .with_columns(
            looks_worse=(sense * pl.col("value") < pl.col("worst")).fill_null(value=False)
        )
        .drop("worst")
        .sort(sense * pl.col("value"), "attribute", "group", nulls_last=True)
    )


def _measure_small(run: Run, line: Mapping[str, Any], small: pl.DataFrame) -> pl.DataFrame:
    """Take the mean of the scores of groups too small to be judged: ``attribute, group, raw``."""
    scores = run.scores.filter(
        *(pl.col(name).eq_missing(pl.lit(line[name])) for name in LINE),
        pl.col("value").is_not_null(),
    ).select(pl.col("unit_id").cast(pl.String), score="value")
    none = small.select("attribute", "group", raw=pl.lit(None, dtype=pl.Float64)).clear()
    if scores.is_empty() or not can_regroup(run):
        return none
    wanted = small.select("attribute", "group")
    members = regroup(run).frame.join(wanted, on=["attribute", "group"], how="semi")
    rows = weigh_units(run, members.join(scores, on="unit_id"))
    mean = (pl.col("score") * pl.col("weight")).sum() / pl.col("weight").sum()
    return rows.group_by("attribute", "group").agg(raw=mean)


def describe_unjudged(unjudged: pl.DataFrame, line: Line, names: Names) -> str:
    """Say how many groups are too small to judge, and the one that looks worst of them."""
    if unjudged.is_empty():
        return ""
    titles = [names.words.title(name) for name in unjudged["attribute"].unique(maintain_order=True)]
    of = f" by {listed([brief(t) for t in titles], last='and')}" if len(titles) < 3 else ""
    n = unjudged.height
    told = f"{numbered(n, 'group')}{of} {'has' if n == 1 else 'have'} too little data"
    worse = unjudged.filter("looks_worse")
    named = worse.filter(pl.col("n_units") >= _MIN_NAMED)
    if worse.height:
        way = "worse" if line.direction != "none" else "lower"
        example = _describe_example(named, line, names)
        looks = "one looks" if worse.height == 1 else f"{worse.height:,} look"
        such = ":" if worse.height == 1 else ", such as"
        return f"{told}; {looks} {way} than every group judged{example and such + example}."
    reason = str(unjudged.sort("n_units", descending=True)["reason"][0])
    is_short = reason and len(reason.split()) <= _MAX_REASON_WORDS
    return f"{told} to judge by {line.phrase}{f' ({reason})' if is_short else ''}."


def _describe_example(named: pl.DataFrame, line: Line, names: Names) -> str:
    if named.is_empty():
        return ""
    row = named.row(0, named=True)
    percent = " %" if line.unit == "fraction" else f" {line.unit}".rstrip()
    value = f"{value_text(row['value'], line.unit)}{percent}"
    return f" {names.group(row['attribute'], row['group'])} ({value} of {row['n_units']:,})"
