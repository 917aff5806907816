"""Read and check the sheets of photos and of subjects, before anything is ingested."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import sqlalchemy as sa

from isolux.core.errors import FileError, TableError
from isolux.io.paths import resolve_inside
from isolux_curate.project.fact_columns import find_fact_dtype
from isolux_curate.project.tables import instances, subjects
from isolux_curate.user_tables import read_table_as_text, refuse_faulty_rows, refuse_missing_columns

_ID_COLUMNS = ("image_id", "subject_id", "copyright_holder")


def read_photo_rows(path: Path) -> pl.DataFrame:
    """Read the sheet of photos: one row a subject in a photo, with the ids of both."""
    return _check_rows_and_add_ids(_strip_id_columns(read_table_as_text(path)), str(path))


def _strip_id_columns(sheet: pl.DataFrame) -> pl.DataFrame:
    """Strip white space around ids."""
    ids = [name for name in _ID_COLUMNS if sheet.schema.get(name) == pl.String]
    return sheet.with_columns(pl.col(ids).str.strip_chars())


def _check_rows_and_add_ids(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    for name in ("file", "subject_id"):
        refuse_missing_columns(frame, [name], source)
        refuse_faulty_rows(
            frame[name].is_null(),
            f"a cell of {name!r} is empty",
            source,
            column=name,
            expected="a photo and who is in it",
        )
    if "image_id" not in frame.columns:
        stem = pl.col("file").str.replace(r"\.[^./\\]*$", "")
        frame = frame.with_columns(image_id=stem)
    duplicates = frame.filter(pl.struct("image_id", "subject_id").is_duplicated())
    if duplicates.height:
        raise TableError(
            "a subject is listed twice for one photo",
            expected="one row a photo and subject",
            found=f"photo {duplicates['image_id'][0]!r}",
            where=source,
        )
    image_files = (
        frame.group_by("image_id").agg(pl.col("file").n_unique()).filter(pl.col("file") > 1)
    )
    if image_files.height:
        raise TableError(
            "an image_id is used for several files",
            expected="one file an image_id",
            found=repr(image_files["image_id"].min()),
            where=source,
        )
    _refuse_text_in_numeric_facts(frame, instances, source)
    number = pl.int_range(pl.len()).over("image_id") + 1
    return frame.with_columns(instance_id=pl.format("{}-{}", "image_id", number))


def read_unique_subjects(path: Path) -> pl.DataFrame:
    """Read the sheet of subjects: one row a subject."""
    frame = _strip_id_columns(read_table_as_text(path, "subject_id"))
    if frame["subject_id"].is_duplicated().any() or frame["subject_id"].null_count():
        raise TableError(
            "a subject is in several rows, or in none",
            expected="one row a subject",
            where=str(path),
        )
    _refuse_text_in_numeric_facts(frame, subjects, str(path))
    return frame


def _refuse_text_in_numeric_facts(frame: pl.DataFrame, table: sa.Table, source: str) -> None:
    """Refuse text in a column of numbers, before anything is ingested."""
    for name in frame.columns:
        if not find_fact_dtype(table, name).is_numeric():
            continue
        numbers = frame[name].cast(pl.Float64, strict=False)
        refuse_faulty_rows(
            frame[name].is_not_null() & ~numbers.is_finite().fill_null(value=False),
            f"a cell of {name!r} is not a number",
            source,
            expected="a number, or nothing",
            cells=frame[name],
            column=name,
            hint="leave the cell empty where it is not known",
        )


def add_existing_file_paths(rows: pl.DataFrame, root: Path, source: str) -> pl.DataFrame:
    """Locate every file before anything is copied, and refuse a sheet with missing ones."""
    paths: dict[str, str] = {}
    missing: list[str] = []
    for file in rows["file"].unique(maintain_order=True):
        path = resolve_inside(root, file)
        paths[file] = str(path)
        if not path.is_file():
            missing.append(file)
    if missing:
        raise FileError(
            f"{len(missing):,} of {len(paths):,} photos are not there",
            expected=f"files below {root}",
            found=", ".join(map(repr, missing[:5])),
            where=source,
            hint="name the folder with --photos, or take their rows out of the sheet",
        )
    return rows.with_columns(path=pl.col("file").replace_strict(paths, return_dtype=pl.String))
