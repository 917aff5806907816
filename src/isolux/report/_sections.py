"""One section for each attribute: its groups, pairs, spread and verdict, for every line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import polars as pl

from isolux.core.spec import split_intersection
from isolux.disparity.measure_registry import disparity_measure_info
from isolux.groups import sort_groups_for_display
from isolux.groups.unknown_values import KNOWN_SUFFIX, UNKNOWN
from isolux.report._extra_figures import (
    RowsByKey,
    count_differences_by_block,
    group_rows_by_line_key,
    select_largest_differences_by_block,
)
from isolux.report.document import (
    AttributeSection,
    Block,
    DisparitySummary,
    Estimate,
    GroupRow,
    LineTable,
    NamedMeasure,
    PairRow,
    ShrinkageEstimate,
    Verdict,
)
from isolux.statements.choice import StatementChoice
from isolux.statements.leading import list_established_worse_or_better
from isolux.statements.metric_lines import MetricLine, MetricLineKey, to_line_key
from isolux.statements.text import Statement

_OF_ATTRIBUTE = {
    "omnibus_test": "omnibus_test",
    "noise_corrected_sd": "tau",
    "standard_deviation": "standard_deviation",
    "range": "range",
    "ratio_min_max": "ratio",
    "epsilon": "epsilon",
    "mean_absolute_gap": "mean_gap",
    "max_difference_bound": "max_difference_bound",
}
_OF_PAIRS = ("difference", "ratio", "log_ratio", "difference_to_overall")


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What every section needs: the lines, the words for attributes, and the level of the test."""

    lines: Mapping[MetricLineKey, MetricLine]
    terms: Mapping[str, str]
    alpha: float
    referenced: frozenset[str] = frozenset()
    target: str = ""

    def format_attribute_title(self, attribute: str) -> str:
        """Say an attribute or intersection in the dataset's own terms."""
        return " × ".join(
            self._format_single_attribute_title(attribute_name)
            for attribute_name in split_intersection(attribute)
        )

    def _format_single_attribute_title(self, attribute_name: str) -> str:
        base_name = attribute_name.removesuffix(KNOWN_SUFFIX)
        return (
            self.terms.get(base_name, base_name.replace("_", " "))
            + attribute_name[len(base_name) :]
        )


def to_estimate(group_metrics_row: Mapping[str, Any]) -> Estimate:
    """Take the estimate out of a row of group_metrics."""
    field_names = ("value", "low", "high", "n_units", "n_clusters", "status", "reason", "method")
    return Estimate(
        **{name: group_metrics_row[name] for name in field_names},
        n_effective=group_metrics_row.get("n_effective"),
    )


def build_attribute_sections(
    group_metrics: pl.DataFrame,
    disparities: pl.DataFrame,
    context: ReportContext,
    choice: StatementChoice,
) -> tuple[AttributeSection, ...]:
    """Return a section for each attribute, in the order in which they were asked for."""
    groups = group_rows_by_line_key(group_metrics, "attribute")
    kind_column = pl.col("kind")
    indexed_tables = _IndexedTables(
        groups=groups,
        to_overall=group_rows_by_line_key(
            disparities.filter(kind_column == "difference_to_overall"), "attribute"
        ),
        spreads=group_rows_by_line_key(
            disparities.filter(kind_column.is_in(list(_OF_ATTRIBUTE))), "attribute"
        ),
        pairs=select_largest_differences_by_block(disparities),
        counts=count_differences_by_block(disparities),
        named=_read_unlisted_measures_by_attribute(disparities, context),
        marks={
            (to_line_key(row), row["attribute"], row["group"]): row["is_worse"]
            for row in list_established_worse_or_better(choice.comparisons).iter_rows(named=True)
        },
        leaders={(to_line_key(s.row), s.attribute): s for s in choice.leaders if s.row["is_known"]},
    )
    attributes = group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    return tuple(
        _build_attribute_section(attribute, f"attribute-{i}", indexed_tables, context)
        for i, attribute in enumerate(attributes, start=1)
    )


