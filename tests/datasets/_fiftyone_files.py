"""A small FiftyOne export that tests write: two pictures, three people, keypoints, fields."""

from __future__ import annotations

import base64
import copy
import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.geometry.masks import masks_from_counts


def packed(array: Any, *, allow_pickle: bool = False) -> dict[str, Any]:
    """Pack an array as fiftyone/core/utils.py serialize_numpy_array does."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=allow_pickle)
    text = base64.b64encode(zlib.compress(file.getvalue())).decode()
    return {"$binary": {"base64": text, "subType": "00"}}


def bitmap(counts: str, height: int, width: int) -> Any:
    """Draw COCO's run lengths: ``[height, width]``."""
    masks = masks_from_counts(pl.Series([counts]), np.array([height]), np.array([width]))
    flat = np.zeros(height * width, bool)
    for first, end in masks.edges.reshape(-1, 2):
        flat[first:end] = True
    return flat.reshape(width, height).T


# The box is columns 2 to 5 and rows 0 to 2 of a picture of 8 × 6: a mask of 3 × 4.
MASK = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
SMALL: dict[str, Any] = {
    "samples": [
        {
            "_id": {"$oid": "64c0ffee0000000000000001"},
            "filepath": "data/1.jpg",
            "tags": ["train", "checked"],
            "metadata": {"_cls": "ImageMetadata", "size_bytes": 9, "width": 8, "height": 6},
            "_media_type": "image",
            "created_at": {"$date": "2026-01-01T00:00:00Z"},
            "weather": {"_cls": "Classification", "label": "clear", "confidence": 0.5},
            "scenes": {
                "_cls": "Classifications",
                "classifications": [{"_cls": "Classification", "label": s} for s in "ab"],
            },
            "sharpness": {"_cls": "Regression", "value": 0.25},
            "place": {"_cls": "GeoLocation", "point": {"type": "Point", "coordinates": [0, 1]}},
            "ground_truth": {
                "_cls": "Detections",
                "detections": [
                    {
                        "_id": {"$oid": "64c0ffee0000000000000011"},
                        "_cls": "Detection",
                        "tags": [],
                        "label": "person",
                        "bounding_box": [0.25, 0, 0.5, 0.5],
                        "mask": packed(MASK),
                        "index": 4,
                        "skin_tone": "IV",
                        "age": 31,
                        "ancestry": ["Africa", "Europe"],
                        "iscrowd": 0,
                    },
                    {
                        "_id": {"$oid": "64c0ffee0000000000000012"},
                        "_cls": "Detection",
                        "tags": ["odd"],
                        "label": "dog",
                        "bounding_box": [0, 0, 0.125, 0.5],
                        "mask": None,
                        "index": None,
                        "age": 2.5,
                        "iscrowd": 1,
                    },
                ],
            },
            "predictions": {"_cls": "Detections", "detections": []},
            "poses": {
                "_cls": "Keypoints",
                "keypoints": [
                    {
                        "_cls": "Keypoint",
                        "label": "person",
                        "index": 4,
                        "points": [[0.5, 0.5], [float("nan"), float("nan")]],
                    }
                ],
            },
        },
        {
            "_id": {"$oid": "64c0ffee0000000000000002"},
            "filepath": "/photos/2.jpg",
            "metadata": {"_cls": "ImageMetadata", "width": 4, "height": 3},
            "weather": None,
            "ground_truth": {
                "_cls": "Detections",
                "detections": [
                    {"_cls": "Detection", "label": "person", "bounding_box": [0, 0, 1, 1]}
                ],
            },
        },
    ]
}
METADATA: dict[str, Any] = {
    "version": "1.3.0",
    "name": "made up",
    "skeletons": {"poses": {"labels": ["nose", "left_eye"], "edges": []}},
}


def small(*path: Any, value: Any = None) -> dict[str, Any]:
    """Return the small export; ``small("weather", value=3)`` changes the first sample."""
    file = copy.deepcopy(SMALL)
    at: Any = file["samples"][0]
    for step in path[:-1]:
        at = at[step]
    if path:
        at[path[-1]] = value
    return file


def written(folder: Path, file: dict[str, Any], metadata: dict[str, Any] | None = None) -> Path:
    """Write an export as Python's json does, NaN as NaN."""
    (folder / "samples.json").write_text(json.dumps(file), encoding="utf-8")
    (folder / "metadata.json").write_text(json.dumps(metadata or METADATA))
    return folder
