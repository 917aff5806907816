"""A measure of another package: the Gini coefficient of the groups' values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.core.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="Gini coefficient",
    summary="Half the mean absolute difference between any two groups, over their mean.",
    references=(
        Reference(
            key="gini1912",
            citation="Gini, C. (1912). Variabilità e mutabilità. Bologna: Cuppini.",
        ),
    ),
    direction="lower",
    parity_value=0.0,
    high=1.0,
    unit="",
    interval="percentile",
    nonnegative=True,
)


def measure(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Measure how unequally the groups are served.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values, at least 0; NaN: not judged.

    Returns
    -------
    ndarray [...]
        0 (alike) to 1; NaN with fewer than two groups, or where all are 0.

    Examples
    --------
    >>> measure([0.25, 0.75]).item()
    0.25
    """
    array = np.asarray(values, dtype=np.float64)
    judged = ~np.isnan(array)
    n = judged.sum(axis=-1)
    both = judged[..., :, None] & judged[..., None, :]
    gaps = np.where(both, np.abs(array[..., :, None] - array[..., None, :]), 0.0).sum((-1, -2))
    below = 2.0 * n * np.where(judged, array, 0.0).sum(axis=-1)
    defined = (n > 1) & (below > 0.0)
    return np.asarray(np.divide(gaps, below, out=np.full(n.shape, np.nan), where=defined))
