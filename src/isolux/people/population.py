"""The population that a sample stands for, as an auditor states it: shares or counts by attribute.

A table of cells is a file (``tone,share`` or ``tone,sex,count``) or a mapping in a file of settings
(``{tone: {light: 0.6, dark: 0.4}}``). One table is post-stratification; several, of whose crossing
nothing is known, are raking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.io.frames import read_table
from isolux.stats.raking import Margins, rake
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.spec import crossed

_SIZES = ("share", "count")
_UNKNOWN = "unknown"
_TOGETHER = 0.005
"""By how much shares may miss 1: those of a printed table are rounded."""
_APART = 1e-6
_FEW = 5
_THOUSANDS = r"^[1-9]\d{0,2}(\.\d{3})+$"
_TOTALS = frozenset({"total", "totals", "sum", "all", "overall", "grand total"})

Population = Sequence[str] | Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Cells:
    """One table: the attributes, and the share of each cell, named by its values."""

    attributes: tuple[str, ...]
    share: Mapping[tuple[str, ...], float]
    where: str


def read_population(population: Population) -> tuple[Cells, ...]:
    """Read the tables of a population."""
    if isinstance(population, Mapping):
        tables = [_of_mapping(name, cells) for name, cells in population.items()]
    else:
        tables = [_of_file(path) for path in population]
    named = [name for table in tables for name in table.attributes]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise SpecError(
            f"{twice[0]!r} is in two tables of the population",
            expected="each attribute in one table; a table may cross several",
            found=", ".join(table.where for table in tables if twice[0] in table.attributes),
            where="--population",
        )
    return tuple(tables)


def _of_file(path: str) -> Cells:
    frame = read_table(path)
    sizes = [name for name in _SIZES if name in frame.columns]
    attributes = [name for name in frame.columns if name not in _SIZES]
    if len(sizes) != 1 or not attributes:
        raise TableError(
            "this is not a table of a population",
            expected="a column for each attribute, and one column share or count",
            found="columns " + ", ".join(map(repr, frame.columns)),
            where=path,
        )
    if sizes[0] == "count":
        _refuse_dots(frame["count"], path)
    number = frame[sizes[0]].cast(pl.Float64, strict=False)
    values = frame.select(pl.col(attributes).cast(pl.String).fill_null(_UNKNOWN)).rows()
    return _cells(tuple(attributes), list(zip(values, number, strict=True)), sizes[0], path)


def _refuse_dots(counts: pl.Series, where: str) -> None:
    """Refuse counts whose dots may part thousands: 60.000 is sixty or sixty thousand."""
    if counts.dtype != pl.String:
        return
    cells = counts.drop_nulls().str.strip_chars()
    dotted = cells.filter(cells.str.contains(".", literal=True))
    # A decimal has other lengths too, and begins with 0 where it is below 1.
    if len(dotted) and dotted.str.contains(_THOUSANDS).all():
        text = dotted[0]
        raise TableError(
            f"{len(dotted):,} of {len(counts):,} counts may be thousands or fractions",
            expected="counts without dots",
            found=repr(text),
            where=where,
            hint=f"write {text.replace('.', '')} if dots part thousands, {text}0 if they do not",
        )


def _of_mapping(name: str, cells: Mapping[str, float]) -> Cells:
    attributes = crossed(name)
    rows = [(tuple(crossed(str(key))), value) for key, value in cells.items()]
    wrong = [key for key, _ in rows if len(key) != len(attributes)]
    if wrong:
        raise SpecError(
            f"the cell {'*'.join(wrong[0])!r} does not fit {name!r}",
            expected=f"{len(attributes)} values joined by *",
            found=str(len(wrong[0])),
            where="population",
        )
    size = "share" if all(float(value) <= 1.0 for _, value in rows) else "count"
    return _cells(attributes, rows, size, f"population {name}")


def _cells(
    attributes: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], float | None]],
    size: str,
    where: str,
) -> Cells:
    held: dict[tuple[str, ...], float] = {}
    for key, value in rows:
        if value is None or not np.isfinite(value) or value < 0:
            raise TableError(
                f"a {size} cannot be used",
                expected="a number, 0 or more",
                found=f"{value!r} for {' × '.join(key)}",
                where=where,
            )
        if key in held:
            raise TableError("a cell is given twice", found=" × ".join(key), where=where)
        held[key] = float(value)
    total = sum(held.values())
    if total <= 0 or (size == "share" and abs(total - 1.0) > _TOGETHER):
        raise TableError(
            "the shares do not add up to 1" if size == "share" else "the counts are all 0",
            expected="shares of 0 to 1 that add up to 1, or a column count",
            found=f"{total:g}",
            where=where,
        )
    return Cells(attributes, {key: value / total for key, value in held.items()}, where)


def calibrated(
    table: pl.DataFrame, attributes: pl.DataFrame, tables: Sequence[Cells]
) -> pl.DataFrame:
    """Bring a sample's weights to a population."""
    codes, shares = [], []
    for cells in tables:
        code, share = _coded(table["unit_id"], attributes, cells)
        codes.append(code)
        shares.append(share)
    margins = Margins(tuple(codes), tuple(len(share) for share in shares))
    weight, apart = rake(table["weight"].to_numpy().astype(np.float64), margins, shares)
    if apart > _APART:
        raise TableError(
            "no weights meet all tables of the population",
            expected="tables that can hold at once: a crossing without people cannot be filled",
            found=f"a share still {apart:.2g} off after 1,000 rounds",
            where=", ".join(cells.where for cells in tables),
        )
    return table.with_columns(
        base_weight=pl.col("weight"),
        weight=pl.Series(weight),
        **{f"margin_{k}": pl.Series(code) for k, code in enumerate(codes)},
    )


