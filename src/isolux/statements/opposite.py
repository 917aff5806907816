"""Opposite errors by class: one group's people of class A are missed, another's of class B.

Women over 50 called men and boys under 10 called girls cancel in accuracy, and "also in recall of
Male, recall of Female" does not say that the errors go opposite ways.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.statements.groups import group_phrases_of
from isolux.statements.leading import orient_comparisons
from isolux.statements.numbers import value_text
from isolux.statements.words import words_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.words import brief

_METRIC = "recall"
_MAX_CLASSES = 4
_KEY = ("model", "task", "threshold", "attribute")


def find_opposite_errors(comparisons: pl.DataFrame, attributes: Collection[str]) -> pl.DataFrame:
    """Find two groups and two classes of which each group is served worse in one."""
    rows = comparisons.filter(
        pl.col("metric") == _METRIC, pl.col("label").is_not_null(), "is_pair", "is_known"
    )
    if attributes:
        rows = rows.filter(pl.col("attribute").is_in(list(attributes)))
    if rows["label"].n_unique() > _MAX_CLASSES:
        return rows.clear()
    rows = rows.filter("is_established", pl.col("gap") < 0)
    other = rows.rename({"group": "reference", "reference": "group"})
    both = rows.join(other, on=[*_KEY, "group", "reference"], suffix="_b", nulls_equal=True)
    order = (pl.col("gap") + pl.col("gap_b"), "attribute", "group", "label")
    return both.filter(pl.col("label") != pl.col("label_b")).sort(*order).head(1)


def describe_opposite_errors(run: Run, attributes: Collection[str] = ()) -> str:
    """Say which two groups are served worse in opposite classes, where both are established."""
    words = words_of(run)
    comparisons = orient_comparisons(run.disparities, run.group_metrics, 1.0 - words.level, ())
    found = find_opposite_errors(comparisons, attributes)
    if found.is_empty():
        return ""
    row = found.row(0, named=True)
    phrases = group_phrases_of(run)
    classes = run.group_metrics.filter(metric=_METRIC)["label"].drop_nulls().n_unique()
    models = (run.record.get("accounting") or {}).get("models") or {}
    undetected = models.get(row["model"], {}).get("n_undetected", 1)
    groups = [row["group"], row["reference"]]
    told = []
    for end, other, group, beside in (("", "_b", *groups), ("_b", "", *groups[::-1])):
        # Who was not detected was not taken for the other class.
        is_taken = classes == 2 and not undetected
        label, answer = (words.label({"label": row[f"label{side}"]}) for side in (end, other))
        wrong = f"are called {answer}" if is_taken else "are missed"
        rates = [1.0 - row[f"{name}_value{end}"] for name in ("group", "reference")]
        share, other_share = (f"{value_text(rate, 'fraction', rates)} %" for rate in rates)
        who = phrases.describe(row["attribute"], group)
        told.append(
            f"for {who}, {share} of those labelled {label} {wrong} ({brief(beside)}: {other_share})"
        )
    p = words.p(max(row["p_adjusted"], row["p_adjusted_b"]))
    title = words.title(row["attribute"])
    sentence = f"errors by {title} go opposite ways: {'; '.join(told)}; both {p}."
    return words.start(row["model"], sentence)
