"""Membership of scored units as integers.

Identifiers are text and a row's values a list, so both are compared once for each run of equal
rows: a group's rows are contiguous in the membership table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.unit_index import lookup_positions
from isolux.groups.estimates import OVERALL, Group
from isolux.groups.intersections import format_group_name
from isolux.groups.membership import Membership
from isolux.stats.statistic import IntArray


@dataclass(frozen=True, slots=True)
class MembershipEntries:
    """Groups, of which the first is overall, and the memberships of the others.

    Parameters
    ----------
    groups : tuple of Group
        Overall, then the groups in the order of their first rows; some may be empty.
    group_index, unit_index : [n] int
        Index in ``groups`` (from 1) and unit of each membership, in the order of the table.
    """

    groups: tuple[Group, ...]
    group_index: IntArray
    unit_index: IntArray


def index_membership_entries(
    membership: pl.DataFrame | Membership, unit_ids: pl.Series
) -> MembershipEntries:
    """Assign numbers to the groups and units of memberships.

    Examples
    --------
    >>> rows = {"attribute": ["light"] * 3, "group": ["day", "day", "night"],
    ...     "values": [["day"], ["day"], ["night"]], "unit_id": ["a", "b", "b"]}
    >>> found = index_membership_entries(pl.DataFrame(rows), pl.Series(["b", "a"]))
    >>> (
    ...     [group.name for group in found.groups],
    ...     found.group_index.tolist(),
    ...     found.unit_index.tolist(),
    ... )
    (['overall', 'day', 'night'], [1, 1, 2], [1, 0, 0])
    """
    if isinstance(membership, Membership):
        return _index_coded_membership(membership, unit_ids)
    first = _find_group_starts(membership)
    run_rows = membership.select("attribute", "group", "values")[first]
    # By values, because names can be equal: a value may contain the sign that joins names.
    distinct_groups = run_rows.unique(["attribute", "values"], keep="first", maintain_order=True)
    distinct_groups = distinct_groups.with_row_index("g", offset=1)
    groups = (
        Group(None, OVERALL, ()),
        *(Group(a, n, tuple(v)) for _, a, n, v in distinct_groups.iter_rows()),
    )
    number = run_rows.join(
        distinct_groups.drop("group"),
        on=["attribute", "values"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["g"]
    lengths = np.diff(first, append=membership.height)
    group_index = np.repeat(number.to_numpy().astype(np.int64), lengths)
    unit_index = lookup_positions(membership["unit_id"], unit_ids)
    is_known = unit_index >= 0
    if is_known.all():
        return MembershipEntries(groups, group_index, unit_index)
    return MembershipEntries(groups, group_index[is_known], unit_index[is_known])


def _index_coded_membership(membership: Membership, unit_ids: pl.Series) -> MembershipEntries:
    """Use the integers of a ``Membership``; equal attribute and values are one group."""
    number_by_group: dict[tuple[str, tuple[str, ...]], int] = {}
    group_numbers_list = [np.empty(0, np.int64)]
    for attribute_membership in membership.intersections:
        group_numbers = [
            number_by_group.setdefault((attribute_membership.handle, c), len(number_by_group) + 1)
            for c in attribute_membership.cells
        ]
        group_numbers_list.append(np.array(group_numbers, np.int64)[attribute_membership.cell])
    groups = (
        Group(None, OVERALL, ()),
        *(Group(a, format_group_name(v), v) for a, v in number_by_group),
    )
    group_index = np.concatenate(group_numbers_list)
    unit_index = np.concatenate(
        [
            np.empty(0, np.int64),
            *(attribute_membership.unit for attribute_membership in membership.intersections),
        ]
    )
    unit_index = lookup_positions(membership.units, unit_ids)[unit_index]
    is_known = unit_index >= 0
    return MembershipEntries(
        groups,
        *(
            (group_index, unit_index)
            if is_known.all()
            else (group_index[is_known], unit_index[is_known])
        ),
    )


def _find_group_starts(membership: pl.DataFrame) -> IntArray:
    """Return the rows at which a new group begins."""
    # Comparing lists takes five times as long as comparing their hashes.
    marks = membership.select("attribute", "group", pl.col("values").hash().alias("hash"))
    changes = marks.select(
        pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1))).fill_null(value=True).alias("new")
    )["new"].to_numpy()
    changes = changes.copy()
    changes[:1] = True
    return np.flatnonzero(changes)
