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

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.grouping import split_intersection

CROSS_SIGN = " × "
_MAX_LISTED = 3  # combinations without anyone
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AttributeCodes:
    """One encoded attribute: rows of ``unit`` and ``code``, and each code's value."""

    handle: str
    rows: pl.DataFrame
    values: tuple[str, ...]


def parse_intersection(entry: str, known_attributes: Collection[str]) -> tuple[str, ...]:
    """Split ``"race*gender"`` into attributes; one whose own name has a ``*`` is not split."""
    if entry.strip() in known_attributes:
        return (entry.strip(),)
    names = split_intersection(entry)
    if not all(names) or len(set(names)) < len(names):
        raise SpecError(
            "an intersection cannot be read",
            expected="different attributes joined by *, as in 'race*gender'",
            found=repr(entry),
        )
    _refuse_comma_list(entry, known_attributes)
    for name in names:
        if name not in known_attributes:
            raise UnknownNameError("attribute", name, known_attributes)
    return names


def _refuse_comma_list(entry: str, known_attributes: Collection[str]) -> None:
    """Refuse ``race,gender``, with a hint how to name several attributes."""
    names = [name.strip() for name in entry.split(",")]
    if entry in known_attributes or len(names) < 2 or not set(names) <= set(known_attributes):
        return
    flags = " ".join(f"--by {name}" for name in names)
    raise SpecError(
        f"{entry!r} names several attributes at once",
        expected="one attribute, or several joined by * for their intersection",
        found=repr(entry),
        hint=f'{flags} compares by each; --by "{"*".join(names)}" compares by every combination',
    )


def parse_unique_intersections(
    by: Sequence[str], known_attributes: Collection[str]
) -> list[tuple[str, ...]]:
    """Split all items of ``by``; a repeated item counts once."""
    names_by_set: dict[frozenset[str], tuple[str, ...]] = {}
    for entry in by:
        # race*gender and gender*race are the same groups: tests would be counted twice.
        names = parse_intersection(entry, known_attributes)
        first_names = names_by_set.setdefault(frozenset(names), names)
        if first_names != names:
            raise SpecError(
                "two intersections have the same groups",
                expected="each intersection once",
                found=f"{'*'.join(first_names)!r} and {'*'.join(names)!r}",
            )
    return list(names_by_set.values())


def format_group_name(values: Sequence[str]) -> str:
    """Format the name of a group; a value that has a ``×`` itself is quoted.

    Examples
    --------
    >>> format_group_name(["White", "Female"])
    'White × Female'
    """
    if len(values) == 1:
        return values[0]
    return CROSS_SIGN.join(f'"{v}"' if CROSS_SIGN in v else v for v in values)


@dataclass(frozen=True, slots=True)
class IntersectionMembership:
    """Membership in the groups of one attribute or intersection, as integers.

    Parameters
    ----------
    handle : str
        ``race`` or ``race*gender``.
    cells : tuple of tuple of str
        Each group's values, in the order of display; none is empty.
    cell, unit : [n] int
        Index in ``cells`` and unit of each membership, sorted by cell, then by unit.
    """

    handle: str
    cells: tuple[tuple[str, ...], ...]
    cell: IntArray
    unit: IntArray

    def to_group_table(self) -> pl.DataFrame:
        """Return the groups: ``attribute, group, values``."""
        return pl.DataFrame(
            {
                "attribute": pl.Series([self.handle] * len(self.cells), dtype=pl.String),
                "group": pl.Series([format_group_name(c) for c in self.cells], dtype=pl.String),
                "values": pl.Series([list(c) for c in self.cells], dtype=pl.List(pl.String)),
            }
        )

    def to_table(self, units: pl.Series) -> pl.DataFrame:
        """Return one row per unit and group: ``attribute, group, values, unit_id``."""
        ids = units.gather(self.unit).alias("unit_id")
        return self.to_group_table()[pl.Series(self.cell, dtype=pl.Int64)].with_columns(ids)


