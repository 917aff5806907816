"""Average precision: precision averaged over the positives as the threshold falls.

``AP = Σ (R_n − R_{n−1}) P_n`` over the distinct scores, highest first, without interpolation
(as scikit-learn's ``average_precision_score``; Su, Yuan & Zhu 2015, "A relationship between the
average precision and the area under the ROC curve", ICTIR, section 2). It moves with how common
positives are: of scores without information it is their share.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.stats.roc.evidence import of_two_columns
from isolux.stats.statistic import FloatArray, RankStatistic, Weighted


def mean_precision(
    scores: FloatArray, positive: npt.NDArray[np.bool_], weights: FloatArray
) -> FloatArray:
    """Weighted average precision of every column of ``weights``; higher is better.

    Shapes: ``scores`` [m], ``positive`` [m], ``weights`` [m, r]; returns [r].

    Examples
    --------
    Falling: right, wrong, right. Precision is 1 at the first positive, 2/3 at the second.

    >>> scores, positive = np.array([0.9, 0.5, 0.4]), np.array([True, False, True])
    >>> float(mean_precision(scores, positive, np.ones(3)).round(4))
    0.8333
    """
    matrix = np.asarray(weights if weights.ndim == 2 else weights[:, None], dtype=np.float64)
    found = _precision_of(
        np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    )(matrix, None)
    return np.asarray(found if weights.ndim == 2 else found[0])


def _precision_of(scores: FloatArray, positive: npt.NDArray[np.bool_]) -> Weighted:
    order = np.argsort(-scores, kind="stable")
    falling, kind = scores[order], positive[order]
    ends = np.append(np.flatnonzero(falling[1:] != falling[:-1]) + 1, len(falling))
    ends = ends if len(falling) else ends[:0]

    def precision(weights: FloatArray, at: npt.NDArray[np.int64] | None) -> FloatArray:
        from isolux.stats.roc.kernels import precision_by_replicate

        where = order if at is None else at[order]
        return np.asarray(precision_by_replicate(where, ends, kind, np.ascontiguousarray(weights)))

    return precision


def average_precision(
    score: str = "positive_score", positive: str = "is_positive"
) -> RankStatistic:
    """Make the average precision a statistic of two columns of an evidence table.

    Examples
    --------
    >>> import polars as pl
    >>> evidence = pl.DataFrame(
    ...     {"positive_score": [0.9, 0.4, None, 0.1], "is_positive": [True, False, True, False]}
    ... )
    >>> float(average_precision()(evidence, np.ones(4)))
    1.0
    """
    return of_two_columns(_precision_of, score, positive)
