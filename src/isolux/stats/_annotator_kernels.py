"""The compiled loop of ``annotators``; imported only by the functions that run it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int32]


@njit(nogil=True)
def add_posterior_confusion_counts(
    posterior: _Floats, starts: _Ints, cell: _Ints, weight: _Floats, counts: _Floats
) -> None:
    """Add each label's posterior to ``counts [annotators × labels, classes]``.

    Labels of item i are ``cell[starts[i] : starts[i + 1]]``, each an annotator and a label.
    """
    classes = posterior.shape[1]
    for i in range(len(starts) - 1):
        for row in range(starts[i], starts[i + 1]):
            for g in range(classes):
                counts[cell[row], g] += posterior[i, g] * weight[i]


# fastmath excludes NaN and infinity: the caller bounds probabilities below at 1e-300.
@njit(nogil=True, fastmath=True)
def update_posteriors_em(
    log_class_share: _Floats,
    log_confusion: _Floats,
    starts: _Ints,
    cell: _Ints,
    weight: _Floats,
    posterior: _Floats,
    counts: _Floats,
) -> tuple[float, float]:
    """Update ``posterior [items, classes]``, and add it to ``counts``: one EM step."""
    classes = len(log_class_share)
    log_posterior = np.empty(classes)
    max_change, log_likelihood = 0.0, 0.0
    for i in range(len(starts) - 1):
        for g in range(classes):
            log_posterior[g] = log_class_share[g]
        for row in range(starts[i], starts[i + 1]):
            for g in range(classes):
                log_posterior[g] += log_confusion[cell[row], g]
        # Subtract the largest log: with many labels per item, exponentials would underflow.
        max_log = log_posterior[0]
        for g in range(1, classes):
            max_log = max(max_log, log_posterior[g])
        total = 0.0
        for g in range(classes):
            log_posterior[g] = np.exp(log_posterior[g] - max_log)
            total += log_posterior[g]
        log_likelihood += weight[i] * (max_log + np.log(total))
        for g in range(classes):
            log_posterior[g] /= total
            max_change = max(max_change, abs(log_posterior[g] - posterior[i, g]))
            posterior[i, g] = log_posterior[g]
            # Item weights enter the expected counts only: the posterior itself must sum to 1.
            log_posterior[g] *= weight[i]
        for row in range(starts[i], starts[i + 1]):
            for g in range(classes):
                counts[cell[row], g] += log_posterior[g]
    return max_change, log_likelihood