def cross_attributes(attributes: Sequence[AttributeCodes], n_units: int) -> IntersectionMembership:
    """Cross the memberships of one or more attributes: one entry per unit and group that occurs.

    Examples
    --------
    >>> race = AttributeCodes("race", pl.DataFrame({"unit": [0, 1], "code": [0, 0]}), ("White",))
    >>> tone = AttributeCodes("tone", pl.DataFrame({"unit": [0, 0], "code": [0, 1]}), ("3", "4"))
    >>> both = cross_attributes([race, tone], 2)
    >>> both.to_table(pl.Series(["a", "b"])).select("group", "unit_id").rows()
    [('White × 3', 'a'), ('White × 4', 'a')]
    """
    first, *remaining = attributes
    rows = first.rows.select("unit", cell="code")
    cells = [(group_value,) for group_value in first.values]
    for attribute in remaining:
        rows = rows.join(attribute.rows.select("unit", "code"), on="unit")
        # Cells are renumbered after each attribute, so that their numbers do not overflow.
        width = len(attribute.values)
        combined = rows["cell"].to_numpy() * width + rows["code"].to_numpy()
        occurring_codes, codes = np.unique(combined, return_inverse=True)
        cells = [
            (*cells[c // width], attribute.values[c % width]) for c in occurring_codes.tolist()
        ]
        rows = pl.DataFrame({"unit": rows["unit"], "cell": codes})
    # Sorting one combined number per row is several times faster than sorting two columns.
    n = max(n_units, 1)
    key = np.sort(rows["cell"].to_numpy().astype(np.int64) * n + rows["unit"].to_numpy())
    cell, unit = key // n, key % n
    is_occupied = np.bincount(cell, minlength=len(cells)) > 0
    numbers = np.cumsum(is_occupied) - 1
    return IntersectionMembership(
        "*".join(attribute.handle for attribute in attributes),
        tuple(
            values for values, is_kept in zip(cells, is_occupied.tolist(), strict=True) if is_kept
        ),
        numbers[cell],
        unit,
    )


def note_empty_combinations(
    membership: IntersectionMembership, values: Sequence[Sequence[str]]
) -> list[str]:
    """Note which combinations of known values are empty: they have no estimates.

    Examples
    --------
    >>> race = AttributeCodes(
    ...     "race",
    ...     pl.DataFrame({"unit": [0, 1], "code": [0, 1]}),
    ...     ("Black", "White"),
    ... )
    >>> tone = AttributeCodes(
    ...     "tone",
    ...     pl.DataFrame({"unit": [0, 0, 1], "code": [0, 1, 0]}),
    ...     ("3", "4"),
    ... )
    >>> note_empty_combinations(cross_attributes([race, tone], 2), [race.values, tone.values])
    ['1 of 4 combinations of race × tone holds no one: White × 4.']
    """
    n_combinations, known_values = (
        math.prod(len(attribute_values) for attribute_values in values),
        [set(attribute_values) for attribute_values in values],
    )
    occupied = {
        cell
        for cell in membership.cells
        if all(v in p for v, p in zip(cell, known_values, strict=True))
    }
    n_empty = n_combinations - len(occupied)
    if len(values) < 2 or not n_empty:
        return []
    # One at a time: several attributes may have millions of combinations.
    empty_cells = (cell for cell in itertools.product(*values) if cell not in occupied)
    names = [format_group_name(cell) for cell in itertools.islice(empty_cells, _MAX_LISTED)]
    remainder = f" and {n_empty - _MAX_LISTED:,} more" if n_empty > _MAX_LISTED else ""
    verb = "holds" if n_empty == 1 else "hold"
    description = (
        f"{n_empty:,} of {n_combinations:,} combinations of"
        f" {membership.handle.replace('*', CROSS_SIGN)}"
    )
    return [f"{description} {verb} no one: {', '.join(names)}{remainder}."]
