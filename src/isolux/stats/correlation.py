"""Correlation of bootstrap replicates: what groups, or models, share on resampled clusters."""

from __future__ import annotations

import numpy as np

from isolux.io.threads import quietly
from isolux.stats.statistic import FloatArray


def correlation_matrix(replicates: FloatArray) -> FloatArray:
    """Correlate the rows of ``[g, r]`` with one another, ``[g, g]``; 0 where one does not vary.

    Examples
    --------
    >>> correlation_matrix(np.array([[1.0, 2, 3], [3, 2, 1], [1, 1, 1]])).round(6).tolist()
    [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    unit = _unit(replicates)
    return np.asarray(unit @ unit.T)


def paired_correlation(a: FloatArray, b: FloatArray) -> FloatArray:
    """Correlate each row of ``a [n, r]`` with the same row of ``b``, ``[n]``.

    Examples
    --------
    >>> one = np.array([[1.0, 2, 3], [1, 1, 1]])
    >>> paired_correlation(one, one[:, ::-1]).round(6).tolist()
    [-1.0, 0.0]
    """
    return np.asarray((_unit(a) * _unit(b)).sum(axis=1))


def _unit(rows: FloatArray) -> FloatArray:
    """Centre rows and bring them to length 1; a replicate without a value adds nothing."""
    with quietly():  # a row without any value: zeros, as meant
        centred = np.nan_to_num(rows - np.nanmean(rows, axis=1, keepdims=True))
    norm = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(centred, norm, out=np.zeros_like(centred), where=norm > 0))
