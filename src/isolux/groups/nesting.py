"""Nested values: Africa counts in each of its subregions when no subregion is given beside it.

FHIBE (Xiang et al. 2025, Methods): "Nested annotations – such as when a broad category is selected
– are handled by counting the image subject in all corresponding subregions." A broad value beside
one of its own subregions adds nothing: the subregion says more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from isolux.groups.occurrence import require_values
from isolux.vocabulary.counts import people_at
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import Absent

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
    """List the narrowest values below a broad one.

    Examples
    --------
    >>> leaves({"Africa": ("East", "West"), "East": ("Kenya",)}, "Africa")
    ['Kenya', 'West']
    """
    return [value for value in _below(tree, broad) if value not in tree]


def nested(
    found: pl.DataFrame,
    tree: Tree,
    *,
    occurring: Collection[str],
    attribute: str,
    unknown_values: Sequence[str] = (),
    absent: Absent = "refuse",
    times: pl.Series | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Replace broad values by their parts, and say for how many units that was done.

    Examples
    --------
    >>> found = pl.DataFrame({"unit": [0, 1, 1], "value": ["Africa", "Africa", "Kenya"]})
    >>> tree = {"Africa": ("Kenya", "Ghana")}
    >>> rows, notes = nested(found, tree, occurring=["Africa", "Kenya"], attribute="ancestry")
    >>> rows.sort("unit", "value").rows()
    [(0, 'Ghana'), (0, 'Kenya'), (1, 'Kenya')]
    """
    if not tree:
        return found, ()
    missing = require_values(
        tree,
        occurring,
        attribute=attribute,
        setting="the nesting",
        unknown_values=unknown_values,
        absent=absent,
    )
    below = [(value, broad) for broad in tree for value in _below(tree, broad)]
    parts = [(broad, leaf) for broad in tree for leaf in leaves(tree, broad)]
    up = pl.DataFrame(below, schema={"value": pl.String, "broad": pl.String}, orient="row")
    down = pl.DataFrame(parts, schema={"value": pl.String, "part": pl.String}, orient="row")
    is_broad = pl.col("value").is_in(list(tree)).fill_null(value=False)
    covered = found.join(up, on="value").select("unit", value="broad")
    alone = found.filter(is_broad).join(covered, on=["unit", "value"], how="anti")
    spread = alone.join(down, on="value").select("unit", value="part")
    notes = [
        f"{attribute}: {n:,} unit(s) gave only {broad!r} and count in each of its "
        f"{len(leaves(tree, broad))} parts"
        for broad, n in sorted(
            (broad, people_at(pl.Series(whose), times))
            for broad, whose in alone.group_by("value").agg("unit").rows()
        )
    ]
    unchosen = sorted({leaf for _, leaf in parts} - set(occurring))
    if unchosen:
        notes.append(f"{attribute}: nobody gave {', '.join(map(repr, unchosen))} by itself")
    return pl.concat([found.filter(~is_broad), spread]).unique(), (*missing, *notes)
