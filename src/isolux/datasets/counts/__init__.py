"""Counts alone: successes and n of each group, as published tables and appendices give them.

One row a cell: who it is about in columns of words, how many there were and of how many. There are
no people in such a table, so only an audit reads it. A column may name clusters, such as videos.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.formatting import join_first
from isolux.core.info import DatasetInfo, Reference
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES, check
from isolux.datasets._wide_table import melt_table_to_attribute_rows
from isolux.datasets.counts.columns import CountColumns, find_and_check_count_columns
from isolux.datasets.counts.layout import (
    caution_on_equal_counts,
    check_groups_are_unique,
    check_no_blank_groups,
    check_no_row_per_outcome,
    check_no_stacked_attributes,
    drop_or_refuse_total_rows,
)
from isolux.io.cell_parsing import as_text, is_readable_dtype
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.refusals import require_columns
from isolux.io.sheets import DATASET_FLAGS

INFO = DatasetInfo(
    title="a table of counts",
    summary="One row a group: how many successes, of how many; no people.",
    references=(
        Reference(
            key="face-recognition-vendor-test",
            citation="Grother, P., Ngan, M., & Hanaoka, K. (2019). Face recognition vendor test "
            "(FRVT), part 3: Demographic effects. NISTIR 8280. National Institute of Standards and "
            "Technology.",
            location="error counts by demographic cell",
            url="https://doi.org/10.6028/NIST.IR.8280",
        ),
    ),
    licence="the licence of your table",
    label_source="declared by the user",
    assumptions=(
        "every case is in one row of a model and measure, and no row repeats others",
        "cases are independent, or a cluster column says which rows belong together",
    ),
    task="counts",
)

_METRIC, _MODEL = "metric", "model"
_MAX_LISTED = 3


def load(
    path: str | Path,
    *,
    successes: str | None = None,
    n: str | None = None,
    totals: Literal["refuse", "drop", "keep"] = "refuse",
    model: str | None = None,
    model_column: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    format: str | None = None,  # noqa: A002  (as in read_table)
) -> Dataset:
    r"""Read a table of successes and n by group.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, JSON or Arrow. Columns of words and of whole numbers are groups;
        ``metric`` (what was counted) and ``model`` part the table, where there are any.
    successes, n : str, optional
        The columns with the counts. Not given: the first there are of ``successes``, ``k``,
        ``count``, ``errors``, ``correct``, …, and of ``n``, ``total``, ``trials``, …; without an
        n, that of ``correct`` and ``wrong`` (``successes`` and ``failures``, …) together.
    totals : {"refuse", "drop", "keep"}
        What becomes of rows that repeat others (``all``, ``total``, or the sum of some others);
        ``keep``: they are groups of their own.
    model : str, optional
        The model's name, of several the one to judge; not given: all of the column ``model``, else
        the file's name.
    model_column : str, optional
        The column that names the model of each row; not given: ``model``, where there is one.
    sheet : str, optional
        Of a workbook (xlsx, xls, ods): the sheet; the only one that holds anything where not given.
    header_row : int, optional
        Of a workbook: the row with the columns' names, from 1; the first that is not empty where
        not given.
    format : str, optional
        ``csv``, ``tsv``, ``parquet``, ``json``, ``jsonlines`` or ``arrow``; by suffix where not
        given.

    Returns
    -------
    Dataset
        Two instances a row, its successes and the others, and in ``outputs`` how many of each:
        ``model, instance_id, label, value`` (1 or 0), ``times``.

    Raises
    ------
    FileError, TableError, SpecError, UnknownNameError
        Counts that are missing, negative, fractional, above their n or not what is left of it;
        rates; a group twice, unnamed or as a row for each outcome; totals and attributes below
        each other; columns that are not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "paper.csv"
    ...     _ = file.write_text("race,errors,n\nBlack,30,1000\nWhite,12,1500\n")
    ...     load(file).bundled_predictions.select("value", "times").rows()
    [(1.0, 30), (0.0, 970), (1.0, 12), (0.0, 1488)]
    """
    source = str(path)
    frame = read_table(
        path, format=format, sheet=sheet, header_row=header_row, sheet_flags=DATASET_FLAGS
    )
    table = find_and_check_count_columns(
        _select_rows_of_one_model(frame, model_column, model, source), successes, n, source
    )
    counts = (table.successes, table.n)
    groups, unread_columns = _split_group_and_fraction_columns(table)
    split_columns = [name for name in (_MODEL, _METRIC) if name in table.frame.columns]
    frame, layout_notes = _drop_totals_and_check_distinct_rows(
        table.frame, groups, split_columns, counts, totals, source
    )
    cells = frame.with_row_index("cell", offset=1)
    outputs = _build_count_predictions(
        cells, *counts, model or Path(path).name.partition(".")[0], split_columns
    )
    rows = outputs["cell"].cast(pl.Int64) - 1
    units = outputs.select("instance_id", image_id="instance_id")
    notes = [*layout_notes, *_caution_on_empty_groups(frame, groups, table.n), *table.notes]
    if unread_columns:
        notes.append(
            f"Not read as groups, since they hold fractions or lists: {', '.join(unread_columns)}."
        )
    return Dataset(
        name="counts",
        info=INFO,
        instances=check(units, INSTANCES, source=source),
        attributes=melt_table_to_attribute_rows(
            frame.select(groups)[rows.to_list()],
            outputs["instance_id"],
            source=source,
        ),
        images=units.select("image_id"),
        inputs={source: sha256_file(path)},
        notes=tuple(notes),
        bundled_predictions=outputs.drop("cell").with_columns(counted=pl.lit(table.successes)),
    )


def _select_rows_of_one_model(
    frame: pl.DataFrame, model_column: str | None, model: str | None, source: str
) -> pl.DataFrame:
    """Call the column of models ``model``, and keep the rows of the one that is to be judged."""
    require_columns(frame, (model_column,), source)
    if model_column not in (None, _MODEL):
        if _MODEL in frame.columns:
            raise SpecError(
                "two columns would name the model",
                expected="one",
                where=source,
                found=f"{_MODEL!r} and --model-column {model_column}",
            )
        frame = frame.rename({str(model_column): _MODEL})
    if model is None or _MODEL not in frame.columns:
        return frame
    names = as_text(frame[_MODEL])
    if model not in names:
        raise UnknownNameError("model", model, names.drop_nulls().unique().sort(), where=source)
    return frame.filter(names == model)


def _drop_totals_and_check_distinct_rows(
    frame: pl.DataFrame,
    groups: Sequence[str],
    split_columns: Sequence[str],
    counts: tuple[str, str],
    totals: str,
    source: str,
) -> tuple[pl.DataFrame, list[str]]:
    """Check that rows of one model and metric are about distinct cases."""
    naming_columns = _choose_group_naming_columns(frame, groups, split_columns)
    if totals == "keep":
        check_groups_are_unique(frame, groups, split_columns, counts, source)
        return frame, []
    check_no_row_per_outcome(
        frame, [*naming_columns, *(p for p in split_columns if p == _MODEL)], counts, source
    )
    frame, total_notes = drop_or_refuse_total_rows(
        frame, naming_columns, split_columns, counts, drop=totals == "drop", source=source
    )
    check_groups_are_unique(frame, groups, split_columns, counts, source)
    check_no_blank_groups(frame, naming_columns, source)
    check_no_stacked_attributes(frame, naming_columns, counts, source)
    return frame, [
        *total_notes,
        *caution_on_equal_counts(frame, naming_columns, split_columns, counts),
    ]


def _choose_group_naming_columns(
    frame: pl.DataFrame, groups: Sequence[str], split_columns: Sequence[str]
) -> list[str]:
    """Choose the columns that say whom a row is about: no number that is unique to each row."""
    text_columns = [name for name in groups if not _is_unique_number_column(as_text(frame[name]))]
    key = [*text_columns, *split_columns]
    return text_columns if text_columns and frame.select(key).is_unique().all() else list(groups)


def _is_unique_number_column(cells: pl.Series) -> bool:
    return cells.cast(pl.Float64, strict=False).is_not_null().all() and cells.is_unique().all()


def _caution_on_empty_groups(
    frame: pl.DataFrame, groups: Sequence[str], n_column: str
) -> list[str]:
    """Caution where a group has no cases: it would be in no table."""
    rows = frame.with_row_index("_row", offset=1).filter(pl.col(n_column) == 0)
    if not rows.height:
        return []
    examples = (
        f"{' × '.join(str(row[g]) for g in groups)} (row {row['_row']})"
        for row in rows.iter_rows(named=True)
    )
    return [
        Caution(
            f"{rows.height:,} of {frame.height:,} rows have no cases ({n_column} = 0) and are in no"
            f" table: {join_first(examples, _MAX_LISTED)}."
        )
    ]


def _split_group_and_fraction_columns(table: CountColumns) -> tuple[list[str], list[str]]:
    """Choose the columns of groups; those with fractions (a rate, an interval) are none."""
    groups: list[str] = []
    unread_columns: list[str] = []
    frame = table.frame
    for name, dtype in frame.schema.items():
        if name in (table.successes, table.n, *table.complement_columns, _MODEL, _METRIC):
            continue
        has_lists = isinstance(dtype, pl.List | pl.Array) or not is_readable_dtype(dtype)
        cells = None if has_lists else as_text(frame[name]).cast(pl.Float64, strict=False)
        has_fractions = cells is not None and bool((cells != cells.round()).any())
        (unread_columns if has_lists or has_fractions else groups).append(name)
    return groups, unread_columns


def _build_count_predictions(
    cells: pl.DataFrame,
    successes_column: str,
    n_column: str,
    model: str,
    split_columns: Sequence[str],
) -> pl.DataFrame:
    model_column = (
        pl.col(_MODEL).cast(pl.String).fill_null(model)
        if _MODEL in split_columns
        else pl.lit(model)
    )
    label = (
        pl.col(_METRIC).cast(pl.String)
        if _METRIC in split_columns
        else pl.lit(None, dtype=pl.String)
    )
    outcome_tables = [
        cells.select(
            "cell",
            model=model_column,
            instance_id=pl.format("row {}, {}", "cell", pl.lit(word)),
            label=label,
            value=pl.lit(outcome),
            times=times,
        )
        for word, outcome, times in (
            ("counted", 1.0, pl.col(successes_column)),
            ("others", 0.0, pl.col(n_column) - pl.col(successes_column)),
        )
    ]
    return pl.concat(outcome_tables).filter(pl.col("times") > 0).sort("cell", maintain_order=True)
