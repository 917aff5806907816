"""Average precision, weighted: for a group, for one weight a cluster or thousands of replicates.

COCO's: detections of a class by falling score; after each, precision and recall; precision at a
recall is the highest at or beyond it, read at 101 recalls from 0 to 1; the mean over overlaps, and
over the classes that anybody has. A detection that weighs 2 counts as two; equal to pycocotools on
data in which its image stands twice (save for equal scores within an image, whose copies
pycocotools interleaves).

A wrong detection has no person and so weighs what its image does; one that found somebody outside
the group is neither right nor wrong and is left out.

References
----------
.. [1] Lin, T.-Y. et al. (2014). Microsoft COCO: Common Objects in Context. ECCV. Evaluation code:
   https://github.com/cocodataset/cocoapi (``accumulate``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isolux.stats.statistic import DetectionStatistic, FloatArray, Ranking

__all__ = ["OVERLAPS", "RECALL_POINTS", "average_precision", "average_precision_at"]

OVERLAPS = 10
"""How many overlaps COCO reads: .50 to .95 by .05, bits 0 to 9 of a ranking."""
RECALL_POINTS = np.linspace(0.0, 1.0, 101)


def average_precision(
    ranking: Ranking, weights: FloatArray, overlaps: Sequence[int] = range(OVERLAPS)
) -> FloatArray:
    """Average precision of every column of ``weights``; higher is better.

    Parameters
    ----------
    ranking : Ranking
    weights : [n_clusters, r] or [n_clusters] float
        Not negative. ``[n_clusters]`` is one replicate.
    overlaps : sequence of int
        The overlaps, as bits of the ranking, over which the mean is taken.

    Returns
    -------
    [r] or scalar array of float
        0 to 1; NaN where no person weighs anything.

    Examples
    --------
    Two people; by falling score a right, a wrong and a right detection. Precision is 1 up to
    recall 1/2 (51 of the 101 points) and 2/3 beyond: (51 + 50 × 2/3) / 101. If the wrong one's
    image is not looked at, it is 1.

    >>> ranking = Ranking(
    ...     cluster=np.array([0, 1, 2]),
    ...     right=np.array([1, 0, 1], dtype=np.uint16),
    ...     wrong=np.array([0, 1, 0], dtype=np.uint16),
    ...     starts=np.array([0, 3]),
    ...     person_cluster=np.array([0, 2]),
    ...     person_class=np.array([0, 0]),
    ... )
    >>> weights = np.array([[1.0, 1], [1, 0], [1, 1]])
    >>> average_precision(ranking, weights, overlaps=(0,)).round(4).tolist()
    [0.835, 1.0]
    """
    from isolux.stats._precision_recall_kernels import average_precision_of_replicates

    matrix = weights if weights.ndim == 2 else weights[:, None]
    by_replicate = np.ascontiguousarray(matrix.T, dtype=np.float64)
    value = average_precision_of_replicates(
        ranking.cluster, ranking.right, ranking.wrong, ranking.starts,
        np.asarray(overlaps, dtype=np.int64), _people(ranking, by_replicate), by_replicate,
        RECALL_POINTS,
    )  # fmt: skip
    return np.asarray(value if weights.ndim == 2 else value[0])


def average_precision_at(overlaps: Sequence[int] = range(OVERLAPS)) -> DetectionStatistic:
    """Make average precision at some of the ten overlaps a statistic of a ranking.

    Examples
    --------
    >>> nobody = np.empty(0, dtype=np.int64)
    >>> none = nobody.astype(np.uint16)
    >>> empty = Ranking(nobody, none, none, np.zeros(2, dtype=np.int64), nobody, nobody)
    >>> float(average_precision_at((0,))(empty, np.ones(1)))
    nan
    """
    at = tuple(overlaps)
    return DetectionStatistic(lambda ranking, weights: average_precision(ranking, weights, at))


def _people(ranking: Ranking, by_replicate: FloatArray) -> FloatArray:
    """Weight of the people of each class: ``[r, K]``."""
    n_classes = len(ranking.starts) - 1
    people = np.zeros((len(by_replicate), n_classes))
    for k in range(n_classes):
        own = ranking.person_cluster[ranking.person_class == k]
        people[:, k] = by_replicate[:, own].sum(axis=1)
    return people
