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

from isolux.core import citations
from isolux.core.containers import Clusters, Dataset
from isolux.core.errors import TableError, format_location, refuse_unknown_names
from isolux.core.formatting import join_first
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._image_sizes import add_sizes_from_image_files
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import build_clustered_dataset, melt_columns_to_attribute_rows
from isolux.datasets.fiftyone.export import RESERVED_FIELDS, save
from isolux.datasets.fiftyone.files import (
    FieldColumns,
    FiftyoneExport,
    LabelledItem,
    build_field_columns,
    choose_label_field,
    convert_value_to_text,
    list_labelled_people,
    read_fiftyone_export,
)
from isolux.datasets.fiftyone.keypoints import build_keypoint_columns, choose_keypoint_field_or_none
from isolux.datasets.fiftyone.masks import BoxMask, convert_box_masks_to_columns, unpack_mask

__all__ = ["INFO", "load", "save"]

_SAMPLE_FIELDS = (
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
_MAX_IMAGE_PIXELS = 1 << 30  # of a picture
_ABSOLUTE_PATH = r"^(?:[/\\~]|[A-Za-z]:|[a-z0-9]+://)"

INFO = DatasetInfo(
    title="a FiftyOne dataset",
    summary="What FiftyOne exports as JSON: boxes, masks, keypoints, classes and fields of any"
    " kind.",
    references=(citations.FIFTYONE,),
    licence="the licence of your own data",
    label_source="declared by the user",
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
    export = read_fiftyone_export(path)
    images = _build_fiftyone_images(export)
    field = choose_label_field(export, label_field)
    image_items = [LabelledItem(row, 0, {}) for row in range(images.height)]
    items = image_items if field is None else list_labelled_people(export, field)
    items = _select_items_of_categories(items, categories, export.source)
    instances = _build_fiftyone_instances(items, images, uses_image_ids=field is None)
    point_field = choose_keypoint_field_or_none(export, keypoint_field, field)
    images = _add_missing_sizes_from_files(images, items, export, point_field)
    column_tables = [
        _build_pixel_box_columns(items, images, export.source),
        build_keypoint_columns(items, images, export, point_field),
    ]
    if masks:
        column_tables.append(
            convert_box_masks_to_columns(
                _iterate_box_masks(items, images, export.source), len(items)
            )
        )
    label_columns = build_field_columns(
        [labelled_item.label for labelled_item in items], _list_label_attribute_fields(items)
    )
    frame = pl.concat([instances, *(p for p in column_tables if p.width)], how="horizontal")
    frame = check(frame.drop("cluster"), INSTANCES, source=export.source)
    sample_columns = build_field_columns(
        export.samples, _list_sample_attribute_fields(export, field, point_field)
    )
    images = check(images.drop("missing"), IMAGES, source=export.source)
    groups = _read_group_of_samples(export)
    dataset = build_clustered_dataset(
        "fiftyone",
        INFO,
        instances=frame,
        attributes=_build_fiftyone_attribute_rows(
            frame, label_columns, images, sample_columns, groups
        ),
        images=images,
        inputs=export.inputs,
        notes=_build_fiftyone_notes(export, images, label_columns, sample_columns),
        cluster="image" if groups is None else "group",
        clusters=_CLUSTERS,
    )
    if instances["cluster"].is_null().all():
        return dataset
    people = frame.with_columns(cluster_id=instances["cluster"])
    return replace(dataset, instances=people, clusters=Clusters(_CLUSTERS))


def _build_fiftyone_images(export: FiftyoneExport) -> pl.DataFrame:
    """Name each picture, and find its size where the samples give it; one row a sample."""
    declared_paths = [sample.get("filepath") for sample in export.samples]
    for row, path in enumerate(declared_paths, start=1):
        if not isinstance(path, str) or not path.strip():
            raise TableError(
                "a sample has no file",
                expected='"filepath": "data/…"',
                found=repr(path)[:60],
                where=format_location(export.source, row, "filepath"),
            )
    paths = pl.Series(declared_paths, dtype=pl.String)
    is_outside = paths.str.contains(_ABSOLUTE_PATH)
    inner = paths.set(is_outside, None)
    check_paths_stay_inside(inner.fill_null(""), export.source, "filepath")
    names = paths.str.replace_all(r"\\", "/").str.split("/").list.last()
    image_ids = pl.Series(
        [convert_value_to_text(s.get("image_id")) for s in export.samples], dtype=pl.String
    )
    if image_ids.null_count() or not image_ids.is_unique().all():
        image_ids = names if names.is_unique().all() else paths
    sizes = [_read_declared_size_px(sample.get("metadata")) for sample in export.samples]
    return pl.DataFrame(
        {
            "image_id": image_ids,
            "uri": inner,
            "width": pl.Series([size[0] for size in sizes], dtype=pl.Int64),
            "height": pl.Series([size[1] for size in sizes], dtype=pl.Int64),
            "missing": is_outside,
        }
    )


def _read_declared_size_px(metadata: object) -> tuple[int | None, int | None]:
    if not isinstance(metadata, dict):
        return None, None
    width, height = metadata.get("width"), metadata.get("height")
    sizes_px = [
        s for s in (width, height) if isinstance(s, int) and not isinstance(s, bool) and s > 0
    ]
    is_valid = len(sizes_px) == 2 and sizes_px[0] * sizes_px[1] < _MAX_IMAGE_PIXELS
    return (width, height) if is_valid else (None, None)


def _add_missing_sizes_from_files(
    images: pl.DataFrame, items: Sequence[LabelledItem], export: FiftyoneExport, point_field: object
) -> pl.DataFrame:
    """Read the sizes that samples lack from the pictures' headers, where anything was drawn."""
    sample_rows = {i.sample for i in items if i.label.get("bounding_box") is not None}
    if point_field is not None or any("points" in labelled_item.label for labelled_item in items):
        sample_rows |= {labelled_item.sample for labelled_item in items}
    missing_sizes = images.with_row_index("row").filter(
        pl.col("width").is_null(),
        pl.col("row").is_in(sorted(sample_rows)),
        pl.col("uri").is_not_null(),
    )
    files = {row: export.root / uri for row, uri in missing_sizes.select("row", "uri").iter_rows()}
    base = export.root.resolve()
    existing_files = {
        row: file
        for row, file in files.items()
        if file.is_file() and file.resolve().is_relative_to(base)
    }
    return add_sizes_from_image_files(images, existing_files)


def _select_items_of_categories(
    items: list[LabelledItem], categories: Sequence[str] | None, source: str
) -> list[LabelledItem]:
    if categories is None:
        return items
    requested = (categories,) if isinstance(categories, str) else tuple(categories)
    present_labels = {str(labelled_item.label.get("label")) for labelled_item in items}
    refuse_unknown_names("label", requested, present_labels, where=source)
    return [
        labelled_item
        for labelled_item in items
        if str(labelled_item.label.get("label")) in requested
    ]


def _build_fiftyone_instances(
    items: Sequence[LabelledItem], images: pl.DataFrame, *, uses_image_ids: bool
) -> pl.DataFrame:
    """Identify people; ``cluster`` is the label's own ``cluster_id``."""
    names = images["image_id"].to_list()
    ids = [
        names[labelled_item.sample]
        if uses_image_ids
        else _choose_instance_id(labelled_item, names[labelled_item.sample])
        for labelled_item in items
    ]
    labels = [convert_value_to_text(labelled_item.label.get("label")) for labelled_item in items]
    class_lists = [labelled_item.label.get("classes") for labelled_item in items]
    classes = [
        [convert_value_to_text(class_name) or "" for class_name in class_list]
        if isinstance(class_list, list) and class_list
        else None
        if label is None
        else [label]
        for label, class_list in zip(labels, class_lists, strict=True)
    ]
    frame = pl.DataFrame(
        {
            "instance_id": pl.Series(ids, dtype=pl.String),
            "image_id": pl.Series([names[i.sample] for i in items], dtype=pl.String),
            **{
                name: pl.Series(
                    [convert_value_to_text(i.label.get(key)) for i in items], dtype=pl.String
                )
                for name, key in (("subject_id", "subject_id"), ("cluster", "cluster_id"))
            },
            "classes": pl.Series(classes, dtype=pl.List(pl.String)),
        }
    )
    crowds = [i.label.get("iscrowd", i.label.get("is_crowd")) for i in items]
    if any(crowd is not None for crowd in crowds):
        crowd = pl.Series("is_crowd", [bool(c) for c in crowds], dtype=pl.Boolean)
        frame = frame.with_columns(crowd, ignore=crowd)
    return frame


def _choose_instance_id(labelled_item: LabelledItem, image: str) -> str:
    label_id = labelled_item.label.get(
        "instance_id", labelled_item.label.get("_id", labelled_item.label.get("id"))
    )
    if isinstance(label_id, dict):
        label_id = label_id.get("$oid")
    return convert_value_to_text(label_id) or f"{image}#{labelled_item.position}"


def _build_pixel_box_columns(
    items: Sequence[LabelledItem], images: pl.DataFrame, source: str
) -> pl.DataFrame:
    """Turn relative boxes into pixels; no columns where no one has a box."""
    boxes = [labelled_item.label.get("bounding_box") for labelled_item in items]
    if all(box is None for box in boxes):
        return pl.DataFrame()
    sizes = images.select("width", "height").rows()
    pixel_boxes = [
        _convert_relative_box_to_pixels(
            box,
            sizes[labelled_item.sample],
            format_location(source, labelled_item.sample + 1, "bounding_box"),
        )
        for labelled_item, box in zip(items, boxes, strict=True)
    ]
    frame = pl.DataFrame(pixel_boxes, schema=dict.fromkeys(BOX_COLUMNS, pl.Float64), orient="row")
    check_box_columns(frame, source, field="bounding_box")
    return frame.with_columns(area=pl.col("box_w") * pl.col("box_h"))


def _convert_relative_box_to_pixels(
    box: Any, size: tuple[int | None, int | None], source: str | None
) -> list[float | None]:
    width, height = size
    if box is None:
        return [None] * 4
    if width is None or height is None:
        raise TableError(
            "a box is given in parts of a picture whose size is not known",
            expected='"metadata": {"width": …, "height": …} in the sample',
            where=source,
            hint="in FiftyOne: dataset.compute_metadata() before the export",
        )
    is_valid = isinstance(box, list) and len(box) == len(BOX_COLUMNS)
    if not is_valid or any(isinstance(v, bool) or not isinstance(v, int | float) for v in box):
        raise TableError(
            "a box cannot be read",
            expected="[left, upper, width, height], each a part of the picture, 0 to 1",
            found=repr(box)[:80],
            where=source,
        )
    sizes_px = (width, height, width, height)
    try:
        # A float's own error is taken back, so that 2 / 8 × 8 is 2 again in whole pixels.
        return [round(float(v) * size_px, 6) for v, size_px in zip(box, sizes_px, strict=True)]
    except OverflowError:
        return [float("inf")] * 4  # which the check of boxes refuses by its row


def _iterate_box_masks(
    items: Sequence[LabelledItem], images: pl.DataFrame, source: str
) -> Iterator[BoxMask]:
    sizes = images.select("width", "height").rows()
    for row, labelled_item in enumerate(items):
        mask_data, box = labelled_item.label.get("mask"), labelled_item.label.get("bounding_box")
        if mask_data is None or box is None:
            continue
        width, height = sizes[labelled_item.sample]
        x, y, w, h = (
            float(coordinate or 0)
            for coordinate in _convert_relative_box_to_pixels(
                box, sizes[labelled_item.sample], source
            )
        )
        yield BoxMask(
            row, unpack_mask(mask_data, source, labelled_item.sample), (x, y, w, h), height, width
        )


def _list_label_attribute_fields(items: Sequence[LabelledItem]) -> list[str]:
    names = dict.fromkeys(chain.from_iterable(labelled_item.label for labelled_item in items))
    return ["label", *(n for n in names if n not in RESERVED_FIELDS and not n.startswith("_"))]


def _list_sample_attribute_fields(
    export: FiftyoneExport, field: str | None, point_field: str | None
) -> list[str]:
    names = dict.fromkeys(chain.from_iterable(export.samples))
    excluded = {*_SAMPLE_FIELDS, field, point_field}
    return [name for name in names if name not in excluded and not name.startswith("_")]


def _read_group_of_samples(export: FiftyoneExport) -> pl.Series | None:
    """Give the group of each sample, if the set is a grouped one."""
    group_values = [sample.get("group") for sample in export.samples]
    ids = [
        group_value.get("_id", group_value.get("id")) if isinstance(group_value, dict) else None
        for group_value in group_values
    ]
    texts = [
        convert_value_to_text(group_id.get("$oid") if isinstance(group_id, dict) else group_id)
        for group_id in ids
    ]
    return pl.Series("group", texts, dtype=pl.String) if any(texts) else None


def _build_fiftyone_attribute_rows(
    people: pl.DataFrame,
    label_columns: FieldColumns,
    images: pl.DataFrame,
    sample_columns: FieldColumns,
    groups: pl.Series | None,
) -> pl.DataFrame:
    image_columns = dict(sample_columns.by_name)
    if groups is not None:
        image_columns["group"] = groups
    tables = []
    for unit_kind, ids, columns in (
        ("instance", people["instance_id"], label_columns.by_name),
        (
            "image",
            images["image_id"],
            {n: c for n, c in image_columns.items() if n not in label_columns.by_name},
        ),
    ):
        if columns:
            frame = pl.DataFrame([ids.alias("_id"), *columns.values()])
            tables.append(
                melt_columns_to_attribute_rows(frame, "_id", columns, unit_kind=unit_kind)
            )
    return check(pl.concat(tables), ATTRIBUTES) if tables else ATTRIBUTES.empty()


def _build_fiftyone_notes(
    export: FiftyoneExport,
    images: pl.DataFrame,
    label_columns: FieldColumns,
    sample_columns: FieldColumns,
) -> list[str]:
    notes = []
    skipped_fields = [*label_columns.skipped_fields, *sample_columns.skipped_fields]
    if skipped_fields:
        notes.append(
            "Fields that hold neither values nor classes are left out: "
            f"{join_first(map(repr, skipped_fields), 20)}."
        )
    shared_names = sorted(set(label_columns.by_name) & set(sample_columns.by_name))
    if shared_names:
        notes.append(
            "Fields of pictures named like fields of people are left out: "
            + ", ".join(shared_names)
            + "."
        )
    n_outside = images["uri"].null_count()
    if n_outside:
        notes.append(f"{n_outside:,} picture(s) are outside the export, with absolute paths.")
    if (export.root / "frames.json").exists() or (export.root / "frames").exists():
        notes.append("Labels of single frames of videos (frames.json) are not read.")
    return notes
