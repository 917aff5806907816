"""Bootstrap replicates of any statistic, for all groups on the same resampled clusters.

Groups that share people see the same weights, so their differences have the right variance; a
metric of two models on the same people likewise.
"""

from __future__ import annotations

from isolux.stats.resampling.rows import (
    PairSample,
    Ranked,
    ReplicatedRanks,
    replicate_pairs,
    replicate_rankings,
    replicate_ranks,
)
from isolux.stats.resampling.sums import Columns, jackknife_acceleration, replicate_sums

__all__ = [
    "Columns",
    "PairSample",
    "Ranked",
    "ReplicatedRanks",
    "jackknife_acceleration",
    "replicate_pairs",
    "replicate_rankings",
    "replicate_ranks",
    "replicate_sums",
]
