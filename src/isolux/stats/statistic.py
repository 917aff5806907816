"""The interface of every statistic: a function of evidence and weights.

A group is a 0/1 weight, a bootstrap replicate an integer weight per cluster, an intersection a
product of weights. A statistic is therefore written once for groups, intersections, intervals and
comparisons. There are four types:

- ``SumStatistic``: a smooth function of weighted sums (means, ratios, calibration error). It
  can be merged from parts, and identical clusters can be counted instead of visited.
- ``RankStatistic``: needs the weights of single rows (AUC, AP, medians).
- ``PairStatistic``: a row is two units. Its weight is the product of their clusters' weights, or
  the weight of the cluster if both are in one.
- ``DetectionStatistic``: a row is a detection; a false positive has no person and the weight of its
  image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
WeightedValue = Callable[[FloatArray, IntArray | None], FloatArray]
"""``(weights [c, r], at [m]) -> [r]``: a value for each of r replicates of weights.

``at`` is the row of ``weights`` of each data row; None: data rows and weights have one order.
"""


def evaluate_at_weights(evaluate: WeightedValue, weights: FloatArray) -> FloatArray:
    """Evaluate a statistic at one set of weights ``[n]``, or at several ``[n, r]``."""
    matrix = weights if weights.ndim == 2 else weights[:, None]
    values = evaluate(np.ascontiguousarray(matrix, dtype=np.float64), None)
    return np.asarray(values if weights.ndim == 2 else values[0])


def exclude_rows_with_missing_values(
    build_value: Callable[[FloatArray], WeightedValue],
) -> Callable[[FloatArray], WeightedValue]:
    """Restrict a statistic of rows ``[n, c]`` to rows without missing values."""

    def build_from_complete_rows(rows: FloatArray) -> WeightedValue:
        known_rows = np.flatnonzero(~np.isnan(rows).any(axis=1))
        evaluate = build_value(rows[known_rows])
        if len(known_rows) == len(rows):
            return evaluate
        return lambda weights, weight_rows: evaluate(
            weights, known_rows if weight_rows is None else weight_rows[known_rows]
        )

    return build_from_complete_rows


@dataclass(frozen=True, slots=True)
class SumStatistic:
    """A function of weighted sums of columns.

    Parameters
    ----------
    columns : callable
        ``evidence -> [n, k]``: what each row adds to each of k sums; rows that do not count add
        zeros. k may depend on the evidence (the number of classes), never on a group; where it
        does, the array is sparse, since there may be thousands of classes.
    finish : callable
        ``sums [..., k] -> value [...]``, vectorised over leading axes; NaN where undefined.
    count_rarest_class : callable, optional
        ``sums [..., k] -> count [...]``: the units of the rarest class that the value averages
        over. A group needs the minimum number of units in each class, as a mean of recalls depends
        on each class equally.
    finish_replicates : callable, optional
        ``(sums [g, r, k], first) -> value [g, r]``, in place of ``finish`` on resampled clusters,
        where the value depends on an estimate from other units, such as a confusion matrix:
        replicate ``first + i`` uses the same draw of it in every group and metric.
    centre : float, optional
        Of a mean: what was subtracted from every value before summing.
    is_macro_average : bool
        Whether the value is a macro-average of proportions: the first half of the columns counts
        the correct units of each class, the second half its units.
    is_root_mean : bool
        Whether the value is a root mean square: the root of the first column over the second.
    is_correlation : bool
        Whether the value is a correlation, -1 to 1.
    estimate_noise_bias : callable, optional
        ``(sums [..., k], squares [..., k]) -> NoiseBias``: the upward bias of a value that
        cannot be negative. ``squares``: sums of squared cluster contributions.
    """

    columns: Callable[[pl.DataFrame], FloatArray | csr_array]
    finish: Callable[[FloatArray], FloatArray]
    count_rarest_class: Callable[[FloatArray], FloatArray] | None = None
    finish_replicates: Callable[[FloatArray, int], FloatArray] | None = None
    centre: float | None = None
    is_macro_average: bool = False
    is_root_mean: bool = False
    is_correlation: bool = False
    estimate_noise_bias: Callable[[FloatArray, FloatArray], NoiseBias] | None = None

    def __call__(self, evidence: pl.DataFrame, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n]`` or ``[n, r]``, giving a scalar array or ``[r]``."""
        columns = self.columns(evidence)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        return self.finish(np.moveaxis(np.tensordot(dense, weights, (0, 0)), 0, -1))


