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

from isolux.datasets._columns import BOX
from isolux.datasets._image_sizes import with_sizes_of_files
from isolux.datasets.fiftyone.masks import crop, packed
from isolux.geometry.masks import masks_from_coco
from isolux.io.atomic import staged_directory, write_text
from isolux.io.paths import inside
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, TableError
from isolux.vocabulary.tables import ATTRIBUTES, IMAGES, INSTANCES, SCORES, check

PEOPLE, POINTS = "people", "keypoints"
RESERVED = frozenset(
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
_OF_SAMPLES = frozenset(
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
        PEOPLE,
        POINTS,
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
    >>> from isolux.vocabulary.info import DatasetInfo
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
    pictures = _pictures(dataset, people, images)
    if people.get_column("box_x", default=_NOBODY).is_not_null().any():
        pictures = _with_sizes(pictures, people)
    of_people = _fields(dataset.attributes, "instance", people["instance_id"], RESERVED)
    named = [_label(classes) for classes in people["classes"].to_list()]
    of_people = {name: held for name, held in of_people.items() if held != named}
    of_people |= _score_fields(scores, people["instance_id"], of_people)
    of_images = _fields(dataset.attributes, "image", pictures["image_id"], _OF_SAMPLES)
    labels = _labels(people, of_people, pictures, masks=masks)
    samples = _samples(pictures, of_images, labels, _points(people, pictures))
    notes = list(dataset.notes)
    held = sum(map(len, labels.of.values()))
    if held < people.height:
        notes.append(f"{people.height - held:,} people without a box are left out.")
    metadata = {
        "name": dataset.name,
        "media_type": "image",
        "info": {
            "title": dataset.info.title,
            "licence": dataset.info.licence,
            "keypoint_names": _point_names(people),
            "notes": notes,
        },
    }
    with staged_directory(path) as stage:
        write_text(stage / "metadata.json", json.dumps(metadata, indent=2) + "\n")
        # Python writes a keypoint that is not there as NaN, which is how FiftyOne reads it.
        body = ",\n".join(json.dumps(sample) for sample in samples)
        write_text(stage / "samples.json", f'{{"samples": [\n{body}\n]}}\n')
    return Path(path).expanduser()


_NOBODY = pl.Series([], dtype=pl.Float64)


def _pictures(dataset: Dataset, people: pl.DataFrame, images: str | Path | None) -> pl.DataFrame:
    """Give each image its path and size: ``image_id, path, width, height``."""
    known = IMAGES.conform(dataset.images).select("image_id", "uri", "width", "height")
    others = people.select("image_id").unique(maintain_order=True)
    others = others.join(known, on="image_id", how="anti", maintain_order="left")
    every = pl.concat([known, IMAGES.conform(others).select(known.columns)])
    every = every.with_columns(path=pl.coalesce("uri", "image_id"))
    folder = dataset.root if images is None else images
    if folder is not None:
        root = Path(folder).expanduser()
        if not root.is_dir():
            raise FileError("there is no such folder of pictures", where=str(root))
        full = [str(inside(root, path)) for path in every["path"]]
        every = every.with_columns(pl.Series("path", full, dtype=pl.String))
    return every


def _with_sizes(pictures: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Read sizes that are not known from the pictures in which a person has a box."""
    boxed = people.filter(pl.col("box_x").is_not_null())["image_id"].unique()
    needed = pl.col("image_id").is_in(boxed.implode()) & pl.col("width").is_null()
    lacking = pictures.with_row_index("row").filter(needed).select("row", "image_id", "path")
    files = {row: Path(path) for row, _, path in lacking.iter_rows()}
    for row, name, _ in lacking.iter_rows():
        if not files[row].is_file():
            raise TableError(
                "the size of a picture is not known, so boxes cannot be parts of it",
                expected="width and height in the table images, or the folder of the pictures",
                found=repr(name),
                hint="--images FOLDER",
            )
    return with_sizes_of_files(pictures, files)


def _fields(
    attributes: pl.DataFrame, kind: str, ids: pl.Series, reserved: frozenset[str]
) -> dict[str, list[Any]]:
    """Make a field of each attribute of these units: values in their order, None for none."""
    rows = ATTRIBUTES.conform(attributes).filter(pl.col("unit_kind") == kind)
    units = ids.to_frame("unit_id")
    found: dict[str, list[Any]] = {}
    for (name,), part in rows.group_by("attribute", maintain_order=True):
        known = part.filter(pl.col("value").is_not_null())
        if known.is_empty():
            continue
        numeric = known["number"].is_not_null().all()
        listed = known["unit_id"].is_duplicated().any()
        value = pl.col("number" if numeric and not listed else "value")
        own = known.group_by("unit_id").agg(value if listed else value.first())
        column = value.meta.output_name()
        joined = units.join(own, on="unit_id", how="left", maintain_order="left")[column]
        found[_plain(str(name), reserved, found)] = joined.to_list()
    return found


def _plain(name: str, reserved: frozenset[str], taken: Mapping[str, Any]) -> str:
    """Make a name that FiftyOne takes for a field, and that nothing else has."""
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in name).lstrip("_") or "field"
    while plain in reserved or plain in taken:
        plain += "_"
    return plain


def _score_fields(
    scores: pl.DataFrame | None, ids: pl.Series, taken: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Make a field of each metric of the people's, and one of the reasons that it lacks."""
    if scores is None:
        return {}
    rows = check(scores, SCORES).filter(pl.col("unit_kind") == "instance")
    several = rows["model"].n_unique() > 1
    units = ids.to_frame("unit_id")
    found: dict[str, list[Any]] = {}
    keys = ["model", "metric", "label", "threshold"]
    for (model, metric, label, at), part in rows.group_by(keys, maintain_order=True):
        said = [model if several else None, metric, label, None if at is None else f"{at:g}"]
        name = _plain("_".join(str(s) for s in said if s is not None), RESERVED, {**taken, **found})
        own = units.join(part, on="unit_id", how="left", maintain_order="left")
        found[name] = own["value"].to_list()
        if part["reason"].is_not_null().any():
            found[_plain(f"{name}_reason", RESERVED, {**taken, **found})] = own["reason"].to_list()
    return found


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels of each image, and the kind of field that holds them."""

    kind: str
    inner: str
    of: dict[str, list[dict[str, Any]]]


def _labels(
    people: pl.DataFrame, fields: Mapping[str, list[Any]], pictures: pl.DataFrame, *, masks: bool
) -> _Labels:
    boxed = people.get_column("box_x", default=_NOBODY).is_not_null().any()
    kind, inner, one = (
        ("Detections", "detections", "Detection")
        if boxed
        else ("Classifications", "classifications", "Classification")
    )
    bitmaps = _crops(people, pictures) if boxed and masks else iter([None] * people.height)
    boxes = _relative(people, pictures) if boxed else [None] * people.height
    labels = _Labels(kind, inner, {})
    crowds = people["is_crowd"].to_list() if "is_crowd" in people.columns else None
    rows = people.select("instance_id", "image_id", "classes", *_IDS).iter_rows()
    for row, (own, image, classes, subject, cluster) in enumerate(rows):
        box = boxes[row]
        label: dict[str, Any] = {"_cls": one, "label": _label(classes)}
        bitmap = next(bitmaps)
        if boxed and box is None:
            continue  # FiftyOne has no detection without a box
        if box is not None:
            label["bounding_box"] = box
        if bitmap is not None:
            label["mask"] = packed(bitmap)
        label["instance_id"] = own
        said = {"subject_id": subject, "cluster_id": cluster, "classes": classes or None}
        if crowds is not None:
            said["iscrowd"] = int(bool(crowds[row]))
        said |= {name: values[row] for name, values in fields.items()}
        label |= {name: value for name, value in said.items() if value is not None}
        labels.of.setdefault(image, []).append(label)
    return labels


def _label(classes: Sequence[str] | None) -> str:
    return classes[0] if classes else "person"


def _relative(people: pl.DataFrame, pictures: pl.DataFrame) -> list[list[float] | None]:
    sizes = pictures.select("image_id", "width", "height")
    joined = people.select("image_id", *BOX).join(
        sizes, on="image_id", how="left", maintain_order="left"
    )
    sides = joined.select(
        pl.col(name) / pl.col(side)
        for name, side in zip(BOX, ("width", "height", "width", "height"), strict=True)
    )
    return [None if None in row else list(row) for row in sides.iter_rows()]


def _crops(people: pl.DataFrame, pictures: pl.DataFrame) -> Iterator[Any]:
    """Cut each person's mask to their box, one after another; None where there is none."""
    names = ("mask_counts", "mask_height", "mask_width", "mask_polygons")
    blank = [pl.lit(None).alias(name) for name in names if name not in people.columns]
    sizes = pictures.select("image_id", "width", "height")
    rows = people.with_columns(blank).select("image_id", *BOX, *names)
    joined = rows.join(sizes, on="image_id", how="left", maintain_order="left")
    for _, *box, counts, mask_height, mask_width, polygons, width, height in joined.iter_rows():
        size, segmentation = (height, width), None
        if counts is not None:
            size = mask_height, mask_width
            segmentation = {"size": list(size), "counts": counts}
        elif polygons is not None:
            segmentation = json.loads(polygons)
        if segmentation is None or None in box or None in size:
            yield None
            continue
        sides = np.array(size, np.int64)
        yield crop(masks_from_coco([segmentation], sides[:1], sides[1:]), 0, box)


def _point_names(people: pl.DataFrame) -> list[str] | None:
    if "keypoint_names" not in people.columns:
        return None
    named = people["keypoint_names"].drop_nulls()
    return named[0].to_list() if len(named) else None


def _points(people: pl.DataFrame, pictures: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Give the keypoints of each image, as parts of its sides; NaN where one is not labelled."""
    found: dict[str, list[dict[str, Any]]] = {}
    if "keypoints_x" not in people.columns:
        return found
    sizes = pictures.select("image_id", "width", "height").drop_nulls()
    columns = ("keypoints_x", "keypoints_y", "keypoints_v")
    rows = people.select("instance_id", "image_id", "classes", *columns)
    joined = rows.drop_nulls(["keypoints_x"]).join(sizes, on="image_id", maintain_order="left")
    for own, image, classes, xs, ys, seen, width, height in joined.iter_rows():
        points = [
            [math.nan, math.nan] if x is None or y is None else [x / width, y / height]
            for x, y in zip(xs, ys, strict=True)
        ]
        label = {
            "_cls": "Keypoint",
            "label": _label(classes),
            "points": points,
            "visibility": seen,
            "instance_id": own,
        }
        found.setdefault(image, []).append(label)
    return found


def _samples(
    pictures: pl.DataFrame,
    fields: Mapping[str, list[Any]],
    labels: _Labels,
    points: Mapping[str, Sequence[dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    rows = pictures.select("image_id", "path", "width", "height").iter_rows()
    for row, (image, path, width, height) in enumerate(rows):
        sample: dict[str, Any] = {"filepath": path, "_media_type": "image", "tags": []}
        if width is not None and height is not None:
            sample["metadata"] = {"_cls": "ImageMetadata", "width": width, "height": height}
        sample["image_id"] = image
        sample |= {name: v[row] for name, v in fields.items() if v[row] is not None}
        if image in labels.of:
            sample[PEOPLE] = {"_cls": labels.kind, labels.inner: labels.of[image]}
        if image in points:
            sample[POINTS] = {"_cls": "Keypoints", "keypoints": list(points[image])}
        yield sample
