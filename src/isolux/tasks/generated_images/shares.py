"""Shares of groups among classified images, corrected for the classifier's errors.

If T[g, l] is the probability that an image of group g is labelled l, the labelled shares are p_l =
Σ_g T[g, l] s_g; solving gives the shares s (the matrix method). T was counted on some images: each
replicate resamples its counts as well as the images.

The columns that a row adds to the sums, for a values: its label [a], 1, whether T is exact, the
index of the requested value, T's counts [a·a], the target shares [a]. All but the first are the
same in every row, so that a sum divided by the count returns them, in any group. For the distance
there are also the row's corrected contributions to each share minus its target [a]: their variance
gives the upward bias of a mean of absolute gaps from noise.

References
----------
.. [1] Greenland, S. (1988). Variance estimation for epidemiologic effect estimates under
   misclassification. Statistics in Medicine 7(7), 745-757.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.io.threads import ignore_runtime_warnings
from isolux.stats.calibration import absolute_gap_noise_bias
from isolux.stats.statistic import FloatArray, NoiseBias, SumStatistic

# A fixed seed for each block of replicates, so that all groups and metrics use the same draws.
_SEED, _REPLICATE_BLOCK = 7, 256
_MIN_DETERMINANT = 1e-9
"""The determinant below which a matrix counts as singular."""


@dataclass(frozen=True, slots=True)
class _ShareSums:
    """The components of sums ``[..., k]``: judged shares, count, constants of the rows."""

    judged_share: FloatArray
    count: FloatArray
    exact: FloatArray
    value_index: FloatArray
    matrix: FloatArray
    aim: FloatArray

    @classmethod
    def from_sums(cls, sums: FloatArray) -> _ShareSums:
        # k = a + 1 + 1 + 1 + a a + a = (a + 1)² + 2 columns, solved for a.
        a = round((sums.shape[-1] - 2) ** 0.5) - 1
        n = sums[..., a]
        # An empty group divides by NaN, so that all of its shares are NaN without a warning.
        n_or_nan = np.where(n > 0, n, np.nan)[..., None]
        mean = sums / n_or_nan
        return cls(
            mean[..., :a],
            n,
            mean[..., a + 1],
            mean[..., a + 2],
            mean[..., a + 3 : a + 3 + a * a].reshape(*sums.shape[:-1], a, a),
            mean[..., a + 3 + a * a :],
        )


def row_constants(
    value_index: int, counts: FloatArray, aim: FloatArray, *, exact: bool
) -> list[float]:
    """List the constants of every row: 1, exact, the value's index, T's counts, the target."""
    return [1.0, float(exact), float(value_index), *counts.ravel().tolist(), *aim.tolist()]


def _sum_columns(evidence: pl.DataFrame) -> FloatArray:
    """Convert ``judged`` (index of the value, null: not judged) and ``row_constants`` to rows."""
    if not evidence.height:
        return np.zeros((0, 6))
    row_values = np.array(evidence["constants"][0].to_list(), dtype=np.float64)
    a = round((len(row_values) - 1) ** 0.5) - 1  # a·a + a + 3 numbers stand there
    code = evidence["judged"]
    is_judged = code.is_not_null().to_numpy()
    rows = np.zeros((evidence.height, a + len(row_values)))
    rows[:, a:] = row_values
    rows[np.flatnonzero(is_judged), code.drop_nulls().to_numpy()] = 1.0
    # Also their constants: the count is the number of labelled images.
    rows[~is_judged] = 0.0
    return rows


def _solve_shares(judged_share: FloatArray, share: FloatArray) -> FloatArray:
    """Solve for true shares, clipped to 0 to 1; NaN where the matrix is singular."""
    # p = Tᵀ s: the matrix has true groups in its rows.
    transposed = np.swapaxes(share, -1, -2)
    is_finite = np.isfinite(transposed).all(axis=(-1, -2)) & np.isfinite(judged_share).all(axis=-1)
    is_solvable = np.asarray(is_finite)
    # The identity takes the place of unusable matrices, so that one of them does not stop the
    # others.
    safe_matrix = np.where(is_solvable[..., None, None], transposed, np.eye(transposed.shape[-1]))
    is_solvable = is_solvable & (np.abs(np.linalg.det(safe_matrix)) > _MIN_DETERMINANT)
    safe_matrix = np.where(is_solvable[..., None, None], safe_matrix, np.eye(transposed.shape[-1]))
    solution = np.linalg.solve(safe_matrix, np.nan_to_num(judged_share)[..., None])[..., 0]
    # Noise can push shares outside 0 to 1; clipped ones are rescaled to sum to 1 again.
    clipped = np.clip(solution, 0.0, 1.0)
    total = clipped.sum(axis=-1, keepdims=True)
    clipped = np.divide(clipped, total, out=np.full_like(clipped, np.nan), where=total > 0)
    return np.where(is_solvable[..., None], clipped, np.nan)


def _row_shares(matrix: FloatArray) -> FloatArray:
    """Divide counts by their row sums; NaN where a sum is 0."""
    rows = matrix.sum(axis=-1, keepdims=True)
    share = np.full_like(matrix, np.nan)
    np.divide(matrix, rows, out=share, where=np.nan_to_num(rows) > 0)
    return share


def _true_shares(sums: FloatArray) -> tuple[_ShareSums, FloatArray]:
    """Return the components of sums and their shares, with the matrix as it was counted."""
    components = _ShareSums.from_sums(sums)
    return components, _solve_shares(components.judged_share, _row_shares(components.matrix))


def _replicate_shares(sums: FloatArray, first: int) -> tuple[_ShareSums, FloatArray]:
    """Compute true shares of ``[g, r, k]``, each replicate with its own draw of the matrix."""
    components = _ShareSums.from_sums(sums)
    nonempty_cells = np.argwhere(components.count > 0)
    # "exact" is the same in every row, so it can be read from any group.
    if not len(nonempty_cells) or components.exact[tuple(nonempty_cells[0])] > 0.5:
        return components, _solve_shares(components.judged_share, _row_shares(components.matrix))
    counts = components.matrix[tuple(nonempty_cells[0])]
    # Each row is a Dirichlet distribution of its counts plus one case shared out, so that an error
    # that was never observed is not impossible (docs/methods/associations.md).
    draws = _draw_matrices(counts + 1.0 / len(counts), first, sums.shape[1])
    return components, _solve_shares(
        components.judged_share, np.broadcast_to(draws, (*sums.shape[:2], *counts.shape))
    )


def _draw_matrices(counts: FloatArray, first: int, n: int) -> FloatArray:
    """Draw the matrices of replicates ``first`` to ``first + n``: ``[n, a, a]``."""
    # Drawn in blocks: replicate r is the same, however replicates are split into calls.
    blocks = range(first // _REPLICATE_BLOCK, (first + n - 1) // _REPLICATE_BLOCK + 1)
    matrices = []
    for block in blocks:
        rng = np.random.default_rng([_SEED, block])
        matrices.append(np.stack([rng.dirichlet(row, _REPLICATE_BLOCK) for row in counts], axis=1))
    start = first - blocks[0] * _REPLICATE_BLOCK
    return np.concatenate(matrices)[start : start + n]


def _select_value(components: _ShareSums, shares: FloatArray) -> FloatArray:
    """Select the share of each row's own value."""
    # A mean of equal indices, rounded, since its division may leave a last digit.
    value_index = np.nan_to_num(np.round(components.value_index)).astype(np.int64)
    return np.take_along_axis(shares, value_index[..., None], axis=-1)[..., 0]