@dataclass(frozen=True, slots=True)
class _IndexedTables:
    groups: RowsByKey
    to_overall: RowsByKey
    spreads: RowsByKey
    pairs: RowsByKey
    counts: Mapping[tuple[Any, ...], int]
    named: Mapping[str, tuple[NamedMeasure, ...]]
    marks: Mapping[tuple[MetricLineKey, str, str], bool]
    leaders: Mapping[tuple[MetricLineKey, str], Statement]


def _to_block_key(line_key: MetricLineKey, attribute: str) -> tuple[Any, ...]:
    model, task, metric, _, threshold = line_key
    return (model, task, metric, threshold, attribute)


def _read_unlisted_measures_by_attribute(
    disparities: pl.DataFrame, context: ReportContext
) -> dict[str, tuple[NamedMeasure, ...]]:
    # Whatever kind this file does not know by name is still shown, never dropped.
    known_kinds = [*_OF_ATTRIBUTE, *_OF_PAIRS]
    rows = disparities.filter(
        ~pl.col("kind").is_in(known_kinds) & pl.col("attribute").is_not_null()
    )
    measures: dict[str, tuple[NamedMeasure, ...]] = {}
    for row in rows.iter_rows(named=True):
        line = context.lines.get(to_line_key(row))
        metric_phrase = line.phrase if line else str(row["metric"]).replace("_", " ")
        measure_info = disparity_measure_info(row["kind"])
        unit = "" if not measure_info.unit else line.unit if line else "fraction"
        measure = NamedMeasure(
            measure_info.title,
            measure_info.summary,
            metric_phrase,
            unit,
            row["value"],
            row["low"],
            row["high"],
        )
        measures[row["attribute"]] = (*measures.get(row["attribute"], ()), measure)
    return measures


def _build_attribute_section(
    attribute: str, anchor: str, indexed_tables: _IndexedTables, context: ReportContext
) -> AttributeSection:
    keys = [key for key in context.lines if (*key, attribute) in indexed_tables.groups]
    group_names = [row["group"] for row in indexed_tables.groups[(*keys[0], attribute)]]
    attributes = tuple(split_intersection(attribute))
    is_ordinal = len(attributes) == 1 and sort_names_if_ordinal(group_names) is not None
    tables = {
        key: _build_line_table(key, attribute, indexed_tables, context, is_ordinal=is_ordinal)
        for key in keys
    }
    blocks: dict[tuple[Any, ...], list[MetricLineKey]] = {}
    for key in keys:
        blocks.setdefault(_to_block_key(key, attribute), []).append(key)
    return AttributeSection(
        attribute=attribute,
        attributes=attributes,
        title=context.format_attribute_title(attribute),
        anchor=anchor,
        ordered=is_ordinal,
        oriented=attribute not in context.referenced,
        verdict=_build_attribute_verdict(attribute, anchor, tables, indexed_tables, context),
        blocks=tuple(
            _build_block(block, [tables[key] for key in block_keys], indexed_tables)
            for block, block_keys in blocks.items()
        ),
        measures=indexed_tables.named.get(attribute, ()),
        lead=_to_leading_pair_row(indexed_tables.leaders.get((keys[0], attribute))),
    )


def _build_block(
    block_key: tuple[Any, ...], tables: Sequence[LineTable], indexed_tables: _IndexedTables
) -> Block:
    line = tables[0].line
    title = line.title if len(tables) == 1 else line.title.replace(line.class_suffix, "", 1)
    return Block(
        title=title,
        definition=line.definition,
        tables=tuple(tables),
        pairs=tuple(_to_pair_row(row) for row in indexed_tables.pairs.get(block_key, ())),
        n_pairs=indexed_tables.counts.get(block_key, 0),
    )


def _to_pair_row(difference_row: Mapping[str, Any]) -> PairRow:
    return PairRow(**{field.name: difference_row[field.name] for field in fields(PairRow)})


