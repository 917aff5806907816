"""The comparisons of two models in reading order, and their sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isolux.core.containers import Run
from isolux.core.formatting import UNTESTED, join_words, pluralise
from isolux.core.spec import split_intersection
from isolux.core.tables import CAUTION_STATUSES, Status
from isolux.disparity.gap_changes import GAP_CHANGE
from isolux.groups.unknown_values import UNKNOWN
from isolux.statements.groups import GroupPhrases, read_group_phrases
from isolux.statements.numbers import (
    format_bare_value,
    format_gap_size,
    format_interval,
)
from isolux.statements.run_terms import (
    RunTerms,
    lower_unless_acronym,
    read_display_terms,
)

_MAX_LISTED, _MAX_GAPS = 3, 10
_MAX_PHRASE, _MAX_PAIRED_PHRASE = 5, 4
"""Most words of a group's phrase, so that a sentence has at most 30; and in one on two groups."""
_METRIC_KEY = ("metric", "label", "threshold")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChangeFinding:
    """A row of comparisons and its sentence; ``direction``: lost, gained, higher, lower or none."""

    row: Row
    claim: str
    direction: str = ""


def metric_class_threshold_key(row: Row) -> tuple[Any, ...]:
    """Return the metric, class and threshold of a row."""
    return tuple(row[name] for name in _METRIC_KEY)


