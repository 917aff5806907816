"""How far a dataset is from balanced: its groups' shares against uniform ones, or a target's.

Part of ``description``: counts of the known groups of one attribute or intersection go in, one row
of the table "Balance" comes out. FairFace (section 3) set out to be uniform over race and showed by
how much other datasets are not (Figure 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path

import polars as pl

from isolux.core.errors import SpecError, TableError, UnknownNameError, format_location
from isolux.io.cell_parsing import first_true_row
from isolux.io.frames import read_table

BALANCE = {
    "attribute": pl.String,
    "against": pl.String,
    "groups": pl.Int64,
    "empty groups": pl.Int64,
    "evenness": pl.Float64,
    "distance": pl.Float64,
    "least represented": pl.String,
    "least ÷ due": pl.Float64,
    "most represented": pl.String,
    "most ÷ due": pl.Float64,
}
"""Columns of the table "Balance"."""

_COLUMNS = ("attribute", "value", "share")


@dataclass(frozen=True, slots=True)
class Target:
    """The shares that groups should have: attribute (or ``a*b``) to group to share, sum 1."""

    name: str
    shares: Mapping[str, Mapping[str, float]]


def read_target(path: str | Path) -> Target:
    r"""Read a target composition.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "target.csv"
    ...     _ = file.write_text("attribute,value,share\ngender,Female,51\ngender,Male,49\n")
    ...     read_target(file).shares["gender"]["Female"]
    0.51
    """
    source = str(path)
    table = read_table(path)
    for name in _COLUMNS:
        if name not in table.columns:
            raise UnknownNameError("column", name, table.columns, where=source)
    cells = table.select(
        pl.col("attribute", "value").cast(pl.String).str.strip_chars(),
        share=pl.col("share").cast(pl.Float64, strict=False),
    )
    _refuse_invalid_cells(
        ~((cells["share"] >= 0) & cells["share"].is_finite()).fill_null(value=False),
        table["share"],
        source,
    )
    for name in ("attribute", "value"):
        _refuse_invalid_cells(cells[name].is_null() | (cells[name] == ""), table[name], source)
    is_repeated = ~cells.select(first=pl.struct("attribute", "value").is_first_distinct())["first"]
    if is_repeated.any():
        row = first_true_row(is_repeated)
        raise TableError(
            "a value has two shares",
            expected="one row for each attribute and value",
            found=f"{cells['attribute'][row]} = {cells['value'][row]!r}",
            where=format_location(source, row + 1),
        )
    shares: dict[str, dict[str, float]] = {}
    for (attribute,), rows in cells.group_by("attribute", maintain_order=True):
        total = float(rows["share"].sum())
        if not 0.0 < total < float("inf"):
            raise TableError(
                f"the shares of {attribute!r} cannot be divided by their sum",
                expected="a sum above 0",
                found=f"{total:g}",
                where=format_location(source, None, "share"),
            )
        normalised = (rows["share"] / total).to_list()
        shares[str(attribute)] = dict(zip(rows["value"].to_list(), normalised, strict=True))
    return Target(Path(path).name, shares)


def _refuse_invalid_cells(is_wrong: pl.Series, cells: pl.Series, source: str) -> None:
    if is_wrong.any():
        row = first_true_row(is_wrong)
        is_share = cells.name == "share"
        raise TableError(
            "a share is not a number of 0 or more" if is_share else f"a row has no {cells.name}",
            expected="a number such as 0.25" if is_share else "text in every cell",
            found=repr(cells[row]),
            where=format_location(source, row + 1, cells.name),
        )


def compare_group_shares_with_target(
    attribute: str, counts: Mapping[str, int], target: Target | None
) -> dict[str, object]:
    """Compare the shares of one attribute's known groups with uniform or target shares.

    Examples
    --------
    >>> row = compare_group_shares_with_target("gender", {"Female": 30, "Male": 70}, None)
    >>> row["distance"], row["least represented"], row["least ÷ due"]
    (0.2, 'Female', 0.6)
    """
    due_shares = dict(target.shares.get(attribute, {})) if target else {}
    if due_shares and not set(due_shares) & set(counts):
        raise SpecError(
            f"the target of {attribute!r} names no group that there is",
            expected="some of " + ", ".join(list(counts)[:30]),
            found=", ".join(list(due_shares)[:10]),
            where=target.name if target else None,
        )
    reference = target.name if target and due_shares else "uniform"
    groups = list(dict.fromkeys([*counts, *due_shares]))
    due_shares = due_shares or dict.fromkeys(groups, 1.0 / len(groups) if groups else 0.0)
    total = sum(counts.values())
    row: dict[str, object] = dict.fromkeys(BALANCE)
    row |= {"attribute": attribute, "against": reference, "groups": len(groups)}
    row["empty groups"] = sum(not counts.get(group) for group in groups)
    if not total:
        return row
    share = {group: counts.get(group, 0) / total for group in groups}
    if len(groups) > 1:
        entropy = -sum(p * log(p) for p in share.values() if p > 0)
        row["evenness"] = max(entropy, 0.0) / log(len(groups))
    total_variation = 0.5 * sum(abs(share[group] - due_shares.get(group, 0.0)) for group in groups)
    row["distance"] = round(total_variation, 12)
    ratio_to_due = {
        g: round(share[g] / due_shares[g], 12) for g in groups if due_shares.get(g, 0.0) > 0
    }
    least_group, most_group = (
        min(ratio_to_due, key=ratio_to_due.__getitem__),
        max(ratio_to_due, key=ratio_to_due.__getitem__),
    )
    row |= {"least represented": least_group, "least ÷ due": ratio_to_due[least_group]}
    return row | {"most represented": most_group, "most ÷ due": ratio_to_due[most_group]}
