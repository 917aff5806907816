"""The capital of a bet against a gap of 0 alone, as ``watched`` gives it, without the rest."""

from __future__ import annotations

import numpy as np

from isolux.stats.sequential_tests import schedule_bet_starts_and_weights
from isolux.stats.sequential_tests.betting_kernels import mixture_capital_by_snapshot


def e_values(difference, look, n_looks):
    ends = np.searchsorted(look, np.arange(n_looks), side="right").astype(np.int64)
    values = np.ascontiguousarray(difference, dtype=np.float64)
    return mixture_capital_by_snapshot(
        values, ends, *schedule_bet_starts_and_weights(n_looks), np.zeros(1)
    )[:, 0]