@dataclass(frozen=True, slots=True)
class ModelChanges:
    """The comparisons of a run, in the requested order, and its terms."""

    rows: tuple[Row, ...]
    gap_rows: tuple[Row, ...]
    values: Mapping[tuple[Any, ...], float | None]
    terms: RunTerms
    phrases: GroupPhrases
    main_metric_key: tuple[Any, ...] | None

    @classmethod
    def from_run(cls, run: Run) -> ModelChanges:
        """Read the comparisons of a run; of a run of one model there are none."""
        table = run.disparities
        if "model_a" not in table.columns:
            table = table.clear()
        rows_by_kind = {
            disparity_kind: tuple(table.filter(kind=disparity_kind).iter_rows(named=True))
            for disparity_kind in ("model_difference", GAP_CHANGE)
        }
        names = ("model", *_METRIC_KEY, "attribute", "group")
        values = {
            tuple(r[n] for n in names): r["value"] for r in run.group_metrics.iter_rows(named=True)
        }
        rows = rows_by_kind["model_difference"]
        line = next((metric_class_threshold_key(row) for row in rows), None)
        return cls(
            rows,
            rows_by_kind[GAP_CHANGE],
            values,
            replace(read_display_terms(run), n_models=1),
            read_group_phrases(run),
            line,
        )

    @property
    def planned(self) -> Row | None:
        """The overall change on the metric requested first."""
        of_all = (row for row in self.rows if row["attribute"] is None and row["value"] is not None)
        return next(
            (row for row in of_all if metric_class_threshold_key(row) == self.main_metric_key), None
        )

    def is_shown(self, row: Row) -> bool:
        """Tell whether a change is established: by its p, or if it has no null distribution."""
        p = row["p_adjusted"]
        is_significant = row["reason"] == UNTESTED if p is None else p <= 1.0 - self.terms.level
        return bool(is_significant and row["value"])

    def list_changes(self) -> list[ChangeFinding]:
        """List who lost, who gained, and other changes: each group and direction once."""
        shown_rows = [row for row in self.rows if self.is_shown(row)]
        return self._merge_facts(
            sorted((r for r in shown_rows if r is not self.planned), key=self._build_sort_key())
        )

    def _build_sort_key(self) -> Callable[[Row], tuple[Any, ...]]:
        """Build the key by which changes are sorted."""
        rank_by_direction = {"lost": 0, "gained": 1, "higher": 2, "lower": 2}
        rank_by_metric = {
            line: k
            for k, line in enumerate(dict.fromkeys(map(metric_class_threshold_key, self.rows)))
        }
        largest: dict[tuple[Any, ...], float] = {}
        for row in self.rows:
            key = (metric_class_threshold_key(row), row["attribute"], self.get_direction(row))
            largest[key] = max(largest.get(key, 0.0), abs(row["value"] or 0.0))

        def is_covered(row: Row) -> bool:
            components = split_intersection(row["attribute"])
            widest = max(
                largest.get(
                    (metric_class_threshold_key(row), component, self.get_direction(row)), 0.0
                )
                for component in components
            )
            low, high = simultaneous_or_own_bounds(row)
            nearest_bound = 0.0 if low is None or high is None else max(low, -high, 0.0)
            return len(components) > 1 and nearest_bound <= widest

        def rank_row(row: Row) -> tuple[Any, ...]:
            is_overall = row["attribute"] is None
            return (
                is_overall,
                not is_overall and UNKNOWN in row["group_a"],
                rank_by_direction[self.get_direction(row)],
                rank_by_metric[metric_class_threshold_key(row)],
                not is_overall and is_covered(row),
                -abs(row["value"]),
            )

        return rank_row

    def get_direction(self, row: Row) -> str:
        """Return what a change is for the group: gained, lost, or higher and lower."""
        is_increase = (row["value"] or 0.0) > 0
        metric = self.terms.metrics.get(row["metric"])
        if metric is None or metric.direction == "none":
            return "higher" if is_increase else "lower"
        return "gained" if is_increase == (metric.direction == "higher") else "lost"

    def _merge_facts(self, rows: Sequence[Row]) -> list[ChangeFinding]:
        """Merge repeated facts: a group's other metrics, and the same people as an intersection."""
        single_attribute_facts = {
            _key_of_equal_changes(row)
            for row in rows
            if len(split_intersection(row["attribute"] or "")) < 2
        }
        first_rows: dict[tuple[Any, ...], Row] = {}
        repeated_rows: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            key = (row["attribute"], row["group_a"], self.get_direction(row))
            is_repeated = (
                len(split_intersection(row["attribute"] or "")) > 1
                and _key_of_equal_changes(row) in single_attribute_facts
            )
            if key in first_rows:
                repeated_rows.setdefault(key, []).append(row)
            elif not is_repeated:
                first_rows[key] = row
        return [
            ChangeFinding(row, self._format_change(row, repeated_rows.get(key, ())), key[-1])
            for key, row in first_rows.items()
        ]

    def describe_planned(self, row: Row) -> ChangeFinding:
        """Describe whether the second model is better."""
        a, b, direction = row["model_a"], row["model_b"], self.get_direction(row)
        measure = lower_unless_acronym(self.terms.format_metric(row))
        size_text = format_gap_size(
            row["value"], self.terms.find_unit(row), simultaneous_or_own_bounds(row)
        )
        change = f"is {size_text} {'higher' if row['value'] > 0 else 'lower'}"
        is_significant = self.is_shown(row)
        if not row["value"]:
            claim = (
                f"{_capitalise_first_letter(measure)} for everyone is the same with {b} as with {a}"
            )
        elif direction not in ("gained", "lost"):
            claim = (
                f"{_capitalise_first_letter(measure)} for everyone {change} with {b} than with {a}"
            )
            if not is_significant:
                claim = f"No change in {measure} for everyone is shown from {a} to {b}: it {change}"
        else:
            better = "better" if direction == "gained" else "worse"
            verdict = better if is_significant else "not shown to be better or worse"
            claim = f"Overall {b} is {verdict} than {a}: {measure} {change}"
        certainty = self._format_certainty(row, "p", is_flipped=row["value"] < 0)
        return ChangeFinding(row, f"{claim} ({certainty}).{_format_caution_clause(row)}", direction)

    def _format_change(self, row: Row, repeated_rows: Sequence[Row]) -> str:
        """Describe one group's change, and the other metrics that show it."""
        unit = self.terms.find_unit(row)
        sign = "+" if row["value"] > 0 else "\N{MINUS SIGN}"
        change = (
            f"{sign}{format_gap_size(row['value'], unit, simultaneous_or_own_bounds(row))} with"
            f" {row['model_b']}"
        )
        names = list(
            dict.fromkeys(lower_unless_acronym(self.terms.format_metric(r)) for r in repeated_rows)
        )
        other_metrics = f"; also in {names[0]}" if names else ""
        other_metrics += (
            f" and in {pluralise(len(names) - 1, 'other measure')}" if len(names) > 1 else ""
        )
        return (
            f"{_capitalise_first_letter(self.get_direction(row))}: {self._format_group(row)},"
            f" {lower_unless_acronym(self.terms.format_metric(row))} {change}"
            f" ({self._format_certainty(row, 'adjusted p')}){other_metrics}."
            f"{_format_caution_clause(row)}"
        )

    def _format_group(self, row: Row) -> str:
        """Return a group's phrase; where that is long, its name and attribute as in tables."""
        if row["attribute"] is None:
            return "everyone"
        phrase = self.phrases.describe_table_group(row["attribute"], row["group_a"])
        if len(phrase.split()) <= _MAX_PHRASE:
            return phrase
        return f"{row['group_a']}{self._format_attribute(row)}"

    def _format_pair(self, row: Row) -> str:
        """Return the phrases of a gap's two groups, both in the same form."""
        names = [
            self.phrases.describe_table_group(row["attribute"], row[f"group_{suffix}"])
            for suffix in "ab"
        ]
        if max(len(name.split()) for name in names) > _MAX_PAIRED_PHRASE:
            names = [row["group_a"], f"{row['group_b']}{self._format_attribute(row)}"]
        return " against ".join(names)

    def _format_attribute(self, row: Row) -> str:
        is_intersection = len(split_intersection(row["attribute"])) > 1
        return "" if is_intersection else f" ({self.terms.format_attribute(row['attribute'])})"

    def _format_certainty(self, row: Row, p_name: str, *, is_flipped: bool = False) -> str:
        """Write the interval, p and n of a change."""
        low, high = simultaneous_or_own_bounds(row)
        texts = []
        if low is not None and high is not None:
            low, high = (-high, -low) if is_flipped else (low, high)
            interval_text = format_interval(low, high, self.terms.find_unit(row), row["value"])
            is_own = row is self.planned or row.get("simultaneous_low") is None
            name = f"{100 * self.terms.level:g} %" if is_own else "simultaneous"
            texts.append(f"{name} interval {interval_text}")
        return "; ".join([*texts, *self._format_p(row, p_name), f"n = {row['n_units_a']:,}"])

    def _format_p(self, row: Row, name: str = "adjusted p") -> list[str]:
        p, name = row["p_adjusted"], name if self.terms.is_adjusted else "p"
        return [] if p is None else [f"{name} < 0.001" if p < 0.001 else f"{name} = {p:.3f}"]

    def list_gaps(self, *, shown: bool) -> list[ChangeFinding]:
        """List the gaps that became wider or narrower, or those without an established change."""
        rows = [row for row in self.gap_rows if row["value"] is not None]
        rows = [row for row in rows if self.is_shown(row) == shown]
        if not shown:  # of the metric requested first: the table has the others
            rows = [row for row in rows if metric_class_threshold_key(row) == self.main_metric_key]
        distinct: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            distinct.setdefault((*_key_of_equal_changes(row), row["n_units_b"]), row)
        return [ChangeFinding(row, self.describe_gap(row)) for row in distinct.values()][:_MAX_GAPS]

    def list_unchanged_gaps(self) -> list[str]:
        """List gaps without an established change: several in one sentence, with their values."""
        unchanged = self.list_gaps(shown=False)
        if len(unchanged) < 2:
            return [gap.claim for gap in unchanged]
        pairs = [
            f"{gap.row['group_a']} against {gap.row['group_b']} {self._format_gap_values(gap.row)}"
            for gap in unchanged[:_MAX_LISTED]
        ]
        n_omitted = len(unchanged) - len(pairs)
        measure = lower_unless_acronym(self.terms.format_metric(unchanged[0].row))
        claim = f"No change of the gap in {measure} is shown: {', '.join(pairs)}"
        return [f"{claim}{f'; {n_omitted:,} more in the table' if n_omitted else ''}."]

    def _format_gap_values(self, row: Row) -> str:
        unit = self.terms.find_unit(row)
        old, new = (self._compute_gap(row, row[model]) for model in ("model_a", "model_b"))
        return f"{format_bare_value(old, unit, [new])} to {format_bare_value(new, unit, [old])}"

    def describe_gap(self, row: Row) -> str:
        """Describe whether one gap became wider or narrower."""
        unit = self.terms.find_unit(row)
        values = self._format_gap_values(row)
        values += " points" if unit == "fraction" else f" {unit}".rstrip()
        low, high = simultaneous_or_own_bounds(row)
        has_interval = low is not None and high is not None
        change = [f"change {format_interval(low, high, unit)}"] if has_interval else []
        certainty = "; ".join([*change, *self._format_p(row)])
        direction = "widened from" if row["value"] > 0 else "narrowed from"
        verdict = f"the gap {direction}" if self.is_shown(row) else "no change of the gap is shown,"
        subject = (
            f"{_capitalise_first_letter(lower_unless_acronym(self.terms.format_metric(row)))},"
            f" {self._format_pair(row)}"
        )
        certainty_text = f" ({certainty})" if certainty else ""
        return f"{subject}: {verdict} {values}{certainty_text}.{_format_caution_clause(row)}"

    def _compute_gap(self, row: Row, model: str) -> float:
        """Compute one model's gap of a pair: above 0 where ``group_a`` is worse."""
        metric = self.terms.metrics.get(row["metric"])
        key = (model, *metric_class_threshold_key(row), row["attribute"])
        worse, better = (self.values.get((*key, row[f"group_{suffix}"])) or 0.0 for suffix in "ab")
        return worse - better if metric and metric.direction == "lower" else better - worse

    def list_unshown(self) -> list[str]:
        """Name the groups without an established gain or loss, if overall has one."""
        planned = self.planned
        if planned is None or not self.is_shown(planned):
            return []
        direction, sign = self.get_direction(planned), 1.0 if planned["value"] > 0 else -1.0
        if direction not in ("gained", "lost"):
            return []
        rows = [
            row
            for row in self.rows
            if metric_class_threshold_key(row) == self.main_metric_key
            and row["attribute"] is not None
            and row["value"] is not None
            and not self.is_shown(row)
            and UNKNOWN not in row["group_a"]
        ]
        rows.sort(key=lambda row: sign * row["value"])
        unit = self.terms.find_unit(planned)
        names = [
            f"{self._format_group(row)} ({format_bare_value(row['value'], unit, with_sign=True)})"
            for row in rows[:_MAX_LISTED]
        ]
        if n_omitted := len(rows) - len(names):
            names.append(pluralise(n_omitted, "other group"))
        noun = "gain" if direction == "gained" else "loss"
        return [f"No {noun} is shown for {join_words(names, conjunction='and')}."] if names else []

    def count_unshown(self) -> list[dict[str, Any]]:
        """Count the changes that are not established, with a limit on their size."""
        rows = [r for r in self.rows if r["attribute"] is not None and r["value"] is not None]
        unshown = [row for row in rows if not self.is_shown(row)]
        if not unshown:
            return []
        unit = self.terms.find_unit(self.rows[0])
        comparable = [
            r for r in unshown if self.terms.find_unit(r) == unit and UNKNOWN not in r["group_a"]
        ]
        bounds = [
            abs(bound)
            for row in comparable
            for bound in simultaneous_or_own_bounds(row)
            if bound is not None
        ]
        limit_text = (
            f": changes up to {format_gap_size(max(bounds), unit)} cannot be ruled out"
            if bounds
            else ""
        )
        if self.terms.is_census:
            widest = max((abs(row["value"]) for row in comparable), default=0.0)
            limit_text = f": in this population none is larger than {format_gap_size(widest, unit)}"
        claim = (
            f"For {len(unshown):,} of {len(rows):,} groups and metrics no change is "
            f"shown{limit_text}."
        )
        if len(unshown) == len(rows):
            subject = "No group of those shown here" if self.terms.is_redacted else "No group"
            claim = f"{subject} is shown to have gained or lost{limit_text}."
        return [{"claim": claim, "status": Status.OK.value, "n": None}]

    def count_untested(self) -> list[dict[str, Any]]:
        """Name each attribute's largest group without any comparable metric, and count the rest."""
        compared = {(r["attribute"], r["group_a"]) for r in self.rows if r["value"] is not None}
        groups = {(r["attribute"], r["group_a"]): r for r in self.rows}
        untested: dict[str, list[Row]] = {}
        for key, row in groups.items():
            if key not in compared:
                untested.setdefault(key[0], []).append(row)
        return [self._build_untested_row(rows) for rows in untested.values()]

    def _build_untested_row(self, rows: Sequence[Row]) -> dict[str, Any]:
        largest = max(rows, key=lambda row: row["n_units_a"] or 0)
        rest_text = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        claim = (
            f"Not judged: the change of {self._format_group(largest)}{rest_text}"
            f" (n = {largest['n_units_a'] or 0:,}; {largest['reason']})."
        )
        return {
            "claim": claim,
            "status": largest["status"],
            "n": largest["n_units_a"],
            "attribute": largest["attribute"],
        }


def _key_of_equal_changes(row: Row) -> tuple[Any, ...]:
    """Return a key that equal changes of the same people share: n and size."""
    return row["n_units_a"], round(abs(row["value"]), 12)


def _capitalise_first_letter(text: str) -> str:
    return text[:1].upper() + text[1:]


def simultaneous_or_own_bounds(row: Row) -> tuple[float | None, float | None]:
    """Return the simultaneous bounds, else the row's own."""
    if row.get("simultaneous_low") is not None and row.get("simultaneous_high") is not None:
        return row["simultaneous_low"], row["simultaneous_high"]
    return row["low"], row["high"]


def _format_caution_clause(row: Row) -> str:
    return f" Caution: {row['reason']}." if row["status"] in CAUTION_STATUSES else ""
