"""One section for each attribute: its groups, pairs, spread and verdict, for every line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import polars as pl

from isolux.disparity.kinds import kind_info
from isolux.groups import natural_order
from isolux.groups.unknown import KNOWN_SUFFIX, UNKNOWN
from isolux.report._views import Rows, keyed, largest_pairs, pair_counts
from isolux.report.document import (
    AttributeSection,
    Block,
    Estimate,
    GroupRow,
    LineTable,
    NamedMeasure,
    PairRow,
    Shrunken,
    Spread,
    Verdict,
)
from isolux.statements.choice import Choice
from isolux.statements.leading import find_marks
from isolux.statements.lines import Line, LineKey, key_of
from isolux.statements.text import Statement
from isolux.vocabulary.spec import crossed

_OF_ATTRIBUTE = {
    "any_difference": "any_difference",
    "noise_corrected_sd": "tau",
    "standard_deviation": "standard_deviation",
    "range": "range",
    "ratio_min_max": "ratio",
    "epsilon": "epsilon",
    "mean_absolute_gap": "mean_gap",
    "within": "within",
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
        return " × ".join(self._part(part) for part in crossed(attribute))

    def _part(self, part: str) -> str:
        plain = part.removesuffix(KNOWN_SUFFIX)
        return self.terms.get(plain, plain.replace("_", " ")) + part[len(plain) :]


def estimate_of(row: Mapping[str, Any]) -> Estimate:
    """Take the estimate out of a row of group_metrics."""
    names = ("value", "low", "high", "n_units", "n_clusters", "status", "reason", "method")
    return Estimate(**{name: row[name] for name in names}, n_effective=row.get("n_effective"))


def sections_of(
    group_metrics: pl.DataFrame, disparities: pl.DataFrame, context: Context, choice: Choice
) -> tuple[AttributeSection, ...]:
    """Return a section for each attribute, in the order in which they were asked for."""
    groups = keyed(group_metrics, "attribute")
    kind = pl.col("kind")
    everything = _Everything(
        groups=groups,
        to_overall=keyed(disparities.filter(kind == "difference_to_overall"), "attribute"),
        spreads=keyed(disparities.filter(kind.is_in(list(_OF_ATTRIBUTE))), "attribute"),
        pairs=largest_pairs(disparities),
        counts=pair_counts(disparities),
        named=_named(disparities, context),
        marks={
            (key_of(row), row["attribute"], row["group"]): row["is_worse"]
            for row in find_marks(choice.comparisons).iter_rows(named=True)
        },
        leaders={(key_of(s.row), s.attribute): s for s in choice.leaders if s.row["is_known"]},
    )
    attributes = group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    return tuple(
        _section(attribute, f"attribute-{i}", everything, context)
        for i, attribute in enumerate(attributes, start=1)
    )


@dataclass(frozen=True, slots=True)
class _Everything:
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


def _named(disparities: pl.DataFrame, context: Context) -> dict[str, tuple[NamedMeasure, ...]]:
    # Whatever kind this file does not know by name is still shown, never dropped.
    shown = [*_OF_ATTRIBUTE, *_OF_PAIRS]
    rows = disparities.filter(~pl.col("kind").is_in(shown) & pl.col("attribute").is_not_null())
    found: dict[str, tuple[NamedMeasure, ...]] = {}
    for row in rows.iter_rows(named=True):
        line = context.lines.get(key_of(row))
        of = line.phrase if line else str(row["metric"]).replace("_", " ")
        kind = kind_info(row["kind"])
        unit = "" if not kind.unit else line.unit if line else "fraction"
        measure = NamedMeasure(
            kind.title, kind.summary, of, unit, row["value"], row["low"], row["high"]
        )
        found[row["attribute"]] = (*found.get(row["attribute"], ()), measure)
    return found


def _section(
    attribute: str, anchor: str, everything: _Everything, context: Context
) -> AttributeSection:
    keys = [key for key in context.lines if (*key, attribute) in everything.groups]
    values = [row["group"] for row in everything.groups[(*keys[0], attribute)]]
    parts = tuple(crossed(attribute))
    ordered = len(parts) == 1 and arranged_names(values) is not None
    tables = {
        key: _line_table(key, attribute, everything, context, ordered=ordered) for key in keys
    }
    blocks: dict[tuple[Any, ...], list[LineKey]] = {}
    for key in keys:
        blocks.setdefault(_block_key(key, attribute), []).append(key)
    return AttributeSection(
        attribute=attribute,
        parts=parts,
        title=context.title(attribute),
        anchor=anchor,
        ordered=ordered,
        oriented=attribute not in context.referenced,
        verdict=_verdict(attribute, anchor, tables, everything, context),
        blocks=tuple(
            _block(block, [tables[key] for key in members], everything)
            for block, members in blocks.items()
        ),
        named=everything.named.get(attribute, ()),
        lead=_leading_pair(everything.leaders.get((keys[0], attribute))),
    )


def _block(key: tuple[Any, ...], tables: Sequence[LineTable], everything: _Everything) -> Block:
    line = tables[0].line
    title = line.title if len(tables) == 1 else line.title.replace(line.whose, "", 1)
    return Block(
        title=title,
        definition=line.definition,
        tables=tuple(tables),
        pairs=tuple(_pair(row) for row in everything.pairs.get(key, ())),
        n_pairs=everything.counts.get(key, 0),
    )


def _pair(row: Mapping[str, Any]) -> PairRow:
    return PairRow(**{field.name: row[field.name] for field in fields(PairRow)})


def _leading_pair(statement: Statement | None) -> PairRow | None:
    """Lay out the leading comparison of two groups as a pair; None where everyone is compared."""
    if statement is None or not statement.is_pair:
        return None
    row = statement.row
    low, high = statement.ends
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


def arranged_names(values: Sequence[str]) -> list[str] | None:
    """Return the values in their natural order (ages, bins); None where they have none.

    Examples
    --------
    >>> arranged_names(["70+", "3-9"]), arranged_names(["White", "Black"])
    (['3-9', '70+'], None)
    """
    # Sizes decide only where numbers do not: an order that ignores them is the values' own.
    rising = {value: place for place, value in enumerate(values)}
    falling = {value: -place for place, value in enumerate(values)}
    order = natural_order(values, rising)
    return order if len(values) > 1 and order == natural_order(values, falling) else None


def _line_table(
    key: LineKey, attribute: str, everything: _Everything, context: Context, *, ordered: bool
) -> LineTable:
    line = context.lines[key]
    differences = {row["group_a"]: row for row in everything.to_overall.get((*key, attribute), ())}
    rows = []
    for row in everything.groups[(*key, attribute)]:
        group = _group_row(row, differences.get(row["group"]))
        is_worse = everything.marks.get((key, attribute, group.group))
        rows.append(replace(group, mark=_mark_group(group, line, is_worse)))
    overall = everything.groups.get((*key, None))
    return LineTable(
        line=line,
        overall=estimate_of(overall[0]) if overall else None,
        rows=tuple(_arranged(rows, line, ordered=ordered)),
        spread=_spread(everything.spreads.get((*key, attribute), ())),
    )


def _mark_group(row: GroupRow, line: Line, is_worse: bool | None) -> str:
    """Say in a word which way a group is established to differ; ``~``: in none."""
    if not row.estimate.judged:
        return ""
    if is_worse is None:
        return "~"
    if line.direction == "none":
        return "lower" if is_worse else "higher"
    return "worse" if is_worse else "better"


def _group_row(row: Mapping[str, Any], to_overall: Mapping[str, Any] | None) -> GroupRow:
    found = to_overall or {}
    return GroupRow(
        group=row["group"],
        values=tuple(row["values"]),
        estimate=estimate_of(row),
        difference=found.get("value"),
        difference_low=found.get("low"),
        difference_high=found.get("high"),
        p_adjusted=found.get("p_adjusted"),
        shrunken=_shrunken(row),
    )


def _shrunken(row: Mapping[str, Any]) -> Shrunken | None:
    if row.get("shrunken") is None:
        return None
    return Shrunken(
        row["shrunken"], row["shrunken_low"], row["shrunken_high"], row["shrunken_from"]
    )


def _arranged(rows: Sequence[GroupRow], line: Line, *, ordered: bool) -> list[GroupRow]:
    if ordered:
        place = {name: i for i, name in enumerate(natural_order([row.group for row in rows]))}
        return sorted(rows, key=lambda row: place[row.group])
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


def _spread(rows: Sequence[Mapping[str, Any]]) -> Spread:
    of = {_OF_ATTRIBUTE[row["kind"]]: row for row in rows}
    test: Mapping[str, Any] = of.get("any_difference", {})
    tau: Mapping[str, Any] = of.get("tau", {})

    def value(name: str) -> float | None:
        return of[name]["value"] if name in of else None

    widest: Mapping[str, Any] = of.get("range", {})
    within: Mapping[str, Any] = of.get("within", {})
    # Where intervals may be too narrow nothing is said of how far apart groups are at most.
    within = within if within.get("status") == "ok" else {}
    return Spread(
        p_adjusted=test.get("p_adjusted"),
        test=test.get("test"),
        status=test.get("status", "not scored"),
        reason=test.get("reason"),
        tau=tau.get("value"),
        tau_low=tau.get("low"),
        tau_high=tau.get("high"),
        standard_deviation=value("standard_deviation"),
        range=value("range"),
        range_low=widest.get("low"),
        range_high=widest.get("high"),
        ratio=value("ratio"),
        epsilon=value("epsilon"),
        mean_gap=value("mean_gap"),
        at_most=within.get("high"),
        within_p=within.get("p_adjusted"),
    )


def _verdict(
    attribute: str,
    anchor: str,
    tables: Mapping[LineKey, LineTable],
    everything: _Everything,
    context: Context,
) -> Verdict:
    (key, main), *others = tables.items()
    line_of = {id(table): other for other, table in tables.items()}
    judged = [row for row in main.rows if row.estimate.judged]
    # People whose value is unknown are not a group that a model can serve worst.
    named = [row for row in judged if UNKNOWN not in row.values] or judged
    sign = -1.0 if main.line.direction == "lower" else 1.0
    ranked = sorted(named, key=lambda row: sign * (row.estimate.value or 0.0))
    p = main.spread.p_adjusted
    return Verdict(
        attribute=attribute,
        title=context.title(attribute),
        anchor=anchor,
        line=main.line,
        outcome="differ"
        if (key, attribute) in everything.leaders
        else "not judged"
        if p is None
        else "no difference found",
        spread=main.spread,
        worst=ranked[0] if len(ranked) > 1 else None,
        best=ranked[-1] if len(ranked) > 1 else None,
        n_judged=len(judged),
        n_groups=len(main.rows),
        also=tuple(
            table.line.phrase
            for table in _unlike([main, *(table for _, table in others)])[1:]
            if (line_of[id(table)], attribute) in everything.leaders
        ),
        elsewhere=tuple(
            table.line.phrase
            for _, table in others
            if sum(row.estimate.judged for row in table.rows) > 1
        ),
    )


def _unlike(tables: Sequence[LineTable]) -> list[LineTable]:
    """Leave out lines that repeat an earlier one: people missed after people found."""
    seen: set[tuple[float, ...]] = set()
    kept = []
    for table in tables:
        rows = sorted(table.rows, key=lambda row: row.group)
        values = [row.estimate.value for row in rows if row.estimate.value is not None]
        shares = len(values) > 1 and all(0 <= value <= 1 for value in values)
        if shares and tuple(round(1 - value, 9) for value in values) in seen:
            continue
        seen.add(tuple(round(value, 9) for value in values))
        kept.append(table)
    return kept
