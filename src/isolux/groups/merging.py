"""Merged and nested values, the last step before intersections.

A named merge, ``lighter = 1, 2, 3`` (FACET, Table 6), is a union: a unit is in it if one of its
values is. Merges may overlap: a unit with tones 3 and 8 is in ``lighter`` and in ``darker``.

Settings may only name values that occur; the error suggests the nearest.

Nested values: Africa counts in each of its subregions if no subregion is given.

FHIBE (Xiang et al. 2025, Methods): "Nested annotations – such as when a broad category is selected
– are handled by counting the image subject in all corresponding subregions." A broad value with
one of its own subregions is dropped: the subregion is more specific.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from isolux.core.counts import count_people_at_rows
from isolux.core.errors import SpecError
from isolux.core.grouping import Grouping
from isolux.groups.display_order import sort_groups_for_display
from isolux.groups.unknown_values import UNKNOWN, is_unknown_word


def merge_values(
    unit_values: pl.DataFrame,
    grouping: Grouping,
    occurring_values: Collection[str],
    multiplicity: pl.Series | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Merge values under new names, and note how many units are in none of them."""
    if not grouping.merge:
        return unit_values, ()
    notes = _check_merge_settings(grouping, occurring_values)
    pairs = [
        (value_to_merge, name)
        for name, values in grouping.merge.items()
        for value_to_merge in values
    ]
    mapping = pl.DataFrame(pairs, schema={"value": pl.String, "name": pl.String}, orient="row")
    united = unit_values.join(mapping, on="value").select("unit", value="name")
    merged_values = [value_to_merge for value_to_merge, _ in pairs]
    is_unnamed = ~pl.col("value").is_in(merged_values).fill_null(value=False)
    if grouping.rest == "keep":
        return pl.concat([united, unit_values.filter(is_unnamed)]).unique(), notes
    # Unknown units have no value that the merges could have named, so they are not excluded.
    selected = pl.concat([united, unit_values.filter(pl.col("value").is_null())]).unique()
    excluded = unit_values.select("unit").unique().join(selected, on="unit", how="anti")
    n_excluded = count_people_at_rows(excluded["unit"], multiplicity)
    note = f"{grouping.attribute}: {n_excluded:,} unit(s) are in no named group and are left out"
    return selected, (*notes, note) if n_excluded else notes


def _check_merge_settings(grouping: Grouping, occurring_values: Collection[str]) -> tuple[str, ...]:
    notes: list[str] = []
    for name, values in grouping.merge.items():
        notes += refuse_or_note_missing_values(
            values, occurring_values, grouping, f"the merge {name!r}"
        )
        # It would silently be joined with the group of unknown values.
        if is_unknown_word(name, (*grouping.unknown_values, UNKNOWN)):
            raise SpecError(
                f"a merge of {grouping.attribute!r} takes a name that means unknown",
                expected="another name",
                found=repr(name),
                hint="values that mean unknown belong in unknown_values",
            )
        # Otherwise the group would silently be larger (rest keep) or smaller than its name.
        if name in occurring_values and name not in values:
            raise SpecError(
                f"the merge {name!r} takes the name of a value of {grouping.attribute!r} that it "
                "leaves out",
                expected=f"{name!r} among its values, or another name",
                found=", ".join(map(repr, values)),
            )
    return tuple(notes)


def format_value_list(values: Iterable[str], max_listed: int = 12) -> str:
    """Format the first values in display order."""
    ordered = sort_groups_for_display(values)
    return ", ".join(map(repr, ordered[:max_listed])) + (", …" if len(ordered) > max_listed else "")


def refuse_or_note_missing_values(
    required_values: Iterable[str],
    occurring_values: Collection[str],
    grouping: Grouping,
    setting: str,
) -> tuple[str, ...]:
    """Refuse, or note, a setting that names a value that does not occur."""
    missing = [
        required_value
        for required_value in dict.fromkeys(required_values)
        if required_value not in occurring_values
    ]
    if missing and grouping.absent == "note":
        value_list = format_value_list(missing)
        return (f"{grouping.attribute}: nobody here is {value_list}, which {setting} names",)
    for required_value in missing:
        close_matches = difflib.get_close_matches(
            required_value, list(occurring_values), n=3, cutoff=0.5
        )
        hint = f"did you mean {' or '.join(map(repr, close_matches))}?" if close_matches else None
        if is_unknown_word(required_value, grouping.unknown_values):
            hint = f"{required_value!r} means unknown here: take it out of unknown_values to use it"
        raise SpecError(
            f"{setting} names a value that does not occur in {grouping.attribute!r}",
            expected="one of " + format_value_list(occurring_values)
            if occurring_values
            else "a known value; there is none",
            found=repr(required_value),
            hint=hint,
        )
    return ()


