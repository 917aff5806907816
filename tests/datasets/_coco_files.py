"""Small COCO files that tests write: two pictures, a person with joints, a dog, a crowd."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

NAMES = ["nose", "left_eye", "right_eye"]
SMALL: dict[str, Any] = {
    "info": {"year": 2030},
    "images": [
        {"id": 7, "file_name": "7.jpg", "width": 8, "height": 6, "license": 3},
        {"id": 8, "file_name": "8.jpg", "width": 4, "height": 3},
    ],
    "annotations": [
        {
            "id": 1,
            "image_id": 7,
            "category_id": 1,
            "bbox": [1, 2, 3.5, 4],
            "area": 9.25,
            "iscrowd": 0,
            "segmentation": [[1, 2, 4.5, 2, 4.5, 6], [1, 2, 2, 2, 2, 3]],
            "keypoints": [2, 3, 2, 0, 0, 0, 3, 3.5, 1],
            "num_keypoints": 2,
        },
        {
            "id": 2,
            "image_id": 7,
            "category_id": 18,
            "bbox": [0, 0, 2, 2],
            "area": 4,
            "iscrowd": 0,
            # 48 pixels by columns of 6: two outside, two inside, 44 outside.
            "segmentation": {"size": [6, 8], "counts": "22\\1"},
        },
        {
            "id": 3,
            "image_id": 8,
            "category_id": 1,
            "bbox": [0, 0, 4, 3],
            "area": 5,
            "iscrowd": 1,
            "segmentation": {"size": [3, 4], "counts": [2, 5, 4, 1]},
        },
    ],
    "categories": [
        {"id": 1, "name": "person", "supercategory": "person", "keypoints": NAMES},
        {"id": 18, "name": "dog", "supercategory": "animal"},
    ],
}


def small(**changes: Any) -> dict[str, Any]:
    """Return the small file; ``annotations=(row, key, value)`` changes one value of it."""
    file = copy.deepcopy(SMALL)
    for part, (row, key, value) in changes.items():
        file[part][row][key] = value
    return file


def written(folder: Path, file: dict[str, Any], name: str = "instances.json") -> Path:
    (folder / name).write_text(json.dumps(file), encoding="utf-8")
    return folder / name
