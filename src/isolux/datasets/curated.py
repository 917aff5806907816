"""A dataset that ``isolux curate publish`` wrote: people, boxes, attributes, splits and terms.

::

    dataset.json    its name, licence and terms; what each column is
    people.csv      a row a person in a photo: ids, split, file, box, attributes
    photos/         the photos

Whether a model may be trained on it stands in ``dataset.json``, and the loader keeps to it.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.tables import IMAGES, check
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._image_sizes import parse_pixel_counts
from isolux.datasets._licence_terms import TERMS_FILE, read_licence_terms, replace_licence_terms
from isolux.datasets._wide_table import (
    build_image_table_of_instances,
    build_instance_table,
    choose_row_ids,
    melt_table_to_attribute_rows,
)
from isolux.io.cell_parsing import as_numbers, as_text
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.refusals import require_columns

INFO = DatasetInfo(
    title="a dataset built with isolux curate",
    summary="What isolux curate publish wrote: people.csv, photos and the terms of use.",
    references=(citations.DATASHEETS.with_location("the dataset's own datasheet.md"),),
    licence="stated in the dataset's own dataset.json",
    label_source="declared by the user",
    withdrawal="subjects, copyright holders and annotators may withdraw: load it with --withdrawn",
    assumptions=(
        "cluster_id is alike for people who share photos, and for all photos of theirs",
        "in releases without cluster_id, subject_id tells people apart",
    ),
)
PEOPLE_FILE = "people.csv"
_STANDARD_COLUMNS = ("instance_id", "image_id", "subject_id", "cluster_id", "file", "class")
_SIZE_COLUMNS = ("width", "height")


def load(path: str | Path, *, split: str | None = None) -> Dataset:
    r"""Load a published dataset.

    Parameters
    ----------
    path : str or Path
        The folder that was published.
    split : str, optional
        One split alone, such as test; not given: all of them.

    Returns
    -------
    Dataset
        Clusters are people who share photos (``cluster_id``), else subjects. ``info`` has the
        dataset's own licence and terms on training.

    Raises
    ------
    FileError, SpecError
        No such folder, or none that was published.
    UnknownNameError
        No such split.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     terms = '{"format": "isolux curated dataset", "training": false}'
    ...     _ = (Path(folder) / "dataset.json").write_text(terms)
    ...     rows = "instance_id,image_id,subject_id,file,tone\na,p,s,photos/p.jpg,3;4\n"
    ...     _ = (Path(folder) / "people.csv").write_text(rows)
    ...     loaded = load(folder)
    >>> loaded.info.training_allowed, loaded.attributes["value"].to_list()
    (False, ['3', '4'])
    """
    folder = Path(path).expanduser()
    if not (folder / TERMS_FILE).is_file():
        raise FileError(
            "there is no published dataset",
            expected=f"a folder with {TERMS_FILE} and {PEOPLE_FILE}",
            where=str(folder),
            hint="`isolux curate publish` writes one",
        )
    terms = read_licence_terms(folder / TERMS_FILE)
    file = folder / PEOPLE_FILE
    frame = read_table(file)
    require_columns(frame, ("instance_id", "image_id", "file"), str(file))
    frame, notes = _select_curated_split(frame, split, str(file))
    row_ids = choose_row_ids(frame, "instance_id", str(file))
    instances = build_instance_table(frame, row_ids, "image_id", str(file))
    boxes = [as_numbers(frame[c], source=file, column=c) for c in BOX_COLUMNS if c in frame.columns]
    if "class" in frame.columns:
        class_names = as_text(frame["class"])
        boxes.append(
            pl.Series(
                "classes",
                [[entry] if entry else None for entry in class_names],
                dtype=pl.List(pl.String),
            )
        )
    instances = instances.with_columns(boxes)
    columns = [
        c for c in frame.columns if c not in (*_STANDARD_COLUMNS, *BOX_COLUMNS, *_SIZE_COLUMNS)
    ]
    source = str(file)
    dataset = Dataset(
        name="curated",
        info=replace_licence_terms(INFO, terms, folder / TERMS_FILE),
        instances=instances,
        attributes=melt_table_to_attribute_rows(
            frame.select(columns), row_ids.ids, separator=";", source=source
        ),
        images=_build_curated_images(frame, folder, source),
        inputs={
            str(folder / entry): sha256_file(folder / entry) for entry in (TERMS_FILE, PEOPLE_FILE)
        },
        notes=tuple(notes),
    )
    cluster_column = next(
        (c for c in ("cluster_id", "subject_id") if _has_column_with_values(frame, c)), "image_id"
    )
    return dataset.with_clusters(cluster_column)


def _has_column_with_values(frame: pl.DataFrame, column: str) -> bool:
    return column in frame.columns and frame[column].null_count() < frame.height


def _select_curated_split(
    frame: pl.DataFrame, split: str | None, source: str
) -> tuple[pl.DataFrame, list[str]]:
    if split is None:
        return frame, []
    splits = as_text(frame["split"]) if "split" in frame.columns else pl.Series([], dtype=pl.String)
    selected = frame.filter(splits == split) if len(splits) else frame.clear()
    if selected.is_empty():
        raise UnknownNameError("split", split, splits.drop_nulls().unique().to_list(), where=source)
    return selected, [
        f"The split {split!r}: {selected.height:,} of {frame.height:,} people in photos."
    ]


def _build_curated_images(frame: pl.DataFrame, folder: Path, source: str) -> pl.DataFrame:
    """Make the table images; a photo has one file and one size."""
    size_columns = [
        parse_pixel_counts(
            frame[dimension],
            dimension=dimension,
            source=source,
            column=dimension,
            allows_missing=True,
        )
        for dimension in _SIZE_COLUMNS
        if dimension in frame.columns
    ]
    rows = frame.select("image_id", "file", *size_columns).unique(maintain_order=True)
    if rows["image_id"].is_duplicated().any():
        raise TableError(
            "a photo has two files or sizes",
            expected="one of each a photo",
            found=repr(rows.filter(rows["image_id"].is_duplicated())["image_id"][0]),
            where=source,
        )
    paths = build_image_table_of_instances(
        rows.select(image_id="file"), are_paths=True, root=folder, source=source
    )
    size_names = [c for c in _SIZE_COLUMNS if c in rows.columns]
    table = rows.select(as_text(rows["image_id"]).alias("image_id"), paths["uri"], *size_names)
    return check(table, IMAGES, source=source)
