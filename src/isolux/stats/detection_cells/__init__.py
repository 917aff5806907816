"""Rankings of detections in many cells (class × value × value) at once.

ICON² compares average precision over every class, sensitive value and explanatory value: hundreds
of cells of the same boxes. A true positive counts for every cell of its person; a false positive
for every cell with a person in its *area*. Areas are the caller's choice: (image, class) pairs for
ICON²'s rule (the false positives of images with such a person), images for the false positives of
all classes, classes for the false positives of every image.

All boxes are sorted once and distributed in that order, so the cost of a cell is its rows. The
ranking has a class for each cell, and ``precision_table`` reads all of them in one pass, on the
data or on thousands of replicates.

References
----------
.. [1] ICON²: Reliably benchmarking predictive inequity in object detection by identifying and
   controlling for confounders (section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.stats.statistic import FloatArray, Ranking

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class DetectionOutcomes:
    """True and false positives, one row each.

    Parameters
    ----------
    detection : [p] int
        Row of the detections, in COCO's order of equal scores.
    person : [p] int
        Row of the detected person; -1: a false positive.
    iou_bits : [p] uint16
        Bit t: at the t-th IoU threshold.
    """

    detection: npt.NDArray[np.int64]
    person: npt.NDArray[np.int64]
    iou_bits: npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class DetectionIndex:
    """Areas of detections and people, as integers from 0, and their clusters.

    Parameters
    ----------
    detection_area, person_area : [n], [m] int
        The area of each.
    detection_cluster, person_cluster : [n], [m] int
        The row of the weights of each.
    """

    detection_area: IntArray
    person_area: IntArray
    detection_cluster: IntArray
    person_cluster: IntArray


def rank_detection_cells(
    outcomes: DetectionOutcomes,
    score: FloatArray,
    detection_index: DetectionIndex,
    cell_person: IntArray,
    cell: IntArray,
    n_cells: int,
) -> Ranking:
    """Rank the detections of every cell: a ``Ranking`` with one class per cell.

    Shapes: ``score`` [n], ``cell_person, cell`` [e].
    """
    from isolux.stats.detection_cells.detection_kernels import (
        distribute_detections_to_cells,
        group_distinct_values_by_key,
        stable_argsort_descending,
    )

    people, cells = cell_person.astype(np.int64), cell.astype(np.int64)
    invalid_cells = cells[(cells < 0) | (cells >= n_cells)]
    if len(invalid_cells):
        raise SpecError(
            "a cell has no such number",
            expected=f"whole numbers from 0 to {n_cells - 1}",
            found=str(invalid_cells[0]),
        )
    if not np.isfinite(score).all():
        raise SpecError(
            "a detection's score is not a finite number",
            expected="finite numbers; higher ranks first",
            found=str(score[~np.isfinite(score)][0]),
        )
    # One table of cells for both kinds of groups: people, and then areas.
    n_people = len(detection_index.person_area)
    n_areas = 1 + max(
        int(area.max(initial=-1))
        for area in (detection_index.detection_area, detection_index.person_area)
    )
    person_starts, person_cells = group_distinct_values_by_key(people, cells, n_people, n_cells)
    person_area = detection_index.person_area.astype(np.int64, copy=False)[people]
    area_starts, area_cells = group_distinct_values_by_key(person_area, cells, n_areas, n_cells)
    starts = np.concatenate([person_starts, person_starts[-1] + area_starts[1:]])
    area_group = n_people + detection_index.detection_area[outcomes.detection]
    has_person = outcomes.person >= 0
    group = np.where(has_person, outcomes.person, area_group)
    rows = np.flatnonzero(starts[group + 1] > starts[group])
    group, detection = group[rows], outcomes.detection[rows]
    is_true_positive = has_person[rows]
    cluster = np.where(
        is_true_positive,
        detection_index.person_cluster[np.where(is_true_positive, group, 0)] if n_people else 0,
        detection_index.detection_cluster[detection],
    )
    # Bit 0: true positive; bits 1 to 16: the IoU thresholds; from bit 17: the cluster.
    packed = cluster.astype(np.uint64) << np.uint64(17)
    packed |= outcomes.iou_bits[rows].astype(np.uint64) << np.uint64(1)
    packed |= is_true_positive.astype(np.uint64)
    ranking_columns = distribute_detections_to_cells(
        stable_argsort_descending(score[detection]),
        packed,
        group.astype(np.int32),
        starts,
        np.concatenate([person_cells, area_cells]),
        n_cells,
    )
    return Ranking(*ranking_columns, detection_index.person_cluster.astype(np.int64)[people], cells)
