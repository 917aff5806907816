"""FiftyOne's keypoints: parts of a picture's sides, NaN where there is none, or a field apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import polars as pl

from isolux.core.errors import TableError, UnknownNameError, format_location
from isolux.datasets._keypoints import KEYPOINT_SCHEMA
from isolux.datasets.fiftyone.files import (
    FiftyoneExport,
    LabelledItem,
    convert_value_to_text,
    list_labelled_people,
)

_DEFAULT_FIELD = "keypoints"
_KEYPOINT_CLASSES = ("Keypoints", "Keypoint")


def choose_keypoint_field_or_none(
    export: FiftyoneExport, requested_field: str | None, people: str | None
) -> str | None:
    """Choose the field of Keypoints that belongs to the people; None if there is none."""
    keypoint_fields = {
        name: field_value
        for sample in export.samples
        for name, field_value in sample.items()
        if isinstance(field_value, dict)
        and field_value.get("_cls") in _KEYPOINT_CLASSES
        and name != people
    }
    if (
        requested_field is not None
        and requested_field not in keypoint_fields
        and requested_field != people
    ):
        raise UnknownNameError(
            "field of keypoints", requested_field, keypoint_fields, where=export.source
        )
    name = requested_field or _DEFAULT_FIELD
    return name if name in keypoint_fields else None


def build_keypoint_columns(
    items: Sequence[LabelledItem],
    images: pl.DataFrame,
    export: FiftyoneExport,
    point_field: str | None,
) -> pl.DataFrame:
    """Give the columns of ``KEYPOINT_SCHEMA``; no column where no one has a keypoint."""
    labels = [labelled_item.label for labelled_item in items]
    if point_field is not None:
        labels = _match_keypoints_to_people(items, list_labelled_people(export, point_field))
    rows: list[tuple[Any, ...]] = []
    names = _read_keypoint_names(export, point_field)
    sizes = images.select("width", "height").rows()
    for labelled_item, label in zip(items, labels, strict=True):
        points = label.get("points")
        if not points:
            rows.append((None,) * 4)
            continue
        source = format_location(export.source, labelled_item.sample + 1, "points")
        x, y = _convert_points_to_pixels(points, sizes[labelled_item.sample], source)
        rows.append(
            (
                x,
                y,
                _read_visibility_codes(label, x),
                names if names and len(names) == len(x) else None,
            )
        )
    if not any(row[0] for row in rows):
        return pl.DataFrame()
    return pl.DataFrame(rows, schema=KEYPOINT_SCHEMA, orient="row")


def _read_visibility_codes(label: dict[str, Any], x: Sequence[float | None]) -> list[int]:
    """Read COCO's visibility codes; without them 2 for each point and 0 for a missing one."""
    codes = label.get("visibility")
    if isinstance(codes, list) and len(codes) == len(x) and all(v in (0, 1, 2) for v in codes):
        return [0 if coordinate is None else int(v) for v, coordinate in zip(codes, x, strict=True)]
    return [0 if coordinate is None else 2 for coordinate in x]


def _match_keypoints_to_people(
    items: Sequence[LabelledItem], points: Sequence[LabelledItem]
) -> list[dict[str, Any]]:
    """Find each person's keypoints: by a common name in one picture."""
    by_name = {
        (p.sample, key): p.label for p in points for key in _list_person_keys_of_label(p.label)
    }
    return [
        next(
            (
                by_name[i.sample, key]
                for key in _list_person_keys_of_label(i.label)
                if (i.sample, key) in by_name
            ),
            {},
        )
        for i in items
    ]


def _list_person_keys_of_label(label: dict[str, Any]) -> list[tuple[str, str]]:
    shared = label.get("instance")
    inner = shared.get("_id", shared.get("id")) if isinstance(shared, dict) else shared
    oid = inner.get("$oid") if isinstance(inner, dict) else inner
    candidates = (
        ("instance_id", convert_value_to_text(label.get("instance_id"))),
        ("instance", convert_value_to_text(oid)),
        ("index", convert_value_to_text(label.get("index"))),
    )
    return [(key_type, name) for key_type, name in candidates if name is not None]


def _read_keypoint_names(export: FiftyoneExport, point_field: str | None) -> list[str] | None:
    """Read the keypoints' names from the set's skeletons, wherever this version keeps them."""
    skeletons, dataset_info = export.metadata.get("skeletons"), export.metadata.get("info")
    field_skeleton = (
        skeletons.get(point_field or _DEFAULT_FIELD) if isinstance(skeletons, dict) else None
    )
    for skeleton in (field_skeleton, export.metadata.get("default_skeleton")):
        labels = skeleton.get("labels") if isinstance(skeleton, dict) else None
        if _is_list_of_names(labels):
            return labels
    names = dataset_info.get("keypoint_names") if isinstance(dataset_info, dict) else None
    return names if _is_list_of_names(names) else None


def _is_list_of_names(labels: object) -> TypeGuard[list[str]]:
    return isinstance(labels, list) and bool(labels) and all(isinstance(n, str) for n in labels)


def _convert_points_to_pixels(
    points: Any, size: tuple[int | None, int | None], source: str | None
) -> tuple[list[float | None], list[float | None]]:
    if None in size:
        raise TableError(
            "keypoints are given in parts of a picture whose size is not known",
            expected='"metadata": {"width": …, "height": …} in the sample',
            where=source,
            hint="in FiftyOne: dataset.compute_metadata() before the export",
        )
    pairs: list[Any] = points if isinstance(points, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == len(size) for pair in pairs):
        raise TableError(
            "keypoints cannot be read",
            expected="[[x, y], …], each a part of the picture, 0 to 1, or NaN",
            found=repr(points)[:80],
            where=source,
        )
    pixel_pairs = [
        [
            _convert_coordinate_to_pixels(v, size_px, source)
            for v, size_px in zip(p, size, strict=True)
        ]
        for p in pairs
    ]
    is_known = [None not in pair for pair in pixel_pairs]
    x, y = (
        [p[k] if ok else None for p, ok in zip(pixel_pairs, is_known, strict=True)] for k in (0, 1)
    )
    return x, y


def _convert_coordinate_to_pixels(
    coordinate: Any, size_px: int | None, source: str | None
) -> float | None:
    if coordinate is None:
        return None
    number = float("nan")
    # A picture a thousand times as wide is still no billion pixels wide.
    if (
        isinstance(coordinate, int | float)
        and not isinstance(coordinate, bool)
        and abs(coordinate) < 1e9
    ):
        number = round(float(coordinate) * (size_px or 0), 6)
    if not math.isfinite(number):
        raise TableError(
            "a keypoint is not a pair of numbers",
            expected="0 to 1, or NaN for one that is not there",
            found=repr(coordinate)[:60],
            where=source,
        )
    return number
