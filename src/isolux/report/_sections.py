"""One section for each attribute: its groups, pairs, spread and verdict, for every line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import polars as pl

from isolux.disparity.measure_registry import describe_disparity_kind
from isolux.groups import sort_for_display
from isolux.groups.unknown_values import KNOWN_SUFFIX, UNKNOWN
from isolux.report._extra_figures import Rows, count_pairs, find_largest_pairs, index_rows
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
from isolux.statements.choice import Choice
from isolux.statements.leading import list_established_groups
from isolux.statements.metric_lines import Line, LineKey, line_key
from isolux.statements.text import Statement
from isolux.vocabulary.spec import split_intersection

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
class Context:
    """What every section needs: the lines, the words for attributes, and the level of the test."""

    lines: Mapping[LineKey, Line]
    terms: Mapping[str, str]
    alpha: float
    referenced: frozenset[str] = frozenset()
    target: str = ""

    def title(self, attribute: str) -> str:
        """Say an attribute or intersection in the dataset's own terms."""
        return " × ".join(
            self._format_attribute(attribute_name)
            for attribute_name in split_intersection(attribute)
        )

    def _format_attribute(self, attribute_name: str) -> str:
        base_name = attribute_name.removesuffix(KNOWN_SUFFIX)
        return (
            self.terms.get(base_name, base_name.replace("_", " "))
            + attribute_name[len(base_name) :]
        )


def to_estimate(row: Mapping[str, Any]) -> Estimate:
    """Take the estimate out of a row of group_metrics."""
    names = ("value", "low", "high", "n_units", "n_clusters", "status", "reason", "method")
    return Estimate(**{name: row[name] for name in names}, n_effective=row.get("n_effective"))


def build_sections(
    group_metrics: pl.DataFrame, disparities: pl.DataFrame, context: Context, choice: Choice
) -> tuple[AttributeSection, ...]:
    """Return a section for each attribute, in the order in which they were asked for."""
    groups = index_rows(group_metrics, "attribute")
    kind_column = pl.col("kind")
    indexed_tables = _IndexedTables(
        groups=groups,
        to_overall=index_rows(
            disparities.filter(kind_column == "difference_to_overall"), "attribute"
        ),
        spreads=index_rows(disparities.filter(kind_column.is_in(list(_OF_ATTRIBUTE))), "attribute"),
        pairs=find_largest_pairs(disparities),
        counts=count_pairs(disparities),
        named=_read_named_measures(disparities, context),
        marks={
            (line_key(row), row["attribute"], row["group"]): row["is_worse"]
            for row in list_established_groups(choice.comparisons).iter_rows(named=True)
        },
        leaders={(line_key(s.row), s.attribute): s for s in choice.leaders if s.row["is_known"]},
    )
    attributes = group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    return tuple(
        _section(attribute, f"attribute-{i}", indexed_tables, context)
        for i, attribute in enumerate(attributes, start=1)
    )


@dataclass(frozen=True, slots=True)
class _IndexedTables:
    groups: Rows
    to_overall: Rows
    spreads: Rows
    pairs: Rows
    counts: Mapping[tuple[Any, ...], int]
    named: Mapping[str, tuple[NamedMeasure, ...]]
    marks: Mapping[tuple[LineKey, str, str], bool]
    leaders: Mapping[tuple[LineKey, str], Statement]


def _block_key(line: LineKey, attribute: str) -> tuple[Any, ...]:
    model, task, metric, _, threshold = line
    return (model, task, metric, threshold, attribute)


def _read_named_measures(
    disparities: pl.DataFrame, context: Context
) -> dict[str, tuple[NamedMeasure, ...]]:
    # Whatever kind this file does not know by name is still shown, never dropped.
    known_kinds = [*_OF_ATTRIBUTE, *_OF_PAIRS]
    rows = disparities.filter(
        ~pl.col("kind").is_in(known_kinds) & pl.col("attribute").is_not_null()
    )
    measures: dict[str, tuple[NamedMeasure, ...]] = {}
    for row in rows.iter_rows(named=True):
        line = context.lines.get(line_key(row))
        metric_phrase = line.phrase if line else str(row["metric"]).replace("_", " ")
        measure_info = describe_disparity_kind(row["kind"])
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