Tree = Mapping[str, Sequence[str]]


def _list_descendants(tree: Tree, broad: str, ancestors: tuple[str, ...] = ()) -> list[str]:
    """List all descendants of a broad value."""
    if broad in ancestors:
        raise SpecError(
            "nested values run in a circle",
            expected="each part below one broad value, none above itself",
            found=" > ".join((*ancestors, broad)),
        )
    descendants: list[str] = []
    for child in tree.get(broad, ()):
        descendants += [child, *_list_descendants(tree, child, (*ancestors, broad))]
    # A value below two branches of the tree is listed once.
    return list(dict.fromkeys(descendants))


def list_leaves(tree: Tree, broad: str) -> list[str]:
    """List the leaves below a broad value."""
    return [descendant for descendant in _list_descendants(tree, broad) if descendant not in tree]


def expand_nested_values(
    unit_values: pl.DataFrame,
    grouping: Grouping,
    occurring_values: Collection[str],
    multiplicity: pl.Series | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Replace broad values by their leaves, and note for how many units."""
    tree = grouping.nested
    if not tree:
        return unit_values, ()
    missing = refuse_or_note_missing_values(tree, occurring_values, grouping, "the nesting")
    descendant_pairs = [
        (narrow_value, broad) for broad in tree for narrow_value in _list_descendants(tree, broad)
    ]
    leaf_pairs = [(broad, leaf) for broad in tree for leaf in list_leaves(tree, broad)]
    broad_by_descendant = pl.DataFrame(
        descendant_pairs, schema={"value": pl.String, "broad": pl.String}, orient="row"
    )
    leaf_by_broad = pl.DataFrame(
        leaf_pairs, schema={"value": pl.String, "part": pl.String}, orient="row"
    )
    is_broad = pl.col("value").is_in(list(tree)).fill_null(value=False)
    covered_broad = unit_values.join(broad_by_descendant, on="value").select("unit", value="broad")
    # A broad value is expanded only if the unit has none of its descendants.
    lone_broad = unit_values.filter(is_broad).join(covered_broad, on=["unit", "value"], how="anti")
    expanded = lone_broad.join(leaf_by_broad, on="value").select("unit", value="part")
    notes = [
        f"{grouping.attribute}: {n:,} unit(s) gave only {broad!r} and count in each of its "
        f"{len(list_leaves(tree, broad))} parts"
        for broad, n in sorted(
            (broad, count_people_at_rows(pl.Series(unit_ids), multiplicity))
            for broad, unit_ids in lone_broad.group_by("value").agg("unit").rows()
        )
    ]
    unused_leaves = sorted({leaf for _, leaf in leaf_pairs} - set(occurring_values))
    if unused_leaves:
        notes.append(
            f"{grouping.attribute}: nobody gave {', '.join(map(repr, unused_leaves))} by itself"
        )
    return pl.concat([unit_values.filter(~is_broad), expanded]).unique(), (*missing, *notes)


def encode_values(column: pl.Series, values: Sequence[str]) -> pl.Series:
    """Encode each value as its index in ``values``; null stays null."""
    return column.cast(pl.Enum(values)).to_physical().cast(pl.Int64)


def apply_nesting_and_merges(
    unit_codes: pl.DataFrame,
    values: Sequence[str],
    grouping: Grouping,
    multiplicity: pl.Series | None,
) -> tuple[pl.DataFrame, list[str], tuple[str, ...]]:
    """Apply nesting and merges, which are defined by value, to encoded rows."""
    text = pl.Series("value", values, dtype=pl.String).gather(unit_codes["code"])
    unit_values, nesting_notes = expand_nested_values(
        unit_codes.select("unit", text), grouping, values, multiplicity
    )
    leaf_values = [
        leaf for broad in grouping.nested for leaf in list_leaves(grouping.nested, broad)
    ]
    narrow_values = {*values, *leaf_values} - set(grouping.nested)
    unit_values, merge_notes = merge_values(unit_values, grouping, narrow_values, multiplicity)
    values = sort_groups_for_display(unit_values["value"].unique().drop_nulls())
    coded = unit_values.select("unit", code=encode_values(unit_values["value"], values))
    return coded, values, (*nesting_notes, *merge_notes)
