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

from isolux.core.errors import SpecError, TableError
from isolux.core.spec import split_intersection
from isolux.io.frames import read_table
from isolux.stats.raking import Margins, rake_weights_to_shares

_SIZE_COLUMNS = ("share", "count")
_UNKNOWN = "unknown"
_SUM_TOLERANCE = 0.005
"""By how much shares may miss 1: those of a printed table are rounded."""
_MAX_MARGIN_ERROR = 1e-6  # of a share after raking: more means that margins contradict each other
_MAX_LISTED = 5
_THOUSANDS = r"^[1-9]\d{0,2}(\.\d{3})+$"
_TOTAL_LABELS = frozenset({"total", "totals", "sum", "all", "overall", "grand total"})

Population = Sequence[str] | Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class PopulationCells:
    """One table: the attributes, and the share of each cell, named by its values."""

    attributes: tuple[str, ...]
    share: Mapping[tuple[str, ...], float]
    source: str


def read_population(population: Population) -> tuple[PopulationCells, ...]:
    """Read the tables of a population."""
    if isinstance(population, Mapping):
        tables = [_parse_cells_mapping(name, cells) for name, cells in population.items()]
    else:
        tables = [_read_cells_file(path) for path in population]
    attribute_names = [name for table in tables for name in table.attributes]
    repeated = sorted({name for name in attribute_names if attribute_names.count(name) > 1})
    if repeated:
        raise SpecError(
            f"{repeated[0]!r} is in two tables of the population",
            expected="each attribute in one table; a table may cross several",
            found=", ".join(table.source for table in tables if repeated[0] in table.attributes),
            where="--population",
        )
    return tuple(tables)


def _read_cells_file(path: str) -> PopulationCells:
    frame = read_table(path)
    sizes = [name for name in _SIZE_COLUMNS if name in frame.columns]
    attributes = [name for name in frame.columns if name not in _SIZE_COLUMNS]
    if len(sizes) != 1 or not attributes:
        raise TableError(
            "this is not a table of a population",
            expected="a column for each attribute, and one column share or count",
            found="columns " + ", ".join(map(repr, frame.columns)),
            where=path,
        )
    if sizes[0] == "count":
        _refuse_ambiguous_thousands_dots(frame["count"], path)
    number = frame[sizes[0]].cast(pl.Float64, strict=False)
    values = frame.select(pl.col(attributes).cast(pl.String).fill_null(_UNKNOWN)).rows()
    return _build_cells(tuple(attributes), list(zip(values, number, strict=True)), sizes[0], path)


def _refuse_ambiguous_thousands_dots(counts: pl.Series, source: str) -> None:
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
            where=source,
            hint=f"write {text.replace('.', '')} if dots part thousands, {text}0 if they do not",
        )


def _parse_cells_mapping(name: str, cells: Mapping[str, float]) -> PopulationCells:
    attributes = split_intersection(name)
    rows = [(tuple(split_intersection(str(key))), cell_size) for key, cell_size in cells.items()]
    misfits = [key for key, _ in rows if len(key) != len(attributes)]
    if misfits:
        raise SpecError(
            f"the cell {'*'.join(misfits[0])!r} does not fit {name!r}",
            expected=f"{len(attributes)} values joined by *",
            found=str(len(misfits[0])),
            where="population",
        )
    size = "share" if all(float(cell_size) <= 1.0 for _, cell_size in rows) else "count"
    return _build_cells(attributes, rows, size, f"population {name}")


def _build_cells(
    attributes: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], float | None]],
    size: str,
    source: str,
) -> PopulationCells:
    size_by_cell: dict[tuple[str, ...], float] = {}
    for key, cell_size in rows:
        if cell_size is None or not np.isfinite(cell_size) or cell_size < 0:
            raise TableError(
                f"a {size} cannot be used",
                expected="a number, 0 or more",
                found=f"{cell_size!r} for {' × '.join(key)}",
                where=source,
            )
        if key in size_by_cell:
            raise TableError("a cell is given twice", found=" × ".join(key), where=source)
        size_by_cell[key] = float(cell_size)
    total = sum(size_by_cell.values())
    if total <= 0 or (size == "share" and abs(total - 1.0) > _SUM_TOLERANCE):
        raise TableError(
            "the shares do not add up to 1" if size == "share" else "the counts are all 0",
            expected="shares of 0 to 1 that add up to 1, or a column count",
            found=f"{total:g}",
            where=source,
        )
    return PopulationCells(
        attributes, {key: cell_size / total for key, cell_size in size_by_cell.items()}, source
    )


