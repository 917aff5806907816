"""WIDER FACE with demographics: faces in crowds, and what annotators perceived of those in view.

Reads WIDER FACE's ground truth (Yang et al. 2016; MATLAB or text) and, if given, perceived
gender, age and Fitzpatrick skin type of a part of its faces. Every face takes part in matching;
where demographics are at hand only faces that have them are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.datasets._boxes import box_notes, checked_boxes
from isolux.datasets._clusters import clustered_as
from isolux.datasets._columns import BOX
from isolux.datasets._files import file_in, optional_file, read_file, sha256_bytes
from isolux.datasets.widerface.files import LABELS, chosen_of_mat, lists_of_mat, read_text
from isolux.io.cells import as_text, row_of
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.vocabulary import works
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError, SpecError, TableError, UnknownNameError, place
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.tables import ATTRIBUTES, IMAGES, INSTANCES, check

__all__ = ["DEMOGRAPHICS", "INFO", "NOT_SURE", "load"]

NOT_SURE = "Not Sure"
DEMOGRAPHICS: dict[str, tuple[str, ...]] = {
    "perceived_gender": ("Male", "Female", NOT_SURE),
    "perceived_age": ("Young Adult", "Adult", "Middle age", "Senior", NOT_SURE),
    "perceived_skin": ("I", "II", "III", "IV", "V", "VI", NOT_SURE),
}
_LEVELS = ("easy", "medium", "hard")

INFO = DatasetInfo(
    title="WIDER FACE with demographics",
    summary="Faces in crowds of 61 kinds of events; perceived gender, age and skin type.",
    references=(
        works.WIDER_FACE,
        Reference(
            key="widerface-demographics",
            citation="Amazon Science. WIDER FACE demographics: perceived gender, age and skin"
            " type of faces of WIDER FACE [data set].",
            url="https://github.com/amazon-science/widerface-demographics",
        ),
    ),
    licence="images for research use; demographics CC BY-NC 4.0",
    training_allowed=None,
    withdrawal="no way for the people shown to withdraw is published",
    judgement="perceived",
    noun="faces",
    terms=(
        ("perceived_gender", "perceived gender presentation"),
        ("perceived_age", "perceived age"),
        ("perceived_skin", "perceived skin type (Fitzpatrick)"),
        ("difficulty", "WIDER FACE's difficulty (easy is part of medium, medium of hard)"),
        ("invalid", "marked as invalid by WIDER FACE"),
    ),
    assumptions=(
        "images are independent of one another, faces in one image are not",
        "the groups come from annotators' judgements, not from what people say about themselves",
    ),
)


def load(
    path: str | Path,
    *,
    split: str = "val",
    judge: Literal["annotated", "all"] = "annotated",
    not_sure: Literal["keep", "leave out"] = "keep",
) -> Dataset:
    r"""Load WIDER FACE, with its demographics where they lie next to it.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``event``, ``face``.

    Parameters
    ----------
    path : str or Path
        A folder with ``wider_face_val.mat`` or ``wider_face_val_bbx_gt.txt``, and perhaps
        ``demographics_val.csv``, ``wider_easy_val.mat``, ``wider_medium_val.mat``,
        ``wider_hard_val.mat`` (also in folders of theirs); or one of the first two.
    split : str
        ``val`` or ``train``, as in the files' names.
    judge : {"annotated", "all"}
        Whether faces without demographics are judged. They take part in matching either way.
        Without a file of demographics all are judged.
    not_sure : {"keep", "leave out"}
        Whether faces are judged of whom annotators were not sure in gender, age or skin.

    Returns
    -------
    Dataset
        ``instances``: a face, ``<event>/<image>.jpg_<face>``, its box in pixels, ``face_index``
        from 0, ``judged``, ``easy``, ``medium``, ``hard`` (null without their lists).
        ``attributes``: ``perceived_gender``, ``perceived_age``, ``perceived_skin``, ``blur``,
        ``expression``, ``illumination``, ``invalid``, ``occlusion``, ``pose``, ``difficulty``.

    Raises
    ------
    FileError, TableError, JoinError
        A damaged file, a code or word that the dataset does not have, a face that is not there;
        with the row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wider_face_val_bbx_gt.txt"
    ...     _ = file.write_text("0--Parade/a.jpg\n1\n44 33 12 14 2 0 0 0 1 0\n")
    ...     dataset = load(folder)
    >>> dataset.instances["instance_id"][0], dataset.values_of("blur")["value"][0]
    ('0--Parade/a.jpg_0', 'heavy')
    """
    _refuse_settings(judge, not_sure)
    root = Path(path).expanduser()
    names = (f"wider_face_{split}.mat", f"wider_face_{split}_bbx_gt.txt")
    file = file_in(root, (*names, *(f"**/{name}" for name in names)), "WIDER FACE ground truth")
    root = file.parent if root.is_file() else root
    data = read_file(file)
    where = str(file)
    read = (lists_of_mat if file.suffix.lower() == ".mat" else read_text)(data, where)
    faces = checked_boxes(_with_ids(_sized(read.drop_nulls("face_index"))), where)
    inputs = {where: sha256_bytes(data)}
    faces = _with_levels(faces, root, split, inputs)
    known = _demographics(faces, root, split, inputs)
    marked = _judged(faces, known, judge, not_sure)
    instances = check(_instances(marked.faces), INSTANCES, where=where)
    images = _images(read, split)
    dataset = Dataset(
        name="widerface",
        info=INFO,
        instances=instances,
        attributes=_attributes(faces, known),
        images=images,
        inputs=inputs,
        notes=(*_negative_note(read), *marked.notes, *box_notes(instances, images)),
    )
    return clustered_as(dataset, default="image", names={"image": "image_id", "face": None})


def _refuse_settings(judge: str, not_sure: str) -> None:
    for name, value, known in (
        ("judge", judge, ("annotated", "all")),
        ("not_sure", not_sure, ("keep", "leave out")),
    ):
        if value not in known:
            raise SpecError(
                f"{name} cannot be set to that", expected=" or ".join(known), found=repr(value)
            )


def _sized(faces: pl.DataFrame) -> pl.DataFrame:
    """Take negative sizes as 0: the published file has a face of width -2, which all must load."""
    return faces.with_columns(pl.col("box_w", "box_h").clip(lower_bound=0.0))


def _with_ids(faces: pl.DataFrame) -> pl.DataFrame:
    return faces.with_columns(
        instance_id=pl.format("{}_{}", "image_id", "face_index"),
        event=pl.col("image_id").str.replace("/.*$", ""),
    )


def _negative_note(read: pl.DataFrame) -> tuple[str, ...]:
    n = read.filter((pl.col("box_w") < 0) | (pl.col("box_h") < 0)).height
    return (f"{n:,} box(es) of a negative size are taken as having no area.",) if n else ()


def _with_levels(
    faces: pl.DataFrame, root: Path, split: str, inputs: dict[str, str]
) -> pl.DataFrame:
    """Mark the faces of the lists easy, medium and hard; null where a list is not at hand."""
    for level in _LEVELS:
        name = f"wider_{level}_{split}.mat"
        file = optional_file(root, (name, f"**/{name}"))
        if file is None:
            faces = faces.with_columns(pl.lit(None, dtype=pl.Boolean).alias(level))
            continue
        data = read_file(file)
        inputs[str(file)] = sha256_bytes(data)
        chosen = chosen_of_mat(data, str(file)).unique()
        strange = chosen.join(faces, on=["image_id", "face_index"], how="anti")
        if strange.height:
            image, face = strange.row(0)
            raise JoinError(
                f"the list {level} names {strange.height:,} face(s) that the ground truth lacks",
                found=f"face {face} of {image!r}, counted from 0",
                where=str(file),
            )
        marked = chosen.with_columns(pl.lit(value=True).alias(level))
        faces = faces.join(
            marked, on=["image_id", "face_index"], how="left", maintain_order="left"
        ).with_columns(pl.col(level).fill_null(value=False))
    return faces


def _demographics(
    faces: pl.DataFrame, root: Path, split: str, inputs: dict[str, str]
) -> pl.DataFrame | None:
    """Read what annotators perceived: ``instance_id`` and a column for each attribute."""
    name = f"demographics_{split}.csv"
    file = optional_file(root, (name, f"**/{name}"))
    if file is None:
        return None
    where = str(file)
    table = read_table(file)
    inputs[where] = sha256_file(file)
    for column in ("file", "face", *DEMOGRAPHICS):
        if column not in table.columns:
            raise UnknownNameError("column", column, table.columns, where=where)
    index = as_text(table["face"]).cast(pl.Int64, strict=False)
    _refuse(
        index.is_null(), table["face"], "a face's place is not a whole number", "0, 1, …", where
    )
    ids = table.select(
        instance_id=pl.format("{}_{}", pl.col("file").str.strip_prefix("images/"), index)
    )["instance_id"]
    known = ids.is_in(faces["instance_id"].implode()).fill_null(value=False)
    if not known.all():
        row = row_of(~known)
        raise JoinError(
            f"{(~known).sum():,} face(s) with demographics are not in the ground truth",
            expected="images/<event>/<image>.jpg, and a place among its boxes counted from 0",
            found=f"face {table['face'][row]} of {table['file'][row]!r}",
            where=place(where, row + 1, "face"),
        )
    _refuse(~ids.is_first_distinct(), ids, "a face is listed twice", "each face once", where)
    texts = [as_text(table[column]) for column in DEMOGRAPHICS]
    for text in texts:
        words = DEMOGRAPHICS[text.name]
        strange = ~text.is_in(words).fill_null(value=True)
        _refuse(strange, text, "a word that the dataset does not have", ", ".join(words), where)
    return pl.DataFrame([ids, *texts])


def _refuse(bad: pl.Series, cells: pl.Series, problem: str, expected: str, where: str) -> None:
    if bad.any():
        row = row_of(bad)
        raise TableError(
            f"{problem} ({bad.sum():,} cell(s))",
            expected=expected,
            found=repr(cells[row]),
            where=place(where, row + 1, "face" if cells.name == "instance_id" else cells.name),
        )


@dataclass(frozen=True, slots=True)
class _Marked:
    faces: pl.DataFrame
    notes: tuple[str, ...]


def _judged(faces: pl.DataFrame, known: pl.DataFrame | None, judge: str, not_sure: str) -> _Marked:
    """Fill ``judged``, and say how many faces are not."""
    if known is None:
        return _Marked(faces.with_columns(judged=pl.lit(value=True)), ())
    notes = []
    annotated = pl.col("instance_id").is_in(known["instance_id"].implode())
    judged = annotated if judge == "annotated" else pl.lit(value=True)
    if judge == "annotated":
        notes.append(
            f"{known.height:,} of {faces.height:,} faces have demographics and are judged; the"
            " others take part in matching."
        )
    if not_sure == "leave out":
        unsure = known.filter(pl.any_horizontal(pl.col(n) == NOT_SURE for n in DEMOGRAPHICS))
        judged = judged & ~pl.col("instance_id").is_in(unsure["instance_id"].implode())
        notes.append(
            f"{unsure.height:,} faces are not judged, as annotators were not sure of gender, age"
            " or skin."
        )
    return _Marked(faces.with_columns(judged=judged), tuple(notes))


def _instances(faces: pl.DataFrame) -> pl.DataFrame:
    return faces.select(
        "instance_id",
        "image_id",
        pl.lit(["face"]).alias("classes"),
        *BOX,
        (pl.col("box_w") * pl.col("box_h")).alias("area"),
        "face_index",
        "judged",
        *_LEVELS,
        "event",
    )


def _images(read: pl.DataFrame, split: str) -> pl.DataFrame:
    images = read.select("image_id").unique(maintain_order=True)
    return check(
        images.with_columns(uri=pl.format("WIDER_{}/images/{}", pl.lit(split), "image_id")), IMAGES
    )


def _attributes(faces: pl.DataFrame, known: pl.DataFrame | None) -> pl.DataFrame:
    parts = [faces.select("instance_id", attribute=pl.lit(n), value=pl.col(n)) for n in LABELS]
    if known is not None:
        parts += [
            known.select("instance_id", attribute=pl.lit(n), value=pl.col(n)) for n in DEMOGRAPHICS
        ]
    parts += [
        faces.filter(pl.col(level)).select(
            "instance_id", attribute=pl.lit("difficulty"), value=pl.lit(level)
        )
        for level in _LEVELS
    ]
    table = pl.concat(parts).rename({"instance_id": "unit_id"})
    return check(table.with_columns(unit_kind=pl.lit("instance")), ATTRIBUTES)