def _share_of_value(components: _ShareSums, true_shares: FloatArray) -> FloatArray:
    return _select_value(components, true_shares)


def _gap_of_value(components: _ShareSums, shares: FloatArray) -> FloatArray:
    return _select_value(components, shares - components.aim)


def _entropy(components: _ShareSums, shares: FloatArray) -> FloatArray:
    """Entropy of the shares over that of equal shares, 0 to 1."""
    del components
    is_positive = np.nan_to_num(shares) > 0
    # 0 log 0 is 0, its limit.
    terms = np.where(is_positive, shares, 1.0) * np.log(np.where(is_positive, shares, 1.0))
    entropy = -terms.sum(axis=-1) / np.log(shares.shape[-1])
    return np.where(np.isnan(shares).any(axis=-1), np.nan, np.minimum(entropy, 1.0))


def _distance(components: _ShareSums, shares: FloatArray) -> FloatArray:
    """Half the sum of absolute differences to the target shares (total variation)."""
    distance: FloatArray = np.abs(shares - components.aim).sum(axis=-1) / 2.0
    return distance


def _columns_with_gaps(evidence: pl.DataFrame) -> FloatArray:
    """Add to ``_sum_columns`` each image's contribution to each share beyond its target."""
    columns = _sum_columns(evidence)
    if not evidence.height:
        return np.zeros((0, 7))
    components = _ShareSums.from_sums(columns.sum(axis=0))
    share = _row_shares(components.matrix)
    usable = np.isfinite(share).all() and abs(np.linalg.det(share)) > _MIN_DETERMINANT
    inverse = np.linalg.inv(share) if usable else np.zeros_like(share)
    a = len(components.aim)
    # The solution is linear in the labels, so each image has a contribution of its own.
    gaps = columns[:, :a] @ inverse - np.where(columns[:, a : a + 1] > 0, components.aim, 0.0)
    return np.concatenate([columns, gaps], axis=1)


