"""Groups of which a measure has no value: nobody counts in it, or it is undefined for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.formatting import join_words, pluralise, shorten_name
from isolux.core.tables import Status
from isolux.groups.unknown_values import UNKNOWN
from isolux.statements.accounting import ZERO_COUNT_PATTERN, is_small
from isolux.statements.metric_lines import LINE_COLUMNS, MetricLine
from isolux.statements.text import DisplayNames

_MAX_NAMES = 3


def find_undefined_groups(run: Run, line: Mapping[str, Any]) -> pl.DataFrame:
    """Find the known groups of which one measure has no value, whatever their size."""
    lacks_value = pl.col("status").is_in([Status.UNDEFINED, Status.NOT_SCORED]) | (
        is_small() & ((pl.col("n_units") == 0) | pl.col("reason").str.contains(ZERO_COUNT_PATTERN))
    )
    rows = run.group_metrics.filter(
        pl.col("attribute").is_not_null(), ~pl.col("values").list.contains(UNKNOWN)
    ).with_columns(lacks_value=lacks_value.fill_null(value=False))
    # Where each group lacks some measure, groups fix what is measured (recall of "dog" by a
    # person's own class): that nobody counts in it follows from what the groups are.
    lacking = rows.group_by("model", "attribute", "group").agg(pl.col("lacks_value").any())
    fixed = lacking.group_by("model", "attribute").agg(pl.col("lacks_value").all())
    return (
        rows.filter(
            "lacks_value", *(pl.col(name).eq_missing(pl.lit(line[name])) for name in LINE_COLUMNS)
        )
        .join(fixed.filter(~pl.col("lacks_value")), on=["model", "attribute"], how="semi")
        .select("attribute", "group", "reason")
    )


def describe_undefined_groups(groups: pl.DataFrame, line: MetricLine, names: DisplayNames) -> str:
    """Name the groups of which a measure has no value, and say why."""
    if groups.is_empty():
        return ""
    group_names = [
        f"{shorten_name(group)} ({names.words.format_attribute(attribute)})"
        for attribute, group in groups.select("attribute", "group").head(_MAX_NAMES).rows()
    ]
    n_more = groups.height - len(group_names)
    if n_more:
        group_names.append(pluralise(n_more, "more group"))
    reasons = groups["reason"].unique(maintain_order=True).to_list()
    reason = f": {reasons[0]}" if len(reasons) == 1 and groups.height == 1 else ""
    has = "has" if groups.height == 1 else "have"
    sentence = f"{join_words(group_names, conjunction='and')} {has} no {line.phrase}{reason}."
    return names.words.begin_sentence(line.model, sentence)
