"""Two models on the same people as one typed document: who gained, who lost, which gaps closed.

The counterpart of ``summary`` for a run that ``isolux compare`` made: its ``disparities`` are the
table of comparisons (second model less first), its ``group_metrics`` hold both models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from isolux.groups.unknown import UNKNOWN
from isolux.report._lines import LineKey, key_of, lines_of
from isolux.report._sections import arranged_names
from isolux.report.comparison.classes import ClassTable, class_tables
from isolux.report.document import Audited, Line, Summary
from isolux.report.summary import summarise_record
from isolux.report.undetected import undetected_of_two
from isolux.report.wording import listed
from isolux.statements.numbers import interval, p_equals, points
from isolux.vocabulary.containers import Run
from isolux.vocabulary.words import brief

__all__ = [
    "Change",
    "ChangeSection",
    "ChangeTable",
    "ComparisonSummary",
    "is_comparison",
    "summarise_comparison",
]

Way = Literal["gained", "lost", "higher", "lower", "no change found", "not judged"]
CHANGES_SHOWN = 60
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
    detectable: float | None
    status: str
    reason: str | None
    way: Way


@dataclass(frozen=True, slots=True)
class UnlikeChanges:
    """Two groups of which one was found to fare better: ``worse``'s change less ``better``'s."""

    worse: str
    better: str
    difference: float
    low: float | None
    high: float | None
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """One line of one attribute: everyone's change, each group's, and the widest gap's.

    ``unlike``: pairs whose changes were found to differ, the surest first.
    """

    line: Line
    everyone: Change | None
    rows: tuple[Change, ...]
    unlike: tuple[UnlikeChanges, ...]
    gap: float | None
    gap_low: float | None
    gap_high: float | None


@dataclass(frozen=True, slots=True)
class ChangeSection:
    """One attribute; its first table is of the main metric.

    ``classes`` are the largest changes of single classes where there are too many to print whole.
    """

    attribute: str
    title: str
    anchor: str
    tables: tuple[ChangeTable, ...]
    classes: tuple[tuple[Line, Change], ...]
    n_classes: int

    @property
    def n_changed(self) -> int:
        """How many groups are shown to have changed on the main metric."""
        told = {"gained", "lost", "higher", "lower"}
        return sum(row.way in told for table in self.tables[:1] for row in table.rows)


@dataclass(frozen=True, slots=True)
class ComparisonSummary:
    """A whole report of two models; ``base`` holds what it shares with an audit's."""

    title: str
    answer: str
    models: tuple[str, str]
    base: Summary
    overall: tuple[ChangeTable, ...]
    sections: tuple[ChangeSection, ...]
    classes: tuple[ClassTable, ...]

    @property
    def audited(self) -> Audited:
        """What was audited."""
        return self.base.audited


def is_comparison(run: Run) -> bool:
    """Tell whether a run compares two models."""
    return "model_a" in run.disparities.columns


def summarise_comparison(run: Run) -> ComparisonSummary:
    """Arrange a comparison's tables as the document that its report prints.

    Parameters
    ----------
    run : Run
        ``disparities`` is the table of comparisons, ``record["models"]`` names the two models.
    """
    first, second = models = _models(run)
    base, context = summarise_record(run, {"model": f"{first} and {second}"})
    lines = lines_of(run.group_metrics.filter(pl.col("model") == first), run.record)
    everything = _Tables.of(run, models, lines, base.audited.alpha)
    attributes = run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    sections = tuple(
        _section(attribute, context.title(attribute), f"attribute-{i}", everything)
        for i, attribute in enumerate(attributes, start=1)
    )
    undetected = undetected_of_two(run, models, next(iter(lines.values()), None))
    base = replace(base, cautions=(*base.cautions, *filter(None, [undetected])))
    everyone = [everything.table(line, None) for line in lines]
    overall = tuple(
        sorted(
            (table for table in everyone if table and table.everyone),
            key=lambda table: table.line.label is not None,
        )
    )
    return ComparisonSummary(
        title=f"{second} against {first}" + _on(base.audited),
        answer=_answer(models, overall, sections, base.audited),
        models=models,
        base=base,
        overall=overall,
        sections=tuple(s for s in sections if s.tables or s.classes),
        classes=class_tables(run, models, lines, context),
    )


