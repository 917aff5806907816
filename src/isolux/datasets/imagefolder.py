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

from isolux.datasets._files import Inputs, optional_file
from isolux.datasets._inner_paths import PICTURE, listed_pictures
from isolux.datasets._refusals import check_choices
from isolux.datasets._tables import attribute_rows, dataset_of, left_join
from isolux.datasets._wide import attributes_of
from isolux.io.cells import first_of, is_plain, row_of
from isolux.io.ids import ids_of, reduced
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.refusals import refuse_repeats, require_columns
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, JoinError, UnknownNameError, place
from isolux.vocabulary.info import DatasetInfo, Reference

PART_FOLDERS = ("train", "training", "val", "valid", "validation", "dev", "test", "testing")
"""Folders of these names (in any case) are parts of a dataset and no classes."""

_TABLES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_FILES = ("file_name", "file", "filename", "path", "image", "id")
_OWN = ("class", "split")
_SHOWN = 8  # names in a message: a longer list would hide its sentence

INFO = DatasetInfo(
    title="folders of pictures",
    summary="Pictures in folders that are named after their classes, perhaps with a table.",
    references=(
        Reference(
            key="pytorch",
            citation="Paszke, A., Gross, S., Massa, F., Lerer, A., Bradbury, J., Chanan, G., et al."
            " (2019). PyTorch: An imperative style, high-performance deep learning library. In"
            " Advances in Neural Information Processing Systems 32 (pp. 8024–8035).",
            place="torchvision.datasets.ImageFolder: the layout of the folders",
            url="https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html",
        ),
    ),
    licence="the licence of your pictures",
    judgement="declared by the user",
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
    check_choices(load, id_from=id_from)
    root = Path(path).expanduser()
    where = str(root)
    listed = listed_pictures(root, "list of pictures")
    found = _pictures(listed.names.filter(listed.names != ""), where, split)
    pictures, notes = found.frame, [*found.notes, *_empty_folders(root, found.frame)]
    inputs = Inputs({where: listed.digest})
    parted = ["split"] if pictures["split"].is_not_null().any() else []
    attributes = [attribute_rows(pictures, "file", ("class", *parted))]
    subjects = pl.lit(None, dtype=pl.String).alias("subject_id")
    file = _table(root, table)
    if file is not None:
        rows = inputs.read_table(file)
        joined = _joined(pictures["file"], rows, file, id, id_from)
        notes += joined.notes
        attributes.append(
            attributes_of(joined.frame, pictures["file"], separator=separator, where=str(file))
        )
        if "subject_id" in joined.frame.columns:
            pictures = pictures.with_columns(first_of(joined.frame["subject_id"]))
            subjects = pl.col("subject_id")
    return dataset_of(
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
        where=where,
        notes=notes,
        clusters={"image": None, "row": None},
    )


@dataclass(frozen=True, slots=True)
class _Found:
    frame: pl.DataFrame
    notes: list[str]


def _pictures(files: pl.Series, where: str, split: str | None) -> _Found:
    """Keep the pictures, and tell class and part by their folders: ``file, class, split``."""
    hidden = files.str.contains(r"(^|/)(\.[^/]*|__MACOSX)(/|$)")
    pictures = files.filter(files.str.contains(PICTURE) & ~hidden)
    if pictures.is_empty():
        raise FileError(
            "there is no picture here",
            expected="<class>/<name> that ends in " + ", ".join(IMAGE_SUFFIXES),
            found=repr(files[0]) if len(files) else "no file",
            where=where,
        )
    others = len(files) - len(pictures) - int(files.is_in(_TABLES).sum())
    notes = [f"{others:,} file(s) are not pictures and are passed over."] if others else []
    frame = (
        pictures.alias("file").to_frame().with_columns(pl.col("file").str.split("/").alias("steps"))
    )
    folders = frame.filter(pl.col("steps").list.len() > 1)["steps"].list.first().unique().sort()
    if len(folders) and folders.str.to_lowercase().is_in(PART_FOLDERS).all():
        frame = _of_parts(frame, folders.to_list(), split, where)
    elif split is not None:
        raise FileError(
            "the pictures' folders are not parts",
            expected=" or ".join(PART_FOLDERS) + ", all of them",
            found=", ".join(map(repr, folders.head(_SHOWN))) or "no folder",
            where=where,
            hint="leave split out, or name the part's own folder as the path",
        )
    else:
        frame = frame.with_columns(split=pl.lit(None, dtype=pl.String))
    named = pl.when(pl.col("steps").list.len() > 1).then(pl.col("steps").list.first())
    frame = frame.select("file", named.alias("class"), "split")
    without = frame["class"].null_count()
    if without:
        notes.append(f"{without:,} picture(s) are not in a folder and have no class.")
    return _Found(frame, notes)


def _of_parts(
    frame: pl.DataFrame, folders: list[str], split: str | None, where: str
) -> pl.DataFrame:
    """Take the first folder for the part, and what is below for the class."""
    if split is None:
        raise FileError(
            "the folders are parts of a dataset, not classes",
            expected="split, one of " + ", ".join(map(repr, (*folders, "all"))),
            found="folders " + ", ".join(map(repr, folders)),
            where=where,
        )
    if split != "all" and split not in folders:
        raise UnknownNameError("part", split, [*folders, "all"], where=where)
    inner = pl.col("steps").list.len() > 1
    parts = frame.with_columns(split=pl.when(inner).then(pl.col("steps").list.first()))
    kept = parts if split == "all" else parts.filter(pl.col("split") == split)
    return kept.with_columns(pl.when(inner).then(pl.col("steps").list.slice(1)).otherwise("steps"))


def _empty_folders(root: Path, pictures: pl.DataFrame) -> list[str]:
    """Name the folders that hold no picture: a class without pictures is easily forgotten."""
    if not root.is_dir() or pictures["split"].is_not_null().any():
        return []
    known = set(pictures["class"].drop_nulls())
    names = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    empty = [name for name in names if name not in {*known, "__MACOSX"}]
    if not empty:
        return []
    more = ", …" if len(empty) > _SHOWN else ""
    listed = ", ".join(map(repr, empty[:_SHOWN]))
    return [f"{len(empty):,} folder(s) hold no picture: {listed}{more}."]


def _table(root: Path, table: str | Path | None) -> Path | None:
    if table is not None:
        return Path(table).expanduser()
    return optional_file(root if root.is_dir() else root.parent, _TABLES)


def _joined(
    files: pl.Series, rows: pl.DataFrame, file: Path, column: str | None, id_from: str
) -> _Found:
    """Bring the table's rows to the pictures, in their order."""
    where = str(file)
    name = column or next((n for n in _FILES if n in rows.columns), _FILES[0])
    require_columns(rows, (name,), where)
    keys = reduced(ids_of(rows, name, where), id_from).alias("key")
    problem = "the table names a picture twice"
    refuse_repeats(keys, problem, "one row for each picture", where, name)
    kept = [n for n in rows.columns if n not in {name, *_OWN} and is_plain(rows.schema[n])]
    pictures = reduced(files, id_from).alias("key").to_frame()
    if pictures["key"].n_unique() < pictures.height and id_from != "column":
        raise JoinError(
            "pictures in several folders have the same name",
            expected="names that occur once, or whole paths in the table",
            found=repr(pictures["key"][row_of(pictures["key"].is_duplicated())]),
            where=where,
        )
    known = keys.is_in(pictures["key"].implode())
    if not known.any():
        raise JoinError(
            "the table names none of the pictures",
            expected=f"paths such as {pictures['key'][0]!r}",
            found=repr(keys[0]),
            where=place(where, 1, name),
            hint="set id_from to basename or stem if it names less than the path",
        )
    notes = []
    strange, without = int((~known).sum()), int((~pictures["key"].is_in(keys.implode())).sum())
    if strange:
        notes.append(f"{strange:,} row(s) of {file.name} name no picture and are passed over.")
    if without:
        notes.append(
            f"{without:,} picture(s) have no row in {file.name}: nothing is known of them."
        )
    left = [n for n in rows.columns if n not in kept and n != name]
    if left:
        notes.append(f"Not read as attributes from {file.name}: {', '.join(map(repr, left))}.")
    table = rows.select(keys, *kept)
    joined = left_join(pictures, table, "key")
    return _Found(joined.drop("key"), notes)
