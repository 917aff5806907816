"""Group membership: from attributes and their ``Grouping`` to the membership table.

``attributes -> membership -> (with scores) group_metrics``. Each attribute passes, in this order,
unknown words (``unknown_values``), bins (``binning``), votes (``vote_rules``), nested values and
named merges (``merging``), and is then crossed with others (``intersections``).

Votes are counted on values as annotated, and merges follow, so that an annotator who chose tones 1
and 2 is not two votes for ``lighter``. Bins come first: annotators who said 31 and 33 agree on
30–45.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from isolux.core.counts import TIMES, count_people, count_people_at_rows
from isolux.core.errors import TableError, UnknownNameError, format_location
from isolux.core.grouping import Grouping, UnknownHandling
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, MEMBERSHIP, check
from isolux.core.unit_index import find_block_starts, has_no_duplicates, lookup_positions
from isolux.groups.binning import bin_or_merge_rare_values, parse_bins
from isolux.groups.display_order import sort_groups_for_display
from isolux.groups.intersections import (
    AttributeCodes,
    IntersectionMembership,
    cross_attributes,
    note_empty_combinations,
    parse_unique_intersections,
)
from isolux.groups.invalid_groups import (
    check_has_scored_values,
    check_n_values,
    check_not_continuous,
    check_reserved_names,
    check_spelling_variants,
)
from isolux.groups.merging import apply_nesting_and_merges, encode_values
from isolux.groups.unknown_values import (
    KNOWN_SUFFIX,
    UNKNOWN,
    caution_on_null_like_values,
    null_unknown_words,
)
from isolux.groups.vote_rules import apply_vote_rule, parse_vote_rule
from isolux.stats.constants import HIGH_UNKNOWN_SHARE


@dataclass(frozen=True, slots=True)
class Membership:
    """Group membership of units, with notes for the report.

    Units and groups are stored as integers; the table with identifiers is built on request.

    Parameters
    ----------
    units : polars.Series
        Identifiers of the scored units.
    intersections : tuple of IntersectionMembership
        The groups of each attribute and intersection, with units as indices in ``units``.
    notes : tuple of str
        One sentence each: unknown units, units in several groups, excluded units, one value only.
    unit_counts : mapping of str to mapping of str to int
        By attribute: ``n_units`` (scored), ``n_unknown`` of them, ``n_unannotated`` of those.
    """

    units: pl.Series
    intersections: tuple[IntersectionMembership, ...]
    notes: tuple[str, ...] = ()
    unit_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def frame(self) -> pl.DataFrame:
        """The table ``membership``."""
        return pl.concat(
            [MEMBERSHIP.empty(), *(c.to_table(self.units) for c in self.intersections)]
        )

    @property
    def groups(self) -> pl.DataFrame:
        """The non-empty groups in the order of ``frame``: ``attribute, group, values``."""
        empty_table = MEMBERSHIP.empty().drop("unit_id")
        return pl.concat([empty_table, *(c.to_group_table() for c in self.intersections)])


@dataclass(frozen=True, slots=True)
class _CodedAttribute:
    """One attribute's units: ``unit, code``; the code is null where unknown."""

    name: str
    rows: pl.DataFrame
    values: tuple[str, ...]
    unknown: UnknownHandling
    notes: tuple[str, ...]
    unit_counts: Mapping[str, int]

    def to_codes(self, unknown: UnknownHandling, handle: str) -> AttributeCodes:
        """Return the attribute's codes with unknown units as a group, or without them."""
        if unknown == "drop":
            return AttributeCodes(handle, self.rows.drop_nulls("code"), self.values)
        # A user may have declared the word "unknown" a regular value: then both are one group.
        values = self.values if UNKNOWN in self.values else (*self.values, UNKNOWN)
        rows = self.rows.with_columns(pl.col("code").fill_null(values.index(UNKNOWN)))
        return AttributeCodes(handle, rows if UNKNOWN not in self.values else rows.unique(), values)


