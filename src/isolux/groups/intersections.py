"""Intersections of any number of attributes: ``race*gender`` is every pair that occurs.

A unit with tones 3 and 4 who is a woman is in two groups of ``tone*gender``: the product of its
memberships. FACET, section 6.2 (tone × hair type), FairFace, Table 4 (race × perceived gender).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.grouping import crossed

TIMES = " × "
_NAMED = 3  # combinations without anyone
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """One attribute, ready to be crossed: rows of ``unit`` and ``code``, and each code's value."""

    handle: str
    rows: pl.DataFrame
    values: tuple[str, ...]


def parts(entry: str, known: Collection[str]) -> tuple[str, ...]:
    """Take ``"race*gender"`` apart; an attribute whose own name holds ``*`` stays whole."""
    if entry.strip() in known:
        return (entry.strip(),)
    names = crossed(entry)
    if not all(names) or len(set(names)) < len(names):
        raise SpecError(
            "an intersection cannot be read",
            expected="different attributes joined by *, as in 'race*gender'",
            found=repr(entry),
        )
    _refuse_list(entry, known)
    for name in names:
        if name not in known:
            raise UnknownNameError("attribute", name, known)
    return names


def _refuse_list(entry: str, known: Collection[str]) -> None:
    """Refuse ``race,gender``, and say how several attributes are named."""
    listed = [name.strip() for name in entry.split(",")]
    if entry in known or len(listed) < 2 or not set(listed) <= set(known):
        return
    alone = " ".join(f"--by {name}" for name in listed)
    raise SpecError(
        f"{entry!r} names several attributes at once",
        expected="one attribute, or several joined by * for their intersection",
        found=repr(entry),
        hint=f'{alone} compares by each; --by "{"*".join(listed)}" compares by every combination',
    )


def entries(by: Sequence[str], known: Collection[str]) -> list[tuple[str, ...]]:
    """Take all items of ``by`` apart; an item that is repeated counts once."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for entry in by:
        names = parts(entry, known)
        other = found.setdefault(frozenset(names), names)
        if other != names:
            raise SpecError(
                "two intersections have the same groups",
                expected="each intersection once",
                found=f"{'*'.join(other)!r} and {'*'.join(names)!r}",
            )
    return list(found.values())


def display(values: Sequence[str]) -> str:
    """Write a group for people to read; a value that holds ``×`` itself is put in quotes.

    Examples
    --------
    >>> display(["White", "Female"])
    'White × Female'
    """
    if len(values) == 1:
        return values[0]
    return TIMES.join(f'"{v}"' if TIMES in v else v for v in values)


@dataclass(frozen=True, slots=True)
class Crossing:
    """One attribute or intersection: who is in which of its groups, in numbers.

    Parameters
    ----------
    handle : str
        ``race`` or ``race*gender``.
    cells : tuple of tuple of str
        Each group's values, in the order of display; none is empty.
    cell, unit : [n] int
        Place in ``cells`` and unit of each membership, by cell, then by unit.
    """

    handle: str
    cells: tuple[tuple[str, ...], ...]
    cell: IntArray
    unit: IntArray

    def listed(self) -> pl.DataFrame:
        """Return the groups: ``attribute, group, values``."""
        return pl.DataFrame(
            {
                "attribute": pl.Series([self.handle] * len(self.cells), dtype=pl.String),
                "group": pl.Series([display(c) for c in self.cells], dtype=pl.String),
                "values": pl.Series([list(c) for c in self.cells], dtype=pl.List(pl.String)),
            }
        )

    def frame(self, units: pl.Series) -> pl.DataFrame:
        """Return one row per unit and group: ``attribute, group, values, unit_id``."""
        ids = units.gather(self.unit).alias("unit_id")
        return self.listed()[pl.Series(self.cell, dtype=pl.Int64)].with_columns(ids)


def crossing(crossed: Sequence[Part], n_units: int) -> Crossing:
    """Cross the memberships of one or more attributes: one entry per unit and group that occurs.

    Examples
    --------
    >>> race = Part("race", pl.DataFrame({"unit": [0, 1], "code": [0, 0]}), ("White",))
    >>> tone = Part("tone", pl.DataFrame({"unit": [0, 0], "code": [0, 1]}), ("3", "4"))
    >>> both = crossing([race, tone], 2)
    >>> both.frame(pl.Series(["a", "b"])).select("group", "unit_id").rows()
    [('White × 3', 'a'), ('White × 4', 'a')]
    """
    first, *others = crossed
    rows = first.rows.select("unit", cell="code")
    cells = [(value,) for value in first.values]
    for part in others:
        rows = rows.join(part.rows.select("unit", "code"), on="unit")
        # Cells are counted anew after each attribute, so that no number of them overflows.
        width = len(part.values)
        mixed = rows["cell"].to_numpy() * width + rows["code"].to_numpy()
        occurring, found = np.unique(mixed, return_inverse=True)
        cells = [(*cells[c // width], part.values[c % width]) for c in occurring.tolist()]
        rows = pl.DataFrame({"unit": rows["unit"], "cell": found})
    # One number per row sorts several times faster than two columns do.
    n = max(n_units, 1)
    key = np.sort(rows["cell"].to_numpy().astype(np.int64) * n + rows["unit"].to_numpy())
    cell, unit = key // n, key % n
    held = np.bincount(cell, minlength=len(cells)) > 0
    numbers = np.cumsum(held) - 1
    return Crossing(
        "*".join(part.handle for part in crossed),
        tuple(one for one, is_held in zip(cells, held.tolist(), strict=True) if is_held),
        numbers[cell],
        unit,
    )


def on_empty(one: Crossing, values: Sequence[Sequence[str]]) -> list[str]:
    """Say which combinations of known values hold no one: nothing is measured of them.

    Examples
    --------
    >>> race = Part("race", pl.DataFrame({"unit": [0, 1], "code": [0, 1]}), ("Black", "White"))
    >>> tone = Part("tone", pl.DataFrame({"unit": [0, 0, 1], "code": [0, 1, 0]}), ("3", "4"))
    >>> on_empty(crossing([race, tone], 2), [race.values, tone.values])
    ['1 of 4 combinations of race × tone holds no one: White × 4.']
    """
    every, known = math.prod(len(part) for part in values), [set(part) for part in values]
    held = {cell for cell in one.cells if all(v in p for v, p in zip(cell, known, strict=True))}
    lacking = every - len(held)
    if len(values) < 2 or not lacking:
        return []
    empty = (cell for cell in itertools.product(*values) if cell not in held)
    named = [display(cell) for cell in itertools.islice(empty, _NAMED)]
    more = f" and {lacking - _NAMED:,} more" if lacking > _NAMED else ""
    holds = "holds" if lacking == 1 else "hold"
    who = f"{lacking:,} of {every:,} combinations of {one.handle.replace('*', TIMES)}"
    return [f"{who} {holds} no one: {', '.join(named)}{more}."]
