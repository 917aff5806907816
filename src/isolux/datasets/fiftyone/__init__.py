"""FiftyOne: a dataset that it exported as JSON, read and written without FiftyOne.

Moore & Corso (2020). ``load`` reads what ``dataset.export(dataset_type=fo.types.FiftyOneDataset)``
writes: people as detections, keypoints or classifications, with whatever fields they were given.
``save`` writes people, their groups and scores so that they can be looked at in FiftyOne's app. The
format, and where it is written down: ``files.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from isolux.datasets._boxes import checked_boxes
from isolux.datasets._columns import BOX
from isolux.datasets._image_sizes import with_sizes_of_files
from isolux.datasets._inner_paths import refuse_outside
from isolux.datasets._tables import attribute_rows, dataset_of
from isolux.datasets.fiftyone.files import (
    Columns,
    Export,
    Item,
    columns_of,
    field_of,
    items_of,
    read_export,
    text_of,
)
from isolux.datasets.fiftyone.masks import Boxed, to_columns, unpacked
from isolux.datasets.fiftyone.points import points_beside, points_of_items
from isolux.datasets.fiftyone.saving import RESERVED, save
from isolux.vocabulary.containers import Clusters, Dataset
from isolux.vocabulary.errors import TableError, UnknownNameError, place
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.tables import ATTRIBUTES, IMAGES, INSTANCES, check

__all__ = ["INFO", "load", "save"]

_OF_SAMPLES = (
    "filepath",
    "metadata",
    "id",
    "media_type",
    "created_at",
    "last_modified_at",
    "frames",
    "group",
    "image_id",
)
_CLUSTERS = {"image": "image_id", "row": None}
_LARGEST_PX = 1 << 30  # of a picture
_ABSOLUTE = r"^(?:[/\\~]|[A-Za-z]:|[a-z0-9]+://)"

INFO = DatasetInfo(
    title="a FiftyOne dataset",
    summary="What FiftyOne exports as JSON: boxes, masks, keypoints, classes and fields of any"
    " kind.",
    references=(
        Reference(
            key="fiftyone",
            citation="Moore, B. E., & Corso, J. J. (2020). FiftyOne. Voxel51.",
            place="the format: FiftyOneDataset, in Exporting FiftyOne Datasets",
            url="https://docs.voxel51.com/user_guide/export_datasets.html#fiftyonedataset",
        ),
    ),
    licence="the licence of your own data",
    judgement="declared by the user",
    assumptions=(
        "each label of the field chosen is one person, or object, to be judged",
        "images are independent of one another, or a cluster column says which belong together",
    ),
)


def load(
    path: str | Path,
    *,
    label_field: str | None = None,
    keypoint_field: str | None = None,
    categories: Sequence[str] | None = None,
    masks: bool = True,
) -> Dataset:
    r"""Load a dataset that FiftyOne exported.

    In FiftyOne: ``dataset.compute_metadata()``, for pictures' sizes, then
    ``dataset.export(export_dir, dataset_type=fo.types.FiftyOneDataset)``, with
    ``export_media=False`` where the pictures stay where they are. Files of the database itself
    are not read.

    ``cluster`` of ``isolux.load`` may be ``image``, ``group`` (of a grouped dataset), ``row``,
    or a field. Not given: the labels' ``cluster_id`` if they have one, else ``group``,
    ``image``.

    Parameters
    ----------
    path : str or Path
        The folder with ``samples.json`` and ``metadata.json``, or that file.
    label_field : str, optional
        The field that holds people: Detections, Keypoints or Classifications. Not given: the only
        such field, or ``people``, or ``ground_truth``; without any a picture is a person.
    keypoint_field : str, optional
        A field of Keypoints that belong to them, found by the same ``instance_id``, ``instance`` or
        ``index``. Not given: ``keypoints``, if there is such a field of Keypoints.
    categories : sequence of str, optional
        The labels whose people are kept (``["person"]``); not given: all. Others' images stay.
    masks : bool
        Read the masks beside the boxes.

    Returns
    -------
    Dataset
        ``instances``: the label's ``instance_id``, else its ``_id``; box in pixels, ``classes``,
        mask and keypoint columns where there are any, ``is_crowd`` (``iscrowd``). ``images``: the
        picture's name (its path where names repeat), ``uri`` (null where it lies elsewhere),
        size. ``attributes``: of people ``label`` and every further field of theirs; of images
        the samples' fields, of a classification what it says. Fields of other kinds are noted.

    Raises
    ------
    FileError
        No such file, no JSON or JSON that is cut off (with the byte).
    TableError, UnknownNameError
        With the sample's row: a box that is not one, or in a picture of unknown size, a mask
        that cannot be read, an id that occurs twice, a path that leads out of the folder. No such
        field; several that could be meant.

    Examples
    --------
    >>> import json, tempfile
    >>> box = {"_cls": "Detection", "label": "person", "bounding_box": [0.25, 0, 0.5, 1]}
    >>> sample = {
    ...     "filepath": "data/1.jpg",
    ...     "metadata": {"_cls": "ImageMetadata", "width": 8, "height": 6},
    ...     "ground_truth": {"_cls": "Detections", "detections": [box | {"tone": "IV"}]},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "samples.json"
    ...     _ = file.write_text(json.dumps({"samples": [sample]}))
    ...     dataset = load(folder)
    >>> dataset.instances.select("box_x", "box_w", "classes").row(0)
    (2.0, 4.0, ['person'])
    >>> dataset.values_of("tone")["value"].to_list()
    ['IV']
    """
    export = read_export(path)
    images = _images(export)
    field = field_of(export, label_field)
    whole = [Item(row, 0, {}) for row in range(images.height)]
    items = whole if field is None else items_of(export, field)
    items = _of_categories(items, categories, export.where)
    instances = _instances(items, images, whole=field is None)
    beside = points_beside(export, keypoint_field, field)
    images = _with_sizes(images, items, export, beside)
    parts = [_boxes(items, images, export.where), points_of_items(items, images, export, beside)]
    if masks:
        parts.append(to_columns(_masks(items, images, export.where), len(items)))
    own = columns_of([item.label for item in items], _own_fields(items))
    frame = pl.concat([instances, *(p for p in parts if p.width)], how="horizontal")
    frame = check(frame.drop("cluster"), INSTANCES, where=export.where)
    sampled = columns_of(export.samples, _sample_fields(export, field, beside))
    images = check(images.drop("missing"), IMAGES, where=export.where)
    grouped = _groups(export)
    dataset = dataset_of(
        "fiftyone",
        INFO,
        instances=frame,
        attributes=_attributes(frame, own, images, sampled, grouped),
        images=images,
        inputs=export.inputs,
        notes=_notes(export, images, own, sampled),
        cluster="image" if grouped is None else "group",
        clusters=_CLUSTERS,
    )
    if instances["cluster"].is_null().all():
        return dataset
    people = frame.with_columns(cluster_id=instances["cluster"])
    return replace(dataset, instances=people, clusters=Clusters(_CLUSTERS))


def _images(export: Export) -> pl.DataFrame:
    """Name each picture, and find its size where the samples give it; one row a sample."""
    said = [sample.get("filepath") for sample in export.samples]
    for row, path in enumerate(said, start=1):
        if not isinstance(path, str) or not path.strip():
            raise TableError(
                "a sample has no file",
                expected='"filepath": "data/…"',
                found=repr(path)[:60],
                where=place(export.where, row, "filepath"),
            )
    paths = pl.Series(said, dtype=pl.String)
    elsewhere = paths.str.contains(_ABSOLUTE)
    inner = paths.set(elsewhere, None)
    refuse_outside(inner.fill_null(""), export.where, "filepath")
    names = paths.str.replace_all(r"\\", "/").str.split("/").list.last()
    own = pl.Series([text_of(s.get("image_id")) for s in export.samples], dtype=pl.String)
    if own.null_count() or not own.is_unique().all():
        own = names if names.is_unique().all() else paths
    sizes = [_said_size(sample.get("metadata")) for sample in export.samples]
    return pl.DataFrame(
        {
            "image_id": own,
            "uri": inner,
            "width": pl.Series([size[0] for size in sizes], dtype=pl.Int64),
            "height": pl.Series([size[1] for size in sizes], dtype=pl.Int64),
            "missing": elsewhere,
        }
    )


def _said_size(metadata: object) -> tuple[int | None, int | None]:
    if not isinstance(metadata, dict):
        return None, None
    width, height = metadata.get("width"), metadata.get("height")
    sides = [s for s in (width, height) if isinstance(s, int) and not isinstance(s, bool) and s > 0]
    good = len(sides) == 2 and sides[0] * sides[1] < _LARGEST_PX
    return (width, height) if good else (None, None)


def _with_sizes(
    images: pl.DataFrame, items: Sequence[Item], export: Export, beside: object
) -> pl.DataFrame:
    """Read the sizes that samples lack from the pictures' headers, where anything was drawn."""
    drawn = {i.sample for i in items if i.label.get("bounding_box") is not None}
    if beside is not None or any("points" in item.label for item in items):
        drawn |= {item.sample for item in items}
    without = images.with_row_index("row").filter(
        pl.col("width").is_null(), pl.col("row").is_in(sorted(drawn)), pl.col("uri").is_not_null()
    )
    files = {row: export.root / uri for row, uri in without.select("row", "uri").iter_rows()}
    base = export.root.resolve()
    there = {
        row: file
        for row, file in files.items()
        if file.is_file() and file.resolve().is_relative_to(base)
    }
    return with_sizes_of_files(images, there)


def _of_categories(items: list[Item], categories: Sequence[str] | None, where: str) -> list[Item]:
    if categories is None:
        return items
    wanted = (categories,) if isinstance(categories, str) else tuple(categories)
    known = {str(item.label.get("label")) for item in items}
    for name in wanted:
        if name not in known:
            raise UnknownNameError("label", name, known, where=where)
    return [item for item in items if str(item.label.get("label")) in wanted]


def _instances(items: Sequence[Item], images: pl.DataFrame, *, whole: bool) -> pl.DataFrame:
    """Identify people; ``cluster`` is the label's own ``cluster_id``."""
    names = images["image_id"].to_list()
    ids = [names[item.sample] if whole else _id_of(item, names[item.sample]) for item in items]
    labels = [text_of(item.label.get("label")) for item in items]
    more = [item.label.get("classes") for item in items]
    classes = [
        [text_of(one) or "" for one in several]
        if isinstance(several, list) and several
        else None
        if label is None
        else [label]
        for label, several in zip(labels, more, strict=True)
    ]
    frame = pl.DataFrame(
        {
            "instance_id": pl.Series(ids, dtype=pl.String),
            "image_id": pl.Series([names[i.sample] for i in items], dtype=pl.String),
            **{
                name: pl.Series([text_of(i.label.get(key)) for i in items], dtype=pl.String)
                for name, key in (("subject_id", "subject_id"), ("cluster", "cluster_id"))
            },
            "classes": pl.Series(classes, dtype=pl.List(pl.String)),
        }
    )
    crowds = [i.label.get("iscrowd", i.label.get("is_crowd")) for i in items]
    if any(crowd is not None for crowd in crowds):
        crowd = pl.Series("is_crowd", [bool(c) for c in crowds], dtype=pl.Boolean)
        frame = frame.with_columns(crowd, crowd.alias("ignore"))
    return frame


def _id_of(item: Item, image: str) -> str:
    own = item.label.get("instance_id", item.label.get("_id", item.label.get("id")))
    if isinstance(own, dict):
        own = own.get("$oid")
    return text_of(own) or f"{image}#{item.place}"


def _boxes(items: Sequence[Item], images: pl.DataFrame, where: str) -> pl.DataFrame:
    """Turn relative boxes into pixels; no columns where no one has a box."""
    boxes = [item.label.get("bounding_box") for item in items]
    if all(box is None for box in boxes):
        return pl.DataFrame()
    sizes = images.select("width", "height").rows()
    sides = [
        _in_pixels(box, sizes[item.sample], place(where, item.sample + 1, "bounding_box"))
        for item, box in zip(items, boxes, strict=True)
    ]
    frame = pl.DataFrame(sides, schema=dict.fromkeys(BOX, pl.Float64), orient="row")
    checked_boxes(frame, where, field="bounding_box")
    return frame.with_columns(area=pl.col("box_w") * pl.col("box_h"))


def _in_pixels(
    box: Any, size: tuple[int | None, int | None], where: str | None
) -> list[float | None]:
    width, height = size
    if box is None:
        return [None] * 4
    if width is None or height is None:
        raise TableError(
            "a box is given in parts of a picture whose size is not known",
            expected='"metadata": {"width": …, "height": …} in the sample',
            where=where,
            hint="in FiftyOne: dataset.compute_metadata() before the export",
        )
    good = isinstance(box, list) and len(box) == len(BOX)
    if not good or any(isinstance(v, bool) or not isinstance(v, int | float) for v in box):
        raise TableError(
            "a box cannot be read",
            expected="[left, upper, width, height], each a part of the picture, 0 to 1",
            found=repr(box)[:80],
            where=where,
        )
    sides = (width, height, width, height)
    try:
        # A float's own error is taken back, so that 2 / 8 × 8 is 2 again in whole pixels.
        return [round(float(v) * side, 6) for v, side in zip(box, sides, strict=True)]
    except OverflowError:
        return [float("inf")] * 4  # which the check of boxes refuses by its row


def _masks(items: Sequence[Item], images: pl.DataFrame, where: str) -> Iterator[Boxed]:
    sizes = images.select("width", "height").rows()
    for row, item in enumerate(items):
        value, box = item.label.get("mask"), item.label.get("bounding_box")
        if value is None or box is None:
            continue
        width, height = sizes[item.sample]
        x, y, w, h = (float(side or 0) for side in _in_pixels(box, sizes[item.sample], where))
        yield Boxed(row, unpacked(value, where, item.sample), (x, y, w, h), height, width)


def _own_fields(items: Sequence[Item]) -> list[str]:
    names = dict.fromkeys(chain.from_iterable(item.label for item in items))
    return ["label", *(n for n in names if n not in RESERVED and not n.startswith("_"))]


def _sample_fields(export: Export, field: str | None, beside: str | None) -> list[str]:
    names = dict.fromkeys(chain.from_iterable(export.samples))
    taken = {*_OF_SAMPLES, field, beside}
    return [name for name in names if name not in taken and not name.startswith("_")]


def _groups(export: Export) -> pl.Series | None:
    """Give the group of each sample, if the set is a grouped one."""
    said = [sample.get("group") for sample in export.samples]
    ids = [value.get("_id", value.get("id")) if isinstance(value, dict) else None for value in said]
    texts = [text_of(one.get("$oid") if isinstance(one, dict) else one) for one in ids]
    return pl.Series("group", texts, dtype=pl.String) if any(texts) else None


def _attributes(
    people: pl.DataFrame,
    own: Columns,
    images: pl.DataFrame,
    sampled: Columns,
    groups: pl.Series | None,
) -> pl.DataFrame:
    found = dict(sampled.found)
    if groups is not None:
        found["group"] = groups
    parts = []
    for kind, ids, columns in (
        ("instance", people["instance_id"], own.found),
        ("image", images["image_id"], {n: c for n, c in found.items() if n not in own.found}),
    ):
        if columns:
            frame = pl.DataFrame([ids.alias("_id"), *columns.values()])
            parts.append(attribute_rows(frame, "_id", columns, kind=kind))
    return check(pl.concat(parts), ATTRIBUTES) if parts else ATTRIBUTES.empty()


def _notes(export: Export, images: pl.DataFrame, own: Columns, sampled: Columns) -> list[str]:
    notes = []
    left = [*own.left, *sampled.left]
    if left:
        notes.append(
            "Fields that hold neither values nor classes are left out: "
            + ", ".join(map(repr, left[:20]))
            + (", …." if len(left) > 20 else ".")
        )
    both = sorted(set(own.found) & set(sampled.found))
    if both:
        notes.append(
            "Fields of pictures named like fields of people are left out: " + ", ".join(both) + "."
        )
    elsewhere = images["uri"].null_count()
    if elsewhere:
        notes.append(f"{elsewhere:,} picture(s) are outside the export, with absolute paths.")
    if (export.root / "frames.json").exists() or (export.root / "frames").exists():
        notes.append("Labels of single frames of videos (frames.json) are not read.")
    return notes
