"""Two models on the same people as one typed document: is the second better, who gained and lost.

The counterpart of ``summary`` for a run that ``isolux compare`` made: its ``disparities`` are the
table of comparisons (second model less first), its ``group_metrics`` hold both models. What it says
of them is said by the analysis ``model_changes``, as in the findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from isolux.analyses.model_changes import (
    ChangeSummary,
    describe_gap_changes_by_key,
    select_summary_claims,
)
from isolux.core.containers import Run
from isolux.disparity.class_rankings import rank_classes_by_largest_gap
from isolux.disparity.models import PLANNED_FAMILY
from isolux.report._sections import ReportContext, sort_names_if_ordinal
from isolux.report.document import AuditSubject, Summary
from isolux.report.figures.svg import shorten_names_distinctly
from isolux.report.gaps import build_undetected_comparison_caution
from isolux.report.summary import summarise_run_record
from isolux.statements.metric_lines import MetricLine, MetricLineKey, read_metric_lines, to_line_key

# Classes ranked by their largest gap, two models side by side (FACET, Tables 11 and 12).

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


def build_class_ranking_tables(
    run: Run,
    models: tuple[str, str],
    lines: Mapping[MetricLineKey, MetricLine],
    context: ReportContext,
) -> tuple[ClassTable, ...]:
    """Rank the classes of each metric and attribute; gaps of single classes are not tested."""
    ranked_classes = rank_classes_by_largest_gap(run.group_metrics, models)
    values = {
        (
            row["model"],
            row["metric"],
            row["threshold"],
            row["attribute"],
            row["label"],
            row["group"],
        ): row["value"]
        for row in run.group_metrics.filter(pl.col("label").is_not_null()).iter_rows(named=True)
    }
    first_line = {
        (line.metric, line.threshold): line for line in reversed(list(lines.values())) if line.label
    }
    tables = []
    keys = ["metric", "threshold", "attribute"]
    for key, class_rows in ranked_classes.group_by(keys, maintain_order=True):
        metric, threshold, attribute = key
        if class_rows.height < 2 or (metric, threshold) not in first_line:
            continue
        groups = list(dict.fromkeys(k[5] for k in values if k[1:4] == key))
        across = (
            tuple(sort_names_if_ordinal(groups) or groups) if len(groups) <= GROUPS_ACROSS else ()
        )
        line = first_line[str(metric), threshold]
        title = line.title.replace(line.class_suffix, "", 1)
        tables.append(
            ClassTable(
                title=f"{title} by {context.format_attribute_title(str(attribute))}",
                unit=line.unit,
                groups=across,
                rows=tuple(
                    _build_class_row(row, models, values, across)
                    for row in class_rows.head(CLASSES_SHOWN).iter_rows(named=True)
                ),
                n_classes=class_rows.height,
            )
        )
    return tuple(tables)


def _build_class_row(
    ranking_row: Mapping[str, Any],
    models: tuple[str, str],
    value_by_key: Mapping[tuple[Any, ...], float | None],
    groups: Sequence[str],
) -> ClassRow:
    key = (
        ranking_row["metric"],
        ranking_row["threshold"],
        ranking_row["attribute"],
        ranking_row["label"],
    )
    first_values, second_values = (
        tuple(value_by_key.get((m, *key, g)) for g in groups) for m in models
    )
    return ClassRow(
        label=ranking_row["label"],
        first_rank=ranking_row["rank_a"],
        first=first_values,
        first_gap=ranking_row["gap_a"],
        first_ends=(ranking_row["worst_a"], ranking_row["best_a"]),
        second_rank=ranking_row["rank_b"],
        second=second_values,
        second_gap=ranking_row["gap_b"],
        second_ends=(ranking_row["worst_b"], ranking_row["best_b"]),
    )


ChangeOutcome = Literal["gained", "lost", "higher", "lower", "no change found", "not judged"]
CHANGES_SHOWN = 60
_ROUNDING = 1e-6
_HEAD = 13
"""Letters of a model's name above a column."""
TABLES_SHOWN = 8
"""With more classes than this, only the largest changes of classes are printed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One group under both models; ``difference`` is second less first."""

    group: str
    n_units: int | None
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_adjusted: float | None
    is_planned: bool
    status: str
    reason: str | None
    way: ChangeOutcome

    @property
    def has_inconsistent_rounding(self) -> bool:
        """Whether the printed values differ by another number than the printed change."""
        first, second, change = (
            round(100.0 * (x or 0.0), 1) for x in (self.first, self.second, self.difference)
        )
        return self.difference is not None and abs(second - first - change) > _ROUNDING


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """One line of one attribute: everyone's change, each group's, and whether the gap changed."""

    line: MetricLine
    overall_change: Change | None
    rows: tuple[Change, ...]
    gap: str | None

    @property
    def n_decimals(self) -> int | None:
        """Digits of changes: one more where a change is not that of the printed values."""
        rows = [*self.rows, *([self.overall_change] if self.overall_change else [])]
        is_fraction = self.line.unit == "fraction"
        return 2 if is_fraction and any(row.has_inconsistent_rounding for row in rows) else None


