"""Shares of groups among pictures that an instrument judged, its errors undone.

If of those truly g the share T[g, l] is judged l, shares by judgement are p_l = Σ_g T[g, l] s_g;
solving gives the shares s (the matrix method, see ``stats/mislabelled.py``). T was counted on some
people: each replicate takes another draw of its counts, beside other pictures.

What a row adds to the sums, for a values: its judgement [a], 1, whether T is exact, which value is
asked for, T's counts [a·a], the shares aimed at [a]. All but the first are the same in every row,
so a sum over its count gives them back, in any group. For the distance there stands once more
what a picture adds to each share beyond its aim [a], the judge's errors undone: how much these vary
says what chance adds to a mean of absolute gaps.

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

from isolux.io.threads import quietly
from isolux.stats.calibration import chance_of_gaps
from isolux.stats.statistic import Chance, FloatArray, SumStatistic

_SEED, _BLOCK = 7, 256
_SINGULAR = 1e-9
"""The determinant below which a matrix cannot be undone."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Sums ``[..., k]`` read as what they are."""

    judged: FloatArray
    count: FloatArray
    exact: FloatArray
    which: FloatArray
    matrix: FloatArray
    aim: FloatArray

    @classmethod
    def of(cls, sums: FloatArray) -> _Parts:
        a = round((sums.shape[-1] - 2) ** 0.5) - 1
        n = sums[..., a]
        held = np.where(n > 0, n, np.nan)[..., None]
        mean = sums / held
        return cls(
            mean[..., :a],
            n,
            mean[..., a + 1],
            mean[..., a + 2],
            mean[..., a + 3 : a + 3 + a * a].reshape(*sums.shape[:-1], a, a),
            mean[..., a + 3 + a * a :],
        )


def constants(which: int, counts: FloatArray, aim: FloatArray, *, exact: bool) -> list[float]:
    """List what stands in every row beside its judgement: 1, exact, which, T's counts, the aim."""
    return [1.0, float(exact), float(which), *counts.ravel().tolist(), *aim.tolist()]


def _columns(evidence: pl.DataFrame) -> FloatArray:
    """Turn ``judged`` (a place among the values, null: not judged) and ``constants`` to rows."""
    if not evidence.height:
        return np.zeros((0, 6))
    fixed = np.array(evidence["constants"][0].to_list(), dtype=np.float64)
    a = round((len(fixed) - 1) ** 0.5) - 1  # a·a + a + 3 numbers stand there
    code = evidence["judged"]
    known = code.is_not_null().to_numpy()
    out = np.zeros((evidence.height, a + len(fixed)))
    out[:, a:] = fixed
    out[np.flatnonzero(known), code.drop_nulls().to_numpy()] = 1.0
    out[~known] = 0.0
    return out


def _solved(judged: FloatArray, share: FloatArray) -> FloatArray:
    """Solve for true shares and keep them from 0 to 1; NaN where the matrix cannot be undone."""
    turned = np.swapaxes(share, -1, -2)
    known = np.isfinite(turned).all(axis=(-1, -2)) & np.isfinite(judged).all(axis=-1)
    usable = np.asarray(known)
    safe = np.where(usable[..., None, None], turned, np.eye(turned.shape[-1]))
    usable = usable & (np.abs(np.linalg.det(safe)) > _SINGULAR)
    safe = np.where(usable[..., None, None], safe, np.eye(turned.shape[-1]))
    found = np.linalg.solve(safe, np.nan_to_num(judged)[..., None])[..., 0]
    cut = np.clip(found, 0.0, 1.0)
    whole = cut.sum(axis=-1, keepdims=True)
    cut = np.divide(cut, whole, out=np.full_like(cut, np.nan), where=whole > 0)
    return np.where(usable[..., None], cut, np.nan)


def _row_shares(matrix: FloatArray) -> FloatArray:
    """Divide counts by what is truly of each value; NaN where that is none."""
    rows = matrix.sum(axis=-1, keepdims=True)
    share = np.full_like(matrix, np.nan)
    np.divide(matrix, rows, out=share, where=np.nan_to_num(rows) > 0)
    return share


def _true_shares(sums: FloatArray) -> tuple[_Parts, FloatArray]:
    parts = _Parts.of(sums)
    return parts, _solved(parts.judged, _row_shares(parts.matrix))


def _drawn_shares(sums: FloatArray, first: int) -> tuple[_Parts, FloatArray]:
    """As ``_true_shares`` of ``[g, r, k]``, each replicate with its own draw of the counts."""
    parts = _Parts.of(sums)
    held = np.argwhere(parts.count > 0)
    if not len(held) or parts.exact[tuple(held[0])] > 0.5:
        return parts, _solved(parts.judged, _row_shares(parts.matrix))
    counts = parts.matrix[tuple(held[0])]
    # A case more, shared out: a mistake that was never seen is not impossible.
    draws = _drawn_matrices(counts + 1.0 / len(counts), first, sums.shape[1])
    return parts, _solved(parts.judged, np.broadcast_to(draws, (*sums.shape[:2], *counts.shape)))


