"""A threshold in as few digits as part the same scores: what is printed must decide the same."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import numpy.typing as npt

__all__ = ["parting"]

_FEWEST, _MOST = 6, 17


def parting(threshold: float, scores: npt.NDArray[np.float64], *, falling: bool = False) -> str:
    """Write a threshold so that, read back, it parts these scores as it does.

    Shapes: ``scores`` [n].

    Examples
    --------
    >>> parting(0.12345678, np.array([0.1234561, 0.12345678, 0.9]))
    '0.1234567'
    >>> parting(0.5, np.array([0.1, 0.9]))
    '0.5'
    """
    if not np.isfinite(threshold):
        return f"{threshold:g}"
    known = scores[np.isfinite(scores)]
    passing = np.count_nonzero(known <= threshold if falling else known >= threshold)
    exact = Decimal(threshold)
    for digits in range(_FEWEST, _MOST):
        unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        rounded = exact.quantize(unit, ROUND_CEILING if falling else ROUND_FLOOR)
        for text in (f"{threshold:.{digits}g}", f"{float(rounded):.{digits}g}"):
            at = float(text)
            if np.count_nonzero(known <= at if falling else known >= at) == passing:
                return text
    return repr(float(threshold))
