"""CelebA: 202,599 photographs of 10,177 celebrities, forty yes-or-no attributes of each.

Liu et al. (2015). Reads ``list_attr_celeba.txt`` and, where they are in its folder, the identities
(CelebA gives them on request), the partition and the boxes. No picture is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.datasets._attribute_rows import attribute_rows
from isolux.datasets._boxes import box_notes, checked_boxes
from isolux.datasets._celeba_lists import (
    ASSUMPTIONS,
    IDENTITY,
    LICENCE,
    PARTITION,
    SPLITS,
    TERMS,
    WITHDRAWAL,
    chosen_names,
    parts_of,
    read_pictures,
    said_yes_or_no,
    subjects_of,
    whole_numbers,
)
from isolux.datasets._clusters import clustered_as
from isolux.datasets._columns import BOX
from isolux.datasets._files import file_in, optional_file, read_file, sha256_bytes
from isolux.vocabulary import works
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError, UnknownNameError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.tables import IMAGES, INSTANCES, check

__all__ = ["INFO", "load"]

_ALIGNED = (178, 218)  # pixels; every aligned picture is as large
_FOLDERS = {"aligned": ("img_align_celeba", "img_align_celeba_png"), "wild": ("img_celeba",)}

INFO = DatasetInfo(
    title="CelebA",
    summary="202,599 photographs of 10,177 celebrities; forty attributes, each yes or no.",
    references=(works.CELEBA,),
    licence=LICENCE,
    training_allowed=True,
    withdrawal=WITHDRAWAL,
    judgement="perceived",
    terms=TERMS,
    assumptions=ASSUMPTIONS,
)


def load(
    path: str | Path,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
    pictures: Literal["aligned", "wild"] = "aligned",
    attributes: Sequence[str] | None = None,
) -> Dataset:
    r"""Load CelebA.

    ``cluster`` of ``isolux.load`` may be ``subject`` (where not given and identities are at
    hand), ``image``, an attribute.

    Parameters
    ----------
    path : str or Path
        A folder with ``list_attr_celeba.txt`` and perhaps ``identity_CelebA.txt``,
        ``list_eval_partition.txt``, ``list_bbox_celeba.txt`` (also in folders of theirs); or the
        first of them; the others are looked for in its folder.
    split : {"all", "train", "val", "test"}
        The part to load; needs the partition unless all are loaded.
    pictures : {"aligned", "wild"}
        Which of its two sets of pictures is meant. Boxes are of the pictures as found in the
        wild: those that were aligned and cut to 178 × 218 have none.
    attributes : sequence of str, optional
        Which of the forty to load; not given: all.

    Returns
    -------
    Dataset
        ``instances``: a face, its file's name as id, ``subject_id`` (null without identities),
        its box in pixels (``pictures="wild"``). ``attributes``: the forty by their published
        names, ``yes`` or ``no``; ``split`` (``train``, ``val``, ``test``) with the partition.

    Raises
    ------
    FileError, TableError, UnknownNameError
        A list that is missing or cut off, a cell that is neither 1 nor -1, a picture twice; with
        the row. A part without a partition.
    SpecError
        A setting that there is not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "list_attr_celeba.txt"
    ...     _ = file.write_text("1\nMale Smiling \n000001.jpg -1  1\n")
    ...     load(folder).attributes.select("attribute", "value").rows()
    [('Male', 'no'), ('Smiling', 'yes')]
    """
    _refuse_settings(split, pictures)
    given = Path(path).expanduser()
    name = "list_attr_celeba.txt"
    file = file_in(given, (name, f"**/{name}"), "CelebA attributes")
    root = file.parent if given.is_file() else given
    data, where = read_file(file), str(file)
    inputs = {where: sha256_bytes(data)}
    read = read_pictures(data, where)
    names = chosen_names(read.columns[1:], attributes, where)
    faces = said_yes_or_no(read.select("image_id", *names), names, where)
    notes: list[str] = []
    faces = _with_subjects(faces, root, inputs, notes)
    faces = _with_split(faces, root, inputs, notes, split)
    faces = _with_boxes(faces, root, inputs, notes, pictures)
    images = check(_images(faces, root, pictures), IMAGES, where=where)
    instances = check(_instances(faces), INSTANCES, where=where)
    parted = ("split",) if faces["split"].is_not_null().any() else ()
    dataset = Dataset(
        name="celeba",
        info=INFO,
        instances=instances,
        attributes=attribute_rows(faces, "image_id", (*names, *parted)),
        images=images,
        inputs=inputs,
        notes=(*notes, *box_notes(instances, images)),
    )
    named = instances["subject_id"].is_not_null().any()
    words = {"subject": "subject_id", "image": None, "face": None, "row": None}
    return clustered_as(dataset, default="subject" if named else None, names=words)


def _refuse_settings(split: str, pictures: str) -> None:
    for name, value, known in (
        ("split", split, ("all", *SPLITS)),
        ("pictures", pictures, tuple(_FOLDERS)),
    ):
        if value not in known:
            raise SpecError(
                f"{name} cannot be set to that", expected=" or ".join(known), found=repr(value)
            )


_Read = Callable[[bytes, str], pl.DataFrame]


def _beside(root: Path, name: str, read: _Read, inputs: dict[str, str]) -> pl.DataFrame | None:
    """Read another list of the same pictures; None where it is not there."""
    file = optional_file(root, (name, f"**/{name}"))
    if file is None:
        return None
    data = read_file(file)
    inputs[str(file)] = sha256_bytes(data)
    return read(data, str(file))


def _joined(
    faces: pl.DataFrame, found: pl.DataFrame, column: str, what: str, notes: list[str]
) -> pl.DataFrame:
    joined = faces.join(found, on="image_id", how="left", maintain_order="left")
    without = joined[column].null_count()
    if without:
        notes.append(f"{without:,} of {joined.height:,} picture(s) have no {what}.")
    return joined


def _with_subjects(
    faces: pl.DataFrame, root: Path, inputs: dict[str, str], notes: list[str]
) -> pl.DataFrame:
    found = _beside(root, IDENTITY, subjects_of, inputs)
    if found is None:
        notes.append(
            f"{IDENTITY} is not at hand: photographs of one celebrity count as independent, so"
            " intervals may be too narrow."
        )
        return faces.with_columns(subject_id=pl.lit(None, dtype=pl.String))
    return _joined(faces, found, "subject_id", "identity", notes)


def _with_split(
    faces: pl.DataFrame, root: Path, inputs: dict[str, str], notes: list[str], split: str
) -> pl.DataFrame:
    found = _beside(root, PARTITION, parts_of, inputs)
    if found is None:
        if split != "all":
            raise FileError(
                f"the part {split!r} cannot be determined without the partition",
                expected=PARTITION,
                where=str(root),
                hint="name the folder that holds it and the attributes",
            )
        return faces.with_columns(split=pl.lit(None, dtype=pl.String))
    joined = _joined(faces, found, "split", "part of the partition", notes)
    kept = joined if split == "all" else joined.filter(pl.col("split") == split)
    if kept.is_empty():
        raise FileError(f"no picture is in the part {split!r}", where=str(root))
    return kept


def _with_boxes(
    faces: pl.DataFrame, root: Path, inputs: dict[str, str], notes: list[str], pictures: str
) -> pl.DataFrame:
    nothing = faces.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in BOX)
    if pictures == "aligned":
        return nothing
    name = "list_bbox_celeba.txt"
    found = _beside(root, name, _boxes_of, inputs)
    if found is None:
        notes.append(f"{name} is not at hand: faces have no boxes.")
        return nothing
    return _joined(faces, found, BOX[0], "box", notes)


def _boxes_of(data: bytes, where: str) -> pl.DataFrame:
    found = read_pictures(data, where)
    sides = ("x_1", "y_1", "width", "height")
    for side in sides:
        if side not in found.columns:
            raise UnknownNameError("column", side, found.columns, where=where)
    named = zip(sides, BOX, strict=True)
    read = whole_numbers(found, sides, where).select(
        "image_id", *(pl.col(side).cast(pl.Float64).alias(box) for side, box in named)
    )
    return checked_boxes(read, where)


def _images(faces: pl.DataFrame, root: Path, pictures: str) -> pl.DataFrame:
    uri = pl.col("image_id")
    # CelebA's own archive has them below Img, most readers do not.
    places = [f"{above}{name}" for name in _FOLDERS[pictures] for above in ("", "Img/")]
    folder = next((name for name in places if (root / name).is_dir()), None)
    if folder is not None:
        # The second folder holds the same pictures as PNG, under the names of the lists but that.
        named = uri.str.replace(r"\.jpg$", ".png") if folder.endswith("_png") else uri
        uri = pl.format("{}/{}", pl.lit(folder), named)
    width, height = _ALIGNED if pictures == "aligned" else (None, None)
    return faces.select(
        "image_id",
        uri=uri,
        width=pl.lit(width, dtype=pl.Int64),
        height=pl.lit(height, dtype=pl.Int64),
    )


def _instances(faces: pl.DataFrame) -> pl.DataFrame:
    return faces.select(
        pl.col("image_id").alias("instance_id"),
        "image_id",
        "subject_id",
        pl.lit(["face"]).alias("classes"),
        *BOX,
    )
