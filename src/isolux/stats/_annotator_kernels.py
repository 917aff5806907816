"""The compiled loop of ``annotators``; imported only by the functions that run it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int32]


@njit(nogil=True)
def add_confusions(
    chance: _Floats, starts: _Ints, cell: _Ints, weight: _Floats, counts: _Floats
) -> None:
    """Add to ``counts [annotators × answers, classes]`` each answer, split by its item's chances.

    Answers of item i are ``cell[starts[i] : starts[i + 1]]``, each an annotator and an answer.
    """
    classes = chance.shape[1]
    for i in range(len(starts) - 1):
        for row in range(starts[i], starts[i + 1]):
            for g in range(classes):
                counts[cell[row], g] += chance[i, g] * weight[i]


@njit(nogil=True, fastmath=True)
def one_round(
    log_share: _Floats,
    log_error: _Floats,
    starts: _Ints,
    cell: _Ints,
    weight: _Floats,
    chance: _Floats,
    counts: _Floats,
) -> tuple[float, float]:
    """Update ``chance [items, classes]``, add the new ones to ``counts``."""
    classes = len(log_share)
    logs = np.empty(classes)
    moved, likely = 0.0, 0.0
    for i in range(len(starts) - 1):
        for g in range(classes):
            logs[g] = log_share[g]
        for row in range(starts[i], starts[i + 1]):
            for g in range(classes):
                logs[g] += log_error[cell[row], g]
        top = logs[0]
        for g in range(1, classes):
            top = max(top, logs[g])
        total = 0.0
        for g in range(classes):
            logs[g] = np.exp(logs[g] - top)
            total += logs[g]
        likely += weight[i] * (top + np.log(total))
        for g in range(classes):
            logs[g] /= total
            moved = max(moved, abs(logs[g] - chance[i, g]))
            chance[i, g] = logs[g]
            logs[g] *= weight[i]
        for row in range(starts[i], starts[i + 1]):
            for g in range(classes):
                counts[cell[row], g] += logs[g]
    return moved, likely
