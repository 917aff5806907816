"""Named merges: ``lighter = 1, 2, 3`` (FACET, Table 6). The last step before intersections.

A merge is a union: a unit is in it when one of its values is. Merges may overlap, and a unit with
tones 3 and 8 is in ``lighter`` and in ``darker``.

Settings that name a value must name one that occurs; the message offers the nearest.

Nested values: Africa counts in each of its subregions when no subregion is given beside it.

FHIBE (Xiang et al. 2025, Methods): "Nested annotations – such as when a broad category is selected
– are handled by counting the image subject in all corresponding subregions." A broad value beside
one of its own subregions adds nothing: the subregion says more.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from isolux.groups.ordering import natural_order
from isolux.groups.unknown import UNKNOWN, is_unknown_word
from isolux.vocabulary.counts import people_at
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import Grouping


def merged(
    found: pl.DataFrame, how: Grouping, occurring: Collection[str], times: pl.Series | None = None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Unite values under new names, and say how many units are in none of them."""
    if not how.merge:
        return found, ()
    notes = _check_merges(how, occurring)
    pairs = [(value, name) for name, values in how.merge.items() for value in values]
    mapping = pl.DataFrame(pairs, schema={"value": pl.String, "name": pl.String}, orient="row")
    united = found.join(mapping, on="value").select("unit", value="name")
    named = [value for value, _ in pairs]
    unnamed = ~pl.col("value").is_in(named).fill_null(value=False)
    if how.rest == "keep":
        return pl.concat([united, found.filter(unnamed)]).unique(), notes
    kept = pl.concat([united, found.filter(pl.col("value").is_null())]).unique()
    gone = found.select("unit").unique().join(kept, on="unit", how="anti")
    left = people_at(gone["unit"], times)
    note = f"{how.attribute}: {left:,} unit(s) are in no named group and are left out"
    return kept, (*notes, note) if left else notes


def _check_merges(how: Grouping, occurring: Collection[str]) -> tuple[str, ...]:
    notes: list[str] = []
    for name, values in how.merge.items():
        notes += require_values(values, occurring, how, f"the merge {name!r}")
        if is_unknown_word(name, (*how.unknown_values, UNKNOWN)):
            raise SpecError(
                f"a merge of {how.attribute!r} takes a name that means unknown",
                expected="another name",
                found=repr(name),
                hint="values that mean unknown belong in unknown_values",
            )
        # Otherwise the group would silently hold more (rest keep) or less than its name says.
        if name in occurring and name not in values:
            raise SpecError(
                f"the merge {name!r} takes the name of a value of {how.attribute!r} that it leaves"
                " out",
                expected=f"{name!r} among its values, or another name",
                found=", ".join(map(repr, values)),
            )
    return tuple(notes)


def listed(values: Iterable[str], most: int = 12) -> str:
    """Write values out in natural order, the first few of them."""
    ordered = natural_order(values)
    return ", ".join(map(repr, ordered[:most])) + (", …" if len(ordered) > most else "")


def require_values(
    wanted: Iterable[str], occurring: Collection[str], how: Grouping, setting: str
) -> tuple[str, ...]:
    """Refuse a setting that names a value which the attribute never takes, or note it."""
    missing = [value for value in dict.fromkeys(wanted) if value not in occurring]
    if missing and how.absent == "note":
        return (f"{how.attribute}: nobody here is {listed(missing)}, which {setting} names",)
    for value in missing:
        near = difflib.get_close_matches(value, list(occurring), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else None
        if is_unknown_word(value, how.unknown_values):
            hint = f"{value!r} means unknown here: take it out of unknown_values to use it"
        raise SpecError(
            f"{setting} names a value that does not occur in {how.attribute!r}",
            expected="one of " + listed(occurring) if occurring else "a known value; there is none",
            found=repr(value),
            hint=hint,
        )
    return ()


Tree = Mapping[str, Sequence[str]]


def _below(tree: Tree, broad: str, seen: tuple[str, ...] = ()) -> list[str]:
    """List everything below a broad value, its parts' parts too."""
    if broad in seen:
        raise SpecError(
            "nested values run in a circle",
            expected="each part below one broad value, none above itself",
            found=" > ".join((*seen, broad)),
        )
    found: list[str] = []
    for part in tree.get(broad, ()):
        found += [part, *_below(tree, part, (*seen, broad))]
    return list(dict.fromkeys(found))


def leaves(tree: Tree, broad: str) -> list[str]:
    """List the narrowest values below a broad one."""
    return [value for value in _below(tree, broad) if value not in tree]


def nested(
    found: pl.DataFrame, how: Grouping, occurring: Collection[str], times: pl.Series | None = None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Replace broad values by their parts, and say for how many units that was done."""
    tree = how.nested
    if not tree:
        return found, ()
    missing = require_values(tree, occurring, how, "the nesting")
    below = [(value, broad) for broad in tree for value in _below(tree, broad)]
    parts = [(broad, leaf) for broad in tree for leaf in leaves(tree, broad)]
    up = pl.DataFrame(below, schema={"value": pl.String, "broad": pl.String}, orient="row")
    down = pl.DataFrame(parts, schema={"value": pl.String, "part": pl.String}, orient="row")
    is_broad = pl.col("value").is_in(list(tree)).fill_null(value=False)
    covered = found.join(up, on="value").select("unit", value="broad")
    alone = found.filter(is_broad).join(covered, on=["unit", "value"], how="anti")
    spread = alone.join(down, on="value").select("unit", value="part")
    notes = [
        f"{how.attribute}: {n:,} unit(s) gave only {broad!r} and count in each of its "
        f"{len(leaves(tree, broad))} parts"
        for broad, n in sorted(
            (broad, people_at(pl.Series(whose), times))
            for broad, whose in alone.group_by("value").agg("unit").rows()
        )
    ]
    unchosen = sorted({leaf for _, leaf in parts} - set(occurring))
    if unchosen:
        notes.append(f"{how.attribute}: nobody gave {', '.join(map(repr, unchosen))} by itself")
    return pl.concat([found.filter(~is_broad), spread]).unique(), (*missing, *notes)


def codes_of(value: pl.Series, values: Sequence[str]) -> pl.Series:
    """Replace each value by its place in ``values``; null stays null."""
    return value.cast(pl.Enum(values)).to_physical().cast(pl.Int64)


def renamed(
    found: pl.DataFrame, values: Sequence[str], how: Grouping, times: pl.Series | None
) -> tuple[pl.DataFrame, list[str], tuple[str, ...]]:
    """Apply nesting and merges, which work on values by name, to rows with codes."""
    text = pl.Series("value", values, dtype=pl.String).gather(found["code"])
    named, said = nested(found.select("unit", text), how, values, times)
    parts = [leaf for broad in how.nested for leaf in leaves(how.nested, broad)]
    narrow = {*values, *parts} - set(how.nested)
    named, left_out = merged(named, how, narrow, times)
    values = natural_order(named["value"].unique().drop_nulls())
    coded = named.select("unit", code=codes_of(named["value"], values))
    return coded, values, (*said, *left_out)