def _drawn_matrices(counts: FloatArray, first: int, n: int) -> FloatArray:
    """Draw the matrices of replicates ``first`` to ``first + n``: ``[n, a, a]``."""
    blocks = range(first // _BLOCK, (first + n - 1) // _BLOCK + 1)
    drawn = []
    for block in blocks:
        rng = np.random.default_rng([_SEED, block])
        drawn.append(np.stack([rng.dirichlet(row, _BLOCK) for row in counts], axis=1))
    start = first - blocks[0] * _BLOCK
    return np.concatenate(drawn)[start : start + n]


def _asked(parts: _Parts, shares: FloatArray) -> FloatArray:
    which = np.nan_to_num(np.round(parts.which)).astype(np.int64)
    return np.take_along_axis(shares, which[..., None], axis=-1)[..., 0]


def _share(parts: _Parts, shares: FloatArray) -> FloatArray:
    return _asked(parts, shares)


def _gap(parts: _Parts, shares: FloatArray) -> FloatArray:
    return _asked(parts, shares - parts.aim)


def _entropy(parts: _Parts, shares: FloatArray) -> FloatArray:
    del parts
    some = np.nan_to_num(shares) > 0
    logs = np.where(some, shares, 1.0) * np.log(np.where(some, shares, 1.0))
    found = -logs.sum(axis=-1) / np.log(shares.shape[-1])
    return np.where(np.isnan(shares).any(axis=-1), np.nan, np.minimum(found, 1.0))


def _distance(parts: _Parts, shares: FloatArray) -> FloatArray:
    found: FloatArray = np.abs(shares - parts.aim).sum(axis=-1) / 2.0
    return found


def _columns_with_gaps(evidence: pl.DataFrame) -> FloatArray:
    """Add to ``_columns`` what each picture adds to each share beyond its aim."""
    plain = _columns(evidence)
    if not evidence.height:
        return np.zeros((0, 7))
    first = _Parts.of(plain.sum(axis=0))
    share = _row_shares(first.matrix)
    usable = np.isfinite(share).all() and abs(np.linalg.det(share)) > _SINGULAR
    undone = np.linalg.inv(share) if usable else np.zeros_like(share)
    a = len(first.aim)
    gaps = plain[:, :a] @ undone - np.where(plain[:, a : a + 1] > 0, first.aim, 0.0)
    return np.concatenate([plain, gaps], axis=1)


def _without_gaps(sums: FloatArray) -> FloatArray:
    values = round((sums.shape[-1] - 0.75) ** 0.5 - 1.5)  # a·a + 3 a + 3 numbers
    return sums[..., : sums.shape[-1] - values]


def _chance(sums: FloatArray, squares: FloatArray) -> Chance:
    """Tell what chance may have added: that of the pictures, and of the matrix's counts."""
    parts, shares = _true_shares(_without_gaps(sums))
    a = shares.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = squares[..., -a:] / parts.count[..., None] ** 2
    drawn = _drawn_shares(np.repeat(_without_gaps(sums)[:, None], _BLOCK, axis=1), 0)[1]
    # Half the sum of absolute gaps: of half as large ones, with a quarter of their variance.
    gaps = np.abs(shares - parts.aim) / 2.0
    with quietly():
        shared = np.nan_to_num(np.nanvar(drawn, axis=1))
    found = chance_of_gaps(gaps, noise / 4.0, np.ones(len(gaps)), shared / 4.0)
    return replace(found, skew=_skew(shares, np.sign(shares - parts.aim)))


def _skew(shares: FloatArray, adds: FloatArray) -> FloatArray:
    """Return the skewness of numbers that are ``adds`` so often; NaN where they do not vary.

    Examples
    --------
    One of ten adds -1 and the others 1: (1 - 2 x .1) / sqrt(.1 x .9), to the other side.

    >>> _skew(np.array([[0.9, 0.1]]), np.array([[1.0, -1.0]])).round(4).item()
    -2.6667
    """
    left = adds - (shares * adds).sum(axis=-1, keepdims=True)
    variance, third = ((shares * left**power).sum(axis=-1) for power in (2, 3))
    found = np.full_like(third, np.nan)
    np.divide(third, variance**1.5, out=found, where=(shares < 1.0).all(axis=-1) & (variance > 0))
    # Two values that are off to one side alike add nothing; only one value is no variation.
    even = (shares < 1.0).all(axis=-1) & ~(variance > 0)
    return np.asarray(np.where(even, 0.0, found))


def _statistic(of: Callable[[_Parts, FloatArray], FloatArray]) -> SumStatistic:
    return SumStatistic(
        _columns,
        lambda sums: of(*_true_shares(sums)),
        drawn=lambda sums, first: of(*_drawn_shares(sums, first)),
    )


SHARE = _statistic(_share)
GAP = _statistic(_gap)
ENTROPY = _statistic(_entropy)
DISTANCE = SumStatistic(
    _columns_with_gaps,
    lambda sums: _distance(*_true_shares(_without_gaps(sums))),
    drawn=lambda sums, first: _distance(*_drawn_shares(_without_gaps(sums), first)),
    chance=_chance,
)