def build_membership(
    attributes: pl.DataFrame,
    by: Sequence[str],
    groupings: Mapping[str, Grouping] | None = None,
    *,
    units: pl.DataFrame | pl.Series | None = None,
    max_values: int | None = None,
    source: str | None = None,
) -> Membership:
    """Assign every unit to its groups: one row per unit and group, without duplicates."""
    attributes = check(attributes, ATTRIBUTES, source="attributes")
    names = attributes["attribute"].unique().to_list()
    entries_to_cross = parse_unique_intersections(by, names)
    used_names = list(dict.fromkeys(name for entry in entries_to_cross for name in entry))
    _check_votes_not_negative(attributes, used_names)
    scored_units = _index_scored_units(attributes, used_names, units)
    # Once for all attributes: identifiers are text, and every later step works on numbers.
    unit_positions = lookup_positions(
        attributes["unit_id"], scored_units["unit_id"], find_block_starts(attributes)
    )
    unit = pl.Series("unit", unit_positions)
    rows_by_attribute = _split_by_attribute(
        attributes.with_row_index("row").with_columns(unit), used_names
    )
    coded = {
        name: _reduce_to_codes(
            rows_by_attribute[name],
            (groupings or {}).get(name),
            name,
            scored_units,
            max_values,
            source,
        )
        for name in used_names
    }
    notes = [note for name in used_names for note in coded[name].notes]
    intersections = []
    for entry in entries_to_cross:
        entry_attributes = [coded[name] for name in entry]
        intersections += _cross_known_and_unknown(entry_attributes, scored_units)
        notes += note_empty_combinations(
            intersections[-1], [[v for v in p.values if v != UNKNOWN] for p in entry_attributes]
        )
    accounts = {name: attribute.unit_counts for name, attribute in coded.items()}
    return Membership(scored_units["unit_id"], tuple(intersections), tuple(notes), accounts)


def _cross_known_and_unknown(
    coded: Sequence[_CodedAttribute], scored_units: pl.DataFrame
) -> list[IntersectionMembership]:
    """Cross attributes: once, or twice where unknown units are reported with and without."""
    intersections = [
        cross_attributes([p.to_codes(p.unknown, p.name) for p in coded], scored_units.height)
    ]
    # Without unknown units, both reports would be the same.
    if any(p.unknown == "both" and p.rows["code"].null_count() for p in coded):
        known_codes = [
            p.to_codes("drop", p.name + KNOWN_SUFFIX)
            if p.unknown == "both"
            else p.to_codes(p.unknown, p.name)
            for p in coded
        ]
        intersections.append(cross_attributes(known_codes, scored_units.height))
    return intersections


