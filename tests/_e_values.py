"""The capital of a bet against a gap of 0 alone, as ``watched`` gives it, without the rest."""

from __future__ import annotations

import numpy as np

from isolux.stats.sequential_tests import schedule_starts
from isolux.stats.sequential_tests.betting_kernels import capitals


def e_values(difference, look, n_looks):
    ends = np.searchsorted(look, np.arange(n_looks), side="right").astype(np.int64)
    values = np.ascontiguousarray(difference, dtype=np.float64)
    return capitals(values, ends, *schedule_starts(n_looks), np.zeros(1))[0][:, 0]
