"""Who is judged: the people of a dataset whose attributes pass every condition of ``--only``.

A published protocol judges adults, or one-person images. The others are not simply away: in a
picture they can still be who a detection found, so tasks that look at whole images keep them in
the matching and give them no score (``INFO.uses_unscored_people``).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.counts import add_multiplicity, count_people, count_people_by_label
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES
from isolux.groups.display_order import NumberRange, parse_range_or_number

_CONDITION = re.compile(r"\s*([^=<>!]+?)\s*(>=|<=|!=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_COMPARISONS: dict[str, Callable[[pl.Expr, float], pl.Expr]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


_MAX_LISTED_VALUES = 8
_OPPOSITE = {">=": "<", "<=": ">", ">": "<=", "<": ">="}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on one attribute: ``age >= 20``, ``race = Black or White``.

    ``values`` are those of ``=`` and ``!=``; ``number`` that of the comparisons.
    """

    attribute: str
    relation: str
    values: tuple[str, ...] = ()
    number: float = 0.0


def parse_conditions(condition_texts: Sequence[str]) -> tuple[Condition, ...]:
    """Read conditions: ``ATTRIBUTE=VALUE,VALUE``, ``!=``, ``>=``, ``<=``, ``>`` or ``<``."""
    return tuple(_parse_condition(text) for text in condition_texts)


def _parse_condition(text: str) -> Condition:
    parsed = _CONDITION.fullmatch(text)
    if parsed is None or not parsed[3]:
        raise SpecError(
            "--only is not a condition",
            expected='ATTRIBUTE=VALUE,VALUE or ATTRIBUTE>=NUMBER, as in "age>=20"',
            found=repr(text),
        )
    attribute, relation, right = parsed.groups()
    if relation not in _COMPARISONS:
        alternatives = re.findall(r'\s*(?:"([^"]*)"|([^,]+))\s*(?:,|$)', right)
        return Condition(attribute, relation, tuple((a or b).strip() for a, b in alternatives))
    try:
        return Condition(attribute, relation, number=float(right))
    except ValueError:
        raise SpecError(
            f"--only compares {attribute!r} with something that is not a number",
            expected=f"a number after {relation}",
            found=repr(text),
        ) from None


def filter_people(
    dataset: Dataset, condition_texts: Sequence[str], *, uses_unscored_people: bool
) -> Dataset:
    """Keep the people who pass every condition."""
    if not condition_texts:
        return dataset
    attributes = dataset.instance_attributes()
    instances = INSTANCES.conform(dataset.instances)
    passing = pl.lit(value=True)
    notes: list[str] = []
    for condition in parse_conditions(condition_texts):
        passing &= _build_condition_mask(condition, attributes, dataset)
        notes += _note_values_excluded_by_comparison(
            condition, add_multiplicity(attributes, dataset.multiplicity, "unit_id")
        )
    is_kept = instances.select(passing).to_series()
    if instances.height and not is_kept.any():
        raise SpecError(
            "nobody passes --only",
            expected="; ".join(
                _describe_column(condition.attribute, attributes)
                for condition in parse_conditions(condition_texts)
            ),
            found=" and ".join(condition_texts),
            where=dataset.name,
        )
    if uses_unscored_people:
        before = pl.col("judged") if "judged" in instances.columns else pl.lit(value=True)
        people = instances.with_columns(judged=before.fill_null(value=True) & is_kept)
    else:
        people = instances.filter(is_kept)
    all_people = add_multiplicity(
        instances.select("instance_id"), dataset.multiplicity, "instance_id"
    )
    n_excluded, n = count_people(all_people.filter(~is_kept)), count_people(all_people)
    phrase = (
        "take part in the matching and are not judged" if uses_unscored_people else "were left out"
    )
    note = f"{n_excluded:,} of {n:,} people {phrase}: only {' and '.join(condition_texts)}."
    return replace(dataset, instances=people, notes=(*dataset.notes, note, *notes))


def _describe_column(name: str, attributes: pl.DataFrame) -> str:
    """Say what a column holds: its values, or the range of its numbers."""
    rows = attributes.filter(pl.col("attribute") == name)
    if "number" in rows.columns and rows["number"].count():
        lowest, highest = rows.select(low=pl.col("number").min(), high=pl.col("number").max()).row(
            0
        )
        return f"{name!r} from {lowest:g} to {highest:g}"
    values = rows["value"].drop_nulls().unique().sort()
    listed_values = ", ".join(map(repr, values.head(_MAX_LISTED_VALUES)))
    return f"{name!r} one of {listed_values}" + (", …" if len(values) > _MAX_LISTED_VALUES else "")


