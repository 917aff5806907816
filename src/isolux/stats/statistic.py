"""The one interface of every statistic: a function of evidence and weights.

A group is a 0/1 weight, a bootstrap replicate a whole-number weight per cluster, an intersection
a product of weights. So a statistic is written once and gets groups, intersections, intervals and
comparisons for nothing. There are two shapes:

- ``SumStatistic``: a smooth function of weighted sums (means, ratios, calibration error). It
  can be merged from parts, and identical clusters can be counted instead of visited.
- ``RankStatistic``: needs the weights of single rows (AUC, AP, medians).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["MEAN", "FloatArray", "RankStatistic", "Statistic", "SumStatistic"]

FloatArray = npt.NDArray[np.float64]


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
    """

    columns: Callable[[pl.DataFrame], FloatArray]
    finish: Callable[[FloatArray], FloatArray]

    def __call__(self, evidence: pl.DataFrame, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n]`` or ``[n, r]``, giving a scalar array or ``[r]``."""
        return self.finish(
            np.moveaxis(np.tensordot(self.columns(evidence), weights, (0, 0)), 0, -1)
        )


@dataclass(frozen=True, slots=True)
class RankStatistic:
    """A function of rows and their weights that no fixed set of sums can give.

    Parameters
    ----------
    columns : callable
        ``evidence -> [n, k]`` of float64: what the function needs of each row, computed once.
    evaluate : callable
        ``(rows [m, k], weights [m, r]) -> [r]``; ``rows`` are the group's rows, ``weights``
        their weights on each of r replicates. NaN where undefined.
    """

    columns: Callable[[pl.DataFrame], FloatArray]
    evaluate: Callable[[FloatArray, FloatArray], FloatArray]

    def __call__(self, evidence: pl.DataFrame, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [n]`` or ``[n, r]``, giving a scalar array or ``[r]``."""
        matrix = weights if weights.ndim == 2 else weights[:, None]
        value = self.evaluate(self.columns(evidence), np.asarray(matrix, dtype=np.float64))
        return value if weights.ndim == 2 else value[0]


Statistic = SumStatistic | RankStatistic


def _mean_columns(scores: pl.DataFrame) -> FloatArray:
    value = scores["value"].to_numpy()
    scored = ~np.isnan(value)
    return np.column_stack([np.where(scored, value, 0.0), scored.astype(np.float64)])


def ratio_of_sums(sums: FloatArray) -> FloatArray:
    """Divide the first sum by the second; NaN where the second is zero."""
    top, bottom = sums[..., 0], sums[..., 1]
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


MEAN = SumStatistic(_mean_columns, ratio_of_sums)
"""The weighted mean of ``value``; rows whose value is null count for nothing."""
