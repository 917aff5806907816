"""Which comparisons an audit states, as data: one fact once, in reading order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.formatting import UNTESTED
from isolux.core.spec import split_intersection
from isolux.statements.groups import read_group_phrases
from isolux.statements.leading import (
    BLOCK_COLUMNS,
    list_other_worse_groups,
    orient_comparisons_worse_first,
    select_leading_comparisons,
)
from isolux.statements.metric_lines import MetricLine, read_metric_lines, to_line_key
from isolux.statements.run_terms import read_display_terms
from isolux.statements.text import DisplayNames, Statement


@dataclass(frozen=True, slots=True)
class StatementChoice:
    """The comparisons that an audit states, as data.

    Parameters
    ----------
    names : DisplayNames
        What the run calls things.
    main : Line or None
        The measure asked for first; None: nothing was measured.
    leaders : tuple of Statement
        The comparison that leads each metric, class and attribute in which something is
        established.
    stated : tuple of Statement
        One fact each, in reading order: the leading measure's, then other measures', whole before
        classes; those about people whose value is unknown last.
    rivals : tuple of Statement
        Other groups of the leading attribute: established ones, and such as look worse.
    untested : tuple of Statement
        Groups that are apart though nothing varies within either, as measures were asked, then
        widest first: no test is made.
    unestablished : Mapping of str to (Line, tuple of str)
        Metrics by name of which nothing is established for some attributes, and these attributes.
    comparisons : polars.DataFrame
        Of ``orient_comparisons_worse_first``.
    """

    names: DisplayNames
    main: MetricLine | None
    leaders: tuple[Statement, ...]
    stated: tuple[Statement, ...]
    rivals: tuple[Statement, ...]
    untested: tuple[Statement, ...]
    unestablished: Mapping[str, tuple[MetricLine, tuple[str, ...]]]
    comparisons: pl.DataFrame = field(default_factory=pl.DataFrame)

    def find_leader(self, line: MetricLine, attribute: str) -> Statement | None:
        """Return the comparison of known groups that leads an attribute on a line, if any does."""
        key = (line.model, line.metric, line.label, line.threshold)
        for s in self.leaders:
            statement_key = (s.line.model, s.line.metric, s.line.label, s.line.threshold)
            if statement_key == key and s.attribute == attribute and s.row["is_known"]:
                return s
        return None


def choose_statements(run: Run) -> StatementChoice:
    """Choose what an audit states, one fact once, in reading order."""
    words = read_display_terms(run)
    lines = read_metric_lines(run.group_metrics, run.record, run.disparities)
    names = DisplayNames(words, lines, read_group_phrases(run))
    lower = {line.metric for line in lines.values() if line.direction == "lower"}
    comparisons = orient_comparisons_worse_first(
        run.disparities, run.group_metrics, 1.0 - words.level, lower
    )
    main = next(iter(lines.values()), None)
    leaders = [
        Statement(lines[to_line_key(row)], row)
        for row in select_leading_comparisons(comparisons).iter_rows(named=True)
        if to_line_key(row) in lines
    ]
    ordered = _sort_statements_by_metric(leaders, lines)
    stated = _merge_statements_of_same_fact(ordered)
    opposite = (
        find_leader_of_opposite_error(leaders, stated[0]) if stated else None
    )  # the first sentence says it
    stated = [s for s in stated if s is not opposite]
    rivals: tuple[Statement, ...] = ()
    if stated and stated[0].is_pair and stated[0].row["is_known"]:
        rows = list_other_worse_groups(comparisons, stated[0].row).iter_rows(named=True)
        rivals = tuple(Statement(stated[0].line, row) for row in rows)
    return StatementChoice(
        names,
        main,
        tuple(leaders),
        tuple(stated),
        rivals,
        _build_untested_statements(comparisons, lines),
        _find_metrics_without_findings(run, leaders, lines),
        comparisons,
    )


def _build_untested_statements(
    comparisons: pl.DataFrame, lines: Mapping[Any, MetricLine]
) -> tuple[Statement, ...]:
    """Find known groups that are apart though nothing varies within either, one fact once."""
    rows = comparisons.filter("is_pair", "is_known", pl.col("reason") == UNTESTED)
    widest = rows.sort(pl.col("gap").abs(), descending=True, maintain_order=True)
    line_order = {key: i for i, key in enumerate(lines)}
    untested_rows = [row for row in widest.iter_rows(named=True) if to_line_key(row) in line_order]
    untested_rows.sort(key=lambda row: line_order[to_line_key(row)])
    return tuple(
        _merge_statements_of_same_fact(
            [Statement(lines[to_line_key(row)], row) for row in untested_rows]
        )
    )


def _sort_statements_by_metric(
    leaders: Sequence[Statement], lines: Mapping[Any, MetricLine]
) -> list[Statement]:
    """Sort statements: by metric as asked, whole before classes; within one, who is worst."""
    line_order = {id(line): i for i, line in enumerate(lines.values())}
    metrics = list(dict.fromkeys(line.metric for line in lines.values()))

    def sort_key(s: Statement) -> tuple[Any, ...]:
        is_class = s.line.label is not None
        worst = s.row["worst"] if not is_class else -s.row["near_end"]
        return (
            not s.row["is_known"],
            is_class and any(line.label is None for line in lines.values()),
            metrics.index(s.line.metric),
            not s.row["is_pair"],
            bool(s.row["is_covered"]),
            0 if is_class else line_order[id(s.line)],
            float("inf") if worst is None else worst,
            s.attribute,
        )

    return sorted(leaders, key=sort_key)


def _merge_statements_of_same_fact(ordered: Sequence[Statement]) -> list[Statement]:
    """Keep the first statement of each fact, and name in it what else shows the same."""
    stated: list[Statement] = []
    by_group: dict[tuple[Any, ...], int] = {}
    by_class: dict[tuple[Any, ...], int] = {}
    by_people: dict[tuple[Any, ...], int] = {}
    for s in ordered:
        is_directed = s.line.direction != "none"
        error_type = s.error_type if is_directed else s.line.metric
        group = (
            s.line.model,
            s.attribute,
            s.row["group"],
            is_directed,
            s.row["is_better"],
            error_type,
        )
        classes = (s.line.model, s.line.metric, s.line.threshold, s.attribute, s.row["is_known"])
        people = (
            s.line.model,
            s.row["n_units"],
            s.row["n_units_of_reference"],
            round(abs(s.row["gap"]), 12),
        )
        index = by_group.get(group)
        if index is None and s.line.label is not None:
            index = by_class.get(classes)
            if index is not None:
                stated[index].n_classes += 1
                continue
        if index is None:
            index = by_people.get(people)
        if index is not None:
            if stated[index].line is not s.line:
                stated[index].other_measures.append(s.line.phrase)
            continue
        for index_by_key, key in ((by_group, group), (by_people, people)):
            index_by_key[key] = len(stated)
        if s.line.label is not None:
            by_class[classes] = len(stated)
        stated.append(s)
    return stated


def _find_metrics_without_findings(
    run: Run, leaders: Sequence[Statement], lines: Mapping[Any, MetricLine]
) -> dict[str, tuple[MetricLine, tuple[str, ...]]]:
    """Find, for each metric, the attributes by which nothing is established in any class."""
    tested = run.disparities.filter(kind="difference").drop_nulls("p_adjusted")
    blocks = tested.select(BLOCK_COLUMNS).unique(maintain_order=True)
    established = {(s.line.metric, s.attribute) for s in leaders if s.row["is_known"]}
    unestablished: dict[str, tuple[MetricLine, tuple[str, ...]]] = {}
    by_metric: dict[str, list[str]] = {}
    main_metric = next((line.metric for line in lines.values()), None)
    for row in blocks.iter_rows(named=True):
        if (row["metric"], row["attribute"]) not in established:
            by_metric.setdefault(row["metric"], []).append(row["attribute"])
    for line in lines.values():
        attributes = dict.fromkeys(by_metric.get(line.metric, ()))
        single_attributes = [a for a in attributes if len(split_intersection(a)) == 1]
        # Of single classes that nobody named, intersections would say this of every small cell.
        is_asked = line.label is None or line.metric == main_metric
        shown = tuple(single_attributes or (attributes if is_asked else ()))
        if shown and line.metric not in unestablished:
            unestablished[line.metric] = line, shown
    return unestablished


def find_leader_of_opposite_error(
    leaders: Sequence[Statement], leader: Statement
) -> Statement | None:
    """Find the leader of the other kind of error, if another group has more of it."""
    rows = [
        s
        for s in leaders
        if leader.line.opposite
        and s.line.metric == leader.line.opposite
        and s.row["is_known"]
        and s.attribute == leader.attribute
        and s.line.model == leader.line.model
    ]
    candidate = next(iter(rows), None)
    return (
        candidate
        if candidate is not None and candidate.row["group"] != leader.row["group"]
        else None
    )
