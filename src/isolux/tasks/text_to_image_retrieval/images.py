"""How far other images would move what queries found: the images' clusters are resampled.

An audit's intervals are about other queries. All queries of one database look at the same images,
and a model that likes some images likes them for many queries; that part of chance is told here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import multinomial
from isolux.tasks.text_to_image_retrieval.measures import Zero, skews

__all__ = ["OtherImages"]

_DRAWS = 200


@dataclass(slots=True)
class OtherImages:
    """MaxSkew@K of each query on resampled images, summed over queries.

    Parameters
    ----------
    cluster : [n] int
        Of each image of the database, from 0.
    ks : tuple of int
    zero : {"1/k", "leave out"}
    uniform : bool
        Whether shares are held against equal ones, rather than the database's.
    """

    cluster: IntArray
    ks: tuple[int, ...]
    zero: Zero
    uniform: bool
    weights: FloatArray = field(init=False)
    total: FloatArray = field(init=False)
    alone: FloatArray = field(init=False)
    queries: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        copies = np.ones(int(self.cluster.max(initial=-1)) + 1, dtype=np.int64)
        self.weights = multinomial(np.random.default_rng(0), copies, _DRAWS)
        self.total = np.zeros((len(self.ks), _DRAWS))
        self.alone = np.zeros(len(self.ks))

    def add(self, entries: IntArray, scores: FloatArray, member: FloatArray) -> None:
        """Take one query in: its images, their scores and whose they are ``[n, a]``."""
        order = np.argsort(-scores, kind="stable")
        drawn = self.weights[self.cluster[entries[order]]]  # [n, r]
        whole = member[order].T @ drawn  # [a, r]
        share = whole / np.maximum(whole.sum(axis=0), 1e-12)
        if self.uniform:
            share = np.full_like(share, 1.0 / len(share))
        place = np.cumsum(drawn, axis=0)
        self.queries += 1
        for at, k in enumerate(self.ks):
            stop = int((place < k).sum(axis=0).max(initial=0)) + 1
            taken = np.clip(k - (place[:stop] - drawn[:stop]), 0.0, drawn[:stop])
            counts = member[order[:stop]].T @ taken  # [a, r]
            found = skews(counts.T, k, np.where(share > 0, share, np.nan).T, self.zero)
            most = np.where(np.isnan(found), -np.inf, found).max(axis=1)
            finite = np.isfinite(most)  # a draw may hold none of a short list's images
            if not finite.any():
                continue
            most = np.where(finite, most, most[finite].mean())
            self.total[at] += most
            self.alone[at] += float(most.var(ddof=1))

    def standard_error(self, k: int) -> float:
        """Spread of the mean of MaxSkew@k that queries share, from one set of images to another."""
        if self.queries < 2:
            return float("nan")
        at = self.ks.index(k)
        mean = float((self.total[at] / self.queries).var(ddof=1))
        own = self.alone[at] / self.queries**2
        return float(np.sqrt(max(mean - own, 0.0)))
