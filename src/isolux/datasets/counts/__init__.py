"""Counts alone: successes and n of each group, as published tables and appendices give them.

One row a cell: who it is about in columns of words, how many there were and of how many. There are
no people in such a table, so only an audit reads it, and what it calls clusters is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.datasets._wide import attributes_of
from isolux.datasets.counts.cells import refuse_repeats, without_totals
from isolux.io.cells import as_numbers, as_text, is_plain, row_of
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, place
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.tables import INSTANCES, check

INFO = DatasetInfo(
    title="a table of counts",
    summary="One row a group: how many successes, of how many; no people.",
    references=(
        Reference(
            key="face-recognition-vendor-test",
            citation="Grother, P., Ngan, M., & Hanaoka, K. (2019). Face recognition vendor test "
            "(FRVT), part 3: Demographic effects. NISTIR 8280. National Institute of Standards and "
            "Technology.",
            place="error counts by demographic cell",
            url="https://doi.org/10.6028/NIST.IR.8280",
        ),
    ),
    licence="the licence of your table",
    judgement="declared by the user",
    assumptions=(
        "every case is in one row of a model and measure, and no row repeats others",
        "cases are independent: nothing says which of them share a person",
    ),
    task="counts",
)

_SUCCESSES = ("successes", "success", "k", "count", "events", "errors", "correct", "positives")
_N = ("n", "total", "trials", "of", "cases", "comparisons", "support")
_METRIC, _MODEL = "metric", "model"
_LARGEST = 1 << 53  # beyond, a floating-point number is no longer exact


def load(
    path: str | Path,
    *,
    successes: str | None = None,
    n: str | None = None,
    totals: Literal["refuse", "drop"] = "refuse",
    model: str | None = None,
    format: str | None = None,  # noqa: A002  (as in read_table)
) -> Dataset:
    r"""Read a table of successes and n by group.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, JSON lines or Arrow. Columns of words and of whole numbers are groups;
        ``metric`` (what was counted) and ``model`` part the table, where there are any.
    successes, n : str, optional
        The columns with the counts. Not given: the first there are of ``successes``, ``k``,
        ``count``, ``errors``, ``correct``, …, and of ``n``, ``total``, ``trials``, ….
    totals : {"refuse", "drop"}
        What becomes of rows that repeat their parts (``all``, ``total``, or the sum of the others).
    model : str, optional
        The model's name; not given: the column ``model``, else the file's name.
    format : str, optional
        ``csv``, ``tsv``, ``parquet``, ``jsonlines`` or ``arrow``; by suffix where not given.

    Returns
    -------
    Dataset
        Two instances a row, its successes and the others, and in ``outputs`` how many of each:
        ``model, instance_id, label, value`` (1 or 0), ``times``.

    Raises
    ------
    FileError, TableError, SpecError, UnknownNameError
        Counts that are missing, negative, fractional or above their n; a group twice; totals;
        columns that are not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "paper.csv"
    ...     _ = file.write_text("race,errors,n\nBlack,30,1000\nWhite,12,1500\n")
    ...     load(file).outputs.select("value", "times").rows()
    [(1.0, 30), (0.0, 970), (1.0, 12), (0.0, 1488)]
    """
    where = str(path)
    frame = read_table(path, format=format)
    counted, of = _columns(frame.columns, successes, n, where)
    frame = frame.with_columns(
        _whole(frame[counted], where).alias(counted), _whole(frame[of], where).alias(of)
    )
    _refuse_more_than_all(frame, counted, of, where)
    groups, left = _groups(frame, (counted, of))
    parts = [name for name in (_MODEL, _METRIC) if name in frame.columns]
    frame, told = without_totals(frame, groups, parts, (counted, of), drop=totals == "drop",
                                 where=where)  # fmt: skip
    refuse_repeats(frame, groups, parts, where)
    cells = frame.with_row_index("cell", offset=1)
    outputs = _outputs(cells, counted, of, model or Path(path).name.partition(".")[0], parts)
    rows = outputs["cell"].cast(pl.Int64) - 1
    units = outputs.select("instance_id", image_id="instance_id")
    notes = [f"Counts are read from {counted!r}, of {of!r}.", *told]
    if left:
        notes.append(f"Not read as groups, since they hold fractions or lists: {', '.join(left)}.")
    return Dataset(
        name="counts",
        info=INFO,
        instances=check(units, INSTANCES, where=where),
        attributes=attributes_of(
            frame.select(groups)[rows.to_list()], outputs["instance_id"], where=where
        ),
        images=units.select("image_id"),
        inputs={where: sha256_file(path)},
        notes=tuple(notes),
        outputs=outputs.drop("cell").with_columns(counted=pl.lit(counted)),
    )


def _columns(
    columns: Sequence[str], successes: str | None, n: str | None, where: str
) -> tuple[str, str]:
    folded = {name.strip().lower(): name for name in reversed(columns)}
    found = []
    for given, known, flag in ((successes, _SUCCESSES, "successes"), (n, _N, "n")):
        if given is not None and given not in columns:
            raise UnknownNameError("column", given, list(columns), where=where)
        name = given or next((folded[one] for one in known if one in folded), None)
        if name is None:
            raise SpecError(
                f"no column says {'how many' if flag == 'successes' else 'of how many'}",
                expected="one of " + ", ".join(known),
                found="columns " + ", ".join(map(repr, columns[:20])),
                where=where,
                hint=f"name it with --data-option {flag}=COLUMN",
            )
        found.append(name)
    return found[0], found[1]


def _whole(cells: pl.Series, where: str) -> pl.Series:
    """Read counts: whole numbers, none of them missing or negative."""
    if cells.dtype == pl.String:
        thousands = cells.str.contains(r"^\s*\d{1,3}(,\d{3})+\s*$").fill_null(value=False)
        cells = cells.zip_with(~thousands, cells.str.replace_all(",", ""))
    numbers = as_numbers(cells, where=where, column=cells.name)
    whole = (numbers >= 0) & (numbers <= _LARGEST) & (numbers == numbers.round())
    wrong = ~whole.fill_null(value=False)
    if wrong.any():
        row = row_of(wrong)
        found = numbers[row]
        fraction = found is not None and math.isfinite(found) and found != round(found)
        raise TableError(
            f"{wrong.sum():,} cell(s) of {cells.name!r} are no counts",
            expected=f"whole numbers from 0 to {_LARGEST:,}, none missing",
            found=repr(cells[row]),
            where=place(where, row + 1, cells.name),
            hint="a share is no count: write how many of n it is" if fraction else None,
        )
    return numbers.cast(pl.Int64)


def _refuse_more_than_all(frame: pl.DataFrame, counted: str, of: str, where: str) -> None:
    more = frame[counted] > frame[of]
    if more.any():
        row = row_of(more)
        raise TableError(
            f"{more.sum():,} row(s) count more successes than cases",
            expected=f"{counted!r} of at most {of!r}",
            found=f"{frame[counted][row]:,} of {frame[of][row]:,}",
            where=place(where, row + 1, counted),
        )


def _groups(frame: pl.DataFrame, counts: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Choose the columns of groups; those with fractions (a rate, an interval) are none."""
    groups: list[str] = []
    left: list[str] = []
    for name, dtype in frame.schema.items():
        if name in (*counts, _MODEL, _METRIC):
            continue
        listed = isinstance(dtype, pl.List | pl.Array) or not is_plain(dtype)
        cells = None if listed else as_text(frame[name]).cast(pl.Float64, strict=False)
        fractions = cells is not None and bool((cells != cells.round()).any())
        (left if listed or fractions else groups).append(name)
    return groups, left


def _outputs(
    cells: pl.DataFrame, counted: str, of: str, model: str, parts: Sequence[str]
) -> pl.DataFrame:
    named = pl.col(_MODEL).cast(pl.String).fill_null(model) if _MODEL in parts else pl.lit(model)
    label = pl.col(_METRIC).cast(pl.String) if _METRIC in parts else pl.lit(None, dtype=pl.String)
    both = [
        cells.select(
            "cell", model=named, instance_id=pl.format("row {}, {}", "cell", pl.lit(word)),
            label=label, value=pl.lit(value), times=times,
        )
        for word, value, times in (
            ("counted", 1.0, pl.col(counted)), ("others", 0.0, pl.col(of) - pl.col(counted)),
        )
    ]  # fmt: skip
    return pl.concat(both).filter(pl.col("times") > 0).sort("cell", maintain_order=True)
