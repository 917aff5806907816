"""CelebAMask-HQ: 30,000 faces of CelebA in 1,024 × 1,024, with a mask for each of their parts.

Lee et al. (2020). Reads its lists of attributes and poses and lists its pictures of masks; through
its mapping to CelebA come identities and the partition, where CelebA's lists are at hand. No
picture is opened: the task that compares parts does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.datasets._attribute_rows import attribute_rows
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
    read_list,
    read_pictures,
    said_yes_or_no,
    subjects_of,
)
from isolux.datasets._clusters import clustered_as
from isolux.datasets._files import file_in, optional_file, read_file, sha256_bytes
from isolux.datasets._inner_paths import listed_files
from isolux.io.cells import as_numbers, row_of
from isolux.io.hashing import sha256_listing
from isolux.vocabulary import works
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError, TableError, UnknownNameError, place
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.tables import IMAGES, INSTANCES, check

__all__ = ["INFO", "PARTS", "load"]

PARTS = (
    "skin", "l_brow", "r_brow", "l_eye", "r_eye", "eye_g", "l_ear", "r_ear", "ear_r", "nose",
    "mouth", "u_lip", "l_lip", "neck", "neck_l", "cloth", "hair", "hat",
)  # fmt: skip
"""The parts that have pictures, as the files are named."""

_ATTRIBUTES = "CelebAMask-HQ-attribute-anno.txt"
_MAPPING = "CelebA-HQ-to-CelebA-mapping.txt"
_POSE = "CelebAMask-HQ-pose-anno.txt"
_MASKS, _PICTURES = "CelebAMask-HQ-mask-anno", "CelebA-HQ-img"
_MASK = rf"^(?:.*/)?(?<number>[0-9]{{5}})_(?<part>{'|'.join(PARTS)})\.png$"

INFO = DatasetInfo(
    title="CelebAMask-HQ",
    summary="30,000 faces of CelebA; masks of 18 parts, forty attributes, head poses.",
    references=(works.CELEBAMASK_HQ,),
    licence=LICENCE,
    training_allowed=True,
    withdrawal=WITHDRAWAL,
    judgement="perceived",
    terms=TERMS,
    assumptions=(
        *ASSUMPTIONS,
        "a part without a picture is not in the face",
    ),
)


def load(
    path: str | Path,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
    celeba: str | Path | None = None,
    ids: Literal["mask", "picture"] = "mask",
    labels: str | None = None,
    attributes: Sequence[str] | None = None,
) -> Dataset:
    r"""Load CelebAMask-HQ.

    ``cluster`` of ``isolux.load`` may be ``subject`` (where not given and identities are at
    hand), ``image``, an attribute.

    Parameters
    ----------
    path : str or Path
        The folder with ``CelebAMask-HQ-attribute-anno.txt`` and perhaps
        ``CelebA-HQ-to-CelebA-mapping.txt``, ``CelebAMask-HQ-pose-anno.txt`` and
        ``CelebAMask-HQ-mask-anno/``; or the first of them.
    split : {"all", "train", "val", "test"}
        The part of CelebA's partition to load; needs ``celeba``.
    celeba : str or Path, optional
        The folder of CelebA's ``identity_CelebA.txt`` and ``list_eval_partition.txt``. Not given:
        they are looked for below ``path``.
    ids : {"mask", "picture"}
        What identifies a face: ``00012`` as masks are named, or ``12.jpg`` as pictures are.
    labels : str, optional
        A folder below ``path`` with ``<number>.png``, the label pictures that the publisher's
        script makes of the masks; they become ``part_mask_uri``.
    attributes : sequence of str, optional
        Which of the forty to load; not given: all.

    Returns
    -------
    Dataset
        ``instances``: a face, ``subject_id`` (null without identities), ``part_mask_files`` (its
        parts and their pictures, below the root; null without masks), ``part_mask_uri``.
        ``attributes``: the forty, ``yes`` or ``no``; the pose's angles in degrees; ``split``.
        ``images``: without sizes, as pictures have 1,024 pixels a side and masks 512;
        ``celeba_file`` names CelebA's.

    Raises
    ------
    FileError, TableError, UnknownNameError
        A list that is missing, cut off or damaged, with the row; a mask that is there twice.
    SpecError
        A setting that there is not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "CelebAMask-HQ-attribute-anno.txt"
    ...     _ = file.write_text("1\nMale Smiling\n0.jpg  -1 1\n")
    ...     (Path(folder) / "CelebAMask-HQ-mask-anno" / "0").mkdir(parents=True)
    ...     (Path(folder) / "CelebAMask-HQ-mask-anno" / "0" / "00000_l_eye.png").touch()
    ...     dataset = load(folder)
    >>> dataset.instances["part_mask_files"][0].to_list()
    [{'part': 'l_eye', 'uri': 'CelebAMask-HQ-mask-anno/0/00000_l_eye.png'}]
    """
    _refuse_settings(split, ids)
    given = Path(path).expanduser()
    file = file_in(given, (_ATTRIBUTES, f"**/{_ATTRIBUTES}"), "CelebAMask-HQ attributes")
    root, data, where = file.parent, read_file(file), str(file)
    inputs = {where: sha256_bytes(data)}
    notes: list[str] = []
    read = read_pictures(data, where)
    names = chosen_names(read.columns[1:], attributes, where)
    faces = said_yes_or_no(read.select("image_id", *names), names, where)
    faces = _numbered(faces, ids, where)
    faces = _with_celeba(faces, root, celeba, inputs, notes)
    faces = _of_part(faces, split, where)
    posed = _with_pose(faces, root, inputs)
    angles = [name for name in posed.columns if name not in faces.columns]
    faces = _with_masks(posed, root, labels, inputs, notes)
    parted = ["split"] if faces["split"].is_not_null().any() else []
    instances = check(_instances(faces), INSTANCES, where=where)
    dataset = Dataset(
        name="celebamask_hq",
        info=INFO,
        instances=instances,
        attributes=attribute_rows(faces, "instance_id", (*names, *angles, *parted)),
        images=check(_images(faces), IMAGES, where=where),
        inputs=inputs,
        notes=tuple(notes),
    )
    named = instances["subject_id"].is_not_null().any()
    words = {"subject": "subject_id", "image": None, "face": None, "row": None}
    return clustered_as(dataset, default="subject" if named else None, names=words)


def _refuse_settings(split: str, ids: str) -> None:
    for name, value, known in (
        ("split", split, ("all", *SPLITS)),
        ("ids", ids, ("mask", "picture")),
    ):
        if value not in known:
            raise SpecError(
                f"{name} cannot be set to that", expected=" or ".join(known), found=repr(value)
            )


def _numbered(faces: pl.DataFrame, ids: str, where: str) -> pl.DataFrame:
    """Add ``number`` (``00012`` of ``12.jpg``) and the id that was asked for."""
    digits = pl.col("image_id").str.extract(r"^([0-9]{1,5})\.(?:jpg|png)$")
    numbered = faces.with_columns(number=digits.str.zfill(5))
    bad = numbered["number"].is_null()
    if bad.any():
        raise TableError(
            "a picture is not named by its number",
            expected="0.jpg to 29999.jpg",
            found=repr(faces["image_id"][row_of(bad)])[:80],
            where=place(where, row_of(bad) + 1, "image_id"),
        )
    return numbered.with_columns(instance_id="number" if ids == "mask" else "image_id")


def _with_celeba(
    faces: pl.DataFrame,
    root: Path,
    celeba: str | Path | None,
    inputs: dict[str, str],
    notes: list[str],
) -> pl.DataFrame:
    """Add ``celeba_file``, ``subject_id`` and ``split``; null where no list says them."""
    blank = faces.with_columns(
        pl.lit(None, dtype=pl.String).alias(name) for name in ("celeba_file", "subject_id", "split")
    )
    mapping = optional_file(root, (_MAPPING,))
    if mapping is None:
        if celeba is not None:
            raise FileError(
                "the mapping to CelebA is not at hand", expected=_MAPPING, where=str(root)
            )
        notes.append(
            f"{_MAPPING} is not at hand: no identities, so intervals may be too narrow, no parts."
        )
        return blank
    found = blank.drop("celeba_file").join(
        _mapped(mapping, inputs), on="number", how="left", maintain_order="left"
    )
    _count(found, "celeba_file", "picture of CelebA's", notes)
    folder = root if celeba is None else Path(celeba).expanduser()
    for name, read, column in (
        (IDENTITY, subjects_of, "subject_id"),
        (PARTITION, parts_of, "split"),
    ):
        file = optional_file(folder, (name, f"**/{name}"))
        if file is None:
            if name == IDENTITY:
                notes.append(
                    f"{name} is not at hand: photographs of one celebrity count as independent, so"
                    " intervals may be too narrow."
                )
            continue
        data = read_file(file)
        inputs[str(file)] = sha256_bytes(data)
        listed = read(data, str(file)).rename({"image_id": "celeba_file"})
        found = found.drop(column).join(listed, on="celeba_file", how="left", maintain_order="left")
        _count(found, column, {"subject_id": "identity", "split": "part"}[column], notes)
    return found


def _mapped(file: Path, inputs: dict[str, str]) -> pl.DataFrame:
    """Read the mapping: ``number``, ``celeba_file``."""
    data, where = read_file(file), str(file)
    inputs[where] = sha256_bytes(data)
    read = read_list(data, where)
    for name in ("idx", "orig_file"):
        if name not in read.columns:
            raise UnknownNameError("column", name, read.columns, where=where)
    return read.select(number=pl.col("idx").str.zfill(5), celeba_file="orig_file")


def _count(faces: pl.DataFrame, column: str, what: str, notes: list[str]) -> None:
    without = faces[column].null_count()
    if without:
        notes.append(f"{without:,} of {faces.height:,} face(s) have no {what}.")


def _of_part(faces: pl.DataFrame, split: str, where: str) -> pl.DataFrame:
    if split == "all":
        return faces
    kept = faces.filter(pl.col("split") == split)
    if kept.is_empty():
        raise FileError(
            f"no face is known to be in the part {split!r}",
            expected=f"{_MAPPING}, and {PARTITION} of CelebA",
            where=where,
            hint="name CelebA's folder with celeba",
        )
    return kept


def _with_pose(faces: pl.DataFrame, root: Path, inputs: dict[str, str]) -> pl.DataFrame:
    file = optional_file(root, (_POSE,))
    if file is None:
        return faces
    data, where = read_file(file), str(file)
    inputs[where] = sha256_bytes(data)
    read = read_pictures(data, where)
    angles = [as_numbers(read[name], where=where, column=name) for name in read.columns[1:]]
    found = pl.DataFrame([read["image_id"], *angles])
    taken = set(faces.columns) & set(found.columns[1:])
    if taken:
        raise TableError(
            "an angle is named like an attribute", found=", ".join(sorted(taken)), where=where
        )
    return faces.join(found, on="image_id", how="left", maintain_order="left")


def _with_masks(
    faces: pl.DataFrame,
    root: Path,
    labels: str | None,
    inputs: dict[str, str],
    notes: list[str],
) -> pl.DataFrame:
    if labels is not None:
        faces = _with_labels(faces, root, labels, inputs)
    else:
        faces = faces.with_columns(part_mask_uri=pl.lit(None, dtype=pl.String))
    folder = root / _MASKS
    if not folder.is_dir():
        notes.append(f"{_MASKS} is not at hand: faces have no masks.")
        empty = pl.List(pl.Struct({"part": pl.String, "uri": pl.String}))
        return faces.with_columns(part_mask_files=pl.lit(None, dtype=empty))
    files = listed_files(folder)
    inputs[str(folder)] = sha256_listing(folder)
    masks = (
        files.to_frame("file")
        .with_columns(pl.col("file").str.extract_groups(_MASK).alias("said"))
        .unnest("said")
    )
    others = masks["part"].null_count()
    if others:
        notes.append(f"{others:,} file(s) below {_MASKS} are not masks and are passed over.")
    masks = masks.drop_nulls("part")
    twice = masks.select(pl.struct("number", "part").is_duplicated()).to_series()
    if twice.any():
        raise TableError(
            "a part of a face has two masks",
            expected="one picture for each part",
            found=repr(masks["file"][row_of(twice)]),
            where=str(folder),
        )
    order = pl.col("part").cast(pl.Enum(PARTS))
    uri = pl.format("{}/{}", pl.lit(_MASKS), "file")
    parts = (
        masks.sort("number", order)
        .group_by("number", maintain_order=True)
        .agg(part_mask_files=pl.struct("part", uri=uri))
    )
    found = faces.join(parts, on="number", how="left", maintain_order="left")
    _count(found, "part_mask_files", "mask", notes)
    return found


def _with_labels(
    faces: pl.DataFrame, root: Path, labels: str, inputs: dict[str, str]
) -> pl.DataFrame:
    folder = root / labels
    if not folder.is_dir() or not folder.resolve().is_relative_to(root.resolve()):
        raise FileError(
            "there is no such folder of label pictures",
            expected="a folder below the dataset's, with <number>.png",
            found=repr(labels),
            where=str(root),
        )
    inputs[str(folder)] = sha256_listing(folder)
    number = pl.col("file").str.extract(r"^([0-9]{1,5})\.png$").str.zfill(5)
    uri = pl.format("{}/{}", pl.lit(labels.rstrip("/")), "file")
    listed = listed_files(folder).to_frame("file")
    files = listed.select(number=number, part_mask_uri=uri).drop_nulls()
    twice = files["number"].is_duplicated()
    if twice.any():
        raise TableError(
            "a face has two label pictures",
            expected="one picture, such as 12.png or 00012.png",
            found=repr(files["part_mask_uri"][row_of(twice)]),
            where=str(folder),
        )
    return faces.join(files, on="number", how="left", maintain_order="left")


def _images(faces: pl.DataFrame) -> pl.DataFrame:
    return faces.select(
        "image_id", "celeba_file", uri=pl.format("{}/{}", pl.lit(_PICTURES), "image_id")
    )


def _instances(faces: pl.DataFrame) -> pl.DataFrame:
    return faces.select(
        "instance_id",
        "image_id",
        "subject_id",
        pl.lit(["face"]).alias("classes"),
        "part_mask_files",
        "part_mask_uri",
    )
