"""Pictures in folders that are named after their classes, as torchvision and others read them.

``nurse/1.jpg`` is a nurse. Folders of parts (``train/nurse/1.jpg``) are told apart from classes; a
table next to the pictures (Hugging Face calls it ``metadata.csv``) may hold attributes of the
people. No picture is opened. Paszke et al. (2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, JoinError, UnknownNameError, format_location
from isolux.core.formatting import join_first
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._files import Inputs, find_first_file_or_none
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._relative_paths import IMAGE_NAME_PATTERN, list_files_of_folder_or_list
from isolux.datasets._tables import (
    build_clustered_dataset,
    left_join_in_order,
    melt_columns_to_attribute_rows,
)
from isolux.datasets._wide_table import melt_table_to_attribute_rows
from isolux.io.cell_parsing import first_as_text, first_true_row, is_readable_dtype
from isolux.io.ids import read_ids, reduce_ids
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.refusals import refuse_repeats, require_columns

SPLIT_FOLDERS = ("train", "training", "val", "valid", "validation", "dev", "test", "testing")
"""Folders of these names (in any case) are parts of a dataset and no classes."""

_TABLE_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_FILE_COLUMN_NAMES = ("file_name", "file", "filename", "path", "image", "id")
_RESERVED_COLUMNS = ("class", "split")
_MAX_LISTED = 8  # names in a message: a longer list would hide its sentence

INFO = DatasetInfo(
    title="folders of pictures",
    summary="Pictures in folders that are named after their classes, perhaps with a table.",
    references=(
        Reference(
            key="pytorch",
            citation="Paszke, A., Gross, S., Massa, F., Lerer, A., Bradbury, J., Chanan, G., et al."
            " (2019). PyTorch: An imperative style, high-performance deep learning library. In"
            " Advances in Neural Information Processing Systems 32 (pp. 8024–8035).",
            location="torchvision.datasets.ImageFolder: the layout of the folders",
            url="https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html",
        ),
    ),
    licence="the licence of your pictures",
    label_source="declared by the user",
    assumptions=(
        "each picture is of one person, of the class that its folder is named after",
        "pictures are independent of one another, or a column says which belong together",
    ),
)


def load(
    path: str | Path,
    *,
    split: str | None = None,
    table: str | Path | None = None,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    id_from: Literal["column", "basename", "stem"] = "column",
    separator: str | None = None,
) -> Dataset:
    r"""Load pictures from folders.

    ``cluster`` of ``isolux.load`` may be ``subject_id`` or another column of the table. Not
    given: pictures are clusters.

    Parameters
    ----------
    path : str or Path
        The folder whose folders are classes, or are parts (``train``, ``test``, …) with classes
        inside; or a text file with the path of a picture a line.
    split : str, optional
        The part to load; ``all`` for every part. Must be given where folders are parts.
    table : str or Path, optional
        A table of attributes. Not given: ``metadata.csv`` (``.jsonl``, ``.parquet``) in the folder.
    id : str, optional
        Its column that names the picture. Not given: the first of ``file_name``, ``file``,
        ``filename``, ``path``, ``image``, ``id``.
    id_from : {"column", "basename", "stem"}
        Which part of a picture's path the column holds: all of it below the folder, its last
        part, or that without suffix.
    separator : str, optional
        What parts several values in one cell of the table.

    Returns
    -------
    Dataset
        ``instances``: a picture, its path below the folder as id; ``classes``, null for a picture
        in no folder; ``subject_id`` from the table. ``attributes``: ``class``, ``split`` where
        folders are parts, and the columns of the table.

    Raises
    ------
    FileError
        No folder, no picture; folders that are parts, with ``split`` not given.
    TableError, JoinError, UnknownNameError
        A path that leads out of the folder, a table that names a picture twice, or none of them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("guard/1.jpg", "nurse/2.jpg"):
    ...         (Path(folder) / name).parent.mkdir()
    ...         (Path(folder) / name).touch()
    ...     _ = (Path(folder) / "metadata.csv").write_text("file_name,tone\nguard/1.jpg,4\n")
    ...     dataset = load(folder)
    >>> dataset.values_of("class")["value"].to_list(), dataset.values_of("tone")["value"].to_list()
    (['guard', 'nurse'], ['4', None])
    """
    check_literal_settings(load, id_from=id_from)
    root = Path(path).expanduser()
    source = str(root)
    listing = list_files_of_folder_or_list(root, "list of pictures")
    folder_images = _split_paths_into_split_and_class(
        listing.names.filter(listing.names != ""), source, split
    )
    pictures = folder_images.table
    notes = [*folder_images.notes, *_note_folders_without_images(root, folder_images.table)]
    inputs = Inputs({source: listing.digest})
    split_attributes = ["split"] if pictures["split"].is_not_null().any() else []
    attributes = [melt_columns_to_attribute_rows(pictures, "file", ("class", *split_attributes))]
    subjects = pl.lit(None, dtype=pl.String).alias("subject_id")
    file = _find_table_of_folder(root, table)
    if file is not None:
        rows = inputs.read_table(file)
        joined_table = _join_table_to_images(pictures["file"], rows, file, id, id_from)
        notes += joined_table.notes
        attributes.append(
            melt_table_to_attribute_rows(
                joined_table.table, pictures["file"], separator=separator, source=str(file)
            )
        )
        if "subject_id" in joined_table.table.columns:
            pictures = pictures.with_columns(first_as_text(joined_table.table["subject_id"]))
            subjects = pl.col("subject_id")
    return build_clustered_dataset(
        "imagefolder",
        INFO,
        instances=pictures.select(
            instance_id="file",
            image_id="file",
            subject_id=subjects,
            classes=pl.when(pl.col("class").is_not_null()).then(pl.concat_list("class")),
        ),
        attributes=pl.concat(attributes),
        images=pictures.select(image_id="file", uri="file"),
        inputs=inputs,
        source=source,
        notes=notes,
        clusters={"image": None, "row": None},
    )


@dataclass(frozen=True, slots=True)
class _FolderImages:
    table: pl.DataFrame
    notes: list[str]


def _split_paths_into_split_and_class(
    files: pl.Series, source: str, split: str | None
) -> _FolderImages:
    """Keep the pictures, and tell class and part by their folders: ``file, class, split``."""
    hidden = files.str.contains(r"(^|/)(\.[^/]*|__MACOSX)(/|$)")
    pictures = files.filter(files.str.contains(IMAGE_NAME_PATTERN) & ~hidden)
    if pictures.is_empty():
        raise FileError(
            "there is no picture here",
            expected="<class>/<name> that ends in " + ", ".join(IMAGE_SUFFIXES),
            found=repr(files[0]) if len(files) else "no file",
            where=source,
        )
    n_other_files = len(files) - len(pictures) - int(files.is_in(_TABLE_FILES).sum())
    notes = (
        [f"{n_other_files:,} file(s) are not pictures and are passed over."]
        if n_other_files
        else []
    )
    frame = pictures.alias("file").to_frame().with_columns(steps=pl.col("file").str.split("/"))
    folders = frame.filter(pl.col("steps").list.len() > 1)["steps"].list.first().unique().sort()
    if len(folders) and folders.str.to_lowercase().is_in(SPLIT_FOLDERS).all():
        frame = _select_split_folder(frame, folders.to_list(), split, source)
    elif split is not None:
        raise FileError(
            "the pictures' folders are not parts",
            expected=" or ".join(SPLIT_FOLDERS) + ", all of them",
            found=", ".join(map(repr, folders.head(_MAX_LISTED))) or "no folder",
            where=source,
            hint="leave split out, or name the part's own folder as the path",
        )
    else:
        frame = frame.with_columns(split=pl.lit(None, dtype=pl.String))
    class_names = pl.when(pl.col("steps").list.len() > 1).then(pl.col("steps").list.first())
    frame = frame.select("file", class_names.alias("class"), "split")
    n_without_class = frame["class"].null_count()
    if n_without_class:
        notes.append(f"{n_without_class:,} picture(s) are not in a folder and have no class.")
    return _FolderImages(frame, notes)


def _select_split_folder(
    frame: pl.DataFrame, folders: list[str], split: str | None, source: str
) -> pl.DataFrame:
    """Take the first folder for the part, and what is below for the class."""
    if split is None:
        raise FileError(
            "the folders are parts of a dataset, not classes",
            expected="split, one of " + ", ".join(map(repr, (*folders, "all"))),
            found="folders " + ", ".join(map(repr, folders)),
            where=source,
        )
    if split != "all" and split not in folders:
        raise UnknownNameError("part", split, [*folders, "all"], where=source)
    is_nested = pl.col("steps").list.len() > 1
    with_splits = frame.with_columns(split=pl.when(is_nested).then(pl.col("steps").list.first()))
    selected = with_splits if split == "all" else with_splits.filter(split=split)
    return selected.with_columns(
        pl.when(is_nested).then(pl.col("steps").list.slice(1)).otherwise("steps")
    )


def _note_folders_without_images(root: Path, pictures: pl.DataFrame) -> list[str]:
    """Name the folders that hold no picture: a class without pictures is easily forgotten."""
    if not root.is_dir() or pictures["split"].is_not_null().any():
        return []
    known_classes = set(pictures["class"].drop_nulls())
    names = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    empty = [name for name in names if name not in {*known_classes, "__MACOSX"}]
    if not empty:
        return []
    return [
        f"{len(empty):,} folder(s) hold no picture: {join_first(map(repr, empty), _MAX_LISTED)}."
    ]


def _find_table_of_folder(root: Path, table: str | Path | None) -> Path | None:
    if table is not None:
        return Path(table).expanduser()
    return find_first_file_or_none(root if root.is_dir() else root.parent, _TABLE_FILES)


def _join_table_to_images(
    files: pl.Series, rows: pl.DataFrame, file: Path, column: str | None, id_from: str
) -> _FolderImages:
    """Join the table's rows to the images, in the order of the images."""
    source = str(file)
    name = column or next(
        (n for n in _FILE_COLUMN_NAMES if n in rows.columns), _FILE_COLUMN_NAMES[0]
    )
    require_columns(rows, (name,), source)
    keys = reduce_ids(read_ids(rows, name, source), id_from).alias("key")
    problem = "the table names a picture twice"
    refuse_repeats(keys, problem, "one row for each picture", source, name)
    attribute_columns = [
        n
        for n in rows.columns
        if n not in {name, *_RESERVED_COLUMNS} and is_readable_dtype(rows.schema[n])
    ]
    pictures = reduce_ids(files, id_from).alias("key").to_frame()
    if pictures["key"].n_unique() < pictures.height and id_from != "column":
        raise JoinError(
            "pictures in several folders have the same name",
            expected="names that occur once, or whole paths in the table",
            found=repr(pictures["key"][first_true_row(pictures["key"].is_duplicated())]),
            where=source,
        )
    is_known = keys.is_in(pictures["key"].implode())
    if not is_known.any():
        raise JoinError(
            "the table names none of the pictures",
            expected=f"paths such as {pictures['key'][0]!r}",
            found=repr(keys[0]),
            where=format_location(source, 1, name),
            hint="set id_from to basename or stem if it names less than the path",
        )
    notes = []
    n_unmatched_rows = int((~is_known).sum())
    n_unmatched_images = int((~pictures["key"].is_in(keys.implode())).sum())
    if n_unmatched_rows:
        notes.append(
            f"{n_unmatched_rows:,} row(s) of {file.name} name no picture and are passed over."
        )
    if n_unmatched_images:
        notes.append(
            f"{n_unmatched_images:,} picture(s) have no row in {file.name}: nothing is known of "
            f"them."
        )
    skipped_columns = [n for n in rows.columns if n not in attribute_columns and n != name]
    if skipped_columns:
        notes.append(
            f"Not read as attributes from {file.name}: {', '.join(map(repr, skipped_columns))}."
        )
    table = rows.select(keys, *attribute_columns)
    aligned = left_join_in_order(pictures, table, "key")
    return _FolderImages(aligned.drop("key"), notes)
