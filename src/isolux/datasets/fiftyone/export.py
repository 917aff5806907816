"""People, their groups and their scores as a dataset that FiftyOne imports.

What is written is the form before FiftyOne 0.8, which every version since imports too
(``LegacyFiftyOneDatasetImporter`` in fiftyone/utils/data/importers.py: taken where
``metadata.json`` names no version): it needs no database and no schema, which differ by version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, SCORES, check
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._image_sizes import add_sizes_from_image_files
from isolux.datasets.fiftyone.masks import crop_mask_to_box_or_none, pack_mask
from isolux.geometry.masks import masks_from_coco
from isolux.io.atomic import staged_directory, write_text
from isolux.io.paths import resolve_inside

PEOPLE_FIELD, KEYPOINT_FIELD = "people", "keypoints"
RESERVED_FIELDS = frozenset(
    {
        "_id",
        "_cls",
        "id",
        "label",
        "bounding_box",
        "mask",
        "mask_path",
        "confidence",
        "index",
        "instance",
        "attributes",
        "points",
        "logits",
        "instance_id",
        "subject_id",
        "cluster_id",
        "classes",
        "is_crowd",
        "iscrowd",
        "visibility",
    }
)
"""Fields of a label that mean something of their own, and so are not attributes."""
_SAMPLE_FIELDS = frozenset(
    {
        "id",
        "filepath",
        "metadata",
        "tags",
        "media_type",
        "created_at",
        "last_modified_at",
        "frames",
        "group",
        "image_id",
        PEOPLE_FIELD,
        KEYPOINT_FIELD,
    }
)
_IDS = ("subject_id", "cluster_id")


def save(
    dataset: Dataset,
    path: str | Path,
    *,
    images: str | Path | None = None,
    scores: pl.DataFrame | None = None,
    masks: bool = True,
) -> Path:
    r"""Write people so that they can be looked at in FiftyOne.

    Examples
    --------
    >>> import tempfile
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one",
    ...     info=DatasetInfo(title="One", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1.jpg"]}),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = save(one, Path(folder) / "seen")
    ...     json.loads((made / "samples.json").read_text())["samples"][0]["filepath"]
    '1.jpg'
    """
    people = INSTANCES.conform(dataset.instances)
    image_table = _list_image_paths_and_sizes(dataset, people, images)
    if people.get_column("box_x", default=_NO_BOXES).is_not_null().any():
        image_table = _read_missing_image_sizes(image_table, people)
    person_fields = _build_attribute_fields(
        dataset.attributes, "instance", people["instance_id"], RESERVED_FIELDS
    )
    class_labels = [_choose_class_label(classes) for classes in people["classes"].to_list()]
    person_fields = {
        name: field_values
        for name, field_values in person_fields.items()
        if field_values != class_labels
    }
    person_fields |= _build_metric_fields(scores, people["instance_id"], person_fields)
    image_fields = _build_attribute_fields(
        dataset.attributes, "image", image_table["image_id"], _SAMPLE_FIELDS
    )
    labels = _build_fiftyone_labels(people, person_fields, image_table, masks=masks)
    samples = _iterate_fiftyone_samples(
        image_table, image_fields, labels, _build_relative_keypoints_by_image(people, image_table)
    )
    notes = list(dataset.notes)
    field_values = sum(map(len, labels.by_image.values()))
    if field_values < people.height:
        notes.append(f"{people.height - field_values:,} people without a box are left out.")
    metadata = {
        "name": dataset.name,
        "media_type": "image",
        "info": {
            "title": dataset.info.title,
            "licence": dataset.info.licence,
            "keypoint_names": _find_keypoint_names(people),
            "notes": notes,
        },
    }
    with staged_directory(path) as stage:
        write_text(stage / "metadata.json", json.dumps(metadata, indent=2) + "\n")
        # Python writes a keypoint that is not there as NaN, which is how FiftyOne reads it.
        body = ",\n".join(json.dumps(sample) for sample in samples)
        write_text(stage / "samples.json", f'{{"samples": [\n{body}\n]}}\n')
    return Path(path).expanduser()


_NO_BOXES = pl.Series([], dtype=pl.Float64)


def _list_image_paths_and_sizes(
    dataset: Dataset, people: pl.DataFrame, images: str | Path | None
) -> pl.DataFrame:
    """Give each image its path and size: ``image_id, path, width, height``."""
    known_images = IMAGES.conform(dataset.images).select("image_id", "uri", "width", "height")
    unlisted = people.select("image_id").unique(maintain_order=True)
    unlisted = unlisted.join(known_images, on="image_id", how="anti", maintain_order="left")
    all_images = pl.concat([known_images, IMAGES.conform(unlisted).select(known_images.columns)])
    all_images = all_images.with_columns(path=pl.coalesce("uri", "image_id"))
    folder = dataset.root if images is None else images
    if folder is not None:
        root = Path(folder).expanduser()
        if not root.is_dir():
            raise FileError("there is no such folder of pictures", where=str(root))
        full_paths = [str(resolve_inside(root, path)) for path in all_images["path"]]
        all_images = all_images.with_columns(pl.Series("path", full_paths, dtype=pl.String))
    return all_images


def _read_missing_image_sizes(image_table: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Read sizes that are not known from the pictures in which a person has a box."""
    boxed = people.drop_nulls("box_x")["image_id"].unique()
    is_missing = pl.col("image_id").is_in(boxed.implode()) & pl.col("width").is_null()
    missing_rows = (
        image_table.with_row_index("row").filter(is_missing).select("row", "image_id", "path")
    )
    files = {row: Path(path) for row, _, path in missing_rows.iter_rows()}
    for row, name, _ in missing_rows.iter_rows():
        if not files[row].is_file():
            raise TableError(
                "the size of a picture is not known, so boxes cannot be parts of it",
                expected="width and height in the table images, or the folder of the pictures",
                found=repr(name),
                hint="--images FOLDER",
            )
    return add_sizes_from_image_files(image_table, files)


def _build_attribute_fields(
    attributes: pl.DataFrame, unit_kind: str, ids: pl.Series, reserved: frozenset[str]
) -> dict[str, list[Any]]:
    """Make a field of each attribute of these units: values in their order, None for none."""
    rows = ATTRIBUTES.conform(attributes).filter(unit_kind=unit_kind)
    units = ids.to_frame("unit_id")
    values_by_field: dict[str, list[Any]] = {}
    for (name,), attribute_rows in rows.group_by("attribute", maintain_order=True):
        non_null = attribute_rows.drop_nulls("value")
        if non_null.is_empty():
            continue
        is_numeric = non_null["number"].is_not_null().all()
        has_lists = non_null["unit_id"].is_duplicated().any()
        value_column = pl.col("number" if is_numeric and not has_lists else "value")
        unit_values = non_null.group_by("unit_id").agg(
            value_column if has_lists else value_column.first()
        )
        column = value_column.meta.output_name()
        aligned = units.join(unit_values, on="unit_id", how="left", maintain_order="left")[column]
        values_by_field[_build_unused_field_name(str(name), reserved, values_by_field)] = (
            aligned.to_list()
        )
    return values_by_field


def _build_unused_field_name(
    name: str, reserved: frozenset[str], used_names: Mapping[str, Any]
) -> str:
    """Make a name that FiftyOne takes for a field, and that nothing else has."""
    field_name = "".join(c if c.isalnum() or c == "_" else "_" for c in name).lstrip("_") or "field"
    while field_name in reserved or field_name in used_names:
        field_name += "_"
    return field_name


def _build_metric_fields(
    scores: pl.DataFrame | None, ids: pl.Series, used_names: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Make a field of each metric of the people's, and one of the reasons that it lacks."""
    if scores is None:
        return {}
    rows = check(scores, SCORES).filter(unit_kind="instance")
    has_multiple_models = rows["model"].n_unique() > 1
    units = ids.to_frame("unit_id")
    values_by_field: dict[str, list[Any]] = {}
    keys = ["model", "metric", "label", "threshold"]
    for (model, metric, label, cutoff), score_rows in rows.group_by(keys, maintain_order=True):
        name_words = [
            model if has_multiple_models else None,
            metric,
            label,
            None if cutoff is None else f"{cutoff:g}",
        ]
        name = _build_unused_field_name(
            "_".join(str(s) for s in name_words if s is not None),
            RESERVED_FIELDS,
            {**used_names, **values_by_field},
        )
        aligned = units.join(score_rows, on="unit_id", how="left", maintain_order="left")
        values_by_field[name] = aligned["value"].to_list()
        if score_rows["reason"].is_not_null().any():
            values_by_field[
                _build_unused_field_name(
                    f"{name}_reason", RESERVED_FIELDS, {**used_names, **values_by_field}
                )
            ] = aligned["reason"].to_list()
    return values_by_field


@dataclass(frozen=True, slots=True)
class _FiftyoneLabels:
    """The labels of each image, and the kind of field that holds them."""

    label_class: str
    list_key: str
    by_image: dict[str, list[dict[str, Any]]]


def _build_fiftyone_labels(
    people: pl.DataFrame, fields: Mapping[str, list[Any]], image_table: pl.DataFrame, *, masks: bool
) -> _FiftyoneLabels:
    has_boxes = people.get_column("box_x", default=_NO_BOXES).is_not_null().any()
    label_class, list_key, item_class = (
        ("Detections", "detections", "Detection")
        if has_boxes
        else ("Classifications", "classifications", "Classification")
    )
    bitmaps = (
        _iterate_masks_cropped_to_box(people, image_table)
        if has_boxes and masks
        else iter([None] * people.height)
    )
    boxes = _convert_boxes_to_relative(people, image_table) if has_boxes else [None] * people.height
    labels = _FiftyoneLabels(label_class, list_key, {})
    crowds = people["is_crowd"].to_list() if "is_crowd" in people.columns else None
    rows = people.select("instance_id", "image_id", "classes", *_IDS).iter_rows()
    for row, (person_id, image, classes, subject, cluster) in enumerate(rows):
        box = boxes[row]
        label: dict[str, Any] = {"_cls": item_class, "label": _choose_class_label(classes)}
        bitmap = next(bitmaps)
        if has_boxes and box is None:
            continue  # FiftyOne has no detection without a box
        if box is not None:
            label["bounding_box"] = box
        if bitmap is not None:
            label["mask"] = pack_mask(bitmap)
        label["instance_id"] = person_id
        further_fields = {"subject_id": subject, "cluster_id": cluster, "classes": classes or None}
        if crowds is not None:
            further_fields["iscrowd"] = int(bool(crowds[row]))
        further_fields |= {name: values[row] for name, values in fields.items()}
        label |= {
            name: field_value
            for name, field_value in further_fields.items()
            if field_value is not None
        }
        labels.by_image.setdefault(image, []).append(label)
    return labels


def _choose_class_label(classes: Sequence[str] | None) -> str:
    return classes[0] if classes else "person"


def _convert_boxes_to_relative(
    people: pl.DataFrame, image_table: pl.DataFrame
) -> list[list[float] | None]:
    sizes = image_table.select("image_id", "width", "height")
    with_sizes = people.select("image_id", *BOX_COLUMNS).join(
        sizes, on="image_id", how="left", maintain_order="left"
    )
    relative_boxes = with_sizes.select(
        pl.col(name) / pl.col(dimension)
        for name, dimension in zip(BOX_COLUMNS, ("width", "height", "width", "height"), strict=True)
    )
    return [None if None in row else list(row) for row in relative_boxes.iter_rows()]


def _iterate_masks_cropped_to_box(people: pl.DataFrame, image_table: pl.DataFrame) -> Iterator[Any]:
    """Cut each person's mask to their box, one after another; None where there is none."""
    names = ("mask_counts", "mask_height", "mask_width", "mask_polygons")
    missing_columns = [pl.lit(None).alias(name) for name in names if name not in people.columns]
    sizes = image_table.select("image_id", "width", "height")
    rows = people.with_columns(missing_columns).select("image_id", *BOX_COLUMNS, *names)
    with_sizes = rows.join(sizes, on="image_id", how="left", maintain_order="left")
    for _, *box, counts, mask_height, mask_width, polygons, width, height in with_sizes.iter_rows():
        size, segmentation = (height, width), None
        if counts is not None:
            size = mask_height, mask_width
            segmentation = {"size": list(size), "counts": counts}
        elif polygons is not None:
            segmentation = json.loads(polygons)
        if segmentation is None or None in box or None in size:
            yield None
            continue
        size_px = np.array(size, np.int64)
        yield crop_mask_to_box_or_none(
            masks_from_coco([segmentation], size_px[:1], size_px[1:]), 0, box
        )


def _find_keypoint_names(people: pl.DataFrame) -> list[str] | None:
    if "keypoint_names" not in people.columns:
        return None
    name_lists = people["keypoint_names"].drop_nulls()
    return name_lists[0].to_list() if len(name_lists) else None


def _build_relative_keypoints_by_image(
    people: pl.DataFrame, image_table: pl.DataFrame
) -> dict[str, list[dict[str, Any]]]:
    """Give the keypoints of each image, as parts of its sides; NaN where one is not labelled."""
    labels_by_image: dict[str, list[dict[str, Any]]] = {}
    if "keypoints_x" not in people.columns:
        return labels_by_image
    sizes = image_table.select("image_id", "width", "height").drop_nulls()
    columns = ("keypoints_x", "keypoints_y", "keypoints_v")
    rows = people.select("instance_id", "image_id", "classes", *columns)
    with_sizes = rows.drop_nulls(["keypoints_x"]).join(sizes, on="image_id", maintain_order="left")
    for person_id, image, classes, xs, ys, visibility, width, height in with_sizes.iter_rows():
        points = [
            [math.nan, math.nan] if x is None or y is None else [x / width, y / height]
            for x, y in zip(xs, ys, strict=True)
        ]
        label = {
            "_cls": "Keypoint",
            "label": _choose_class_label(classes),
            "points": points,
            "visibility": visibility,
            "instance_id": person_id,
        }
        labels_by_image.setdefault(image, []).append(label)
    return labels_by_image


def _iterate_fiftyone_samples(
    image_table: pl.DataFrame,
    fields: Mapping[str, list[Any]],
    labels: _FiftyoneLabels,
    points: Mapping[str, Sequence[dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    rows = image_table.select("image_id", "path", "width", "height").iter_rows()
    for row, (image, path, width, height) in enumerate(rows):
        sample: dict[str, Any] = {"filepath": path, "_media_type": "image", "tags": []}
        if width is not None and height is not None:
            sample["metadata"] = {"_cls": "ImageMetadata", "width": width, "height": height}
        sample["image_id"] = image
        sample |= {name: v[row] for name, v in fields.items() if v[row] is not None}
        if image in labels.by_image:
            sample[PEOPLE_FIELD] = {
                "_cls": labels.label_class,
                labels.list_key: labels.by_image[image],
            }
        if image in points:
            sample[KEYPOINT_FIELD] = {"_cls": "Keypoints", "keypoints": list(points[image])}
        yield sample
