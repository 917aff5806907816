"""Whether confidences belong to the answers that they stand beside.

A model that knows anything is surer where it is right. Confidences of other people, or of the next
row's, are as high where the answer is wrong; calibration and curves made of them say nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.roc import auc
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution

__all__ = ["confidences_of_answers"]

_LEAST = 10  # right answers, and wrong ones
_CHANCE, _SURE = 2.0, 6.0
_VISIBLE = 0.04  # of the area: noise above which a weak relation would not be seen
_SHIFTS = (-1, 1, -2, 2)


def confidences_of_answers(units: pl.DataFrame, confidence: pl.Series) -> list[Caution]:
    """Caution where a model is no surer of its right answers than of its wrong ones.

    Examples
    --------
    >>> sure = pl.Series([0.9, 0.5] * 400)
    >>> people = pl.DataFrame({"model": "m", "correct": [True, True, False, False] * 200})
    >>> print(confidences_of_answers(people, sure)[0][:85])
    'm' is no more confident when it is right than when it is wrong (area under the curve
    """
    rows = units.select("model", "correct", sure=confidence)
    told = []
    for (model,), mine in rows.group_by(["model"], maintain_order=True):
        known = mine.drop_nulls()
        right = known["correct"].to_numpy()
        sure = known["sure"].cast(pl.Float64).to_numpy()
        few = min(int(right.sum()), int((~right).sum()))
        if few < _LEAST or known["sure"].n_unique() == 1:
            continue
        area, noise = _area(sure, right)
        if area > 0.5 + _CHANCE * noise:
            continue
        _refuse_shifted(str(model), sure, right)
        if noise <= _VISIBLE:
            told.append(
                Caution(
                    f"{model!r} is no more confident when it is right than when it is wrong (area "
                    f"under the curve {area:.2f}; by chance 0.50). Are these the confidences of "
                    "these answers?"
                )
            )
    return told


def _area(sure: FloatArray, right: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Tell how well confidences part right answers from wrong ones, and its noise by chance."""
    p, q = int(right.sum()), int((~right).sum())
    area = float(auc(sure, right, np.ones(len(sure))))
    return area, float(np.sqrt((p + q + 1) / (12.0 * p * q)))


def _refuse_shifted(model: str, sure: FloatArray, right: npt.NDArray[np.bool_]) -> None:
    n = len(sure)
    for shift in _SHIFTS:
        ahead, behind = max(shift, 0), max(-shift, 0)
        moved, own = right[behind : n - ahead], right[ahead : n - behind]
        area, noise = _area(sure[ahead : n - behind], moved)
        if area > 0.5 + _SURE * noise and _beyond_own(sure[ahead : n - behind], moved, own):
            raise JoinError(
                f"the confidences of {model!r} belong to other rows",
                expected="each confidence in the row of its answer",
                found=f"they tell right answers from wrong ones in the row {abs(shift)}"
                f" {'before' if shift > 0 else 'after'} (area under the curve {area:.2f}), and not"
                " in their own",
                hint="a row was lost or put in: join by an id that names people",
            )


def _beyond_own(sure: FloatArray, moved: npt.NDArray[np.bool_], own: npt.NDArray[np.bool_]) -> bool:
    """Tell whether it is so among the right answers alone, or among the wrong ones."""
    for here in (own, ~own):
        if min(int(moved[here].sum()), int((~moved[here]).sum())) >= _LEAST:
            area, noise = _area(sure[here], moved[here])
            if area > 0.5 + _CHANCE * noise:
                return True
    return False