def _coded(
    units: pl.Series, attributes: pl.DataFrame, cells: Cells
) -> tuple[
    np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.float64]]
]:
    """Give each unit the number of its cell; cells of share 0 without anyone are left out."""
    held = pl.DataFrame({"unit_id": units})
    for name in cells.attributes:
        rows = attributes.filter(pl.col("attribute") == name)
        if rows.is_empty():
            raise TableError(
                f"the people have no {name!r}, which the population is stated by",
                expected="one of " + ", ".join(sorted(attributes["attribute"].unique().to_list())),
                found=repr(name),
                where=cells.where,
            )
        of = rows.select("unit_id", pl.col("value").fill_null(_UNKNOWN).alias(name))
        if of["unit_id"].is_duplicated().any():
            raise TableError(
                f"{name!r} has several values for one person",
                expected="one a person",
                where=cells.where,
            )
        held = held.join(of, on="unit_id", how="left", maintain_order="left")
    keys = held.select(pl.col(list(cells.attributes)).fill_null(_UNKNOWN)).rows()
    there = set(keys)
    _refuse_cells(there, cells)
    order = [key for key in cells.share if key in there]
    number = {key: k for k, key in enumerate(order)}
    code = np.array([number[key] for key in keys], dtype=np.int64)
    share = np.array([cells.share[key] for key in order])
    return code, share / share.sum()


def _refuse_cells(there: set[tuple[str, ...]], cells: Cells) -> None:
    def said(keys: Sequence[tuple[str, ...]]) -> str:
        more = f" and {len(keys) - _FEW:,} more" if len(keys) > _FEW else ""
        return ", ".join(" × ".join(key) for key in keys[:_FEW]) + more

    strangers = sorted(key for key in there if not cells.share.get(key))
    if strangers:
        alike = _spelled_otherwise(strangers, cells)
        raise TableError(
            "people are in no cell of the population",
            expected="a share above 0 for every value that occurs (unknown is one)",
            found="; ".join(alike) if alike else said(strangers),
            where=cells.where,
            hint="write these as the data do"
            if alike
            else "add them to the table, or leave these people out with --only",
        )
    empty = sorted(key for key, share in cells.share.items() if share > 0 and key not in there)
    totals = [key for key in empty if any(_plain(part) in _TOTALS for part in key)]
    if totals:
        raise TableError(
            "a row of the population is a total, not a cell",
            expected="a row for each cell, and none for their sum",
            found=repr(" × ".join(totals[0])),
            where=cells.where,
            hint="leave this row out of the table",
        )
    if empty:
        raise TableError(
            "the population has cells without anyone in the sample",
            expected="someone of every cell that has a share",
            found=said(empty),
            where=cells.where,
            hint="join such a cell with its neighbour, in the table and in the data",
        )


def _spelled_otherwise(strangers: Sequence[tuple[str, ...]], cells: Cells) -> list[str]:
    """Put side by side what differs from a cell by blanks or letter case alone."""
    known = {tuple(map(_plain, key)): key for key, share in cells.share.items() if share}
    pairs = [(key, known.get(tuple(map(_plain, key)))) for key in strangers]
    told = [
        f"{' × '.join(key)!r} in the data, {' × '.join(other)!r} in the table"
        for key, other in pairs
        if other is not None
    ]
    return [*told[:_FEW], *([f"{len(told) - _FEW:,} more"] if len(told) > _FEW else [])]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
