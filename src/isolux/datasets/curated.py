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

from isolux.datasets._columns import BOX
from isolux.datasets._image_sizes import as_pixels
from isolux.datasets._terms import TERMS, read_terms, with_terms
from isolux.datasets._wide import attributes_of, identify, images_of, instances_of
from isolux.io.cells import as_numbers, as_text
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.refusals import require_columns
from isolux.vocabulary import works
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, TableError, UnknownNameError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.tables import IMAGES, check

INFO = DatasetInfo(
    title="a dataset built with isolux curate",
    summary="What isolux curate publish wrote: people.csv, photos and the terms of use.",
    references=(works.DATASHEETS.at("the dataset's own datasheet.md"),),
    licence="stated in the dataset's own dataset.json",
    judgement="declared by the user",
    withdrawal="subjects, copyright holders and annotators may withdraw: load it with --withdrawn",
    assumptions=(
        "cluster_id is alike for people who share photos, and for all photos of theirs",
        "in releases without cluster_id, subject_id tells people apart",
    ),
)
PEOPLE = "people.csv"
_OWN = ("instance_id", "image_id", "subject_id", "cluster_id", "file", "class")
_SIDES = ("width", "height")


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
    if not (folder / TERMS).is_file():
        raise FileError(
            "there is no published dataset",
            expected=f"a folder with {TERMS} and {PEOPLE}",
            where=str(folder),
            hint="`isolux curate publish` writes one",
        )
    told = read_terms(folder / TERMS)
    file = folder / PEOPLE
    frame = read_table(file)
    require_columns(frame, ("instance_id", "image_id", "file"), str(file))
    frame, notes = _of_split(frame, split, str(file))
    identity = identify(frame, "instance_id", str(file))
    instances = instances_of(frame, identity, "image_id", str(file))
    boxes = [as_numbers(frame[c], where=file, column=c) for c in BOX if c in frame.columns]
    if "class" in frame.columns:
        named = as_text(frame["class"])
        boxes.append(
            pl.Series(
                "classes", [[one] if one else None for one in named], dtype=pl.List(pl.String)
            )
        )
    instances = instances.with_columns(boxes)
    columns = [c for c in frame.columns if c not in (*_OWN, *BOX, *_SIDES)]
    where = str(file)
    dataset = Dataset(
        name="curated",
        info=with_terms(INFO, told, folder / TERMS),
        instances=instances,
        attributes=attributes_of(frame.select(columns), identity.ids, separator=";", where=where),
        images=_images(frame, folder, where),
        inputs={str(folder / one): sha256_file(folder / one) for one in (TERMS, PEOPLE)},
        notes=tuple(notes),
    )
    known = next((c for c in ("cluster_id", "subject_id") if _says(frame, c)), "image_id")
    return dataset.clustered_by(known)


def _says(frame: pl.DataFrame, column: str) -> bool:
    return column in frame.columns and frame[column].null_count() < frame.height


def _of_split(frame: pl.DataFrame, split: str | None, where: str) -> tuple[pl.DataFrame, list[str]]:
    if split is None:
        return frame, []
    known = as_text(frame["split"]) if "split" in frame.columns else pl.Series([], dtype=pl.String)
    kept = frame.filter(known == split) if len(known) else frame.clear()
    if kept.is_empty():
        raise UnknownNameError("split", split, known.drop_nulls().unique().to_list(), where=where)
    return kept, [f"The split {split!r}: {kept.height:,} of {frame.height:,} people in photos."]


def _images(frame: pl.DataFrame, folder: Path, where: str) -> pl.DataFrame:
    """Make the table images; a photo has one file and one size."""
    sides = [
        as_pixels(frame[side], side=side, where=where, column=side, missing=True)
        for side in _SIDES
        if side in frame.columns
    ]
    rows = frame.select("image_id", "file", *sides).unique(maintain_order=True)
    if rows["image_id"].is_duplicated().any():
        raise TableError(
            "a photo has two files or sizes",
            expected="one of each a photo",
            found=repr(rows.filter(rows["image_id"].is_duplicated())["image_id"][0]),
            where=where,
        )
    paths = images_of(rows.select(image_id="file"), are_paths=True, root=folder, where=where)
    known = [c for c in _SIDES if c in rows.columns]
    table = rows.select(as_text(rows["image_id"]).alias("image_id"), paths["uri"], *known)
    return check(table, IMAGES, where=where)