@dataclass(frozen=True, slots=True)
class ChangeSection:
    """One attribute; its first table is of the main metric."""

    attribute: str
    title: str
    anchor: str
    tables: tuple[ChangeTable, ...]
    classes: tuple[tuple[MetricLine, Change], ...]
    n_classes: int

    @property
    def n_changed(self) -> int:
        """How many groups are shown to have changed on the main metric."""
        changed_ways = {"gained", "lost", "higher", "lower"}
        return sum(row.way in changed_ways for table in self.tables[:1] for row in table.rows)


@dataclass(frozen=True, slots=True)
class ComparisonSummary:
    """A whole report of two models; ``base`` holds what it shares with an audit's."""

    title: str
    answer: ChangeSummary
    models: tuple[str, str]
    heads: tuple[str, str]
    base: Summary
    overall: tuple[ChangeTable, ...]
    sections: tuple[ChangeSection, ...]
    classes: tuple[ClassTable, ...]

    @property
    def audited(self) -> AuditSubject:
        """What was audited."""
        return self.base.audited


def summarise_comparison(run: Run) -> ComparisonSummary:
    """Arrange a comparison's tables as the document that its report prints."""
    first_model, second_model = models = _read_model_pair(run)
    base, context = summarise_run_record(run, {"model": f"{first_model} and {second_model}"})
    lines = read_metric_lines(run.group_metrics.filter(pl.col("model") == first_model), run.record)
    indexed_rows = _IndexedRows.from_run(run, models, lines, base.audited.alpha)
    attributes = run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    sections = tuple(
        _build_change_section(
            attribute, context.format_attribute_title(attribute), f"attribute-{i}", indexed_rows
        )
        for i, attribute in enumerate(attributes, start=1)
    )
    undetected = build_undetected_comparison_caution(run, models, next(iter(lines.values()), None))
    heads = shorten_names_distinctly(models, _HEAD)
    answer = select_summary_claims(run)
    stated_claims = {answer.first, *answer.further, *answer.gaps}
    base = replace(
        base,
        cautions=(*base.cautions, *filter(None, [undetected])),
        findings=tuple(row for row in base.findings if row.claim not in stated_claims),
    )
    overall_tables = [indexed_rows.build_change_table(line, None) for line in lines]
    overall = tuple(
        sorted(
            (table for table in overall_tables if table and table.overall_change),
            key=lambda table: table.line.label is not None,
        )
    )
    return ComparisonSummary(
        title=f"{second_model} against {first_model}"
        + (f" on {base.audited.dataset}" if base.audited.dataset else ""),
        answer=answer,
        models=models,
        heads=(heads[0], heads[1]),
        base=base,
        overall=overall,
        sections=tuple(s for s in sections if s.tables or s.classes),
        classes=build_class_ranking_tables(run, models, lines, context),
    )


def _build_change_section(
    attribute: str, title: str, anchor: str, indexed_rows: _IndexedRows
) -> ChangeSection:
    tables = [
        table
        for line in indexed_rows.lines
        if (table := indexed_rows.build_change_table(line, attribute)) is not None
    ]
    class_tables = [table for table in tables if table.line.label is not None]
    if len(class_tables) <= TABLES_SHOWN:
        return ChangeSection(attribute, title, anchor, tuple(tables), (), 0)
    changes = [
        (table.line, row)
        for table in class_tables
        for row in table.rows
        if row.difference is not None
    ]
    changes.sort(key=lambda change: -abs(change[1].difference or 0.0))
    overall_tables = tuple(table for table in tables if table.line.label is None)
    return ChangeSection(
        attribute, title, anchor, overall_tables, tuple(changes[:CHANGES_SHOWN]), len(changes)
    )


