"""CelebA: 202,599 photographs of 10,177 celebrities, forty yes-or-no attributes of each.

Liu et al. (2015). Reads ``list_attr_celeba.txt`` (or Kaggle's ``.csv``) and, where they are in its
folder, the identities (CelebA gives them on request), and the partition. No picture is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import FileError
from isolux.datasets._celeba import (
    ATTRIBUTES,
    CELEBA_INFO,
    FACE_CLUSTERS,
    PARTITION,
    join_celeba_identity_and_split,
    parse_celeba_attributes,
)
from isolux.datasets._files import (
    Inputs,
    build_recursive_patterns,
    find_first_file_or_none,
    find_single_file,
)
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._tables import build_clustered_dataset, melt_columns_to_attribute_rows

_ALIGNED_SIZE_PX = (178, 218)  # pixels; every aligned picture is as large
_FOLDERS = ("img_align_celeba/img_align_celeba", "img_align_celeba", "img_align_celeba_png")

INFO = replace(
    CELEBA_INFO,
    title="CelebA",
    summary="202,599 photographs of 10,177 celebrities; forty attributes, each yes or no.",
    references=(citations.CELEBA,),
)


def load(
    path: str | Path,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
    attributes: Sequence[str] | None = None,
) -> Dataset:
    r"""Load CelebA.

    ``cluster`` of ``isolux.load`` may be ``subject`` (where not given and identities are at
    hand), ``image``, an attribute.

    Parameters
    ----------
    path : str or Path
        A folder with ``list_attr_celeba.txt`` and perhaps ``identity_CelebA.txt``,
        ``list_eval_partition.txt`` (also in folders of theirs); or the first of them; the others
        are looked for in its folder. Kaggle's copy, with ``.csv`` for ``.txt``, is read too.
    split : {"all", "train", "val", "test"}
        The part to load; needs the partition unless all are loaded.
    attributes : sequence of str, optional
        Which of the forty to load; not given: all.

    Returns
    -------
    Dataset
        ``instances``: a face, its file's name as id, ``subject_id`` (null without identities).
        ``attributes``: the forty by their published names, ``yes`` or ``no``; ``split``
        (``train``, ``val``, ``test``) with the partition.

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
    check_literal_settings(load, split=split)
    root_or_file = Path(path).expanduser()
    file = find_single_file(
        root_or_file, build_recursive_patterns(*ATTRIBUTES), "CelebA attributes"
    )
    root, source = file.parent if root_or_file.is_file() else root_or_file, str(file)
    inputs, notes = Inputs(), list[str]()
    faces, names = parse_celeba_attributes(inputs.read(file), source, attributes)
    if (
        split != "all"
        and find_first_file_or_none(root, build_recursive_patterns(*PARTITION)) is None
    ):
        raise FileError(
            f"the part {split!r} cannot be determined without the partition",
            expected=" or ".join(PARTITION),
            where=str(root),
            hint="name the folder that holds it and the attributes",
        )
    missing_phrases = ("picture(s) have no identity", "picture(s) have no part of the partition")
    faces = join_celeba_identity_and_split(faces, root, "image_id", missing_phrases, inputs, notes)
    faces = faces if split == "all" else faces.filter(split=split)
    if faces.is_empty():
        raise FileError(f"no picture is in the part {split!r}", where=str(root))
    split_attributes = ("split",) if faces["split"].is_not_null().any() else ()
    return build_clustered_dataset(
        "celeba",
        INFO,
        instances=faces.select(
            "image_id",
            "subject_id",
            instance_id="image_id",
            classes=pl.lit(["face"]),
        ),
        attributes=melt_columns_to_attribute_rows(faces, "image_id", (*names, *split_attributes)),
        images=_build_celeba_images(faces, root),
        inputs=inputs,
        source=source,
        notes=notes,
        cluster="subject" if faces["subject_id"].is_not_null().any() else None,
        clusters=FACE_CLUSTERS,
    )


def _build_celeba_images(faces: pl.DataFrame, root: Path) -> pl.DataFrame:
    uri = pl.col("image_id")
    # CelebA's own archive has them below Img, most readers do not.
    folder_names = [f"{parent}{name}" for name in _FOLDERS for parent in ("", "Img/")]
    folder = next((name for name in folder_names if (root / name).is_dir()), None)
    if folder is not None:
        # The second folder holds the same pictures as PNG, under the names of the lists but that.
        file_names = uri.str.replace(r"\.jpg$", ".png") if folder.endswith("_png") else uri
        uri = pl.format("{}/{}", pl.lit(folder), file_names)
    width, height = _ALIGNED_SIZE_PX
    return faces.select(
        "image_id",
        uri=uri,
        width=pl.lit(width, dtype=pl.Int64),
        height=pl.lit(height, dtype=pl.Int64),
    )
