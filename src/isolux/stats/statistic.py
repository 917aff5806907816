"""The one interface of every statistic: a function of evidence and weights.

A group is a 0/1 weight, a bootstrap replicate a whole-number weight per cluster, an intersection
a product of weights. So a statistic is written once and gets groups, intersections, intervals and
comparisons for nothing. There are four shapes:

- ``SumStatistic``: a smooth function of weighted sums (means, ratios, calibration error). It
  can be merged from parts, and identical clusters can be counted instead of visited.
- ``RankStatistic``: needs the weights of single rows (AUC, AP, medians).
- ``PairStatistic``: a row is two units, and weighs the product of their clusters' weights, or that
  of the cluster if both are of one.
- ``DetectionStatistic``: a row is a detection; a wrong one is no person's and weighs what its
  image does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Weighted = Callable[[FloatArray, IntArray | None], FloatArray]
"""``(weights [c, r], at [m]) -> [r]``: a value on each of r replicates of rows' weights.

``at`` is the row of ``weights`` that each row has; None: they are the rows', in their order.
"""


def at_weights(evaluate: Weighted, weights: FloatArray) -> FloatArray:
    """Evaluate a statistic at one set of weights ``[n]``, or at several ``[n, r]``."""
    matrix = weights if weights.ndim == 2 else weights[:, None]
    values = evaluate(np.ascontiguousarray(matrix, dtype=np.float64), None)
    return np.asarray(values if weights.ndim == 2 else values[0])


def of_known(build_value: Callable[[FloatArray], Weighted]) -> Callable[[FloatArray], Weighted]:
    """Let a measure of rows ``[n, c]`` read only those of which every column is known."""

    def build_known_value(rows: FloatArray) -> Weighted:
        known_rows = np.flatnonzero(~np.isnan(rows).any(axis=1))
        evaluate = build_value(rows[known_rows])
        if len(known_rows) == len(rows):
            return evaluate
        return lambda weights, weight_rows: evaluate(
            weights, known_rows if weight_rows is None else weight_rows[known_rows]
        )

    return build_known_value


@dataclass(frozen=True, slots=True)
class SumStatistic:
    """A function of weighted sums of columns.

    Parameters
    ----------
    columns : callable
        ``evidence -> [n, k]``: what each row adds to each of k sums; rows that do not count add
        zeros. k may depend on the evidence (the number of classes), never on a group.
    finish : callable
        ``sums [..., k] -> value [...]``, vectorised over leading axes; NaN where undefined.
    rarest : callable, optional
        ``sums [..., k] -> count [...]``: the units of the rarest class that the value averages
        over. A group needs as many of each as it needs units: a mean of recalls rests on that
        class as much as on any other.
    drawn : callable, optional
        ``(sums [g, r, k], first) -> value [g, r]``, in place of ``finish`` on resampled clusters,
        where the value rests on an estimate that is not of these units, such as a confusion
        matrix: replicate ``first + i`` takes the same draw of it in every group and metric.
    centre : float, optional
        Of a mean: what was taken from every value before it was summed.
    of_classes : bool
        Whether the value is the mean of classes' shares: the first half of the columns are hits of
        each class, the second its units.
    of_squares : bool
        Whether the value is the root of a mean: of the first column over the second.
    chance : callable, optional
        ``(sums [..., k], squares [..., k]) -> Chance``: what is known of the chance that enlarges a
        value. ``squares``: of what clusters add to each sum.
    """

    columns: Callable[[pl.DataFrame], FloatArray]
    finish: Callable[[FloatArray], FloatArray]
    rarest: Callable[[FloatArray], FloatArray] | None = None
    drawn: Callable[[FloatArray, int], FloatArray] | None = None
    centre: float | None = None
    of_classes: bool = False
    of_squares: bool = False
    chance: Callable[[FloatArray, FloatArray], Chance] | None = None

    def __call__(self, evidence: pl.DataFrame, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n]`` or ``[n, r]``, giving a scalar array or ``[r]``."""
        return self.finish(
            np.moveaxis(np.tensordot(self.columns(evidence), weights, (0, 0)), 0, -1)
        )