def _read_model_pair(run: Run) -> tuple[str, str]:
    names = list(run.record.get("models") or ())
    if len(names) != 2 and run.disparities.height:
        names = list(run.disparities.select("model_a", "model_b").row(0))
    return (str(names[0]), str(names[1])) if len(names) == 2 else ("the first", "the second")


@dataclass(frozen=True, slots=True)
class _IndexedRows:
    """The run's rows by line and attribute."""

    lines: Mapping[MetricLineKey, MetricLine]
    alpha: float
    values: Mapping[tuple[Any, ...], tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    groups: Mapping[tuple[Any, ...], list[str]]
    changes: Mapping[tuple[Any, ...], Mapping[str, Any]]
    gaps: Mapping[tuple[Any, ...], str]

    @classmethod
    def from_run(
        cls,
        run: Run,
        models: tuple[str, str],
        lines: Mapping[MetricLineKey, MetricLine],
        alpha: float,
    ) -> _IndexedRows:
        rows: dict[str, dict[tuple[Any, ...], Mapping[str, Any]]] = {m: {} for m in models}
        for row in run.group_metrics.iter_rows(named=True):
            if row["model"] in rows:
                rows[row["model"]][(*to_line_key(row)[1:], row["attribute"], row["group"])] = row
        groups: dict[tuple[Any, ...], list[str]] = {}
        for key in rows[models[0]]:
            groups.setdefault(key[:-1], []).append(key[-1])
        values = {key: (row, rows[models[1]].get(key)) for key, row in rows[models[0]].items()}
        return cls(
            lines,
            alpha,
            values,
            groups,
            _index_model_differences(run),
            describe_gap_changes_by_key(run),
        )

    def build_change_table(self, key: MetricLineKey, attribute: str | None) -> ChangeTable | None:
        line, block_key = self.lines[key], (*key[1:], attribute)
        if block_key not in self.groups:
            return None
        changes = {
            group: self._build_group_change(line, (*block_key, group))
            for group in self.groups[block_key]
        }
        overall_key = (*key[1:], None, "overall")
        return ChangeTable(
            line=line,
            overall_change=self._build_group_change(line, overall_key)
            if overall_key in self.values
            else None,
            rows=tuple(_sort_largest_loss_first(changes.values(), line))
            if attribute is not None
            else (),
            gap=self.gaps.get(block_key[1:]),
        )

    def _build_group_change(self, line: MetricLine, key: tuple[Any, ...]) -> Change:
        first_row, second_row = self.values[key]
        change_row = self.changes.get(key)
        row: Mapping[str, Any] = change_row or {}
        unscored_row = second_row if first_row["value"] is not None and second_row else first_row
        return Change(
            group=str(key[-1]),
            n_units=row.get("n_units_a", first_row["n_units"]),
            first=first_row["value"],
            second=second_row["value"] if second_row else None,
            difference=row.get("value"),
            low=row.get("low"),
            high=row.get("high"),
            p_adjusted=row.get("p_adjusted"),
            is_planned=row.get("family") == PLANNED_FAMILY,
            status=row.get("status", unscored_row["status"]),
            reason=row.get("reason", unscored_row["reason"]),
            way=_classify_change(line, change_row, self.alpha),
        )


def _index_model_differences(run: Run) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    difference_rows = run.disparities.filter(pl.col("kind") == "model_difference")
    key_columns = ("task", "metric", "label", "threshold", "attribute", "group_a")
    return {
        tuple(row[n] for n in key_columns): row for row in difference_rows.iter_rows(named=True)
    }


def _classify_change(
    line: MetricLine, change_row: Mapping[str, Any] | None, alpha: float
) -> ChangeOutcome:
    if (
        change_row is None
        or change_row["value"] is None
        or (change_row["p_adjusted"] is None and change_row["value"])
    ):
        return "not judged"
    if change_row["p_adjusted"] is None or change_row["p_adjusted"] > alpha:
        return "no change found"
    if line.direction == "none":
        return "higher" if change_row["value"] > 0 else "lower"
    return "gained" if (change_row["value"] > 0) == (line.direction == "higher") else "lost"


def _sort_largest_loss_first(changes: Iterable[Change], line: MetricLine) -> list[Change]:
    sign = -1.0 if line.direction == "lower" else 1.0
    return sorted(
        changes, key=lambda c: (c.difference is None, sign * (c.difference or 0.0), c.group)
    )
