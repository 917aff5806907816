"""Area under the ROC curve, weighted, for one weight per row or thousands of replicates at once.

The area is the probability that a positive row scores above a negative one, ties counting half: the
Mann-Whitney statistic (Hanley & McNeil 1982, "The meaning and use of the area under a receiver
operating characteristic (ROC) curve", Radiology 143:29-36). With weights, a row with weight
2 counts as two rows.

Average precision: precision averaged over the positives as the threshold decreases.

``AP = Σ (R_n − R_{n−1}) P_n`` over the distinct scores, highest first, without interpolation
(as scikit-learn's ``average_precision_score``; Su, Yuan & Zhu 2015, "A relationship between the
average precision and the area under the ROC curve", ICTIR, section 2). It depends on the
prevalence of positives, and equals it for scores without information.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import (
    FloatArray,
    RankStatistic,
    WeightedValue,
    evaluate_at_weights,
    exclude_rows_with_missing_values,
)

_MIN_COMPILED_REPLICATES = 32  # replicates; fewer take less time than importing numba


def weighted_roc_auc(
    scores: FloatArray, is_positive: npt.NDArray[np.bool_], weights: FloatArray
) -> FloatArray:
    """Weighted area under the ROC curve of every column of ``weights``; higher is better.

    Shapes: ``scores`` [m], ``is_positive`` [m], ``weights`` [m, r]; returns [r].
    """
    area = _build_weighted_roc_auc(
        np.asarray(scores, dtype=np.float64), np.asarray(is_positive, dtype=np.bool_)
    )
    return evaluate_at_weights(area, weights)


def _build_weighted_roc_auc(
    scores: FloatArray, is_positive: npt.NDArray[np.bool_]
) -> WeightedValue:
    order, starts, middles = _sort_and_find_score_starts(scores, is_positive)
    is_positive = is_positive[order]

    def evaluate_roc_auc(
        weights: FloatArray, weight_rows: npt.NDArray[np.int64] | None
    ) -> FloatArray:
        ordered_rows = order if weight_rows is None else weight_rows[order]
        if weights.shape[1] < _MIN_COMPILED_REPLICATES:
            return _roc_auc_numpy(ordered_rows, starts, is_positive, weights)
        from isolux.stats.roc.auc_kernels import roc_auc_by_replicate

        return np.asarray(
            roc_auc_by_replicate(ordered_rows, starts, middles, np.ascontiguousarray(weights))
        )

    return evaluate_roc_auc


def _sort_and_find_score_starts(
    scores: FloatArray, is_positive: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Sort rows by score, negatives first among equals, and find the start of each score."""
    by_class = np.concatenate([np.flatnonzero(~is_positive), np.flatnonzero(is_positive)])
    order = by_class[np.argsort(scores[by_class], kind="stable")]
    rising = scores[order]
    starts = np.append(np.flatnonzero(np.append(len(rising) > 0, rising[1:] != rising[:-1])), 0)
    starts[-1] = len(rising)
    n_positives_before = np.append(0, np.cumsum(is_positive[order]))  # positives before each place
    middles = starts[1:] - (n_positives_before[starts[1:]] - n_positives_before[starts[:-1]])
    return order, starts, middles


def _roc_auc_numpy(
    order: npt.NDArray[np.intp],
    starts: npt.NDArray[np.intp],
    sorted_positive: npt.NDArray[np.bool_],
    weights: FloatArray,
) -> FloatArray:
    area: FloatArray = np.full(weights.shape[1], np.nan)
    if not len(order):
        return area
    sorted_weights = weights[order]  # [m, r]
    is_positive = sorted_positive[:, None]
    won_by = np.add.reduceat(np.where(is_positive, sorted_weights, 0.0), starts[:-1])  # [levels, r]
    lost_by = np.add.reduceat(np.where(is_positive, 0.0, sorted_weights), starts[:-1])
    negatives_below = np.cumsum(lost_by, axis=0)
    won = (won_by * (negatives_below - lost_by / 2)).sum(axis=0)
    pairs = won_by.sum(axis=0) * negatives_below[-1]
    np.divide(won, pairs, out=area, where=pairs > 0)
    return area


def roc_auc_statistic() -> RankStatistic:
    """Make the area under the ROC curve a statistic of two columns of an evidence table."""
    build_value = exclude_rows_with_missing_values(
        lambda rows: _build_weighted_roc_auc(rows[:, 0], rows[:, 1] > 0)
    )
    return RankStatistic(_score_and_signed_class_columns, build_value, positive_column=1)


def _score_and_signed_class_columns(evidence: pl.DataFrame) -> FloatArray:
    """Return scores, and classes as +1 or -1, so that a row of zeros is not a valid row."""
    scores = evidence["positive_score"].cast(pl.Float64).to_numpy()
    return np.column_stack([scores, evidence["is_positive"].cast(pl.Float64).to_numpy() * 2 - 1])


def _build_weighted_average_precision(
    scores: FloatArray, is_positive: npt.NDArray[np.bool_]
) -> WeightedValue:
    order = np.argsort(-scores, kind="stable")
    falling, is_positive = scores[order], is_positive[order]
    level_ends = np.append(np.flatnonzero(falling[1:] != falling[:-1]) + 1, len(falling))
    level_ends = level_ends if len(falling) else level_ends[:0]

    def evaluate_average_precision(
        weights: FloatArray, weight_rows: npt.NDArray[np.int64] | None
    ) -> FloatArray:
        from isolux.stats.roc.auc_kernels import average_precision_by_replicate

        ordered_rows = order if weight_rows is None else weight_rows[order]
        return np.asarray(
            average_precision_by_replicate(
                ordered_rows, level_ends, is_positive, np.ascontiguousarray(weights)
            )
        )

    return evaluate_average_precision


def average_precision_of_scores_statistic() -> RankStatistic:
    """Make the average precision a statistic of two columns of an evidence table."""
    build_value = exclude_rows_with_missing_values(
        lambda rows: _build_weighted_average_precision(rows[:, 0], rows[:, 1] > 0)
    )
    return RankStatistic(_score_and_signed_class_columns, build_value, positive_column=1)
