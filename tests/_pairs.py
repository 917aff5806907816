"""Pairs as the statistics of verification read them."""

from __future__ import annotations

import numpy as np

from isolux.stats.statistic import Pairs
from isolux.stats.verification import falling_order


def sorted_pairs(similarity, genuine, first, second, *, far=np.nan, threshold=np.nan):
    order, falls, kind = falling_order(similarity, genuine)
    return Pairs(falls, kind, first[order], second[order], far, threshold)