def _to_leading_pair_row(leader: Statement | None) -> PairRow | None:
    """Lay out the leading comparison of two groups as a pair; None where everyone is compared."""
    if leader is None or not leader.is_pair:
        return None
    row = leader.row
    low, high = leader.bounds
    return PairRow(
        label=row["label"],
        group_a=row["group"],
        group_b=row["reference"],
        value=row["gap"],
        low=low,
        high=high,
        ratio=None,
        p_adjusted=row["p_adjusted"],
        detectable=None,
        n_units_a=row["n_units"],
        n_units_b=row["n_units_of_reference"],
        status=row["status"],
        reason=row["reason"],
    )


def sort_names_if_ordinal(names: Sequence[str]) -> list[str] | None:
    """Return the values in their natural order (ages, bins); None where they have none.

    Examples
    --------
    >>> sort_names_if_ordinal(["70+", "3-9"]), sort_names_if_ordinal(["White", "Black"])
    (['3-9', '70+'], None)
    """
    # Sizes decide only where numbers do not: an order that ignores them is the values' own.
    ascending_ranks = {name: rank for rank, name in enumerate(names)}
    descending_ranks = {name: -rank for rank, name in enumerate(names)}
    order = sort_groups_for_display(names, ascending_ranks)
    return (
        order
        if len(names) > 1 and order == sort_groups_for_display(names, descending_ranks)
        else None
    )


def _build_line_table(
    key: MetricLineKey,
    attribute: str,
    indexed_tables: _IndexedTables,
    context: ReportContext,
    *,
    is_ordinal: bool,
) -> LineTable:
    line = context.lines[key]
    differences = {
        row["group_a"]: row for row in indexed_tables.to_overall.get((*key, attribute), ())
    }
    rows = []
    for row in indexed_tables.groups[(*key, attribute)]:
        group_row = _build_group_row(row, differences.get(row["group"]))
        is_worse = indexed_tables.marks.get((key, attribute, group_row.group))
        rows.append(replace(group_row, mark=_format_difference_mark(group_row, line, is_worse)))
    overall_rows = indexed_tables.groups.get((*key, None))
    return LineTable(
        line=line,
        overall=to_estimate(overall_rows[0]) if overall_rows else None,
        rows=tuple(_sort_group_rows(rows, line, is_ordinal=is_ordinal)),
        spread=_build_disparity_summary(indexed_tables.spreads.get((*key, attribute), ())),
    )


def _format_difference_mark(group_row: GroupRow, line: MetricLine, is_worse: bool | None) -> str:
    """Say in a word which way a group is established to differ; ``~``: in none."""
    if not group_row.estimate.is_comparable:
        return ""
    if is_worse is None:
        return "~"
    if line.direction == "none":
        return "lower" if is_worse else "higher"
    return "worse" if is_worse else "better"


def _build_group_row(
    group_metrics_row: Mapping[str, Any], overall_difference: Mapping[str, Any] | None
) -> GroupRow:
    difference_row = overall_difference or {}
    return GroupRow(
        group=group_metrics_row["group"],
        values=tuple(group_metrics_row["values"]),
        estimate=to_estimate(group_metrics_row),
        difference=difference_row.get("value"),
        difference_low=difference_row.get("low"),
        difference_high=difference_row.get("high"),
        p_adjusted=difference_row.get("p_adjusted"),
        shrunken=_read_shrinkage_estimate(group_metrics_row),
    )


def _read_shrinkage_estimate(group_metrics_row: Mapping[str, Any]) -> ShrinkageEstimate | None:
    if group_metrics_row.get("shrunken") is None:
        return None
    return ShrinkageEstimate(
        group_metrics_row["shrunken"],
        group_metrics_row["shrunken_low"],
        group_metrics_row["shrunken_high"],
        group_metrics_row["shrunken_from"],
    )


def _sort_group_rows(
    group_rows: Sequence[GroupRow], line: MetricLine, *, is_ordinal: bool
) -> list[GroupRow]:
    if is_ordinal:
        rank_by_name = {
            name: i
            for i, name in enumerate(sort_groups_for_display([row.group for row in group_rows]))
        }
        return sorted(group_rows, key=lambda row: rank_by_name[row.group])
    sign = -1.0 if line.direction == "lower" else 1.0
    return sorted(
        group_rows,
        key=lambda row: (
            row.estimate.value is None,
            UNKNOWN in row.values,
            sign * (row.estimate.value or 0.0),
            row.group,
        ),
    )


