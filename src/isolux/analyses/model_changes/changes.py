"""The comparisons of two models in the order in which they are read, and their sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from isolux.disparity.gap_changes import KIND
from isolux.groups.unknown import UNKNOWN
from isolux.statements.groups import GroupPhrases, group_phrases_of
from isolux.statements.numbers import interval, points, value_text
from isolux.statements.words import Words, lowered, words_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import crossed
from isolux.vocabulary.tables import Status
from isolux.vocabulary.words import UNTESTED, listed, numbered

_MAX_LISTED, _MAX_GAPS = 3, 10
_MAX_PHRASE, _MAX_PAIRED_PHRASE = 5, 4
"""Words of a group in a sentence of at most 30 words, and in one about two groups."""
_LINE = ("metric", "label", "threshold")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChangeFinding:
    """A row of the comparisons and its sentence; ``way``: lost, gained, higher, lower or none."""

    row: Row
    claim: str
    way: str = ""


def line_of(row: Row) -> tuple[Any, ...]:
    """Name the metric, class and threshold of a row."""
    return tuple(row[name] for name in _LINE)


@dataclass(frozen=True, slots=True)
class ModelChanges:
    """The comparisons of a run, in the order asked for, and what it calls things."""

    rows: tuple[Row, ...]
    gap_rows: tuple[Row, ...]
    values: Mapping[tuple[Any, ...], float | None]
    words: Words
    phrases: GroupPhrases
    line: tuple[Any, ...] | None

    @classmethod
    def of(cls, run: Run) -> ModelChanges:
        """Read the comparisons of a run; of a run of one model there are none."""
        table = run.disparities
        if "model_a" not in table.columns:
            table = table.clear()
        of_kind = {
            kind: tuple(table.filter(pl.col("kind") == kind).iter_rows(named=True))
            for kind in ("model_difference", KIND)
        }
        names = ("model", *_LINE, "attribute", "group")
        values = {
            tuple(r[n] for n in names): r["value"] for r in run.group_metrics.iter_rows(named=True)
        }
        rows = of_kind["model_difference"]
        line = next((line_of(row) for row in rows), None)
        return cls(
            rows,
            of_kind[KIND],
            values,
            replace(words_of(run), models=1),
            group_phrases_of(run),
            line,
        )

    @property
    def planned(self) -> Row | None:
        """Everyone's change on the metric asked for first."""
        of_all = (row for row in self.rows if row["attribute"] is None and row["value"] is not None)
        return next((row for row in of_all if line_of(row) == self.line), None)

    def is_shown(self, row: Row) -> bool:
        """Tell whether a change is established: by its p, or where nothing can test it."""
        p = row["p_adjusted"]
        sure = row["reason"] == UNTESTED if p is None else p <= 1.0 - self.words.level
        return bool(sure and row["value"])

    def facts(self) -> list[ChangeFinding]:
        """Say who lost, who gained, and what else changed: each group and way once."""
        shown = [row for row in self.rows if self.is_shown(row)]
        return self._merge(sorted((r for r in shown if r is not self.planned), key=self._place()))

    def _place(self) -> Callable[[Row], tuple[Any, ...]]:
        """Give the key by which changes are sorted."""
        ways = {"lost": 0, "gained": 1, "higher": 2, "lower": 2}
        lines = {line: k for k, line in enumerate(dict.fromkeys(map(line_of, self.rows)))}
        largest: dict[tuple[Any, ...], float] = {}
        for row in self.rows:
            key = (line_of(row), row["attribute"], self.way(row))
            largest[key] = max(largest.get(key, 0.0), abs(row["value"] or 0.0))

        def is_covered(row: Row) -> bool:
            parts = crossed(row["attribute"])
            widest = max(largest.get((line_of(row), part, self.way(row)), 0.0) for part in parts)
            low, high = simultaneous_ends(row)
            near = 0.0 if low is None or high is None else max(low, -high, 0.0)
            return len(parts) > 1 and near <= widest

        def place(row: Row) -> tuple[Any, ...]:
            alone = row["attribute"] is None
            return (
                alone,
                not alone and UNKNOWN in row["group_a"],
                ways[self.way(row)],
                lines[line_of(row)],
                not alone and is_covered(row),
                -abs(row["value"]),
            )

        return place

    def way(self, row: Row) -> str:
        """Say what a change is for those who are concerned."""
        up = (row["value"] or 0.0) > 0
        metric = self.words.metrics.get(row["metric"])
        if metric is None or metric.direction == "none":
            return "higher" if up else "lower"
        return "gained" if up == (metric.direction == "higher") else "lost"

    def _merge(self, rows: Sequence[Row]) -> list[ChangeFinding]:
        """Say what is the same fact once: a group's other metrics, the same people by another."""
        alone = {_people(row) for row in rows if len(crossed(row["attribute"] or "")) < 2}
        first: dict[tuple[Any, ...], Row] = {}
        also: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            key = (row["attribute"], row["group_a"], self.way(row))
            is_repeated = len(crossed(row["attribute"] or "")) > 1 and _people(row) in alone
            if key in first:
                also.setdefault(key, []).append(row)
            elif not is_repeated:
                first[key] = row
        return [
            ChangeFinding(row, self._change(row, also.get(key, ())), key[-1])
            for key, row in first.items()
        ]

    def say_planned(self, row: Row) -> ChangeFinding:
        """Answer whether the second model is better."""
        a, b, way = row["model_a"], row["model_b"], self.way(row)
        measure = lowered(self.words.measure(row))
        far = points(row["value"], self.words.unit(row), simultaneous_ends(row))
        change = f"is {far} {'higher' if row['value'] > 0 else 'lower'}"
        shown = self.is_shown(row)
        if not row["value"]:
            claim = f"{_upper(measure)} for everyone is the same with {b} as with {a}"
        elif way not in ("gained", "lost"):
            claim = f"{_upper(measure)} for everyone {change} with {b} than with {a}"
            if not shown:
                claim = f"No change in {measure} for everyone is shown from {a} to {b}: it {change}"
        else:
            better = "better" if way == "gained" else "worse"
            verdict = better if shown else "not shown to be better or worse"
            claim = f"Overall {b} is {verdict} than {a}: {measure} {change}"
        sure = self._sure(row, "p", flip=row["value"] < 0)
        return ChangeFinding(row, f"{claim} ({sure}).{_care(row)}", way)

    def _change(self, row: Row, also: Sequence[Row]) -> str:
        """Say one group's change, and by which metrics else it is shown."""
        unit = self.words.unit(row)
        sign = "+" if row["value"] > 0 else "\N{MINUS SIGN}"
        change = f"{sign}{points(row['value'], unit, simultaneous_ends(row))} with {row['model_b']}"
        names = list(dict.fromkeys(lowered(self.words.measure(r)) for r in also))
        more = f"; also in {names[0]}" if names else ""
        more += f" and in {numbered(len(names) - 1, 'other measure')}" if len(names) > 1 else ""
        return (
            f"{_upper(self.way(row))}: {self._who(row)},"
            f" {lowered(self.words.measure(row))} {change}"
            f" ({self._sure(row, 'adjusted p')}){more}.{_care(row)}"
        )

    def _who(self, row: Row) -> str:
        """Call a group as people or images; where that is long, as tables do."""
        if row["attribute"] is None:
            return "everyone"
        phrase = self.phrases.describe(row["attribute"], row["group_a"])
        if len(phrase.split()) <= _MAX_PHRASE:
            return phrase
        return f"{row['group_a']}{self._of_attribute(row)}"

    def _pair(self, row: Row) -> str:
        """Call the two groups of a gap, both in the same way."""
        names = [self.phrases.describe(row["attribute"], row[f"group_{side}"]) for side in "ab"]
        if max(len(name.split()) for name in names) > _MAX_PAIRED_PHRASE:
            names = [row["group_a"], f"{row['group_b']}{self._of_attribute(row)}"]
        return " against ".join(names)

    def _of_attribute(self, row: Row) -> str:
        several = len(crossed(row["attribute"])) > 1
        return "" if several else f" ({self.words.title(row['attribute'])})"

    def _sure(self, row: Row, p_name: str, *, flip: bool = False) -> str:
        """Give the interval, p and n of a change."""
        low, high = simultaneous_ends(row)
        parts = []
        if low is not None and high is not None:
            low, high = (-high, -low) if flip else (low, high)
            ends = interval(low, high, self.words.unit(row), row["value"])
            is_own = row is self.planned or row.get("simultaneous_low") is None
            name = f"{100 * self.words.level:g} %" if is_own else "simultaneous"
            parts.append(f"{name} interval {ends}")
        return "; ".join([*parts, *self._p(row, p_name), f"n = {row['n_units_a']:,}"])

    def _p(self, row: Row, name: str = "adjusted p") -> list[str]:
        p, name = row["p_adjusted"], name if self.words.corrected else "p"
        return [] if p is None else [f"{name} < 0.001" if p < 0.001 else f"{name} = {p:.3f}"]

    def gaps(self, *, shown: bool) -> list[ChangeFinding]:
        """Say which gaps became wider or narrower, or of which that is not shown."""
        rows = [row for row in self.gap_rows if row["value"] is not None]
        rows = [row for row in rows if self.is_shown(row) == shown]
        if not shown:  # of the metric asked for first: the table has the others
            rows = [row for row in rows if line_of(row) == self.line]
        once: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            once.setdefault((*_people(row), row["n_units_b"]), row)
        return [ChangeFinding(row, self.say_gap(row)) for row in once.values()][:_MAX_GAPS]

    def list_unchanged_gaps(self) -> list[str]:
        """Say of which gaps no change is shown: of several in one sentence, with their values."""
        found = self.gaps(shown=False)
        if len(found) < 2:
            return [gap.claim for gap in found]
        pairs = [
            f"{gap.row['group_a']} against {gap.row['group_b']} {self._gap_values(gap.row)}"
            for gap in found[:_MAX_LISTED]
        ]
        more = len(found) - len(pairs)
        measure = lowered(self.words.measure(found[0].row))
        told = f"No change of the gap in {measure} is shown: {', '.join(pairs)}"
        return [f"{told}{f'; {more:,} more in the table' if more else ''}."]

    def _gap_values(self, row: Row) -> str:
        unit = self.words.unit(row)
        old, new = (self._gap_of(row, row[model]) for model in ("model_a", "model_b"))
        return f"{value_text(old, unit, [new])} to {value_text(new, unit, [old])}"

    def say_gap(self, row: Row) -> str:
        """Say whether one gap became wider or narrower."""
        unit = self.words.unit(row)
        values = self._gap_values(row)
        values += " points" if unit == "fraction" else f" {unit}".rstrip()
        low, high = simultaneous_ends(row)
        known = low is not None and high is not None
        change = [f"change {interval(low, high, unit)}"] if known else []
        sure = "; ".join([*change, *self._p(row)])
        way = "widened from" if row["value"] > 0 else "narrowed from"
        told = f"the gap {way}" if self.is_shown(row) else "no change of the gap is shown,"
        what = f"{_upper(lowered(self.words.measure(row)))}, {self._pair(row)}"
        return f"{what}: {told} {values}{f' ({sure})' if sure else ''}.{_care(row)}"

    def _gap_of(self, row: Row, model: str) -> float:
        """Give one model's gap of a pair: above 0 where ``group_a`` is worse off."""
        metric = self.words.metrics.get(row["metric"])
        key = (model, *line_of(row), row["attribute"])
        worse, better = (self.values.get((*key, row[f"group_{side}"])) or 0.0 for side in "ab")
        return worse - better if metric and metric.direction == "lower" else better - worse

    def list_unshown(self) -> list[str]:
        """Where everyone gained or lost, name the groups of which that is not shown."""
        planned = self.planned
        if planned is None or not self.is_shown(planned):
            return []
        way, turn = self.way(planned), 1.0 if planned["value"] > 0 else -1.0
        if way not in ("gained", "lost"):
            return []
        rows = [
            row
            for row in self.rows
            if line_of(row) == self.line
            and row["attribute"] is not None
            and row["value"] is not None
            and not self.is_shown(row)
            and UNKNOWN not in row["group_a"]
        ]
        rows.sort(key=lambda row: turn * row["value"])
        unit = self.words.unit(planned)
        names = [
            f"{self._who(row)} ({value_text(row['value'], unit, sign=True)})"
            for row in rows[:_MAX_LISTED]
        ]
        if left := len(rows) - len(names):
            names.append(numbered(left, "other group"))
        noun = "gain" if way == "gained" else "loss"
        return [f"No {noun} is shown for {listed(names, last='and')}."] if names else []

    def count_unshown(self) -> list[dict[str, Any]]:
        """Count the changes that are not shown, and say how large they may be."""
        rows = [r for r in self.rows if r["attribute"] is not None and r["value"] is not None]
        unsure = [row for row in rows if not self.is_shown(row)]
        if not unsure:
            return []
        unit = self.words.unit(self.rows[0])
        known = [r for r in unsure if self.words.unit(r) == unit and UNKNOWN not in r["group_a"]]
        ends = [abs(end) for row in known for end in simultaneous_ends(row) if end is not None]
        far = f": changes up to {points(max(ends), unit)} cannot be ruled out" if ends else ""
        if self.words.census:
            widest = max((abs(row["value"]) for row in known), default=0.0)
            far = f": in this population none is larger than {points(widest, unit)}"
        told = f"For {len(unsure):,} of {len(rows):,} groups and metrics no change is shown{far}."
        if len(unsure) == len(rows):
            who = "No group of those shown here" if self.words.withheld else "No group"
            told = f"{who} is shown to have gained or lost{far}."
        return [{"claim": told, "status": Status.OK.value, "n": None}]

    def count_unjudged(self) -> list[dict[str, Any]]:
        """Name the largest group of each attribute whose change no metric judges, and count."""
        judged = {(r["attribute"], r["group_a"]) for r in self.rows if r["value"] is not None}
        groups = {(r["attribute"], r["group_a"]): r for r in self.rows}
        found: dict[str, list[Row]] = {}
        for key, row in groups.items():
            if key not in judged:
                found.setdefault(key[0], []).append(row)
        return [self._unjudged(rows) for rows in found.values()]

    def _unjudged(self, rows: Sequence[Row]) -> dict[str, Any]:
        first = max(rows, key=lambda row: row["n_units_a"] or 0)
        more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        told = (
            f"Not judged: the change of {self._who(first)}{more}"
            f" (n = {first['n_units_a'] or 0:,}; {first['reason']})."
        )
        return {
            "claim": told,
            "status": first["status"],
            "n": first["n_units_a"],
            "attribute": first["attribute"],
        }


def _people(row: Row) -> tuple[Any, ...]:
    """Name what two changes share that say the same of the same people."""
    return row["n_units_a"], round(abs(row["value"]), 12)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def simultaneous_ends(row: Row) -> tuple[float | None, float | None]:
    """Give the ends that hold for all of the family at once, else the row's own."""
    if row.get("simultaneous_low") is not None and row.get("simultaneous_high") is not None:
        return row["simultaneous_low"], row["simultaneous_high"]
    return row["low"], row["high"]


def _care(row: Row) -> str:
    return f" Caution: {row['reason']}." if row["status"] == Status.BOUNDARY else ""
