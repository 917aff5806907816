"""Classes ranked by their largest gap, two models side by side (FACET, Tables 11 and 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.disparity.class_rankings import class_rankings
from isolux.report._sections import Context, arranged_names
from isolux.report.document import Line
from isolux.statements.lines import LineKey
from isolux.vocabulary.containers import Run

CLASSES_SHOWN = 20
GROUPS_ACROSS = 4
"""With more groups than this, a table of classes names the extremes instead of all values."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class under both models: its rank by largest gap, and every group's value."""

    label: str
    first_rank: int | None
    first: tuple[float | None, ...]
    first_gap: float | None
    first_ends: tuple[str | None, str | None]
    second_rank: int | None
    second: tuple[float | None, ...]
    second_gap: float | None
    second_ends: tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class ClassTable:
    """Classes ranked by their largest gap between the groups of one attribute, side by side."""

    title: str
    unit: str
    groups: tuple[str, ...]
    rows: tuple[ClassRow, ...]
    n_classes: int


def class_tables(
    run: Run, models: tuple[str, str], lines: Mapping[LineKey, Line], context: Context
) -> tuple[ClassTable, ...]:
    """Rank the classes of each metric and attribute; gaps of single classes are not tested."""
    ranked = class_rankings(run.group_metrics, models)
    values = {
        (
            row["model"], row["metric"], row["threshold"], row["attribute"], row["label"],
            row["group"],
        ): row["value"]
        for row in run.group_metrics.filter(pl.col("label").is_not_null()).iter_rows(named=True)
    }  # fmt: skip
    first_line = {
        (line.metric, line.threshold): line for line in reversed(list(lines.values())) if line.label
    }
    found = []
    keys = ["metric", "threshold", "attribute"]
    for key, part in ranked.group_by(keys, maintain_order=True):
        metric, threshold, attribute = key
        if part.height < 2 or (metric, threshold) not in first_line:
            continue
        groups = list(dict.fromkeys(k[5] for k in values if k[1:4] == key))
        across = tuple(arranged_names(groups) or groups) if len(groups) <= GROUPS_ACROSS else ()
        line = first_line[str(metric), threshold]
        title = line.title.replace(line.whose, "", 1)
        found.append(
            ClassTable(
                title=f"{title} by {context.title(str(attribute))}",
                unit=line.unit,
                groups=across,
                rows=tuple(
                    _class_row(row, models, values, across)
                    for row in part.head(CLASSES_SHOWN).iter_rows(named=True)
                ),
                n_classes=part.height,
            )
        )
    return tuple(found)


def _class_row(
    row: Mapping[str, Any],
    models: tuple[str, str],
    values: Mapping[tuple[Any, ...], float | None],
    groups: Sequence[str],
) -> ClassRow:
    key = (row["metric"], row["threshold"], row["attribute"], row["label"])
    first, second = (tuple(values.get((m, *key, g)) for g in groups) for m in models)
    return ClassRow(
        label=row["label"],
        first_rank=row["rank_a"],
        first=first,
        first_gap=row["gap_a"],
        first_ends=(row["worst_a"], row["best_a"]),
        second_rank=row["rank_b"],
        second=second,
        second_gap=row["gap_b"],
        second_ends=(row["worst_b"], row["best_b"]),
    )
