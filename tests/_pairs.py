"""Pairs as the statistics of verification read them."""

from __future__ import annotations

import numpy as np

from isolux.stats.statistic import UnitPairs
from isolux.stats.verification import sort_pairs_by_descending_similarity


def sorted_pairs(similarity, genuine, first, second, *, far=np.nan, threshold=np.nan):
    order, falls, kind = sort_pairs_by_descending_similarity(similarity, genuine)
    return UnitPairs(falls, kind, first[order], second[order], far, threshold)
