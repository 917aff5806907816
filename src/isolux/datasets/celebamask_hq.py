"""CelebAMask-HQ: 30,000 faces of CelebA in 1,024 × 1,024, with a mask for each of their parts.

Lee et al. (2020). Reads its lists of attributes and poses and lists its pictures of masks; through
its mapping to CelebA come identities and the partition, where CelebA's lists are at hand. No
picture is opened: the task that compares parts does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError
from isolux.datasets._celeba import (
    CELEBA_INFO,
    FACE_CLUSTERS,
    PARTITION,
    join_celeba_identity_and_split,
    join_celeba_list_and_note_missing,
    parse_celeba_attributes,
    parse_celeba_image_list,
    parse_celeba_list,
)
from isolux.datasets._files import (
    Inputs,
    build_recursive_patterns,
    find_first_file_or_none,
    find_single_file,
)
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._relative_paths import list_relative_file_paths
from isolux.datasets._tables import (
    build_clustered_dataset,
    left_join_in_order,
    melt_columns_to_attribute_rows,
)
from isolux.io.cell_parsing import as_numbers, first_true_row
from isolux.io.hashing import sha256_listing
from isolux.io.refusals import refuse_cells, require_columns

MASKED_PARTS = (
    "skin",
    "l_brow",
    "r_brow",
    "l_eye",
    "r_eye",
    "eye_g",
    "l_ear",
    "r_ear",
    "ear_r",
    "nose",
    "mouth",
    "u_lip",
    "l_lip",
    "neck",
    "neck_l",
    "cloth",
    "hair",
    "hat",
)
"""The parts that have pictures, as the files are named."""

_ATTRIBUTES_FILE = "CelebAMask-HQ-attribute-anno.txt"
_MAPPING_FILE = "CelebA-HQ-to-CelebA-mapping.txt"
_POSE_FILE = "CelebAMask-HQ-pose-anno.txt"
_MASK_FOLDER, _IMAGE_FOLDER = "CelebAMask-HQ-mask-anno", "CelebA-HQ-img"
_MASK_FILE = rf"^(?:.*/)?(?<number>[0-9]{{5}})_(?<part>{'|'.join(MASKED_PARTS)})\.png$"

_REPEATED_MASK_TEXTS = ("a part of a face has two masks", "one picture for each part")
_REPEATED_LABEL_TEXTS = (
    "a face has two label pictures",
    "one picture, such as 12.png or 00012.png",
)

INFO = replace(
    CELEBA_INFO,
    title="CelebAMask-HQ",
    summary="30,000 faces of CelebA; masks of 18 parts, forty attributes, head poses.",
    references=(citations.CELEBAMASK_HQ,),
    assumptions=(*CELEBA_INFO.assumptions, "a part without a picture is not in the face"),
)


def load(
    path: str | Path,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
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
        The part of CelebA's partition to load; needs CelebA's ``list_eval_partition.txt``, which
        is looked for below ``path``, as is its ``identity_CelebA.txt``.
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
    check_literal_settings(load, split=split, ids=ids)
    file = find_single_file(
        path, build_recursive_patterns(_ATTRIBUTES_FILE), "CelebAMask-HQ attributes"
    )
    root, source = file.parent, str(file)
    inputs, notes = Inputs(), list[str]()
    faces, names = parse_celeba_attributes(inputs.read(file), source, attributes)
    faces = _join_celeba_columns(_add_face_ids(faces, ids, source), root, inputs, notes)
    if split != "all":
        faces = faces.filter(split=split)
    if faces.is_empty():
        raise FileError(
            f"no face is known to be in the part {split!r}",
            expected=f"{_MAPPING_FILE}, and {PARTITION[0]} of CelebA",
            where=source,
            hint="copy CelebA's lists into the folder",
        )
    with_pose = _join_head_pose(faces, root, inputs)
    angles = [name for name in with_pose.columns if name not in faces.columns]
    faces = _join_part_mask_files(
        _join_label_images_or_nulls(with_pose, root, labels, inputs), root, inputs, notes
    )
    split_attributes = ["split"] if faces["split"].is_not_null().any() else []
    return build_clustered_dataset(
        "celebamask_hq",
        INFO,
        instances=faces.select(
            "instance_id",
            "image_id",
            "subject_id",
            "part_mask_files",
            "part_mask_uri",
            classes=pl.lit(["face"]),
        ),
        attributes=melt_columns_to_attribute_rows(
            faces, "instance_id", (*names, *angles, *split_attributes)
        ),
        images=faces.select(
            "image_id", "celeba_file", uri=pl.format("{}/{}", pl.lit(_IMAGE_FOLDER), "image_id")
        ),
        inputs=inputs,
        source=source,
        notes=notes,
        cluster="subject" if faces["subject_id"].is_not_null().any() else None,
        clusters=FACE_CLUSTERS,
    )


def _add_face_ids(faces: pl.DataFrame, ids: str, source: str) -> pl.DataFrame:
    """Name faces by the five digits of their masks, or as their pictures."""
    digits = faces["image_id"].str.extract(r"^([0-9]{1,5})\.(?:jpg|png)$")
    refuse_cells(
        digits.is_null(),
        faces["image_id"],
        "a picture is not named by its number",
        "0.jpg to 29999.jpg",
        source,
        max_length=80,
    )
    with_numbers = faces.with_columns(number=digits.str.zfill(5))
    return with_numbers.with_columns(instance_id="number" if ids == "mask" else "image_id")


def _join_celeba_columns(
    faces: pl.DataFrame, root: Path, inputs: Inputs, notes: list[str]
) -> pl.DataFrame:
    """Add CelebA's file, identity and part of each face, as far as they are known."""
    mapping = find_first_file_or_none(root, (_MAPPING_FILE,))
    if mapping is None:
        notes.append(
            f"{_MAPPING_FILE} is not at hand: no identities, so intervals may be too narrow, no "
            f"parts."
        )
        names = ("celeba_file", "subject_id", "split")
        return faces.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in names)
    mapping_rows = parse_celeba_list(inputs.read(mapping), str(mapping))
    require_columns(mapping_rows, ("idx", "orig_file"), str(mapping))
    files = mapping_rows.select(number=pl.col("idx").str.zfill(5), celeba_file="orig_file")
    joined_faces = join_celeba_list_and_note_missing(
        faces, files, "number", "face(s) have no picture of CelebA's", notes
    )
    missing_phrases = ("face(s) have no identity", "face(s) have no part")
    return join_celeba_identity_and_split(
        joined_faces, root, "celeba_file", missing_phrases, inputs, notes
    )


