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

from isolux.analyses.model_changes import ChangeSummary, describe_gaps, summarise_changes
from isolux.disparity.class_rankings import rank_classes
from isolux.disparity.models import PLANNED_FAMILY
from isolux.report._sections import Context, arrange_names
from isolux.report.document import AuditSubject, Summary
from isolux.report.figures.svg import shorten_names
from isolux.report.gaps import compare_undetected_people
from isolux.report.summary import summarise_record
from isolux.statements.metric_lines import Line, LineKey, line_key, read_lines
from isolux.vocabulary.containers import Run

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


def class_tables(
    run: Run, models: tuple[str, str], lines: Mapping[LineKey, Line], context: Context
) -> tuple[ClassTable, ...]:
    """Rank the classes of each metric and attribute; gaps of single classes are not tested."""
    ranked = rank_classes(run.group_metrics, models)
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
    for key, class_rows in ranked.group_by(keys, maintain_order=True):
        metric, threshold, attribute = key
        if class_rows.height < 2 or (metric, threshold) not in first_line:
            continue
        groups = list(dict.fromkeys(k[5] for k in values if k[1:4] == key))
        across = tuple(arrange_names(groups) or groups) if len(groups) <= GROUPS_ACROSS else ()
        line = first_line[str(metric), threshold]
        title = line.title.replace(line.class_suffix, "", 1)
        tables.append(
            ClassTable(
                title=f"{title} by {context.title(str(attribute))}",
                unit=line.unit,
                groups=across,
                rows=tuple(
                    _class_row(row, models, values, across)
                    for row in class_rows.head(CLASSES_SHOWN).iter_rows(named=True)
                ),
                n_classes=class_rows.height,
            )
        )
    return tuple(tables)


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


Way = Literal["gained", "lost", "higher", "lower", "no change found", "not judged"]
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
    way: Way

    @property
    def is_rounded_apart(self) -> bool:
        """Whether the printed values differ by another number than the printed change."""
        first, second, change = (
            round(100.0 * (x or 0.0), 1) for x in (self.first, self.second, self.difference)
        )
        return self.difference is not None and abs(second - first - change) > _ROUNDING


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """One line of one attribute: everyone's change, each group's, and whether the gap changed."""

    line: Line
    overall_change: Change | None
    rows: tuple[Change, ...]
    gap: str | None

    @property
    def n_decimals(self) -> int | None:
        """Digits of changes: one more where a change is not that of the printed values."""
        rows = [*self.rows, *([self.overall_change] if self.overall_change else [])]
        is_fraction = self.line.unit == "fraction"
        return 2 if is_fraction and any(row.is_rounded_apart for row in rows) else None


@dataclass(frozen=True, slots=True)
class ChangeSection:
    """One attribute; its first table is of the main metric."""

    attribute: str
    title: str
    anchor: str
    tables: tuple[ChangeTable, ...]
    classes: tuple[tuple[Line, Change], ...]
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
    first, second = models = _name_models(run)
    base, context = summarise_record(run, {"model": f"{first} and {second}"})
    lines = read_lines(run.group_metrics.filter(pl.col("model") == first), run.record)
    indexed_rows = _IndexedRows.of(run, models, lines, base.audited.alpha)
    attributes = run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    sections = tuple(
        _section(attribute, context.title(attribute), f"attribute-{i}", indexed_rows)
        for i, attribute in enumerate(attributes, start=1)
    )
    undetected = compare_undetected_people(run, models, next(iter(lines.values()), None))
    heads = shorten_names(models, _HEAD)
    answer = summarise_changes(run)
    stated_claims = {answer.first, *answer.further, *answer.gaps}
    base = replace(
        base,
        cautions=(*base.cautions, *filter(None, [undetected])),
        findings=tuple(row for row in base.findings if row.claim not in stated_claims),
    )
    overall_tables = [indexed_rows.table(line, None) for line in lines]
    overall = tuple(
        sorted(
            (table for table in overall_tables if table and table.overall_change),
            key=lambda table: table.line.label is not None,
        )
    )
    return ComparisonSummary(
        title=f"{second} against {first}"
        + (f" on {base.audited.dataset}" if base.audited.dataset else ""),
        answer=answer,
        models=models,
        heads=(heads[0], heads[1]),
        base=base,
        overall=overall,
        sections=tuple(s for s in sections if s.tables or s.classes),
        classes=class_tables(run, models, lines, context),
    )


