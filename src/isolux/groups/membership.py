"""Who is in which group: attributes and their ``Grouping`` s become the membership table.

``attributes -> membership -> (with scores) group_metrics``. Each attribute passes, in this order,
unknown words (``unknown``), bins (``binning``), votes (``votes``), nested values (``nesting``),
named merges (``merging``), and is then crossed with others (``intersections``).

Votes are counted on values as annotated and merges unite what stands, so an annotator who chose
tones 1 and 2 is not two votes for ``lighter``. Bins come first: annotators who said 31 and 33
agree on 30–45.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from isolux.groups.binning import binned, parse_bins
from isolux.groups.intersections import Crossing, Part, crossing, entries, on_empty
from isolux.groups.merging import codes_of, renamed
from isolux.groups.no_groups import (
    check_continuous,
    check_join,
    check_many,
    check_taken,
    check_twins,
)
from isolux.groups.ordering import natural_order
from isolux.groups.unknown import KNOWN_SUFFIX, UNKNOWN, mark_unknown, words_for_nothing
from isolux.groups.votes import parse_votes, settled
from isolux.stats.constants import MANY_UNKNOWN
from isolux.vocabulary.counts import TIMES, people_at, people_in
from isolux.vocabulary.errors import TableError, UnknownNameError, place
from isolux.vocabulary.grouping import Grouping, Unknown
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.places import block_starts, is_unrepeated, places
from isolux.vocabulary.tables import ATTRIBUTES, MEMBERSHIP, check


@dataclass(frozen=True, slots=True)
class Membership:
    """Who is in which group, and what the report must say about how it came about.

    It holds numbers; the table, which names every unit, is laid out when it is asked for.

    Parameters
    ----------
    units : polars.Series
        Identifiers of the judged units.
    crossings : tuple of Crossing
        The groups of each attribute and intersection, and their units as places in ``units``.
    notes : tuple of str
        One sentence each: unknown units, units in several groups, units left out, one value only.
    accounts : mapping of str to mapping of str to int
        By attribute: ``n_units`` (scored), ``n_unknown`` of them, ``n_unannotated`` of those.
    """

    units: pl.Series
    crossings: tuple[Crossing, ...]
    notes: tuple[str, ...] = ()
    accounts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def frame(self) -> pl.DataFrame:
        """The table ``membership``."""
        return pl.concat([MEMBERSHIP.empty(), *(c.frame(self.units) for c in self.crossings)])

    @property
    def groups(self) -> pl.DataFrame:
        """The groups that hold anyone, in the order of ``frame``: ``attribute, group, values``."""
        none = MEMBERSHIP.empty().drop("unit_id")
        return pl.concat([none, *(c.listed() for c in self.crossings)])


@dataclass(frozen=True, slots=True)
class _Placed:
    """One attribute's units: ``unit, code``; the code is null where unknown."""

    name: str
    rows: pl.DataFrame
    values: tuple[str, ...]
    unknown: Unknown
    notes: tuple[str, ...]
    account: Mapping[str, int]

    def part(self, unknown: Unknown, handle: str) -> Part:
        """Give the attribute with its unknown units as a group, or without them."""
        if unknown == "drop":
            return Part(handle, self.rows.drop_nulls("code"), self.values)
        # A user may have declared the word "unknown" itself to be known: then it is one group.
        values = self.values if UNKNOWN in self.values else (*self.values, UNKNOWN)
        rows = self.rows.with_columns(pl.col("code").fill_null(values.index(UNKNOWN)))
        return Part(handle, rows if UNKNOWN not in self.values else rows.unique(), values)


def membership(
    attributes: pl.DataFrame,
    by: Sequence[str],
    groupings: Mapping[str, Grouping] | None = None,
    *,
    units: pl.DataFrame | pl.Series | None = None,
    most: int | None = None,
    where: str | None = None,
) -> Membership:
    """Put every unit into its groups: one row per unit and group, no row twice."""
    attributes = check(attributes, ATTRIBUTES, where="attributes")
    names = attributes["attribute"].unique().to_list()
    wanted = entries(by, names)
    used = list(dict.fromkeys(name for entry in wanted for name in entry))
    _check_votes(attributes, used)
    judged = _judged(attributes, used, units)
    # Once for all attributes: identifiers are text, and every later step works on numbers.
    at = places(attributes["unit_id"], judged["unit_id"], block_starts(attributes))
    unit = pl.Series("unit", at)
    of_attribute = _parted(attributes.with_row_index("row").with_columns(unit), used)
    placed = {
        name: _place(of_attribute[name], (groupings or {}).get(name), name, judged, most, where)
        for name in used
    }
    notes = [note for name in used for note in placed[name].notes]
    found = []
    for entry in wanted:
        ours = [placed[name] for name in entry]
        found += _crossed(ours, judged)
        notes += on_empty(found[-1], [[v for v in p.values if v != UNKNOWN] for p in ours])
    accounts = {name: each.account for name, each in placed.items()}
    return Membership(judged["unit_id"], tuple(found), tuple(notes), accounts)


