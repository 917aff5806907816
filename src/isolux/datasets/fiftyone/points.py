"""FiftyOne's keypoints: parts of a picture's sides, NaN where there is none, or a field apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import polars as pl

from isolux.datasets._points import NO_POINTS
from isolux.datasets.fiftyone.files import Export, Item, items_of, text_of
from isolux.vocabulary.errors import TableError, UnknownNameError, place

_FIELD = "keypoints"
_KINDS = ("Keypoints", "Keypoint")


def points_beside(export: Export, asked: str | None, people: str | None) -> str | None:
    """Name the field of Keypoints that belongs to the people's; None where there is none."""
    held = {
        name: value
        for sample in export.samples
        for name, value in sample.items()
        if isinstance(value, dict) and value.get("_cls") in _KINDS and name != people
    }
    if asked is not None and asked not in held and asked != people:
        raise UnknownNameError("field of keypoints", asked, held, where=export.where)
    name = asked or _FIELD
    return name if name in held else None


def points_of_items(
    items: Sequence[Item], images: pl.DataFrame, export: Export, beside: str | None
) -> pl.DataFrame:
    """Give the columns of ``NO_POINTS``; no column where no one has a keypoint."""
    labels = [item.label for item in items]
    if beside is not None:
        labels = _joined(items, items_of(export, beside))
    rows: list[tuple[Any, ...]] = []
    names = _names(export, beside)
    sizes = images.select("width", "height").rows()
    for item, label in zip(items, labels, strict=True):
        points = label.get("points")
        if not points:
            rows.append((None,) * 4)
            continue
        where = place(export.where, item.sample + 1, "points")
        x, y = _in_pixels(points, sizes[item.sample], where)
        rows.append((x, y, _seen(label, x), names if names and len(names) == len(x) else None))
    if not any(row[0] for row in rows):
        return pl.DataFrame()
    return pl.DataFrame(rows, schema=NO_POINTS, orient="row")


def _seen(label: dict[str, Any], x: Sequence[float | None]) -> list[int]:
    """Give each point 2, and 0 for one that is not there; COCO's codes where the label has them."""
    said = label.get("visibility")
    if isinstance(said, list) and len(said) == len(x) and all(v in (0, 1, 2) for v in said):
        return [0 if value is None else int(v) for v, value in zip(said, x, strict=True)]
    return [0 if value is None else 2 for value in x]


def _joined(items: Sequence[Item], points: Sequence[Item]) -> list[dict[str, Any]]:
    """Find each person's keypoints: by a common name in one picture."""
    by_name = {(p.sample, key): p.label for p in points for key in _keys(p.label)}
    return [
        next((by_name[i.sample, key] for key in _keys(i.label) if (i.sample, key) in by_name), {})
        for i in items
    ]


def _keys(label: dict[str, Any]) -> list[tuple[str, str]]:
    shared = label.get("instance")
    inner = shared.get("_id", shared.get("id")) if isinstance(shared, dict) else shared
    oid = inner.get("$oid") if isinstance(inner, dict) else inner
    named = (
        ("instance_id", text_of(label.get("instance_id"))),
        ("instance", text_of(oid)),
        ("index", text_of(label.get("index"))),
    )
    return [(kind, name) for kind, name in named if name is not None]


def _names(export: Export, beside: str | None) -> list[str] | None:
    """Read the keypoints' names from the set's skeletons, wherever this version keeps them."""
    skeletons, info = export.metadata.get("skeletons"), export.metadata.get("info")
    own = skeletons.get(beside or _FIELD) if isinstance(skeletons, dict) else None
    for skeleton in (own, export.metadata.get("default_skeleton")):
        labels = skeleton.get("labels") if isinstance(skeleton, dict) else None
        if _are_names(labels):
            return labels
    names = info.get("keypoint_names") if isinstance(info, dict) else None
    return names if _are_names(names) else None


def _are_names(labels: object) -> TypeGuard[list[str]]:
    return isinstance(labels, list) and bool(labels) and all(isinstance(n, str) for n in labels)


def _in_pixels(
    points: Any, size: tuple[int | None, int | None], where: str | None
) -> tuple[list[float | None], list[float | None]]:
    if None in size:
        raise TableError(
            "keypoints are given in parts of a picture whose size is not known",
            expected='"metadata": {"width": …, "height": …} in the sample',
            where=where,
            hint="in FiftyOne: dataset.compute_metadata() before the export",
        )
    pairs: list[Any] = points if isinstance(points, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == len(size) for pair in pairs):
        raise TableError(
            "keypoints cannot be read",
            expected="[[x, y], …], each a part of the picture, 0 to 1, or NaN",
            found=repr(points)[:80],
            where=where,
        )
    both = [[_part(v, side, where) for v, side in zip(p, size, strict=True)] for p in pairs]
    known = [None not in pair for pair in both]
    x, y = ([p[k] if ok else None for p, ok in zip(both, known, strict=True)] for k in (0, 1))
    return x, y


def _part(value: Any, side: int | None, where: str | None) -> float | None:
    if value is None:
        return None
    number = float("nan")
    # A picture a thousand times as wide is still no billion pixels wide.
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
        number = round(float(value) * (side or 0), 6)
    if not math.isfinite(number):
        raise TableError(
            "a keypoint is not a pair of numbers",
            expected="0 to 1, or NaN for one that is not there",
            found=repr(value)[:60],
            where=where,
        )
    return number