def _section(attribute: str, title: str, anchor: str, indexed_rows: _IndexedRows) -> ChangeSection:
    tables = [
        table
        for line in indexed_rows.lines
        if (table := indexed_rows.table(line, attribute)) is not None
    ]
    of_classes = [table for table in tables if table.line.label is not None]
    if len(of_classes) <= TABLES_SHOWN:
        return ChangeSection(attribute, title, anchor, tuple(tables), (), 0)
    changes = [
        (table.line, row)
        for table in of_classes
        for row in table.rows
        if row.difference is not None
    ]
    changes.sort(key=lambda change: -abs(change[1].difference or 0.0))
    overall_tables = tuple(table for table in tables if table.line.label is None)
    return ChangeSection(
        attribute, title, anchor, overall_tables, tuple(changes[:CHANGES_SHOWN]), len(changes)
    )


def _name_models(run: Run) -> tuple[str, str]:
    names = list(run.record.get("models") or ())
    if len(names) != 2 and run.disparities.height:
        names = list(run.disparities.select("model_a", "model_b").row(0))
    return (str(names[0]), str(names[1])) if len(names) == 2 else ("the first", "the second")


@dataclass(frozen=True, slots=True)
class _IndexedRows:
    """The run's rows by line and attribute."""

    lines: Mapping[LineKey, Line]
    alpha: float
    values: Mapping[tuple[Any, ...], tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    groups: Mapping[tuple[Any, ...], list[str]]
    changes: Mapping[tuple[Any, ...], Mapping[str, Any]]
    gaps: Mapping[tuple[Any, ...], str]

    @classmethod
    def of(
        cls, run: Run, models: tuple[str, str], lines: Mapping[LineKey, Line], alpha: float
    ) -> _IndexedRows:
        rows: dict[str, dict[tuple[Any, ...], Mapping[str, Any]]] = {m: {} for m in models}
        for row in run.group_metrics.iter_rows(named=True):
            if row["model"] in rows:
                rows[row["model"]][(*line_key(row)[1:], row["attribute"], row["group"])] = row
        groups: dict[tuple[Any, ...], list[str]] = {}
        for key in rows[models[0]]:
            groups.setdefault(key[:-1], []).append(key[-1])
        values = {key: (row, rows[models[1]].get(key)) for key, row in rows[models[0]].items()}
        return cls(lines, alpha, values, groups, _index_changes(run), describe_gaps(run))

    def table(self, key: LineKey, attribute: str | None) -> ChangeTable | None:
        line, block_key = self.lines[key], (*key[1:], attribute)
        if block_key not in self.groups:
            return None
        changes = {
            group: self._change(line, (*block_key, group)) for group in self.groups[block_key]
        }
        overall_key = (*key[1:], None, "overall")
        return ChangeTable(
            line=line,
            overall_change=self._change(line, overall_key) if overall_key in self.values else None,
            rows=tuple(_worst_first(changes.values(), line)) if attribute is not None else (),
            gap=self.gaps.get(block_key[1:]),
        )

    def _change(self, line: Line, key: tuple[Any, ...]) -> Change:
        first, second = self.values[key]
        change_row = self.changes.get(key)
        row: Mapping[str, Any] = change_row or {}
        unjudged = second if first["value"] is not None and second else first
        return Change(
            group=str(key[-1]),
            n_units=row.get("n_units_a", first["n_units"]),
            first=first["value"],
            second=second["value"] if second else None,
            difference=row.get("value"),
            low=row.get("low"),
            high=row.get("high"),
            p_adjusted=row.get("p_adjusted"),
            is_planned=row.get("family") == PLANNED_FAMILY,
            status=row.get("status", unjudged["status"]),
            reason=row.get("reason", unjudged["reason"]),
            way=_way(line, change_row, self.alpha),
        )


def _index_changes(run: Run) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    rows = run.disparities.filter(pl.col("kind") == "model_difference")
    names = ("task", "metric", "label", "threshold", "attribute", "group_a")
    return {tuple(row[n] for n in names): row for row in rows.iter_rows(named=True)}


def _way(line: Line, row: Mapping[str, Any] | None, alpha: float) -> Way:
    if row is None or row["value"] is None or (row["p_adjusted"] is None and row["value"]):
        return "not judged"
    if row["p_adjusted"] is None or row["p_adjusted"] > alpha:
        return "no change found"
    if line.direction == "none":
        return "higher" if row["value"] > 0 else "lower"
    return "gained" if (row["value"] > 0) == (line.direction == "higher") else "lost"


def _worst_first(changes: Iterable[Change], line: Line) -> list[Change]:
    sign = -1.0 if line.direction == "lower" else 1.0
    return sorted(
        changes, key=lambda c: (c.difference is None, sign * (c.difference or 0.0), c.group)
    )
