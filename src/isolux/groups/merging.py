"""Named merges: ``lighter = 1, 2, 3`` (FACET, Table 6). The last step before intersections.

A merge is a union: a unit is in it when one of its values is. Merges may overlap, and a unit with
tones 3 and 8 is in ``lighter`` and in ``darker``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import polars as pl

from isolux.groups.occurrence import require_values
from isolux.groups.unknown import UNKNOWN, is_unknown_word
from isolux.vocabulary.counts import people_at
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import Absent

Merges = Mapping[str, Sequence[str]]


def merged(
    found: pl.DataFrame,
    merge: Merges,
    rest: Literal["keep", "drop"],
    *,
    occurring: Collection[str],
    attribute: str,
    unknown_values: Sequence[str] = (),
    absent: Absent = "refuse",
    times: pl.Series | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Unite values under new names, and say how many units are in none of them.

    Examples
    --------
    >>> found = pl.DataFrame({"unit": [0, 0, 1], "value": ["1", "2", "5"]})
    >>> rows, notes = merged(found, {"lighter": ("1", "2")}, "drop", occurring=["1", "2", "5"],
    ...     attribute="tone")
    >>> rows.rows(), notes
    ([(0, 'lighter')], ('tone: 1 unit(s) are in no named group and are left out',))
    """
    if not merge:
        return found, ()
    notes = _check(merge, occurring, attribute, unknown_values, absent)
    pairs = [(value, name) for name, values in merge.items() for value in values]
    mapping = pl.DataFrame(pairs, schema={"value": pl.String, "name": pl.String}, orient="row")
    united = found.join(mapping, on="value").select("unit", value="name")
    named = [value for value, _ in pairs]
    unnamed = ~pl.col("value").is_in(named).fill_null(value=False)
    if rest == "keep":
        return pl.concat([united, found.filter(unnamed)]).unique(), notes
    kept = pl.concat([united, found.filter(pl.col("value").is_null())]).unique()
    gone = found.select("unit").unique().join(kept, on="unit", how="anti")
    left = people_at(gone["unit"], times)
    note = f"{attribute}: {left:,} unit(s) are in no named group and are left out"
    return kept, (*notes, note) if left else notes


def _check(
    merge: Merges,
    occurring: Collection[str],
    attribute: str,
    unknown_values: Sequence[str],
    absent: Absent,
) -> tuple[str, ...]:
    notes: list[str] = []
    for name, values in merge.items():
        notes += require_values(
            values,
            occurring,
            attribute=attribute,
            setting=f"the merge {name!r}",
            unknown_values=unknown_values,
            absent=absent,
        )
        if is_unknown_word(name, (*unknown_values, UNKNOWN)):
            raise SpecError(
                f"a merge of {attribute!r} takes a name that means unknown",
                expected="another name",
                found=repr(name),
                hint="values that mean unknown belong in --unknown-values",
            )
        # Otherwise the group would silently hold more (rest keep) or less than its name says.
        if name in occurring and name not in values:
            raise SpecError(
                f"the merge {name!r} takes the name of a value of {attribute!r} that it leaves out",
                expected=f"{name!r} among its values, or another name",
                found=", ".join(map(repr, values)),
            )
    return tuple(notes)
