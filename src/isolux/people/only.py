"""Who is judged: the people of a dataset whose attributes pass every condition of ``--only``.

A published protocol judges adults, or one-person images. The others are not simply away: in a
picture they can still be who a detection found, so tasks that look at whole images keep them in
the matching and give them no score (``INFO.whole_images``).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from isolux.groups.ordering import Range, read_range
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.counts import how_often, people_in, with_times
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES

_WRITTEN = re.compile(r"\s*([^=<>!]+?)\s*(>=|<=|!=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_COMPARE: dict[str, Callable[[pl.Expr, float], pl.Expr]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


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


def parse_conditions(written: Sequence[str]) -> tuple[Condition, ...]:
    """Read conditions: ``ATTRIBUTE=VALUE,VALUE``, ``!=``, ``>=``, ``<=``, ``>`` or ``<``."""
    return tuple(_condition(text) for text in written)


def _condition(text: str) -> Condition:
    found = _WRITTEN.fullmatch(text)
    if found is None or not found[3]:
        raise SpecError(
            "--only is not a condition",
            expected='ATTRIBUTE=VALUE,VALUE or ATTRIBUTE>=NUMBER, as in "age>=20"',
            found=repr(text),
        )
    attribute, relation, right = found.groups()
    if relation not in _COMPARE:
        parts = re.findall(r'\s*(?:"([^"]*)"|([^,]+))\s*(?:,|$)', right)
        return Condition(attribute, relation, tuple((a or b).strip() for a, b in parts))
    try:
        return Condition(attribute, relation, number=float(right))
    except ValueError:
        raise SpecError(
            f"--only compares {attribute!r} with something that is not a number",
            expected=f"a number after {relation}",
            found=repr(text),
        ) from None


def keep_only(dataset: Dataset, written: Sequence[str], *, whole_images: bool) -> Dataset:
    """Keep the people who pass every condition."""
    if not written:
        return dataset
    attributes = dataset.instance_attributes()
    instances = INSTANCES.conform(dataset.instances)
    passing = pl.lit(value=True)
    told: list[str] = []
    for condition in parse_conditions(written):
        passing &= _passing(condition, attributes, dataset)
        told += _on_ranges(condition, with_times(attributes, dataset.times, "unit_id"))
    kept = instances.select(passing).to_series()
    if instances.height and not kept.any():
        raise SpecError("nobody passes --only", found=" and ".join(written), where=dataset.name)
    if whole_images:
        before = pl.col("judged") if "judged" in instances.columns else pl.lit(value=True)
        people = instances.with_columns(judged=before.fill_null(value=True) & kept)
    else:
        people = instances.filter(kept)
    every = with_times(instances.select("instance_id"), dataset.times, "instance_id")
    left, n = people_in(every.filter(~kept)), people_in(every)
    says = "take part in the matching and are not judged" if whole_images else "were left out"
    note = f"{left:,} of {n:,} people {says}: only {' and '.join(written)}."
    return replace(dataset, instances=people, notes=(*dataset.notes, note, *told))


def _on_ranges(condition: Condition, attributes: pl.DataFrame) -> list[str]:
    """Say which values a comparison leaves out; caution where a range lies on both sides of it."""
    if condition.relation not in _COMPARE:
        return []
    rows = attributes.filter(pl.col("attribute") == condition.attribute)
    sizes = dict(how_often(rows, pl.col("value")).select("label", "count").iter_rows())
    ranges = {v: one for v in sizes if (one := read_range(v)) is not None and one.low < one.high}
    if not ranges:
        return []
    asked = f"{condition.attribute}{condition.relation}{condition.number:g}"

    def listed(values: Iterable[str]) -> str:
        order = sorted(values, key=lambda v: (read_range(v) or Range(math.inf, math.inf)).low)
        return ", ".join(f"{v} ({sizes[v]:,})" for v in order)

    relation, number = condition.relation, condition.number
    failing = {v: one for v, one in ranges.items() if not one.passes(relation, number)}
    torn = [v for v, one in failing.items() if not one.passes(_OPPOSITE[relation], number)]
    notes: list[str] = []
    if torn:
        lowest = min(ranges[v].low for v in torn)
        highest = max(ranges[v].high for v in torn)
        edge = f">={lowest:g}" if relation in (">", ">=") else f"<={highest:g}"
        notes.append(
            Caution(
                f"--only {asked} keeps a range only if all of it passes: {listed(torn)} are on "
                f'both sides and were left out. --only "{condition.attribute}{edge}" keeps them.'
            )
        )
    whole = [v for v in failing if v not in torn]
    if whole:
        notes.append(f"Left out by {asked}: {listed(whole)}.")
    return notes


def only_judged(dataset: Dataset) -> Dataset:
    """Leave out who is not ``judged``, for a task in which bystanders have no part."""
    instances = INSTANCES.conform(dataset.instances)
    if "judged" not in instances.columns or instances["judged"].all():
        return dataset
    kept = instances.filter(pl.col("judged").fill_null(value=True))
    left = instances.height - kept.height
    note = f"{left:,} of {instances.height:,} people are not to be judged and were left out."
    notes = (*dataset.notes, note) if left else dataset.notes
    return replace(dataset, instances=kept, notes=notes)


def _passing(condition: Condition, attributes: pl.DataFrame, dataset: Dataset) -> pl.Expr:
    rows = attributes.filter(pl.col("attribute") == condition.attribute)
    if rows.is_empty():
        known = dataset.attributes["attribute"].unique().sort().to_list()
        raise UnknownNameError("attribute", condition.attribute, known, where="--only")
    who = pl.col("instance_id")
    if condition.relation in _COMPARE:
        return who.is_in(rows.filter(_comparing(condition, rows))["unit_id"].implode())
    named = who.is_in(
        rows.filter(pl.col("value").is_in(list(condition.values)))["unit_id"].implode()
    )
    return ~named if condition.relation == "!=" else named


def _comparing(condition: Condition, rows: pl.DataFrame) -> pl.Expr:
    """Compare the numbers, and of the values that are ranges those that pass as a whole."""
    number = pl.col("value").cast(pl.Float64, strict=False)
    if "number" in rows.columns:
        number = pl.coalesce("number", number)
    words = rows.filter(number.is_null())["value"].drop_nulls().unique()
    ranges = {word: read_range(word) for word in words}
    passing = [
        word
        for word, found in ranges.items()
        if found is not None and found.passes(condition.relation, condition.number)
    ]
    in_range = number.is_null() & pl.col("value").is_in(passing)
    return _COMPARE[condition.relation](number, condition.number).fill_null(value=False) | in_range