def calibrate_weights(
    table: pl.DataFrame, attributes: pl.DataFrame, tables: Sequence[PopulationCells]
) -> pl.DataFrame:
    """Calibrate a sample's weights to population margins by raking."""
    codes, shares = [], []
    for cells in tables:
        code, share = _encode_cells(table["unit_id"], attributes, cells)
        codes.append(code)
        shares.append(share)
    margins = Margins(tuple(codes), tuple(len(share) for share in shares))
    weight, max_error = rake_weights_to_shares(
        table["weight"].to_numpy().astype(np.float64), margins, shares
    )
    if max_error > _MAX_MARGIN_ERROR:
        raise TableError(
            "no weights meet all tables of the population",
            expected="tables that can hold at once: a crossing without people cannot be filled",
            found=f"a share still {max_error:.2g} off after 1,000 rounds",
            where=", ".join(cells.source for cells in tables),
        )
    return table.with_columns(
        base_weight=pl.col("weight"),
        weight=pl.Series(weight),
        **{f"margin_{k}": pl.Series(code) for k, code in enumerate(codes)},
    )


def _encode_cells(
    units: pl.Series, attributes: pl.DataFrame, cells: PopulationCells
) -> tuple[
    np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.float64]]
]:
    """Encode the population cell of each unit; empty cells of share 0 are dropped."""
    unit_values = pl.DataFrame({"unit_id": units})
    for name in cells.attributes:
        rows = attributes.filter(pl.col("attribute") == name)
        if rows.is_empty():
            raise TableError(
                f"the people have no {name!r}, which the population is stated by",
                expected="one of " + ", ".join(sorted(attributes["attribute"].unique().to_list())),
                found=repr(name),
                where=cells.source,
            )
        attribute_values = rows.select("unit_id", pl.col("value").fill_null(_UNKNOWN).alias(name))
        if attribute_values["unit_id"].is_duplicated().any():
            raise TableError(
                f"{name!r} has several values for one person",
                expected="one a person",
                where=cells.source,
            )
        unit_values = unit_values.join(
            attribute_values, on="unit_id", how="left", maintain_order="left"
        )
    keys = unit_values.select(pl.col(list(cells.attributes)).fill_null(_UNKNOWN)).rows()
    present_cells = set(keys)
    _check_cells_match(present_cells, cells)
    order = [key for key in cells.share if key in present_cells]
    number = {key: k for k, key in enumerate(order)}
    code = np.array([number[key] for key in keys], dtype=np.int64)
    share = np.array([cells.share[key] for key in order])
    return code, share / share.sum()


def _check_cells_match(present_cells: set[tuple[str, ...]], cells: PopulationCells) -> None:
    def format_cells(keys: Sequence[tuple[str, ...]]) -> str:
        remainder = f" and {len(keys) - _MAX_LISTED:,} more" if len(keys) > _MAX_LISTED else ""
        return ", ".join(" × ".join(key) for key in keys[:_MAX_LISTED]) + remainder

    unknown_cells = sorted(key for key in present_cells if not cells.share.get(key))
    if unknown_cells:
        variants = _list_spelling_variants(unknown_cells, cells)
        raise TableError(
            "people are in no cell of the population",
            expected="a share above 0 for every value that occurs (unknown is one)",
            found="; ".join(variants) if variants else format_cells(unknown_cells),
            where=cells.source,
            hint="write these as the data do"
            if variants
            else "add them to the table, or leave these people out with --only",
        )
    empty = sorted(
        key for key, share in cells.share.items() if share > 0 and key not in present_cells
    )
    totals = [
        key for key in empty if any(_fold_case_and_blanks(label) in _TOTAL_LABELS for label in key)
    ]
    if totals:
        raise TableError(
            "a row of the population is a total, not a cell",
            expected="a row for each cell, and none for their sum",
            found=repr(" × ".join(totals[0])),
            where=cells.source,
            hint="leave this row out of the table",
        )
    if empty:
        raise TableError(
            "the population has cells without anyone in the sample",
            expected="someone of every cell that has a share",
            found=format_cells(empty),
            where=cells.source,
            hint="join such a cell with its neighbour, in the table and in the data",
        )


def _list_spelling_variants(
    unknown_cells: Sequence[tuple[str, ...]], cells: PopulationCells
) -> list[str]:
    """Put side by side what differs from a cell by blanks or letter case alone."""
    cells_by_folded = {
        tuple(map(_fold_case_and_blanks, key)): key for key, share in cells.share.items() if share
    }
    pairs = [
        (key, cells_by_folded.get(tuple(map(_fold_case_and_blanks, key)))) for key in unknown_cells
    ]
    pairs_text = [
        f"{' × '.join(key)!r} in the data, {' × '.join(table_key)!r} in the table"
        for key, table_key in pairs
        if table_key is not None
    ]
    return [
        *pairs_text[:_MAX_LISTED],
        *([f"{len(pairs_text) - _MAX_LISTED:,} more"] if len(pairs_text) > _MAX_LISTED else []),
    ]


def _fold_case_and_blanks(text: str) -> str:
    return " ".join(text.split()).casefold()
