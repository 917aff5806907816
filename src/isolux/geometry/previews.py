"""Some images' people and predictions side by side: what checks of whole files need of them.

A task draws at most 300 images; which of their predictions count as people is marked, the others
stay. A check changes the predictions (mirrors, moves or renames them) and compares how similar they
then are to people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.geometry._pairs import BoolArray, Detections, FloatArray, IntArray, OverlapPairs, Truths
from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.keypoints import keypoint_pairs

_LOWEST_SIMILARITY = 0.05
_FAR_PX = 1e9  # where a keypoint that was not predicted is: its similarity is 0


@dataclass(frozen=True, slots=True)
class ShapeRows:
    """Boxes, and poses if the task has them, in numbered images.

    Parameters
    ----------
    image : [n] int
        From 0.
    box_xywh : [n, 4] float
        In pixels; of a task of masks those around predicted masks.
    label : [n] object
        Name of the class, None where there is none.
    points : [n, K, 3] float or None
        x, y and visibility of each keypoint; NaN: not predicted.
    """

    image: IntArray
    box_xywh: FloatArray
    label: npt.NDArray[np.object_]
    points: FloatArray | None = None

    def take(self, rows: BoolArray) -> ShapeRows:
        """Select rows by a mask: ``[n]``."""
        points = None if self.points is None else self.points[rows]
        return ShapeRows(self.image[rows], self.box_xywh[rows], self.label[rows], points)

    def shift_images(self, offset: int, n_images: int) -> ShapeRows:
        """Assign each shape to the image ``offset`` further, of ``n_images`` in a circle."""
        return replace(self, image=(self.image + offset) % n_images)


@dataclass(frozen=True, slots=True)
class ShapePreview:
    """The people of some images who are scored, and one model's predictions there.

    Parameters
    ----------
    model : str
        Its name.
    people, predicted : ShapeRows
        Rows of people [m] and of predictions [n].
    score : [n] float
        Confidence.
    is_judged : [n] bool
        Whether a prediction counts as one of a person.
    is_of_unscored : [n] bool
        Whether a prediction lies on someone who is not scored, and is neither right nor wrong.
    size_px : [images, 2] float
        Width and height of each image, NaN where unknown.
    area_px : [m] float or None
        With poses: of each person, for their similarity.
    sigmas, keypoints : tuple
        With poses: spread and name of each keypoint.
    """

    model: str
    people: ShapeRows
    predicted: ShapeRows
    score: FloatArray
    is_judged: BoolArray
    is_of_unscored: BoolArray
    size_px: FloatArray
    area_px: FloatArray | None = None
    sigmas: tuple[float, ...] = ()
    keypoints: tuple[str, ...] = ()

    def find_pairs(self, predicted: ShapeRows) -> OverlapPairs:
        """Find the pairs of these predictions and the people that are similar."""
        detections = Detections(predicted.image, np.ones(len(predicted.image)))
        truths = Truths(self.people.image)
        if self.people.points is None or predicted.points is None:
            boxes = predicted.box_xywh, self.people.box_xywh
            return box_pairs_xywh(detections, truths, *boxes, lowest_iou=_LOWEST_SIMILARITY)
        assert self.area_px is not None  # noqa: S101 - set with the points
        return keypoint_pairs(
            *(detections, truths, np.nan_to_num(predicted.points, nan=_FAR_PX)),
            *(self.people.points, self.area_px),
            sigmas=self.sigmas,
            lowest_oks=_LOWEST_SIMILARITY,
        )

    def best_similarity(self, predicted: ShapeRows) -> FloatArray:
        """Return each person's similarity to the prediction that is most like them: ``[m]``."""
        pairs, best = self.find_pairs(predicted), np.zeros(len(self.people.image))
        np.maximum.at(best, pairs.truth, pairs.iou)  # unbuffered: a person may be in several pairs
        return best

    def only_judged(self) -> ShapePreview:
        """Drop predictions that do not count as people."""
        is_judged = self.is_judged
        return replace(
            self,
            predicted=self.predicted.take(is_judged),
            score=self.score[is_judged],
            is_judged=is_judged[is_judged],
            is_of_unscored=self.is_of_unscored[is_judged],
        )