def _section(
    attribute: str, anchor: str, indexed_tables: _IndexedTables, context: Context
) -> AttributeSection:
    keys = [key for key in context.lines if (*key, attribute) in indexed_tables.groups]
    values = [row["group"] for row in indexed_tables.groups[(*keys[0], attribute)]]
    attributes = tuple(split_intersection(attribute))
    ordered = len(attributes) == 1 and arrange_names(values) is not None
    tables = {
        key: _line_table(key, attribute, indexed_tables, context, ordered=ordered) for key in keys
    }
    blocks: dict[tuple[Any, ...], list[LineKey]] = {}
    for key in keys:
        blocks.setdefault(_block_key(key, attribute), []).append(key)
    return AttributeSection(
        attribute=attribute,
        attributes=attributes,
        title=context.title(attribute),
        anchor=anchor,
        ordered=ordered,
        oriented=attribute not in context.referenced,
        verdict=_build_verdict(attribute, anchor, tables, indexed_tables, context),
        blocks=tuple(
            _block(block, [tables[key] for key in members], indexed_tables)
            for block, members in blocks.items()
        ),
        measures=indexed_tables.named.get(attribute, ()),
        lead=_leading_pair(indexed_tables.leaders.get((keys[0], attribute))),
    )


def _block(
    key: tuple[Any, ...], tables: Sequence[LineTable], indexed_tables: _IndexedTables
) -> Block:
    line = tables[0].line
    title = line.title if len(tables) == 1 else line.title.replace(line.class_suffix, "", 1)
    return Block(
        title=title,
        definition=line.definition,
        tables=tuple(tables),
        pairs=tuple(_pair(row) for row in indexed_tables.pairs.get(key, ())),
        n_pairs=indexed_tables.counts.get(key, 0),
    )


def _pair(row: Mapping[str, Any]) -> PairRow:
    return PairRow(**{field.name: row[field.name] for field in fields(PairRow)})


def _leading_pair(statement: Statement | None) -> PairRow | None:
    """Lay out the leading comparison of two groups as a pair; None where everyone is compared."""
    if statement is None or not statement.is_pair:
        return None
    row = statement.row
    low, high = statement.bounds
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


def arrange_names(values: Sequence[str]) -> list[str] | None:
    """Return the values in their natural order (ages, bins); None where they have none.

    Examples
    --------
    >>> arrange_names(["70+", "3-9"]), arrange_names(["White", "Black"])
    (['3-9', '70+'], None)
    """
    # Sizes decide only where numbers do not: an order that ignores them is the values' own.
    rising = {name: rank for rank, name in enumerate(values)}
    falling = {name: -rank for rank, name in enumerate(values)}
    order = sort_for_display(values, rising)
    return order if len(values) > 1 and order == sort_for_display(values, falling) else None


def _line_table(
    key: LineKey, attribute: str, indexed_tables: _IndexedTables, context: Context, *, ordered: bool
) -> LineTable:
    line = context.lines[key]
    differences = {
        row["group_a"]: row for row in indexed_tables.to_overall.get((*key, attribute), ())
    }
    rows = []
    for row in indexed_tables.groups[(*key, attribute)]:
        group = _group_row(row, differences.get(row["group"]))
        is_worse = indexed_tables.marks.get((key, attribute, group.group))
        rows.append(replace(group, mark=_mark_group(group, line, is_worse)))
    overall = indexed_tables.groups.get((*key, None))
    return LineTable(
        line=line,
        overall=to_estimate(overall[0]) if overall else None,
        rows=tuple(_arrange_rows(rows, line, ordered=ordered)),
        spread=_summarise_disparity(indexed_tables.spreads.get((*key, attribute), ())),
    )


def _mark_group(row: GroupRow, line: Line, is_worse: bool | None) -> str:
    """Say in a word which way a group is established to differ; ``~``: in none."""
    if not row.estimate.is_comparable:
        return ""
    if is_worse is None:
        return "~"
    if line.direction == "none":
        return "lower" if is_worse else "higher"
    return "worse" if is_worse else "better"


