"""Who is shown where: people's boxes and visible points, from a dataset's instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isolux.tasks import people_of_parts
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.tables import INSTANCES

Box = tuple[float, float, float, float]

_BOX = ("box_x", "box_y", "box_w", "box_h")
_PARTS = ("part_masks", "segments")
_VISIBLE = 2  # COCO's: 1 is labelled and hidden


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a crop shows: boxes x, y, w, h in pixels, and the points that are visible, by name.

    ``mask`` is COCO's compressed run lengths with height and width.
    """

    id: str
    box: Box | None = None
    face_box: Box | None = None
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    mask: tuple[str, int, int] | None = None


def people_of(dataset: Dataset) -> dict[str, list[Person]]:
    """List the people of each image with their boxes and the points that are visible."""
    table = INSTANCES.conform(with_masks(dataset).instances)
    found: dict[str, list[Person]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(row["image_id"], []).append(
            Person(row["instance_id"], _box(row, ""), _box(row, "face_"), _points(row), _mask(row))
        )
    return found


def with_masks(dataset: Dataset) -> Dataset:
    """Unite the parts of people who have no other masks (FHIBE's)."""
    held = dataset.instances
    parts = [
        name for name in _PARTS if name in held.columns and held[name].null_count() < len(held)
    ]
    if not parts or ("mask_counts" in held.columns and held["mask_counts"].is_not_null().any()):
        return dataset
    return people_of_parts(dataset)


def _box(row: Mapping[str, Any], prefix: str) -> Any:
    sides = tuple(row.get(prefix + name) for name in _BOX)
    return None if None in sides else sides


def _mask(row: Mapping[str, Any]) -> Any:
    found = tuple(row.get(f"mask_{name}") for name in ("counts", "height", "width"))
    return None if None in found else found


def _points(row: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    names = row.get("keypoint_names") or ()
    parts = (row.get(f"keypoints_{c}") or () for c in "xyv")
    return {
        str(name).lower().replace("_", " "): (float(x), float(y))
        for name, x, y, v in zip(names, *parts, strict=False)
        if v == _VISIBLE and x is not None and y is not None
    }


def subjects_of(dataset: Dataset) -> dict[str, str | None]:
    """Return the subject of each person; null: not known."""
    table = INSTANCES.conform(dataset.instances)
    return dict(table.select("instance_id", "subject_id").iter_rows())