@dataclass(frozen=True, slots=True)
class Chance:
    """What chance may have added to values that are never below 0.

    Parameters
    ----------
    added : [h] float
        How much it may well have added.
    times : [h] float
        What standard errors are to be multiplied by.
    noise : [h, k] float
        Variance of each of the gaps that the value is made of.
    with_noise : callable
        ``variances [h, k] -> [h]``: the values to be expected with so much more noise.
    skew : [h] float, optional
        Skewness of what one unit adds to a value, where that is known; NaN where all add the same.
    """

    added: FloatArray
    times: FloatArray
    noise: FloatArray
    with_noise: Callable[[FloatArray], FloatArray]
    skew: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """A function of rows and their weights that no fixed set of sums can give.

    Parameters
    ----------
    columns : callable
        ``evidence -> [n, k]`` of float64: what the function needs of each row, computed once.
    of : callable
        ``rows [m, k] -> value``: what depends on a group's rows alone (their order) is done once,
        and ``value`` is a ``Weighted`` of their weights. NaN where undefined.
    two_classes : int, optional
        The column that is positive or not where the value compares rows of two classes: a group
        needs as many of either class as it needs units, for a value rests on the rarer one.
    share : float, optional
        Where the value is a quantile of the first column: of which share, 0 to 1.
    """

    columns: Callable[[pl.DataFrame], FloatArray]
    of: Callable[[FloatArray], Weighted]
    two_classes: int | None = None
    share: float | None = None

    def __call__(self, evidence: pl.DataFrame, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n]`` or ``[n, r]``, giving a scalar array or ``[r]``."""
        return at_weights(self.of(self.columns(evidence)), weights)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Comparisons of two units, most alike first; among equals, impostors before genuine pairs.

    Parameters
    ----------
    similarity : [m] float
        Higher is more alike; finite.
    genuine : [m] bool
        Whether both units are one identity; an impostor pair otherwise.
    first, second : [m] int
        The cluster of either unit, a row of the weights.
    far : float
        The false accept rate to read at; NaN: none.
    threshold : float
        The similarity from which a pair is accepted in every group; NaN: none.
    """

    similarity: FloatArray
    genuine: npt.NDArray[np.bool_]
    first: npt.NDArray[Any]  # int32 or int64
    second: npt.NDArray[Any]
    far: float = float("nan")
    threshold: float = float("nan")


@dataclass(frozen=True, slots=True)
class PairStatistic:
    """A function of pairs of units, each pair once, and the weights of their clusters.

    Its evidence has ``unit_id, cluster_id, other_id, similarity, genuine, far, threshold``, the
    last two alike in every row of a model; a pair counts for a group when both of its units are in
    it.

    Parameters
    ----------
    evaluate : callable
        ``(pairs, weights [n_clusters, r]) -> [r]``. NaN where undefined.
    reads : {"far", "threshold"} or None
        What the value is read at: the column ``threshold`` of the metric.
    resolves_far : bool
        Whether the value rests on impostor pairs as rare as ``far``: below ``1 / far`` of them
        there is no value, below ``30 / far`` no interval.
    rests_on : tuple of bool
        The kinds of pairs of which a group needs as many as it needs units: genuine (True),
        impostor (False).
    over : tuple of bool
        The kinds that the value is a share of, whose number is its n.
    failed : bool
        Whether a comparison that failed counts, as one that is refused.
    """

    evaluate: Callable[[Pairs, FloatArray], FloatArray]
    reads: Literal["far", "threshold"] | None = None
    resolves_far: bool = False
    rests_on: tuple[bool, ...] = (True, False)
    over: tuple[bool, ...] = (True, False)
    failed: bool = False

    def __call__(self, pairs: Pairs, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n_clusters]`` or ``[n_clusters, r]``: a scalar array or ``[r]``.

        Groups and replicates are weights of clusters here, never of rows.
        """
        return at_weights(lambda matrix, _: self.evaluate(pairs, matrix), weights)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Detections class by class, each class's by falling score, and the people to be found.

    Parameters
    ----------
    cluster : [n] int
        The row of the weights that each detection has.
    right, wrong : [n] uint16
        Bit t: it found a person, or no one, at the t-th overlap; neither: it does not count.
    starts : [K + 1] int
        Class k's detections are ``starts[k]`` to ``starts[k + 1]``.
    person_cluster, person_class : [m] int
        The row of the weights of each person, and their class.
    """

    cluster: IntArray
    right: npt.NDArray[np.uint16]
    wrong: npt.NDArray[np.uint16]
    starts: IntArray
    person_cluster: IntArray
    person_class: IntArray