def _group_row(row: Mapping[str, Any], to_overall: Mapping[str, Any] | None) -> GroupRow:
    difference_row = to_overall or {}
    return GroupRow(
        group=row["group"],
        values=tuple(row["values"]),
        estimate=to_estimate(row),
        difference=difference_row.get("value"),
        difference_low=difference_row.get("low"),
        difference_high=difference_row.get("high"),
        p_adjusted=difference_row.get("p_adjusted"),
        shrunken=_shrunken(row),
    )


def _shrunken(row: Mapping[str, Any]) -> ShrinkageEstimate | None:
    if row.get("shrunken") is None:
        return None
    return ShrinkageEstimate(
        row["shrunken"], row["shrunken_low"], row["shrunken_high"], row["shrunken_from"]
    )


def _arrange_rows(rows: Sequence[GroupRow], line: Line, *, ordered: bool) -> list[GroupRow]:
    if ordered:
        rank_by_name = {
            name: i for i, name in enumerate(sort_for_display([row.group for row in rows]))
        }
        return sorted(rows, key=lambda row: rank_by_name[row.group])
    sign = -1.0 if line.direction == "lower" else 1.0
    return sorted(
        rows,
        key=lambda row: (
            row.estimate.value is None,
            UNKNOWN in row.values,
            sign * (row.estimate.value or 0.0),
            row.group,
        ),
    )


def _summarise_disparity(rows: Sequence[Mapping[str, Any]]) -> DisparitySummary:
    rows_by_measure = {_OF_ATTRIBUTE[row["kind"]]: row for row in rows}
    test: Mapping[str, Any] = rows_by_measure.get("omnibus_test", {})
    tau: Mapping[str, Any] = rows_by_measure.get("tau", {})

    def get_value(measure: str) -> float | None:
        return rows_by_measure[measure]["value"] if measure in rows_by_measure else None

    widest: Mapping[str, Any] = rows_by_measure.get("range", {})
    equivalence_row: Mapping[str, Any] = rows_by_measure.get("max_difference_bound", {})
    # Where intervals may be too narrow nothing is said of how far apart groups are at most.
    equivalence_row = equivalence_row if equivalence_row.get("status") == "ok" else {}
    return DisparitySummary(
        p_adjusted=test.get("p_adjusted"),
        test=test.get("test"),
        status=test.get("status", "not scored"),
        reason=test.get("reason"),
        tau=tau.get("value"),
        tau_low=tau.get("low"),
        tau_high=tau.get("high"),
        standard_deviation=get_value("standard_deviation"),
        range=get_value("range"),
        range_low=widest.get("low"),
        range_high=widest.get("high"),
        ratio=get_value("ratio"),
        epsilon=get_value("epsilon"),
        mean_gap=get_value("mean_gap"),
        at_most=equivalence_row.get("high"),
        within_p=equivalence_row.get("p_adjusted"),
    )


def _build_verdict(
    attribute: str,
    anchor: str,
    tables: Mapping[LineKey, LineTable],
    indexed_tables: _IndexedTables,
    context: Context,
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
        title=context.title(attribute),
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
            for table in _drop_repeated_lines([main, *(table for _, table in other_tables)])[1:]
            if (line_of[id(table)], attribute) in indexed_tables.leaders
        ),
        other_metrics=tuple(
            table.line.phrase
            for _, table in other_tables
            if sum(row.estimate.is_comparable for row in table.rows) > 1
        ),
    )


def _drop_repeated_lines(tables: Sequence[LineTable]) -> list[LineTable]:
    """Leave out lines that repeat an earlier one: people missed after people found."""
    seen_values: set[tuple[float, ...]] = set()
    kept_tables = []
    for table in tables:
        rows = sorted(table.rows, key=lambda row: row.group)
        values = [row.estimate.value for row in rows if row.estimate.value is not None]
        shares = len(values) > 1 and all(0 <= number <= 1 for number in values)
        if shares and tuple(round(1 - number, 9) for number in values) in seen_values:
            continue
        seen_values.add(tuple(round(number, 9) for number in values))
        kept_tables.append(table)
    return kept_tables
