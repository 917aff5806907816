"""COCO and any set in its format: boxes, masks, crowds, keypoints of 80 categories.

Reads an annotation file (``instances_val2017.json``, ``person_keypoints_val2017.json``): one
instance for each annotation, its image, its category as class. No image is opened. COCO says
nothing about who people are; labels of skin and gender come from other tables
(``coco_caption_bias``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.datasets._boxes import BoxOrder, box_notes, refuse_shares, with_corners_read
from isolux.datasets._clusters import clustered_as
from isolux.datasets._coco.instances import coco_instances
from isolux.datasets._coco.json import CocoTables, read_coco
from isolux.datasets._files import file_in, read_file, sha256_bytes
from isolux.datasets.coco.areas import on_areas
from isolux.datasets.coco.attributes import own_attributes
from isolux.vocabulary import works
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.tables import ATTRIBUTES, IMAGES, INSTANCES, check

__all__ = ["INFO", "load"]

INFO = DatasetInfo(
    title="COCO",
    summary="Objects of 80 categories in everyday scenes: boxes, masks, crowds, people's joints.",
    references=(works.COCO.at("section 4; the format: https://cocodataset.org/#format-data"),),
    licence="annotations CC BY 4.0; images under their own licences on Flickr",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    judgement="perceived",
    noun="objects",
    terms=(
        ("category", "annotated category"),
        ("supercategory", "group of categories"),
    ),
    assumptions=(
        "images are independent of one another, those in one image are not",
        "everyone in an image is annotated, or covered by a crowd box",
    ),
)

_GIVEN = ("category", "supercategory")
"""Attributes that every file gives."""


def load(
    path: str | Path,
    *,
    categories: Sequence[str] | None = None,
    masks: bool = True,
    box_format: BoxOrder = "xywh",
) -> Dataset:
    r"""Load COCO annotations.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or a column.

    Parameters
    ----------
    path : str or Path
        The JSON file, or a folder that holds a single one (itself or in ``annotations/``).
    categories : sequence of str, optional
        Names of the categories whose instances are kept (``["person"]``); all where not given.
        The others' images stay.
    masks : bool
        Keep the masks. Without them a large file is read in less time and memory.
    box_format : {"xywh", "xyxy"}
        What ``bbox`` is: left, top, width, height, as COCO has it; or two corners, as some
        converters write it.

    Returns
    -------
    Dataset
        ``instances``: the box in pixels, ``classes``, ``area`` (of the mask, square pixels),
        ``is_crowd``, ``ignore`` (crowds, and what the file marks so), mask and keypoint columns
        where the file has any. ``attributes``: ``category`` and ``supercategory``, and what
        annotations hold under ``attributes``, as CVAT and others write it.

    Raises
    ------
    FileError
        No such file, no JSON or JSON that is cut off (with the byte).
    TableError
        With the row in its list: a value of a wrong type, a repeated id, an id of no image or
        category, a box with a negative side, a mask that is not of its image's size; boxes that
        leave their images and are corners.

    Examples
    --------
    >>> import json, tempfile
    >>> file = {
    ...     "images": [{"id": 7, "file_name": "7.jpg", "width": 64, "height": 48}],
    ...     "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [4, 5, 20, 30]}],
    ...     "categories": [{"id": 1, "name": "person"}],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "instances.json").write_text(json.dumps(file))
    ...     load(folder).instances.select("classes", "box_x", "box_h", "cluster_id").row(0)
    (['person'], 4.0, 30.0, '7')
    """
    file = file_in(Path(path).expanduser(), ("annotations/*.json", "*.json"), "annotations (JSON)")
    where = str(file)
    data = read_file(file)
    tables = read_coco(data, where, masks=masks)
    annotations = _of_categories(tables, categories, where)
    images = check(tables.images, IMAGES, where=where)
    drawn = coco_instances(annotations, tables, where)
    read = with_corners_read(drawn, images, box_format, where)
    instances = check(read, INSTANCES, where=where)
    refuse_shares(instances, images, where)
    own, notes = own_attributes(tables.annotations, _GIVEN)
    dataset = Dataset(
        name="coco",
        info=INFO,
        instances=instances,
        attributes=_attributes(annotations, own),
        images=images,
        inputs={where: sha256_bytes(data)},
        notes=(*on_areas(instances), *box_notes(instances, images), *notes),
        categories=dict(tables.categories.select("id", "name").rows()),
    )
    names = {"image": "image_id", "row": None}
    return clustered_as(dataset, default="image", names=names)


def _of_categories(
    tables: CocoTables, categories: Sequence[str] | None, where: str
) -> pl.DataFrame:
    if categories is None:
        return tables.annotations
    known = tables.categories["name"].to_list()
    for name in categories:
        if name not in known:
            raise UnknownNameError("category", name, known, where=where)
    return tables.annotations.filter(pl.col("category").is_in(list(categories)))


def _attributes(annotations: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    parts = [
        annotations.select(
            unit_kind=pl.lit("instance"),
            unit_id="id",
            attribute=pl.lit(name),
            value=pl.col(name),
        )
        for name in _GIVEN
        if annotations[name].is_not_null().any() or name == "category"
    ]
    kept = own.filter(pl.col("unit_id").is_in(annotations["id"].implode()))
    return check(pl.concat([ATTRIBUTES.conform(part) for part in (*parts, kept)]), ATTRIBUTES)