def _split_by_attribute(
    attributes: pl.DataFrame, used_names: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """Split the rows by attribute; contiguous rows, the usual case, are not copied."""
    if not used_names:
        return {}
    names = attributes["attribute"]
    is_start = names.ne_missing(names.shift(1)).to_numpy().copy()
    is_start[:1] = True
    first = np.flatnonzero(is_start).tolist()
    run_names = [names[k] for k in first]
    if len(set(run_names)) < len(run_names):
        rows_by_name = attributes.partition_by("attribute", as_dict=True)
        return {name: rows_by_name[(name,)] for name in used_names}
    row_ranges = dict(
        zip(run_names, zip(first, [*first[1:], len(names)], strict=True), strict=True)
    )
    return {name: attributes[slice(*row_ranges[name])] for name in used_names}


def _check_votes_not_negative(attributes: pl.DataFrame, used_names: Sequence[str]) -> None:
    if attributes.select(pl.col("votes").is_null().all()).item():
        return
    votes = attributes["votes"]
    negative_rows = ((votes < 0) & attributes["attribute"].is_in(list(used_names))).arg_true()
    if len(negative_rows):
        row = int(negative_rows[0])
        raise TableError(
            "votes cannot be negative",
            expected="0 or more, or none",
            found=repr(votes[row]),
            where=format_location("attributes", row + 1, "votes"),
        )


def _index_scored_units(
    attributes: pl.DataFrame, used_names: Sequence[str], units: pl.DataFrame | pl.Series | None
) -> pl.DataFrame:
    """Assign integers to the scored units: ``unit_id, unit``."""
    if units is None:
        unit_kinds = attributes.filter(pl.col("attribute").is_in(used_names))["unit_kind"].unique()
        same_kind_rows = attributes.filter(pl.col("unit_kind").is_in(unit_kinds.implode()))
        ids = same_kind_rows["unit_id"].unique().sort()
    elif isinstance(units, pl.DataFrame) and "unit_id" not in units.columns:
        raise UnknownNameError("column", "unit_id", units.columns, where="units")
    else:
        unit_ids = units if isinstance(units, pl.Series) else units["unit_id"]
        ids = unit_ids.cast(pl.String)
        ids = ids if has_no_duplicates(ids) else ids.unique(maintain_order=True)
    if ids.null_count():
        raise TableError(
            "a judged unit has no identifier", where=format_location("units", None, "unit_id")
        )
    numbered_units = pl.DataFrame({"unit_id": ids}).with_row_index("unit")
    if isinstance(units, pl.DataFrame) and TIMES in units.columns:  # and no unit twice
        is_scored = units["scored"] if units["scored"].any() else pl.lit(value=True)
        return numbered_units.with_columns(units[TIMES], scored=is_scored)
    if isinstance(units, pl.DataFrame) and "scored" in units.columns and units["scored"].any():
        if len(ids) == units.height:
            return numbered_units.with_columns(units["scored"])
        scored = units.filter("scored")["unit_id"].cast(pl.String)
        return numbered_units.with_columns(scored=pl.col("unit_id").is_in(scored.implode()))
    return numbered_units.with_columns(scored=pl.lit(value=True))


def _reduce_to_codes(
    rows: pl.DataFrame,
    grouping: Grouping | None,
    name: str,
    scored_units: pl.DataFrame,
    max_values: int | None,
    source: str | None,
) -> _CodedAttribute:
    """Reduce one attribute's rows to ``unit, code``, in the steps of the module's docstring."""
    # The order of the steps is that of the module's docstring, with its reasons.
    settings = grouping or Grouping(attribute=name)
    # Before unknown words become null: an annotator said "unknown" about these units.
    annotated = rows.filter(pl.col("unit") >= 0, _HAS_VALUE)["unit"]
    rows = null_unknown_words(rows, settings.unknown_values)
    distinct_values = rows["value"].unique().drop_nulls().to_list()
    scored_rows = rows.filter(pl.col("unit") >= 0)
    check_has_scored_values(rows, scored_rows, scored_units, name)
    notes: tuple[str, ...] = ()
    multiplicity = scored_units[TIMES] if TIMES in scored_units.columns else None
    if settings.bins is not None:
        unit_columns = scored_units.drop("unit_id", "unit")[scored_rows["unit"]]
        bins = bin_or_merge_rare_values(
            scored_rows.hstack(unit_columns), parse_bins(settings.bins), name, source
        )
        scored_rows, notes, distinct_values = bins.rows, bins.notes, list(bins.labels)
    elif not (settings.nested or settings.merge):
        # Early, before thousands of values are sorted and counted; merges may still reduce them.
        check_n_values(distinct_values, name, max_values)
    values = sort_groups_for_display(distinct_values)
    scored_rows = scored_rows.select(
        "unit", "votes", "annotator", code=encode_values(scored_rows["value"], values)
    )
    vote_rule = parse_vote_rule(settings.votes)
    unit_codes, tied_units = apply_vote_rule(scored_rows, vote_rule, scored_units.height)
    notes += _note_ties(
        count_people_at_rows(tied_units, multiplicity),
        count_people(scored_units),
        vote_rule.name,
        name,
    )
    if settings.nested or settings.merge:
        unit_codes, values, merge_notes = apply_nesting_and_merges(
            unit_codes, values, settings, multiplicity
        )
        notes += merge_notes
    unit_codes, values = _drop_empty_and_order_values(unit_codes, values, multiplicity)
    # After the merges, by which the user may have joined the spellings.
    check_spelling_variants(unit_codes, values, name, multiplicity)
    check_reserved_names(values, name)
    if settings.bins is None:
        check_not_continuous(values, name)
    check_n_values(values, name, max_values)
    unit_counts = _count_unknown_units(unit_codes, annotated, scored_units)
    notes += _note_unknown_and_multiple(
        unit_codes, values, settings, name, scored_units, unit_counts
    )
    return _CodedAttribute(name, unit_codes, tuple(values), settings.unknown, notes, unit_counts)


def _drop_empty_and_order_values(
    unit_codes: pl.DataFrame, values: Sequence[str], multiplicity: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    """Drop values that do not occur, and order the others for display."""
    known_codes = unit_codes.drop_nulls("code")
    weights = None if multiplicity is None else multiplicity.gather(known_codes["unit"]).to_numpy()
    sizes = np.bincount(known_codes["code"].to_numpy(), weights, minlength=len(values)).tolist()
    size_by_value = {group: size for group, size in zip(values, sizes, strict=True) if size}
    ordered = sort_groups_for_display(size_by_value, size_by_value)
    position_by_value = {group: i for i, group in enumerate(ordered)}
    new_codes = pl.Series([position_by_value.get(group) for group in values], dtype=pl.Int64)
    return unit_codes.select("unit", code=new_codes.gather(unit_codes["code"])), ordered


def _note_ties(n_tied: int, n_units: int, rule: str, name: str) -> tuple[str, ...]:
    """Note how many units have tied votes, and how the rule assigns them."""
    consequence = "are in every known group of it" if rule == "top" else "count as unknown"
    text = (
        f"{name}: {n_tied:,} of {n_units:,} unit(s) have a tie for the most votes and {consequence}"
    )
    return (f"{text} (--votes {rule})",) if n_tied else ()


_HAS_VALUE = pl.col("value").is_not_null() | pl.col("number").cast(pl.Float64).is_not_nan()


def _count_unknown_units(
    unit_codes: pl.DataFrame, annotated: pl.Series, scored_units: pl.DataFrame
) -> dict[str, int]:
    """Count the scored units, the unknown ones, and those without any annotation."""
    multiplicity = scored_units[TIMES] if TIMES in scored_units.columns else None
    is_scored = scored_units["scored"]
    unknown = unit_codes.filter(pl.col("code").is_null())["unit"]
    # Units that were not scored are in no number of the report.
    unknown = unknown.filter(is_scored.gather(unknown))
    unannotated = unknown.filter(~unknown.is_in(annotated.unique().implode()))
    units_by_count = {"n_unknown": unknown, "n_unannotated": unannotated}
    return {
        "n_units": count_people(scored_units.filter(is_scored)),
        **{
            name: count_people_at_rows(units, multiplicity)
            for name, units in units_by_count.items()
        },
    }


def _count_unknown_in_known_groups(unit_codes: pl.DataFrame, scored_units: pl.DataFrame) -> int:
    """Count the scored units that are unknown and have known values too (``any+unknown``)."""
    known_units = unit_codes.drop_nulls("code")["unit"].unique()
    unknown_units = unit_codes.filter(pl.col("code").is_null())["unit"]
    in_both = unknown_units.filter(unknown_units.is_in(known_units.implode()))
    multiplicity = scored_units[TIMES] if TIMES in scored_units.columns else None
    return count_people_at_rows(
        in_both.filter(scored_units["scored"].gather(in_both)), multiplicity
    )


def _note_unknown_and_multiple(
    unit_codes: pl.DataFrame,
    values: Sequence[str],
    settings: Grouping,
    name: str,
    scored_units: pl.DataFrame,
    unit_counts: Mapping[str, int],
) -> tuple[str, ...]:
    """Note how many units are unknown or in several groups, and if there is only one value."""
    notes: list[str] = []
    multiplicity = scored_units[TIMES] if TIMES in scored_units.columns else None
    n_units = count_people(scored_units)
    unknown, unannotated = unit_counts["n_unknown"], unit_counts["n_unannotated"]
    if unknown:
        consequence = {
            "keep": "kept as a separate group",
            "drop": "left out",
            "both": f"reported with them and, as {name + KNOWN_SUFFIX!r}, without",
        }[settings.unknown]
        annotation_text = "" if unannotated == unknown else f"{unannotated:,} of them "
        annotation_text = f" ({annotation_text}not annotated)" if unannotated else ""
        text = (
            f"{name}: {unknown:,} of {unit_counts['n_units']:,} unit(s) unknown{annotation_text}, "
            f"{consequence}"
        )
        if n_in_both := _count_unknown_in_known_groups(unit_codes, scored_units):
            text += f"; {n_in_both:,} of them are in known groups too (--votes {settings.votes})"
        notes.append(
            Caution(text) if unknown >= HIGH_UNKNOWN_SHARE * unit_counts["n_units"] else text
        )
    repeated_units = np.flatnonzero(np.bincount(unit_codes["unit"].to_numpy(), minlength=1) > 1)
    n_in_several = count_people_at_rows(pl.Series(repeated_units), multiplicity)
    if n_in_several:
        notes.append(f"{name}: {n_in_several:,} of {n_units:,} unit(s) are in more than one group")
    notes += caution_on_null_like_values(name, values)
    if len(values) == 1:
        notes.append(
            f"{name}: {values[0]!r} is the only known group, so there is nothing to compare it with"
        )
    if not values and n_units:
        notes.append(f"{name}: every unit is unknown or left out")
    return tuple(notes)
