"""Any table of one's own: one row a person, every column an attribute.

CSV, TSV, Parquet, JSON, Arrow or a workbook (xlsx, ods). The truth, a model's answers and
their scores may stand in the same table as the groups; which column is which, an audit's flags say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError
from isolux.core.info import DatasetInfo
from isolux.core.inputs import IN_MEMORY, to_polars
from isolux.datasets._date_damage import repair_or_refuse_date_damaged_ranges
from isolux.datasets._total_rows import (
    caution_on_merged_cell_columns,
    caution_on_thousands_dots,
    drop_total_and_header_rows,
    read_grouped_thousands,
)
from isolux.datasets._wide_table import (
    IMAGE_PATH_COLUMNS,
    build_image_table_of_instances,
    build_instance_table,
    choose_image_column_or_none,
    choose_row_ids,
    cluster_by_row_and_offer_columns,
    melt_table_to_attribute_rows,
)
from isolux.io.cell_parsing import is_duration, is_readable_dtype
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file, sha256_frame
from isolux.io.refusals import require_columns
from isolux.io.sheets import DATASET_FLAGS

INFO = DatasetInfo(
    title="a table of your own",
    summary="One row a person, a column an attribute; CSV, Parquet, JSON, Arrow, xlsx, ods.",
    references=(
        citations.DATASHEETS.with_location(
            "questions on composition and collection: who judged the attributes, and how"
        ),
    ),
    licence="the licence of your table",
    label_source="declared by the user",
    assumptions=(
        "each row is one person",
        "rows are independent of one another, or a cluster column says which belong together",
    ),
)


def load(
    path: str | Path | object,
    *,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    image: str | None = None,
    columns: Sequence[str] | None = None,
    numeric: Sequence[str] | None = None,
    separator: str | None = None,
    root: str | Path | None = None,
    repair_ages: bool = False,
    sheet: str | None = None,
    header_row: int | None = None,
    format: str | None = None,  # noqa: A002  (as in read_table)
    required_columns: Sequence[str] | None = None,
    max_columns: int = 50,
) -> Dataset:
    r"""Load a table.

    ``cluster`` of ``isolux.load`` may be a column of the table. Not given: rows are clusters.

    Parameters
    ----------
    path : str, Path or table
        The file; or a table in memory, of any library that ``to_polars`` of
        ``isolux.core.inputs`` knows.
    id : str, optional
        The column that identifies a row. Not given: the first of ``id``, ``instance_id``,
        ``image_id``, ``file``, ``filename``, ``path`` whose cells are unique; else the row's
        number, which ``notes`` says.
    image : str, optional
        The column that names the image. Not given: ``image_id``, ``file``, ``filename``,
        ``path``, ``image`` or ``uri``; else each row has an image of its own.
    columns : sequence of str, optional
        The columns that become attributes; not given: all but those of the id and image. The
        cluster column need not be among them.
    numeric : sequence of str, optional
        Columns whose every known cell must be a number. Other columns that hold nothing but
        numbers fill ``number`` too; ``value`` always keeps the text.
    separator : str, optional
        What parts several values in one cell (``"3;4"``). Lists need none.
    root : str or Path, optional
        The folder that image paths must lie in.
    repair_ages : bool
        Turn ranges that a spreadsheet took for dates (``9-Mar`` among ``10-19``) back; otherwise
        they are refused.
    sheet : str, optional
        Of a workbook (xlsx, xls, ods): the sheet; the only one that holds anything where not given.
    header_row : int, optional
        Of a workbook: the row with the columns' names, from 1; the first that is not empty where
        not given.
    format : str, optional
        ``csv``, ``tsv``, ``parquet``, ``json``, ``jsonlines``, ``arrow``, ``xlsx`` or ``ods``;
        by suffix where not given.
    required_columns : sequence of str, optional
        Of a table of more than ``max_columns`` columns, only the first ones and these become
        attributes, which ``notes`` says. Not given: all do.
    max_columns : int
        Their number; needs ``required_columns``.

    Returns
    -------
    Dataset
        ``attributes``: one row for each value of each attribute, null where a cell is empty. Rows
        that hold totals, or the names of the columns again, are left out with a caution.

    Raises
    ------
    FileError, TableError, UnknownNameError
        A file that cannot be read; a repeated or missing id; a column that is not there; ranges
        that a spreadsheet damaged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id,tone\na,3;4\nb,\n")
    ...     load(file, separator=";").attributes.select("unit_id", "value", "number").rows()
    [('a', '3', 3.0), ('a', '4', 4.0), ('b', None, None)]
    """
    if isinstance(path, str | Path):
        source = str(path)
        frame = read_table(
            path, format=format, sheet=sheet, header_row=header_row, sheet_flags=DATASET_FLAGS
        )
        digest = sha256_file(path)
    else:
        source = IN_MEMORY
        frame = _convert_in_memory_table(
            path, {"format": format, "sheet": sheet, "header_row": header_row}
        )
        digest = sha256_frame(frame)
    frame, notes = drop_total_and_header_rows(frame, id)
    frame, number_notes = read_grouped_thousands(frame, id)
    notes += number_notes
    dataset = build_dataset_from_frame(
        frame,
        source,
        {source: digest},
        id=id,
        image=image,
        columns=columns,
        numeric=numeric,
        separator=separator,
        root=root,
        repair_ages=repair_ages,
        required_columns=required_columns,
        max_columns=max_columns,
    )
    read_columns = list(columns) if columns is not None else frame.columns
    if required_columns is not None and len(read_columns) > max_columns:
        attributes = set(dataset.attributes["attribute"].unique())
        read_columns = [name for name in read_columns if name in attributes]
    notes += [
        *caution_on_merged_cell_columns(frame, read_columns),
        *caution_on_thousands_dots(frame, read_columns),
    ]
    return replace(dataset, notes=(*dataset.notes, *notes))


def _convert_in_memory_table(table: object, file_settings: Mapping[str, object]) -> pl.DataFrame:
    """Take a table that is in memory; what says how to read a file has no meaning then."""
    given_settings = [name for name, setting in file_settings.items() if setting is not None]
    if given_settings:
        raise SpecError(
            "this setting is about reading a file",
            expected="a table alone",
            found=", ".join(given_settings),
        )
    frame = to_polars(table)
    if frame.is_empty():
        content = "no row" if frame.width else "no column"
        raise TableError(
            "the table holds nobody", expected="one row a person", found=content, where=IN_MEMORY
        )
    return frame


def build_dataset_from_frame(
    frame: pl.DataFrame,
    source: str,
    inputs: Mapping[str, str],
    *,
    id: str | None = None,  # noqa: A002  (as in load)
    image: str | None = None,
    columns: Sequence[str] | None = None,
    numeric: Sequence[str] | None = None,
    separator: str | None = None,
    root: str | Path | None = None,
    repair_ages: bool = False,
    required_columns: Sequence[str] | None = None,
    max_columns: int = 50,
) -> Dataset:
    """Take a table that was read already; the settings are those of ``load``."""
    require_columns(frame, (*(columns or ()), *(numeric or ()), image), source)
    row_ids = choose_row_ids(frame, id, source)
    image_column_name = choose_image_column_or_none(frame, row_ids, image)
    instances = build_instance_table(frame, row_ids, image_column_name, source)
    image_name_column = image_column_name or row_ids.column
    attribute_columns = _choose_attribute_columns(
        frame, columns, {row_ids.column, image_column_name}
    )
    notes = [] if row_ids.note is None else [row_ids.note]
    skipped_notes = _note_skipped_columns(
        frame, columns, attribute_columns, {row_ids.column, image_column_name}
    )
    if required_columns is not None and columns is None:
        attribute_columns, limit_notes = _limit_number_of_columns(
            attribute_columns, required_columns, max_columns
        )
        notes += limit_notes
    frame, repaired = repair_or_refuse_date_damaged_ranges(
        frame, attribute_columns, repair=repair_ages, source=source
    )
    notes += [
        *repaired,
        *skipped_notes,
        *_note_duration_columns(frame, [*attribute_columns, *(numeric or ())]),
    ]
    dataset = Dataset(
        name="table",
        info=INFO,
        instances=instances,
        attributes=melt_table_to_attribute_rows(
            frame.select(list(dict.fromkeys([*attribute_columns, *(numeric or ())]))),
            row_ids.ids,
            numeric=tuple(numeric or ()),
            separator=separator,
            source=source,
        ),
        images=build_image_table_of_instances(
            instances,
            are_paths=bool(image) or image_name_column in IMAGE_PATH_COLUMNS,
            root=root,
            source=source,
        ),
        inputs=inputs,
        has_row_number_ids=row_ids.column is None,
        id_columns={
            **({} if image_column_name is None else {image_column_name: "image_id"}),
            **({} if row_ids.column is None else {row_ids.column: "instance_id"}),
        },
        notes=tuple(notes),
    )
    return cluster_by_row_and_offer_columns(dataset, frame, source)


def _note_duration_columns(frame: pl.DataFrame, names: Sequence[str]) -> list[str]:
    duration_columns = [
        repr(name)
        for name, dtype in frame.select(list(dict.fromkeys(names))).schema.items()
        if is_duration(dtype)
    ]
    return (
        [f"Lengths of time are read as seconds: {', '.join(duration_columns)}."]
        if duration_columns
        else []
    )


def _choose_attribute_columns(
    frame: pl.DataFrame, columns: Sequence[str] | None, names: set[str | None]
) -> list[str]:
    """Choose the columns that hold a value or a list of categories."""
    if columns is not None:
        return list(dict.fromkeys(columns))
    return [
        name
        for name, dtype in frame.schema.items()
        if name not in names and is_readable_dtype(dtype) and not _is_vector_dtype(dtype)
    ]


def _limit_number_of_columns(
    columns: list[str], needed_columns: Sequence[str], n_first: int
) -> tuple[list[str], list[str]]:
    """Keep the first columns and the needed ones, and note how many are skipped."""
    selected = {*columns[:n_first], *needed_columns}
    limited = [name for name in columns if name in selected]
    if len(limited) == len(columns):
        return columns, []
    note = (
        f"Of {len(columns):,} columns the first {n_first:,} are looked at, and those that are named"
    )
    return limited, [note + "."]


def _is_vector_dtype(dtype: pl.DataType) -> bool:
    """Tell a box or an embedding from a list of categories: its numbers have fractions."""
    return isinstance(dtype, pl.List | pl.Array) and bool(dtype.inner.is_float())


def _note_skipped_columns(
    frame: pl.DataFrame,
    columns: Sequence[str] | None,
    attribute_columns: list[str],
    names: set[str | None],
) -> list[str]:
    if columns is not None:
        return []
    read_columns = {*attribute_columns, *names}
    skipped = [name for name in frame.columns if name not in read_columns]
    if not skipped:
        return []
    column_list = ", ".join(map(repr, skipped))
    return [f"Not read as attributes, since they hold vectors, structures or bytes: {column_list}."]