def _join_head_pose(faces: pl.DataFrame, root: Path, inputs: Inputs) -> pl.DataFrame:
    file = find_first_file_or_none(root, (_POSE_FILE,))
    if file is None:
        return faces
    source = str(file)
    pose_rows = parse_celeba_image_list(inputs.read(file), source)
    angles = [
        as_numbers(pose_rows[name], source=source, column=name) for name in pose_rows.columns[1:]
    ]
    shared_names = set(faces.columns) & set(pose_rows.columns[1:])
    if shared_names:
        raise TableError(
            "an angle is named like an attribute",
            found=", ".join(sorted(shared_names)),
            where=source,
        )
    return left_join_in_order(faces, pl.DataFrame([pose_rows["image_id"], *angles]), "image_id")


def _join_part_mask_files(
    faces: pl.DataFrame, root: Path, inputs: Inputs, notes: list[str]
) -> pl.DataFrame:
    folder = root / _MASK_FOLDER
    if not folder.is_dir():
        notes.append(f"{_MASK_FOLDER} is not at hand: faces have no masks.")
        empty = pl.List(pl.Struct({"part": pl.String, "uri": pl.String}))
        return faces.with_columns(part_mask_files=pl.lit(None, dtype=empty))
    files = list_relative_file_paths(folder)
    inputs[str(folder)] = sha256_listing(folder)
    name_parts = files.str.extract_groups(_MASK_FILE).struct.unnest()
    n_other_files = name_parts["part"].null_count()
    if n_other_files:
        notes.append(
            f"{n_other_files:,} file(s) below {_MASK_FOLDER} are not masks and are passed over."
        )
    masks = name_parts.with_columns(files).drop_nulls("part")
    _check_one_file_per_key(
        masks.select(pl.struct("number", "part")), masks["file"], folder, _REPEATED_MASK_TEXTS
    )
    order = pl.col("part").cast(pl.Enum(MASKED_PARTS))
    uri = pl.format("{}/{}", pl.lit(_MASK_FOLDER), "file")
    masks_by_face = (
        masks.sort("number", order)
        .group_by("number", maintain_order=True)
        .agg(part_mask_files=pl.struct("part", uri=uri))
    )
    return join_celeba_list_and_note_missing(
        faces, masks_by_face, "number", "face(s) have no mask", notes
    )


def _check_one_file_per_key(
    keys: pl.DataFrame, files: pl.Series, folder: Path, error_texts: tuple[str, str]
) -> None:
    is_repeated = keys.to_series().is_duplicated()
    if is_repeated.any():
        example = repr(files[first_true_row(is_repeated)])
        raise TableError(error_texts[0], expected=error_texts[1], found=example, where=str(folder))


def _join_label_images_or_nulls(
    faces: pl.DataFrame, root: Path, labels: str | None, inputs: Inputs
) -> pl.DataFrame:
    """Add the label picture of each face; null where none are asked for."""
    if labels is None:
        return faces.with_columns(part_mask_uri=pl.lit(None, dtype=pl.String))
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
    label_files = list_relative_file_paths(folder).to_frame("file")
    files = label_files.select(number=number, part_mask_uri=uri).drop_nulls()
    _check_one_file_per_key(
        files.select("number"), files["part_mask_uri"], folder, _REPEATED_LABEL_TEXTS
    )
    return left_join_in_order(faces, files, "number")