@dataclass(frozen=True, slots=True)
class DetectionStatistic:
    """A function of ranked detections and the weights of their clusters.

    Its evidence has ``unit_id, cluster_id, image_id, label, score, kind, at`` (see
    ``tasks._boxes.evidence``); one that found a person counts for that person's groups, a wrong one
    for every group with a person in its image.

    Parameters
    ----------
    table : callable
        ``(ranking, weights [n_clusters, r], overlaps, common [r, K] or None) -> [r, K, T]``: the
        value of each class at each overlap, NaN where no person weighs anything. Statistics with
        the same table share its cost.
    overlaps : tuple of int
        The overlaps, as bits of the ranking, over which the mean is taken.
    normalised : bool
        Whether groups get ``common``: for each class, the mean count of their attribute's groups.
    """

    table: Callable[[Ranking, FloatArray, Sequence[int], FloatArray | None], FloatArray]
    overlaps: tuple[int, ...]
    normalised: bool = False

    def __call__(
        self, ranking: Ranking, weights: FloatArray, common: FloatArray | None = None
    ) -> FloatArray:
        """Evaluate at ``weights [n_clusters]`` or ``[.., r]``: a scalar array or ``[r]``."""

        def evaluate(matrix: FloatArray, _: IntArray | None) -> FloatArray:
            return self.mean(self.table(ranking, matrix, self.overlaps, common))

        return at_weights(evaluate, weights)

    @staticmethod
    def mean(table: FloatArray) -> FloatArray:
        """Average ``[r, K, T]`` over overlaps and the classes that occur: ``[r]``."""
        is_defined = np.isfinite(table)
        n = is_defined.sum(axis=(1, 2))
        total = np.where(is_defined, table, 0.0).sum(axis=(1, 2))
        return np.asarray(np.divide(total, n, out=np.full(len(table), np.nan), where=n > 0))


Statistic = SumStatistic | RankStatistic | PairStatistic | DetectionStatistic


def _mean_columns(scores: pl.DataFrame) -> FloatArray:
    score = scores["value"].to_numpy()
    is_scored = ~np.isnan(score)
    return np.column_stack([np.where(is_scored, score, 0.0), is_scored.astype(np.float64)])


def ratio_of_sums(sums: FloatArray) -> FloatArray:
    """Divide the first sum by the second; NaN where the second is zero."""
    numerator, denominator = sums[..., 0], sums[..., 1]
    return np.divide(
        numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0
    )


MEAN = SumStatistic(_mean_columns, ratio_of_sums, centre=0.0)
"""The weighted mean of ``value``; rows whose value is null count for nothing."""


def mean_about(centre: float) -> SumStatistic:
    """Return the mean of values that are summed as they lie about a centre.

    Squares of seconds since 1970 leave nothing of a second's difference.

    Examples
    --------
    >>> late = pl.DataFrame({"value": [1.7e9, 1.7e9 + 1.0]})
    >>> mean_about(1.7e9).columns(late)[:, 0].tolist()
    [0.0, 1.0]
    >>> mean_about(1.7e9)(late, np.ones(2)).item()
    1700000000.5
    """
    if centre == 0.0:
        return MEAN

    def columns(scores: pl.DataFrame) -> FloatArray:
        sums = _mean_columns(scores)
        sums[:, 0] -= centre * sums[:, 1]
        return sums

    return SumStatistic(columns, lambda sums: ratio_of_sums(sums) + centre, centre=centre)