def _note_values_excluded_by_comparison(
    condition: Condition, attributes: pl.DataFrame
) -> list[str]:
    """Say which values a comparison leaves out; caution where a range lies on both sides of it."""
    rows = attributes.filter(pl.col("attribute") == condition.attribute)
    if condition.relation not in _COMPARISONS:
        absent = [value for value in condition.values if value not in rows["value"]]
        return [
            Caution(
                f"--only names {value!r}, which nobody has:"
                f" {_describe_column(condition.attribute, attributes)}."
            )
            for value in absent
        ]
    sizes = dict(count_people_by_label(rows, pl.col("value")).select("label", "count").iter_rows())
    ranges = {
        v: bounds
        for v in sizes
        if (bounds := parse_range_or_number(v)) is not None and bounds.low < bounds.high
    }
    if not ranges:
        return []
    condition_text = f"{condition.attribute}{condition.relation}{condition.number:g}"

    def list_values(values: Iterable[str]) -> str:
        order = sorted(
            values, key=lambda v: (parse_range_or_number(v) or NumberRange(math.inf, math.inf)).low
        )
        return ", ".join(f"{v} ({sizes[v]:,})" for v in order)

    relation, number = condition.relation, condition.number
    failing = {
        v: bounds
        for v, bounds in ranges.items()
        if not bounds.lies_entirely_in_relation(relation, number)
    }
    straddling = [
        v
        for v, bounds in failing.items()
        if not bounds.lies_entirely_in_relation(_OPPOSITE[relation], number)
    ]
    notes: list[str] = []
    if straddling:
        lowest = min(ranges[v].low for v in straddling)
        highest = max(ranges[v].high for v in straddling)
        edge = f">={lowest:g}" if relation in (">", ">=") else f"<={highest:g}"
        notes.append(
            Caution(
                f"--only {condition_text} keeps a range only if all of it passes: "
                f"{list_values(straddling)} are on "
                f'both sides and were left out. --only "{condition.attribute}{edge}" keeps them.'
            )
        )
    excluded = [v for v in failing if v not in straddling]
    if excluded:
        notes.append(f"Left out by {condition_text}: {list_values(excluded)}.")
    return notes


def drop_unscored_people(dataset: Dataset) -> Dataset:
    """Drop people who are not scored, for tasks that do not use them in matching."""
    instances = INSTANCES.conform(dataset.instances)
    if "judged" not in instances.columns or instances["judged"].all():
        return dataset
    scored_people = instances.filter(pl.col("judged").fill_null(value=True))
    n_excluded = instances.height - scored_people.height
    note = f"{n_excluded:,} of {instances.height:,} people are not to be judged and were left out."
    notes = (*dataset.notes, note) if n_excluded else dataset.notes
    return replace(dataset, instances=scored_people, notes=notes)


def _build_condition_mask(
    condition: Condition, attributes: pl.DataFrame, dataset: Dataset
) -> pl.Expr:
    rows = attributes.filter(pl.col("attribute") == condition.attribute)
    if rows.is_empty():
        attribute_names = dataset.attributes["attribute"].unique().sort().to_list()
        raise UnknownNameError("attribute", condition.attribute, attribute_names, where="--only")
    person = pl.col("instance_id")
    if condition.relation in _COMPARISONS:
        return person.is_in(rows.filter(_build_number_mask(condition, rows))["unit_id"].implode())
    has_value = person.is_in(
        rows.filter(pl.col("value").is_in(list(condition.values)))["unit_id"].implode()
    )
    return ~has_value if condition.relation == "!=" else has_value


def _build_number_mask(condition: Condition, rows: pl.DataFrame) -> pl.Expr:
    """Compare the numbers, and of the values that are ranges those that pass as a whole."""
    number = pl.col("value").cast(pl.Float64, strict=False)
    if "number" in rows.columns:
        number = pl.coalesce("number", number)
    words = rows.filter(number.is_null())["value"].drop_nulls().unique()
    ranges = {word: parse_range_or_number(word) for word in words}
    passing = [
        word
        for word, bounds in ranges.items()
        if bounds is not None
        and bounds.lies_entirely_in_relation(condition.relation, condition.number)
    ]
    in_range = number.is_null() & pl.col("value").is_in(passing)
    return (
        _COMPARISONS[condition.relation](number, condition.number).fill_null(value=False) | in_range
    )