def _crossed(placed: Sequence[_Placed], judged: pl.DataFrame) -> list[Crossing]:
    """Cross some attributes: once, or twice where unknown is to be reported both ways."""
    found = [crossing([p.part(p.unknown, p.name) for p in placed], judged.height)]
    if any(p.unknown == "both" and p.rows["code"].null_count() for p in placed):
        known = [
            p.part("drop", p.name + KNOWN_SUFFIX)
            if p.unknown == "both"
            else p.part(p.unknown, p.name)
            for p in placed
        ]
        found.append(crossing(known, judged.height))
    return found


def _parted(attributes: pl.DataFrame, used: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Part the rows by attribute; they lie together as a rule, and are then not copied."""
    names = attributes["attribute"]
    begins = names.ne_missing(names.shift(1)).to_numpy().copy()
    begins[:1] = True
    first = np.flatnonzero(begins).tolist()
    runs = [names[k] for k in first]
    if len(set(runs)) < len(runs):
        parts = attributes.partition_by("attribute", as_dict=True)
        return {name: parts[(name,)] for name in used}
    ends = dict(zip(runs, zip(first, [*first[1:], len(names)], strict=True), strict=True))
    return {name: attributes[slice(*ends[name])] for name in used}


def _check_votes(attributes: pl.DataFrame, used: Sequence[str]) -> None:
    if attributes.select(pl.col("votes").is_null().all()).item():
        return
    votes = attributes["votes"]
    wrong = ((votes < 0) & attributes["attribute"].is_in(list(used))).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise TableError(
            "votes cannot be negative",
            expected="0 or more, or none",
            found=repr(votes[row]),
            where=place("attributes", row + 1, "votes"),
        )


def _judged(
    attributes: pl.DataFrame, used: Sequence[str], units: pl.DataFrame | pl.Series | None
) -> pl.DataFrame:
    """Give each judged unit a number: ``unit_id, unit``."""
    if units is None:
        kinds = attributes.filter(pl.col("attribute").is_in(used))["unit_kind"].unique()
        alike = attributes.filter(pl.col("unit_kind").is_in(kinds.implode()))
        ids = alike["unit_id"].unique().sort()
    elif isinstance(units, pl.DataFrame) and "unit_id" not in units.columns:
        raise UnknownNameError("column", "unit_id", units.columns, where="units")
    else:
        given = units if isinstance(units, pl.Series) else units["unit_id"]
        ids = given.cast(pl.String)
        ids = ids if is_unrepeated(ids) else ids.unique(maintain_order=True)
    if ids.null_count():
        raise TableError("a judged unit has no identifier", where=place("units", None, "unit_id"))
    numbered = pl.DataFrame({"unit_id": ids}).with_row_index("unit")
    if isinstance(units, pl.DataFrame) and TIMES in units.columns:  # and no unit twice
        whose = units["scored"] if units["scored"].any() else pl.lit(value=True)
        return numbered.with_columns(units[TIMES], scored=whose)
    if isinstance(units, pl.DataFrame) and "scored" in units.columns and units["scored"].any():
        if len(ids) == units.height:
            return numbered.with_columns(units["scored"])
        scored = units.filter("scored")["unit_id"].cast(pl.String)
        return numbered.with_columns(scored=pl.col("unit_id").is_in(scored.implode()))
    return numbered.with_columns(scored=pl.lit(value=True))


def _place(
    rows: pl.DataFrame,
    grouping: Grouping | None,
    name: str,
    judged: pl.DataFrame,
    most: int | None,
    where: str | None,
) -> _Placed:
    """Bring one attribute's rows to ``unit, code``, step by step (see the module's docstring)."""
    how = grouping or Grouping(attribute=name)
    annotated = rows.filter(pl.col("unit") >= 0, _HAS_VALUE)["unit"]
    rows = mark_unknown(rows, how.unknown_values)
    given = rows["value"].unique().drop_nulls().to_list()
    theirs = rows.filter(pl.col("unit") >= 0)
    check_join(rows, theirs, judged, name)
    notes: tuple[str, ...] = ()
    times = judged[TIMES] if TIMES in judged.columns else None
    if how.bins is not None:
        known = judged.drop("unit_id", "unit")[theirs["unit"]]
        bins = binned(theirs.hstack(known), parse_bins(how.bins), name, where)
        theirs, notes, given = bins.rows, bins.notes, list(bins.labels)
    elif not (how.nested or how.merge):
        check_many(given, name, most)
    values = natural_order(given)
    theirs = theirs.select("unit", "votes", "annotator", code=codes_of(theirs["value"], values))
    rule = parse_votes(how.votes)
    found, tied = settled(theirs, rule, judged.height)
    notes += _on_ties(people_at(tied, times), people_in(judged), rule.name, name)
    if how.nested or how.merge:
        found, values, said = renamed(found, values, how, times)
        notes += said
    found, values = _ordered(found, values, times)
    check_twins(found, values, name, times)
    check_taken(values, name)
    if how.bins is None:
        check_continuous(values, name)
    check_many(values, name, most)
    account = _account(found, annotated, judged)
    notes += _counts(found, values, how, name, judged, account)
    return _Placed(name, found, tuple(values), how.unknown, notes, account)


def _ordered(
    found: pl.DataFrame, values: Sequence[str], times: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    """Leave out values that do not occur, and put the others in the order of display."""
    known = found.drop_nulls("code")
    weighs = None if times is None else times.gather(known["unit"]).to_numpy()
    sizes = np.bincount(known["code"].to_numpy(), weighs, minlength=len(values)).tolist()
    size_of = {value: size for value, size in zip(values, sizes, strict=True) if size}
    ordered = natural_order(size_of, size_of)
    place_of = {value: i for i, value in enumerate(ordered)}
    places = pl.Series([place_of.get(value) for value in values], dtype=pl.Int64)
    return found.select("unit", code=places.gather(found["code"])), ordered


def _on_ties(n_tied: int, n_units: int, rule: str, name: str) -> tuple[str, ...]:
    """Say how many units have a tie of votes, and where the rule puts them."""
    fate = "are in every known group of it" if rule == "top" else "count as unknown"
    said = f"{name}: {n_tied:,} of {n_units:,} unit(s) have a tie for the most votes and {fate}"
    return (f"{said} (--votes {rule})",) if n_tied else ()


_HAS_VALUE = pl.col("value").is_not_null() | pl.col("number").cast(pl.Float64).is_not_nan()


def _account(found: pl.DataFrame, annotated: pl.Series, judged: pl.DataFrame) -> dict[str, int]:
    """Count the scored units, the unknown among them, and of those the ones without any value."""
    times = judged[TIMES] if TIMES in judged.columns else None
    is_scored = judged["scored"]
    unknown = found.filter(pl.col("code").is_null())["unit"]
    unknown = unknown.filter(is_scored.gather(unknown))
    unannotated = unknown.filter(~unknown.is_in(annotated.unique().implode()))
    counted = {"n_unknown": unknown, "n_unannotated": unannotated}
    return {
        "n_units": people_in(judged.filter(is_scored)),
        **{name: people_at(units, times) for name, units in counted.items()},
    }


def _counts(
    found: pl.DataFrame,
    values: Sequence[str],
    how: Grouping,
    name: str,
    judged: pl.DataFrame,
    account: Mapping[str, int],
) -> tuple[str, ...]:
    """Say how many units are unknown, in several groups, and whether there is but one value."""
    notes: list[str] = []
    times = judged[TIMES] if TIMES in judged.columns else None
    n_units = people_in(judged)
    unknown, unannotated = account["n_unknown"], account["n_unannotated"]
    if unknown:
        fate = {
            "keep": "kept as a separate group",
            "drop": "left out",
            "both": f"reported with them and, as {name + KNOWN_SUFFIX!r}, without",
        }[how.unknown]
        which = "" if unannotated == unknown else f"{unannotated:,} of them "
        which = f" ({which}not annotated)" if unannotated else ""
        text = f"{name}: {unknown:,} of {account['n_units']:,} unit(s) unknown{which}, {fate}"
        notes.append(Caution(text) if unknown >= MANY_UNKNOWN * account["n_units"] else text)
    twice = np.flatnonzero(np.bincount(found["unit"].to_numpy(), minlength=1) > 1)
    several = people_at(pl.Series(twice), times)
    if several:
        notes.append(f"{name}: {several:,} of {n_units:,} unit(s) are in more than one group")
    notes += words_for_nothing(name, values)
    if len(values) == 1:
        notes.append(
            f"{name}: {values[0]!r} is the only known group, so there is nothing to compare it with"
        )
    if not values and n_units:
        notes.append(f"{name}: every unit is unknown or left out")
    return tuple(notes)
