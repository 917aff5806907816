"""Small intersections: each cell's value, with strength borrowed from its main effects.

Ten people who are Black, women and over 70 say little of themselves; what all Black people, all
women and all people over 70 got says more. A cell's value is modelled as a sum of effects: of each
attribute, of each two attributes together, and so on, to what is the cell's own. How large the
effects of each attribute and each combination are is learned from the cells themselves.

- **Model.** On the log-odds of a share (on the value itself for other means) effects of one set of
  attributes are normal with one variance. Variances are not taken as known but averaged over: the
  marginal likelihood (Laplace's approximation, exact for other means) weighs the likeliest and
  points around them.
- **Noise.** A cell's own sampling variance is that of its clusters; cells that share clusters have
  the covariance that follows.
- **Odd cells.** A cell may be unlike its kin. Each cell's own answers are therefore taken up again
  exactly, against the other cells' prediction mixed with a much wider law: a little for the
  estimate, half of the time for the interval, so that the interval of one odd cell holds it.

The estimate is the posterior mean, the interval lies between equal tails.

References
----------
.. [1] Rue, H., Martino, S. and Chopin, N. (2009). Approximate Bayesian inference for latent
   Gaussian models. Journal of the Royal Statistical Society B 71(2), 319-392.
.. [2] Gelman, A. (2005). Analysis of variance: why it is more important than ever. Annals of
   Statistics 33(1), 1-53.
.. [3] Khodak, M., Mackey, L., Chouldechova, A. and Dudik, M. (2024). SureMap: simultaneous mean
   estimation for single-task and multi-task disaggregated evaluation. NeurIPS. arXiv 2411.09730.
.. [4] Herlihy, C., Truong, K., Chouldechova, A. and Dudik, M. (2024). A structured regression
   approach for evaluating model performance across intersectional subgroups. FAccT. arXiv
   2401.14893.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.stats.design import IntArray
from isolux.stats.small_groups.effects import Cells, effect_covariances
from isolux.stats.small_groups.marginals import cell_marginals
from isolux.stats.small_groups.variances import average_over_variances
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import InputError


@dataclass(frozen=True, slots=True)
class CellEstimates:
    """Estimates that borrow strength, and the ends of their intervals: arrays ``[d]``."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def cell_estimates(
    value: FloatArray,
    noise: FloatArray,
    levels: IntArray,
    *,
    shares: bool = True,
    unit_variance: float = 1.0,
    level: float = 0.95,
) -> CellEstimates:
    """Estimate the value of every cell of an intersection from all cells together.

    Shapes: ``value`` [d], ``noise`` [d, d], ``levels`` [d, k].

    Examples
    --------
    Two attributes; 1 of 2 people of one cell, where all others got about nine of ten:

    >>> levels = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])
    >>> share = np.array([0.90, 0.90, 0.92, 0.5, 0.90, 0.88])
    >>> people = np.array([50.0, 50, 50, 2, 50, 50])
    >>> found = cell_estimates(share, np.diag(1 / people), levels)
    >>> bool(0.8 < found.value[3] < 0.9), bool(found.low[3] < 0.5 < found.high[3])
    (True, True)
    """
    d = len(value)
    if noise.shape != (d, d) or levels.ndim != 2 or len(levels) != d:
        raise InputError(
            "cells do not fit one another",
            expected=f"noise [{d}, {d}] and levels [{d}, k]",
            found=f"noise {noise.shape} and levels {levels.shape}",
        )
    held = np.isfinite(value)
    nothing = np.full(d, np.nan)
    if held.sum() < 2:
        return CellEstimates(nothing, nothing, nothing)
    scale = 1.0 if shares else float(np.sqrt(unit_variance))
    cells = Cells.of(value / scale, noise, held, shares=shares)
    found = average_over_variances(cells, *effect_covariances(levels))
    low, middle, high = cell_marginals(cells, found, level)
    return CellEstimates(middle * scale, low * scale, high * scale)
