"""What a published page says of what it does not show."""

from __future__ import annotations

import polars as pl


def withheld(
    minimum: int,
    shown: pl.DataFrame,
    gone: pl.DataFrame,
    *,
    left_out: bool,
    uneven: bool = False,
    silent: bool = False,
    weighted: bool = False,
) -> str:
    """Say how many groups are not shown, and of how many others some numbers are not.

    Examples
    --------
    >>> rows = pl.DataFrame({"attribute": ["race"] * 2, "group": ["A", "B"]})
    >>> withheld(10, rows.head(1), rows.tail(1), left_out=False)[:67]
    'Made to be published with a minimum of 10 people: 1 group is not sh'
    """
    groups = [
        table.filter(pl.col("attribute").is_not_null()).select("attribute", "group").unique()
        for table in (shown, gone)
    ]
    whole = groups[1].join(groups[0], on=["attribute", "group"], how="anti").height
    partly = groups[1].height - whole
    everyone = gone["attribute"].is_null().any()
    told = f"Made to be published with a minimum of {minimum} people: "
    if whole:
        told += (
            f"{_groups(whole)} not shown, because fewer people are in the group, or because a "
            "smaller group or class could be worked out from it."
        )
    else:
        told += "every group is shown."
    if partly or everyone:
        others = [_groups(partly)[:-3].removesuffix(" ")] if partly else []
        whose = " and ".join([*others, *(["everyone"] if everyone else [])])
        told += (
            f" Some numbers of {whose} are not shown, because they rest on the size of a class "
            "that must not be told"
        )
        told += ", or count a few people more or fewer than another number." if uneven else "."
    if weighted:
        told += (
            " Weighted numbers are rounded so that nobody's answer can be worked out from them: "
            "values to steps of a tenth of a point to ten points, by how much the heaviest person "
            "of the group weighs, intervals outwards, p-values upwards to hundredths."
        )
    if silent:
        told += (
            " Notes or warnings from which the number of a few people would follow are left out."
        )
    return told + (" Tables of analyses and protocols are left out." if left_out else "")


def _groups(n: int) -> str:
    return "1 group is" if n == 1 else f"{n:,} groups are"