@dataclass(frozen=True, slots=True)
class NoiseBias:
    """The upward bias, by sampling noise, of values that cannot be negative.

    Parameters
    ----------
    bias : [h] float
        An upper estimate of the bias.
    se_factor : [h] float
        Factor for the standard errors.
    noise_variance : [h, k] float
        Sampling variance of each of the gaps that the value sums.
    expected_value : callable
        ``variances [h, k] -> [h]``: the expected values with additional noise of this variance.
    unit_skewness : [h] float, optional
        Skewness of one unit's contribution, where it is known; NaN where all contributions are
        equal.
    """

    bias: FloatArray
    se_factor: FloatArray
    noise_variance: FloatArray
    expected_value: Callable[[FloatArray], FloatArray]
    unit_skewness: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """A function of rows and their weights that is no function of a fixed set of sums.

    Parameters
    ----------
    columns : callable
        ``evidence -> [n, k]`` of float64: what the function reads of each row, computed once.
    build_value : callable
        ``rows [m, k] -> value``: computes once what depends on a group's rows alone (their order),
        and returns a function of their weights. NaN where undefined.
    positive_column : int, optional
        The column whose sign is the class, where the value compares rows of two classes: a group
        needs the minimum number of units in both, as precision depends on the rarer class.
    quantile_level : float, optional
        Where the value is a quantile of the first column: its level, 0 to 1.
    is_correlation : bool
        Whether the value is a correlation, -1 to 1.
    """

    columns: Callable[[pl.DataFrame], FloatArray]
    build_value: Callable[[FloatArray], WeightedValue]
    positive_column: int | None = None
    quantile_level: float | None = None
    is_correlation: bool = False

    def __call__(self, evidence: pl.DataFrame, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n]`` or ``[n, r]``, giving a scalar array or ``[r]``."""
        return evaluate_at_weights(self.build_value(self.columns(evidence)), weights)


@dataclass(frozen=True, slots=True)
class UnitPairs:
    """Pairs of units by falling similarity; among equals, impostors before genuine pairs.

    Parameters
    ----------
    similarity : [m] float
        Higher is more similar; finite.
    is_genuine : [m] bool
        Whether both units are one identity; an impostor pair otherwise.
    first, second : [m] int
        The cluster of either unit, a row of the weights.
    false_accept_rate : float
        The false accept rate of the operating point; NaN: none.
    threshold : float
        The similarity from which a pair is accepted in every group; NaN: none.
    """

    similarity: FloatArray
    is_genuine: npt.NDArray[np.bool_]
    first: npt.NDArray[Any]  # int32 or int64
    second: npt.NDArray[Any]
    false_accept_rate: float = float("nan")
    threshold: float = float("nan")


@dataclass(frozen=True, slots=True)
class PairStatistic:
    """A function of pairs of units, each pair once, and the weights of their clusters.

    Its evidence has ``unit_id, cluster_id, other_id, similarity, genuine, far, threshold``, the
    last two constant within a model; a pair counts for a group when both of its units are in it.

    Parameters
    ----------
    evaluate : callable
        ``(pairs, weights [n_clusters, r]) -> [r]``. NaN where undefined.
    operating_point : {"far", "threshold"} or None
        The operating point of the value: the column ``threshold`` of the metric.
    needs_rare_impostors : bool
        Whether the value depends on impostor pairs as rare as the false accept rate f: with fewer
        than 1 / f of them there is no value, with fewer than 30 / f no interval.
    required_kinds : tuple of bool
        The types of pairs of which a group needs the minimum number of units: genuine (True),
        impostor (False).
    counted_kinds : tuple of bool
        The types of pairs in the value's denominator; their number is its n.
    counts_failures : bool
        Whether a failed comparison counts, as a rejected one.
    """

    evaluate: Callable[[UnitPairs, FloatArray], FloatArray]
    operating_point: Literal["far", "threshold"] | None = None
    needs_rare_impostors: bool = False
    required_kinds: tuple[bool, ...] = (True, False)
    counted_kinds: tuple[bool, ...] = (True, False)
    counts_failures: bool = False

    def __call__(self, pairs: UnitPairs, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n_clusters]`` or ``[n_clusters, r]``: a scalar array or ``[r]``.

        Groups and replicates are weights of clusters here, never of rows.
        """
        return evaluate_at_weights(lambda matrix, _: self.evaluate(pairs, matrix), weights)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Detections by class and falling score, and the annotated people.

    Parameters
    ----------
    cluster : [n] int
        The row of the weights that each detection has.
    true_positive, false_positive : [n] uint16
        Bit t: true or false positive at the t-th IoU threshold; neither: it is ignored.
    starts : [K + 1] int
        Class k's detections are ``starts[k]`` to ``starts[k + 1]``.
    person_cluster, person_class : [m] int
        The row of the weights of each person, and their class.
    """

    cluster: IntArray
    true_positive: npt.NDArray[np.uint16]
    false_positive: npt.NDArray[np.uint16]
    starts: IntArray
    person_cluster: IntArray
    person_class: IntArray


@dataclass(frozen=True, slots=True)
class DetectionStatistic:
    """A function of ranked detections and the weights of their clusters.

    Its evidence has ``unit_id, cluster_id, image_id, label, score, kind, at`` (see
    ``tasks._boxes.evidence``); a true positive counts for its person's groups, a false
    positive for every group with a person in its image.

    Parameters
    ----------
    class_values : callable
        ``(ranking, weights [n_clusters, r], overlaps, common [r, K] or None) -> [r, K, T]``: the
        value of each class at each IoU threshold, NaN where no person has weight. Statistics with
        the same function share its result.
    iou_indices : tuple of int
        The IoU thresholds, as bits of the ranking, over which the mean is taken.
    is_normalised : bool
        Whether groups get ``common``: for each class, the mean count of their attribute's groups.
    """

    class_values: Callable[[Ranking, FloatArray, Sequence[int], FloatArray | None], FloatArray]
    iou_indices: tuple[int, ...]
    is_normalised: bool = False

    def __call__(
        self, ranking: Ranking, weights: FloatArray, common: FloatArray | None = None
    ) -> FloatArray:
        """Evaluate at ``weights [n_clusters]`` or ``[.., r]``: a scalar array or ``[r]``."""

        def evaluate(matrix: FloatArray, _: IntArray | None) -> FloatArray:
            return self.average_classes(
                self.class_values(ranking, matrix, self.iou_indices, common)
            )

        return evaluate_at_weights(evaluate, weights)

    @staticmethod
    def average_classes(table: FloatArray) -> FloatArray:
        """Average ``[r, K, T]`` over IoU thresholds and the classes that occur: ``[r]``."""
        is_defined = np.isfinite(table)
        n = is_defined.sum(axis=(1, 2))
        total = np.where(is_defined, table, 0.0).sum(axis=(1, 2))
        return np.asarray(np.divide(total, n, out=np.full(len(table), np.nan), where=n > 0))


Statistic = SumStatistic | RankStatistic | PairStatistic | DetectionStatistic


def _score_sum_and_count_columns(scores: pl.DataFrame) -> FloatArray:
    score = scores["value"].to_numpy()
    is_scored = ~np.isnan(score)
    return np.column_stack([np.where(is_scored, score, 0.0), is_scored.astype(np.float64)])


def ratio_of_first_two_sums(sums: FloatArray) -> FloatArray:
    """Divide the first sum by the second; NaN where the second is zero."""
    numerator, denominator = sums[..., 0], sums[..., 1]
    return np.divide(
        numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0
    )


MEAN = SumStatistic(_score_sum_and_count_columns, ratio_of_first_two_sums, centre=0.0)
"""The weighted mean of ``value``; rows whose value is null are excluded."""


def centred_mean_statistic(centre: float) -> SumStatistic:
    """Return a mean whose values are summed as differences from a centre.

    Otherwise the squares of large values, such as seconds since 1970, lose all digits of their
    differences.

    Examples
    --------
    >>> late = pl.DataFrame({"value": [1.7e9, 1.7e9 + 1.0]})
    >>> centred_mean_statistic(1.7e9).columns(late)[:, 0].tolist()
    [0.0, 1.0]
    >>> centred_mean_statistic(1.7e9)(late, np.ones(2)).item()
    1700000000.5
    """
    if centre == 0.0:
        return MEAN

    def columns(scores: pl.DataFrame) -> FloatArray:
        sums = _score_sum_and_count_columns(scores)
        sums[:, 0] -= centre * sums[:, 1]
        return sums

    return SumStatistic(columns, lambda sums: ratio_of_first_two_sums(sums) + centre, centre=centre)
