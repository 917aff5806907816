"""Detections of many cells at once: (class × value × value), each ranked as if it stood alone.

ICON² compares average precision over every class, sensitive value and explanatory value: hundreds
of cells of the same boxes. A right detection counts for every cell that its person is in; a wrong
one for every cell that has a person in its *place*. What a place is, is the caller's choice: number
(image, class) pairs for ICON²'s rule (the false alarms of images that hold such a person), images
for false alarms of images whatever the class, classes for the false alarms of every image.

All boxes are sorted once and dealt out in that order, so cells cost what their rows do. The ranking
has a class for each cell, and ``precision_table`` reads all of them in one pass, on the data or on
thousands of replicates.

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

from isolux.stats.statistic import FloatArray, Ranking
from isolux.vocabulary.errors import SpecError

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What was right and what was wrong, a row each.

    Parameters
    ----------
    detection : [p] int
        Row of the detections, in COCO's order of equal scores.
    person : [p] int
        Row of the person found; -1: no one, a false alarm.
    at : [p] uint16
        Bit t: at the t-th overlap.
    """

    detection: npt.NDArray[np.int64]
    person: npt.NDArray[np.int64]
    at: npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Places:
    """Where detections and people are, as whole numbers from 0, and their clusters.

    Parameters
    ----------
    detection, person : [n], [m] int
        The place of each.
    detection_cluster, person_cluster : [n], [m] int
        The row of the weights of each.
    """

    detection: IntArray
    person: IntArray
    detection_cluster: IntArray
    person_cluster: IntArray


def rank_cells(
    outcomes: Outcomes,
    score: FloatArray,
    places: Places,
    cell_person: IntArray,
    cell: IntArray,
    n_cells: int,
) -> Ranking:
    """Rank the detections of every cell: a ``Ranking`` with a class for each.

    Shapes: ``score`` [n], ``cell_person, cell`` [e].
    """
    from isolux.stats.cells.kernels import by_falling, distinct_by_key, rows_of_cells

    who, cells = cell_person.astype(np.int64), cell.astype(np.int64)
    wrong = cells[(cells < 0) | (cells >= n_cells)]
    if len(wrong):
        raise SpecError(
            "a cell has no such number",
            expected=f"whole numbers from 0 to {n_cells - 1}",
            found=str(wrong[0]),
        )
    if not np.isfinite(score).all():
        raise SpecError(
            "a detection's score is not a finite number",
            expected="finite numbers; higher ranks first",
            found=str(score[~np.isfinite(score)][0]),
        )
    # One table of cells for both kinds of groups: people, and then places.
    n_people = len(places.person)
    n_places = 1 + max(int(side.max(initial=-1)) for side in (places.detection, places.person))
    own, own_cell = distinct_by_key(who, cells, n_people, n_cells)
    place_of = places.person.astype(np.int64, copy=False)[who]
    here, here_cell = distinct_by_key(place_of, cells, n_places, n_cells)
    starts = np.concatenate([own, own[-1] + here[1:]])
    place = n_people + places.detection[outcomes.detection]
    is_right = outcomes.person >= 0
    group = np.where(is_right, outcomes.person, place)
    rows = np.flatnonzero(starts[group + 1] > starts[group])
    group, detection = group[rows], outcomes.detection[rows]
    right = is_right[rows]
    cluster = np.where(
        right,
        places.person_cluster[np.where(right, group, 0)] if n_people else 0,
        places.detection_cluster[detection],
    )
    packed = cluster.astype(np.uint64) << np.uint64(17)
    packed |= outcomes.at[rows].astype(np.uint64) << np.uint64(1)
    packed |= right.astype(np.uint64)
    dealt = rows_of_cells(
        by_falling(score[detection]),
        packed,
        group.astype(np.int32),
        starts,
        np.concatenate([own_cell, here_cell]),
        n_cells,
    )
    return Ranking(*dealt, places.person_cluster.astype(np.int64)[who], cells)