def _section(attribute: str, title: str, anchor: str, everything: _Tables) -> ChangeSection:
    tables = [
        table
        for line in everything.lines
        if (table := everything.table(line, attribute)) is not None
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
    whole = tuple(table for table in tables if table.line.label is None)
    return ChangeSection(
        attribute, title, anchor, whole, tuple(changes[:CHANGES_SHOWN]), len(changes)
    )


def _on(audited: Audited) -> str:
    return f" on {audited.dataset}" if audited.dataset else ""


def _models(run: Run) -> tuple[str, str]:
    named = list(run.record.get("models") or ())
    if len(named) != 2 and run.disparities.height:
        named = list(run.disparities.select("model_a", "model_b").row(0))
    return (str(named[0]), str(named[1])) if len(named) == 2 else ("the first", "the second")


@dataclass(frozen=True, slots=True)
class _Tables:
    """The run's rows by line and attribute."""

    lines: Mapping[LineKey, Line]
    alpha: float
    values: Mapping[tuple[Any, ...], tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    groups: Mapping[tuple[Any, ...], list[str]]
    changes: Mapping[tuple[Any, ...], Mapping[str, Any]]
    gaps: Mapping[tuple[Any, ...], Mapping[str, Any]]
    pairs: Mapping[tuple[Any, ...], list[UnlikeChanges]]

    @classmethod
    def of(
        cls, run: Run, models: tuple[str, str], lines: Mapping[LineKey, Line], alpha: float
    ) -> _Tables:
        rows: dict[str, dict[tuple[Any, ...], Mapping[str, Any]]] = {m: {} for m in models}
        for row in run.group_metrics.iter_rows(named=True):
            if row["model"] in rows:
                rows[row["model"]][(*key_of(row)[1:], row["attribute"], row["group"])] = row
        groups: dict[tuple[Any, ...], list[str]] = {}
        for key in rows[models[0]]:
            groups.setdefault(key[:-1], []).append(key[-1])
        values = {key: (row, rows[models[1]].get(key)) for key, row in rows[models[0]].items()}
        return cls(
            lines,
            alpha,
            values,
            groups,
            _by_kind(run, "model_difference", "group_a"),
            _by_kind(run, "gap_difference"),
            _unlike(run, alpha),
        )

    def table(self, key: LineKey, attribute: str | None) -> ChangeTable | None:
        line, where = self.lines[key], (*key[1:], attribute)
        if where not in self.groups:
            return None
        changes = {group: self._change(line, (*where, group)) for group in self.groups[where]}
        gap = self.gaps.get(where, {})
        everyone = (*key[1:], None, "everyone")
        return ChangeTable(
            line=line,
            everyone=self._change(line, everyone) if everyone in self.values else None,
            rows=tuple(_arranged(changes)) if attribute is not None else (),
            unlike=tuple(self.pairs.get(where, ())),
            gap=gap.get("value"),
            gap_low=gap.get("low"),
            gap_high=gap.get("high"),
        )

    def _change(self, line: Line, key: tuple[Any, ...]) -> Change:
        first, second = self.values[key]
        found = self.changes.get(key)
        row: Mapping[str, Any] = found or {}
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
            detectable=row.get("detectable"),
            status=row.get("status", unjudged["status"]),
            reason=row.get("reason", unjudged["reason"]),
            way=_way(line, found, self.alpha),
        )


def _by_kind(run: Run, kind: str, *more: str) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    found = run.disparities.filter(pl.col("kind") == kind)
    names = ("task", "metric", "label", "threshold", "attribute", *more)
    return {tuple(row[n] for n in names): row for row in found.iter_rows(named=True)}


def _unlike(run: Run, alpha: float) -> dict[tuple[Any, ...], list[UnlikeChanges]]:
    """List the pairs whose changes were found to differ, known groups first, by line."""
    unknown = pl.any_horizontal(
        pl.col(f"group_{side}").str.contains(UNKNOWN, literal=True) for side in "ab"
    )
    sure = pl.col("p_adjusted") <= alpha
    found = run.disparities.filter(pl.col("kind") == "change_difference", sure)
    names = ("task", "metric", "label", "threshold", "attribute")
    listed: dict[tuple[Any, ...], list[UnlikeChanges]] = {}
    for row in found.sort(unknown, "p_value", maintain_order=True).iter_rows(named=True):
        listed.setdefault(tuple(row[n] for n in names), []).append(
            UnlikeChanges(
                row["group_a"], row["group_b"], row["value"], row["low"], row["high"],
                row["p_adjusted"],
            )
        )  # fmt: skip
    return listed


def _way(line: Line, row: Mapping[str, Any] | None, alpha: float) -> Way:
    if row is None or row["value"] is None or row["p_adjusted"] is None:
        return "not judged"
    if row["p_adjusted"] > alpha:
        return "no change found"
    if line.direction == "none":
        return "higher" if row["value"] > 0 else "lower"
    return "gained" if (row["value"] > 0) == (line.direction == "higher") else "lost"


def _arranged(changes: Mapping[str, Change]) -> list[Change]:
    order = arranged_names(list(changes))
    if order is not None:
        return [changes[name] for name in order]
    return sorted(
        changes.values(),
        key=lambda c: (c.difference is None, c.difference or 0.0, c.group),
    )


def _answer(
    models: tuple[str, str],
    overall: Sequence[ChangeTable],
    sections: Sequence[ChangeSection],
    audited: Audited,
) -> str:
    if not overall or overall[0].everyone is None:
        return "The two models have no metric in common."
    first, second = (brief(model) for model in models)
    main, everyone = overall[0].line, overall[0].everyone
    told = [_changed(f"{main.title} for everyone", everyone, main, (first, second), audited)]
    rows = [
        (f"{row.group}", row)
        for section in sections
        for table in section.tables[:1]
        for row in table.rows
    ]
    ways = {way: [name for name, row in rows if row.way == way] for way in ("gained", "lost")}
    judged = sum(row.way != "not judged" for _, row in rows)
    if judged and main.direction != "none":
        gained, lost = len(ways["gained"]), len(ways["lost"])
        who = f" ({listed([brief(n, 30) for n in ways['lost']], most=4)})" if lost else ""
        told.append(
            f"Of {judged} groups, {gained or 'none'} gained and {lost or 'none'} lost{who}; "
            f"for {judged - gained - lost or 'none'} no change was found."
        )
    return " ".join(told)


def _changed(what: str, row: Change, line: Line, models: tuple[str, str], audited: Audited) -> str:
    if row.difference is None:
        return f"{what} was not judged for both models."
    p = f"{audited.adjusted} {p_equals(row.p_adjusted)}"
    if row.way == "no change found":
        means = "the whole population was drawn, so there is none beyond what its values show"
        if not audited.census:
            means = "that is not evidence that there is none"
        return (
            f"No change of {what[:1].lower() + what[1:]} was found from {models[0]} to "
            f"{models[1]} ({p}); {means}."
        )
    way = "lower" if row.difference < 0 else "higher"
    ends = interval(row.low, row.high, line.unit, flip=row.difference < 0)
    return (
        f"{what} is {points(row.difference, line.unit)} {way} with {models[1]} than with "
        f"{models[0]} ({audited.percent} interval {ends}; {p})."
    )