def _without_gaps(sums: FloatArray) -> FloatArray:
    # (a + 3/2)² + 3/4 columns, solved for a.
    values = round((sums.shape[-1] - 0.75) ** 0.5 - 1.5)  # a·a + 3 a + 3 numbers
    return sums[..., : sums.shape[-1] - values]


def _estimate_noise_bias(sums: FloatArray, squared_sums: FloatArray) -> NoiseBias:
    """Estimate the upward bias of the distance from noise: of the images and of the matrix."""
    components, shares = _true_shares(_without_gaps(sums))
    a = shares.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = squared_sums[..., -a:] / components.count[..., None] ** 2
    replicate_shares = _replicate_shares(
        np.repeat(_without_gaps(sums)[:, None], _REPLICATE_BLOCK, axis=1), 0
    )[1]
    # The distance is half the sum of absolute gaps: gaps by 2, their variances by 4.
    gaps = np.abs(shares - components.aim) / 2.0
    with ignore_runtime_warnings():
        # The matrix is common to all images, so its error does not average out.
        shared_variance = np.nan_to_num(np.nanvar(replicate_shares, axis=1))
    noise_bias = absolute_gap_noise_bias(
        gaps, noise / 4.0, np.ones(len(gaps)), shared_variance / 4.0
    )
    return replace(noise_bias, unit_skewness=_skew(shares, np.sign(shares - components.aim)))


def _skew(shares: FloatArray, values: FloatArray) -> FloatArray:
    """Skewness of a distribution of ``values`` with probabilities ``shares``; NaN: no variance.

    Examples
    --------
    One of ten adds -1 and the others 1: (1 - 2 x .1) / sqrt(.1 x .9), to the other side.

    >>> _skew(np.array([[0.9, 0.1]]), np.array([[1.0, -1.0]])).round(4).item()
    -2.6667
    """
    deviations = values - (shares * values).sum(axis=-1, keepdims=True)
    variance, third_moment = ((shares * deviations**power).sum(axis=-1) for power in (2, 3))
    skewness = np.full_like(third_moment, np.nan)
    np.divide(
        third_moment,
        variance**1.5,
        out=skewness,
        where=(shares < 1.0).all(axis=-1) & (variance > 0),
    )
    # Values with the same sign have no variance but are not degenerate: their skewness is 0.
    is_point_symmetric = (shares < 1.0).all(axis=-1) & ~(variance > 0)
    return np.asarray(np.where(is_point_symmetric, 0.0, skewness))


def _build_statistic(function: Callable[[_ShareSums, FloatArray], FloatArray]) -> SumStatistic:
    return SumStatistic(
        _sum_columns,
        lambda sums: function(*_true_shares(sums)),
        finish_replicates=lambda sums, first: function(*_replicate_shares(sums, first)),
    )


SHARE = _build_statistic(_share_of_value)
GAP = _build_statistic(_gap_of_value)
ENTROPY = _build_statistic(_entropy)
DISTANCE = SumStatistic(
    _columns_with_gaps,
    lambda sums: _distance(*_true_shares(_without_gaps(sums))),
    finish_replicates=lambda sums, first: _distance(*_replicate_shares(_without_gaps(sums), first)),
    estimate_noise_bias=_estimate_noise_bias,
)
