"""How far a dataset is from balanced: its groups' shares against uniform ones, or a target's.

Part of ``description``: counts of the known groups of one attribute or intersection go in, one row
of the table "Balance" comes out. FairFace (section 3) set out to be uniform over race and showed by
how much other datasets are not (Figure 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path

import polars as pl

from isolux.groups.no_groups import MOST_NUMBERS
from isolux.io.cells import row_of
from isolux.io.frames import read_table
from isolux.verbs.describe.tables import DescribedPeople, known_rows, named
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, place

NUMBER_QUANTILES = {"5th": 0.05, "25th": 0.25, "median": 0.5, "75th": 0.75, "95th": 0.95}
"""Columns of these tables, and of those of distances."""

_FEW = 4  # people of whom no quarters can be told


def continuous(attributes: pl.DataFrame) -> set[str]:
    """Name the attributes that are numbers, and more than a few whole ones."""
    if "number" not in attributes.columns:
        return set()
    numbers = attributes.filter(pl.col("number").is_finite())
    kinds = numbers.group_by("attribute").agg(
        n=pl.col("number").n_unique(), parts=(pl.col("number") != pl.col("number").round(0)).any()
    )
    many = (pl.col("n") > MOST_NUMBERS) | (pl.col("parts") & (pl.col("n") > 1))
    return set(kinds.filter(many)["attribute"])


def number_tables(people: DescribedPeople) -> dict[str, pl.DataFrame]:
    """Give the quantiles of each numeric attribute, for everyone and by group."""
    wanted = continuous(people.attributes)
    if not wanted:
        return {}
    numbers = people.attributes.filter(pl.col("number").is_finite())
    names = numbers["attribute"].unique(maintain_order=True)
    tables = {}
    for name in names.filter(names.is_in(sorted(wanted))):
        own = (
            numbers.filter(pl.col("attribute") == name)
            .group_by("unit_id")
            .agg(pl.col("number").mean())
        )
        made = [_row(*side, own) for side in _sides(people, name)]
        floats = dict.fromkeys(("% without", *NUMBER_QUANTILES, "mean"), pl.Float64)
        tables[f"Numbers: {named(people, (name,))}"] = pl.DataFrame(made, schema_overrides=floats)
    return tables


def _sides(people: DescribedPeople, but: str) -> Iterator[tuple[str, str, pl.Series]]:
    """Yield everyone, then the known groups of every attribute but the one that is measured."""
    yield "everyone", "everyone", people.people["instance_id"]
    for names in people.by:
        if but not in names:
            known = known_rows(people, names)
            for group in known["group"].unique(maintain_order=True):
                yield "*".join(names), group, known.filter(pl.col("group") == group)["unit_id"]


def _row(attribute: str, group: str, who: pl.Series, numbers: pl.DataFrame) -> dict[str, object]:
    found = numbers.filter(pl.col("unit_id").is_in(who.implode()))["number"]
    able = len(found) >= _FEW
    without = 100.0 * (1.0 - len(found) / len(who)) if len(who) else None
    row: dict[str, object] = {"attribute": attribute, "group": group, "people": len(found)}
    quantiles = {
        head: found.quantile(share, "linear") if able else None
        for head, share in NUMBER_QUANTILES.items()
    }
    return row | {"% without": without} | quantiles | {"mean": found.mean() if able else None}


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
    where = str(path)
    table = read_table(path)
    for name in _COLUMNS:
        if name not in table.columns:
            raise UnknownNameError("column", name, table.columns, where=where)
    read = table.select(
        pl.col("attribute", "value").cast(pl.String).str.strip_chars(),
        share=pl.col("share").cast(pl.Float64, strict=False),
    )
    _refuse(
        ~((read["share"] >= 0) & read["share"].is_finite()).fill_null(value=False),
        table["share"],
        where,
    )
    for name in ("attribute", "value"):
        _refuse(read[name].is_null() | (read[name] == ""), table[name], where)
    again = ~read.select(first=pl.struct("attribute", "value").is_first_distinct())["first"]
    if again.any():
        row = row_of(again)
        raise TableError(
            "a value has two shares",
            expected="one row for each attribute and value",
            found=f"{read['attribute'][row]} = {read['value'][row]!r}",
            where=place(where, row + 1),
        )
    shares: dict[str, dict[str, float]] = {}
    for (attribute,), rows in read.group_by("attribute", maintain_order=True):
        total = float(rows["share"].sum())
        if not 0.0 < total < float("inf"):
            raise TableError(
                f"the shares of {attribute!r} cannot be divided by their sum",
                expected="a sum above 0",
                found=f"{total:g}",
                where=place(where, None, "share"),
            )
        parts = (rows["share"] / total).to_list()
        shares[str(attribute)] = dict(zip(rows["value"].to_list(), parts, strict=True))
    return Target(Path(path).name, shares)


def _refuse(wrong: pl.Series, cells: pl.Series, where: str) -> None:
    if wrong.any():
        row = row_of(wrong)
        share = cells.name == "share"
        raise TableError(
            "a share is not a number of 0 or more" if share else f"a row has no {cells.name}",
            expected="a number such as 0.25" if share else "text in every cell",
            found=repr(cells[row]),
            where=place(where, row + 1, cells.name),
        )


def balance_row(
    attribute: str, counts: Mapping[str, int], target: Target | None
) -> dict[str, object]:
    """Hold the shares of one attribute's known groups against those they should have.

    Examples
    --------
    >>> row = balance_row("gender", {"Female": 30, "Male": 70}, None)
    >>> row["distance"], row["least represented"], row["least ÷ due"]
    (0.2, 'Female', 0.6)
    """
    due = dict(target.shares.get(attribute, {})) if target else {}
    if due and not set(due) & set(counts):
        raise SpecError(
            f"the target of {attribute!r} names no group that there is",
            expected="some of " + ", ".join(list(counts)[:30]),
            found=", ".join(list(due)[:10]),
            where=target.name if target else None,
        )
    against = target.name if target and due else "uniform"
    groups = list(dict.fromkeys([*counts, *due]))
    due = due or dict.fromkeys(groups, 1.0 / len(groups) if groups else 0.0)
    total = sum(counts.values())
    row: dict[str, object] = dict.fromkeys(BALANCE)
    row |= {"attribute": attribute, "against": against, "groups": len(groups)}
    row["empty groups"] = sum(not counts.get(group) for group in groups)
    if not total:
        return row
    share = {group: counts.get(group, 0) / total for group in groups}
    if len(groups) > 1:
        entropy = -sum(p * log(p) for p in share.values() if p > 0)
        row["evenness"] = max(entropy, 0.0) / log(len(groups))
    far = 0.5 * sum(abs(share[group] - due.get(group, 0.0)) for group in groups)
    row["distance"] = round(far, 12)
    part = {g: round(share[g] / due[g], 12) for g in groups if due.get(g, 0.0) > 0}
    least, most = min(part, key=part.__getitem__), max(part, key=part.__getitem__)
    row |= {"least represented": least, "least ÷ due": part[least]}
    return row | {"most represented": most, "most ÷ due": part[most]}
