"""FHIBE's 33 keypoints brought to COCO's 17, as models of poses give them.

FHIBE's own evaluation keeps the keypoints that COCO has too, in COCO's order: left before right.
"""

from __future__ import annotations

import polars as pl

from isolux.datasets.fhibe.words import KEYPOINTS
from isolux.geometry.keypoints import COCO_KEYPOINTS

__all__ = ["as_coco_points"]

_PLACES = [[name.lower() for name in KEYPOINTS].index(name) for name in COCO_KEYPOINTS]


def as_coco_points(people: pl.DataFrame) -> pl.DataFrame:
    """Keep the keypoints that COCO has, in its order; who has none stays without.

    Examples
    --------
    >>> from isolux.datasets.fhibe.words import KEYPOINTS
    >>> lists = {f"keypoints_{c}": [list(range(33))] for c in "xyv"}
    >>> people = pl.DataFrame({**lists, "keypoint_names": [list(KEYPOINTS)]})
    >>> found = as_coco_points(people)
    >>> found["keypoint_names"][0][1], found["keypoints_x"][0][1]
    ('Left eye', 5)
    """
    columns = ("keypoints_x", "keypoints_y", "keypoints_v", "keypoint_names")
    return people.with_columns(pl.col(column).list.gather(_PLACES) for column in columns)