def _build_disparity_summary(measure_rows: Sequence[Mapping[str, Any]]) -> DisparitySummary:
    rows_by_measure = {_OF_ATTRIBUTE[row["kind"]]: row for row in measure_rows}
    test_row: Mapping[str, Any] = rows_by_measure.get("omnibus_test", {})
    tau_row: Mapping[str, Any] = rows_by_measure.get("tau", {})

    def read_measure_value(measure: str) -> float | None:
        return rows_by_measure[measure]["value"] if measure in rows_by_measure else None

    range_row: Mapping[str, Any] = rows_by_measure.get("range", {})
    equivalence_row: Mapping[str, Any] = rows_by_measure.get("max_difference_bound", {})
    # Where intervals may be too narrow nothing is said of how far apart groups are at most.
    equivalence_row = equivalence_row if equivalence_row.get("status") == "ok" else {}
    return DisparitySummary(
        p_adjusted=test_row.get("p_adjusted"),
        test=test_row.get("test"),
        status=test_row.get("status", "not scored"),
        reason=test_row.get("reason"),
        tau=tau_row.get("value"),
        tau_low=tau_row.get("low"),
        tau_high=tau_row.get("high"),
        standard_deviation=read_measure_value("standard_deviation"),
        range=read_measure_value("range"),
        range_low=range_row.get("low"),
        range_high=range_row.get("high"),
        ratio=read_measure_value("ratio"),
        epsilon=read_measure_value("epsilon"),
        mean_gap=read_measure_value("mean_gap"),
        at_most=equivalence_row.get("high"),
        within_p=equivalence_row.get("p_adjusted"),
    )


def _build_attribute_verdict(
    attribute: str,
    anchor: str,
    tables: Mapping[MetricLineKey, LineTable],
    indexed_tables: _IndexedTables,
    context: ReportContext,
) -> Verdict:
    (key, main), *other_tables = tables.items()
    line_of = {id(table): line_key for line_key, table in tables.items()}
    comparable_rows = [row for row in main.rows if row.estimate.is_comparable]
    # People whose value is unknown are not a group that a model can serve worst.
    known_rows = [row for row in comparable_rows if UNKNOWN not in row.values] or comparable_rows
    sign = -1.0 if main.line.direction == "lower" else 1.0
    ranked = sorted(known_rows, key=lambda row: sign * (row.estimate.value or 0.0))
    p = main.spread.p_adjusted
    return Verdict(
        attribute=attribute,
        title=context.format_attribute_title(attribute),
        anchor=anchor,
        line=main.line,
        outcome="differ"
        if (key, attribute) in indexed_tables.leaders
        else "not judged"
        if p is None
        else "no difference found",
        spread=main.spread,
        worst=ranked[0] if len(ranked) > 1 else None,
        best=ranked[-1] if len(ranked) > 1 else None,
        n_judged=len(comparable_rows),
        n_groups=len(main.rows),
        also=tuple(
            table.line.phrase
            for table in _drop_complement_tables([main, *(table for _, table in other_tables)])[1:]
            if (line_of[id(table)], attribute) in indexed_tables.leaders
        ),
        other_metrics=tuple(
            table.line.phrase
            for _, table in other_tables
            if sum(row.estimate.is_comparable for row in table.rows) > 1
        ),
    )


def _drop_complement_tables(tables: Sequence[LineTable]) -> list[LineTable]:
    """Leave out lines that repeat an earlier one: people missed after people found."""
    seen_values: set[tuple[float, ...]] = set()
    kept_tables = []
    for table in tables:
        sorted_rows = sorted(table.rows, key=lambda row: row.group)
        values = [row.estimate.value for row in sorted_rows if row.estimate.value is not None]
        has_only_proportions = len(values) > 1 and all(0 <= number <= 1 for number in values)
        if has_only_proportions and tuple(round(1 - number, 9) for number in values) in seen_values:
            continue
        seen_values.add(tuple(round(number, 9) for number in values))
        kept_tables.append(table)
    return kept_tables
