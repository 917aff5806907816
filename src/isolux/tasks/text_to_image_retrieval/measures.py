"""Measures of groups in a ranked list, their expectation by chance, and resampled images."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import draw_multinomial_weights

Zero = Literal["1/k", "leave out"]


def cumulative_counts(
    scores: FloatArray, member: FloatArray, *, ties: str = "shared"
) -> FloatArray:
    """Count each group among the first 1, 2, …, n entries by falling score.

    Shapes: ``scores`` [n], ``member`` [n, a]; returns [n, a].

    Examples
    --------
    The second and third entry tie, so the second place is half of either:

    >>> cumulative_counts(np.array([3.0, 2.0, 2.0]), np.array([[1.0, 0], [1, 0], [0, 1]])).tolist()
    [[1.0, 0.0], [1.5, 0.5], [2.0, 1.0]]
    """
    # Stable, so that ties keep the order of the database, for ties="first".
    order = np.argsort(-scores, kind="stable")
    cumulative: FloatArray = np.cumsum(member[order], axis=0)
    if ties == "first" or not len(scores):
        return cumulative
    sorted_scores = scores[order]
    # NaN differs from everything, so that the first block starts at 0.
    starts = np.flatnonzero(np.diff(sorted_scores, prepend=np.nan) != 0)
    sizes = np.diff(np.append(starts, len(sorted_scores)))
    if (sizes == 1).all():
        return cumulative
    preceding_counts = np.where((starts > 0)[:, None], cumulative[starts - 1], 0.0)
    block_counts = cumulative[starts + sizes - 1] - preceding_counts
    block_index = np.repeat(np.arange(len(starts)), sizes)
    # Tied images share their places equally: the expectation over their random order.
    block_share = (np.arange(len(sorted_scores)) - starts[block_index] + 1.0) / sizes[block_index]
    return np.asarray(
        preceding_counts[block_index] + block_share[:, None] * block_counts[block_index]
    )


def group_skews(counts: FloatArray, k: int, expected: FloatArray, zero: Zero) -> FloatArray:
    """Compute the log of each group's share of the first k over its expected share.

    Shapes: ``counts`` [..., a], ``expected`` [..., a].

    Examples
    --------
    Three of four where half were expected: log(1.5). One of four: log(.5).

    >>> group_skews(np.array([3.0, 1.0]), 4, np.array([0.5, 0.5]), "1/k").round(4).tolist()
    [0.4055, -0.6931]
    """
    is_present = counts > 0
    # The log of 0 is infinite: an absent group counts as one image (zero="1/k") or is left out.
    share = np.where(is_present, counts, 1.0) / k
    log_ratio = np.log(share / expected)
    return log_ratio if zero == "1/k" else np.where(is_present, log_ratio, np.nan)


def ndkl(counts: FloatArray, expected: FloatArray) -> FloatArray:
    """Average the Kullback-Leibler divergence of every top i, weighed by 1 / log2(i + 1).

    Shapes: ``counts`` [..., n, a], ``expected`` [a]; returns [...].

    Examples
    --------
    A list a, b of two halves: top 1 is all a (log 2), top 2 is even (0). The weights are 1 and
    1 / log2(3).

    >>> ndkl(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 0.5])).round(4).item()
    0.425
    """
    positions = np.arange(1.0, counts.shape[-2] + 1.0)
    share = counts / positions[:, None]
    # 0 log 0 is 0: an absent group adds nothing to the divergence.
    ratio = np.where(share > 0, share / expected, 1.0)
    divergence = (share * np.log(ratio)).sum(axis=-1)
    # Geyik et al. (2019), section 3.2: the discount of NDCG, divided by its sum.
    weight = 1.0 / np.log2(positions + 1.0)
    return np.asarray((divergence * weight).sum(axis=-1) / weight.sum())


def count_bias(counts: FloatArray, group_a: int, group_b: int) -> FloatArray:
    """Difference of two groups' counts over their sum; 0 where neither is there (Wang et al.).

    Examples
    --------
    >>> count_bias(np.array([[3.0, 1.0], [0.0, 0.0]]), 0, 1).tolist()
    [0.5, 0.0]
    """
    a, b = counts[..., group_a], counts[..., group_b]
    return np.divide(a - b, a + b, out=np.zeros_like(a), where=a + b > 0)


Cut = tuple[int, int]
"""Images certainly among the first K, and how many share the other places (0: no tie)."""
_Ints = npt.NDArray[np.int64]
_N_DRAWS = 2000
"""Random orders of an expectation: its standard error is about a fiftieth (1 / √2000) of one
list's standard deviation."""
_N_ORDERS = 200  # NDKL needs whole orders, which cost more


def find_cut(scores: FloatArray, k: int) -> Cut:
    """Count the images certainly among the first k, and those that share the other places.

    Examples
    --------
    One image is first for sure; three share the second place. The first four have no such tie.

    >>> find_cut(np.array([3.0, 2.0, 2.0, 2.0, 1.0]), 2)
    (1, 3)
    >>> find_cut(np.array([3.0, 2.0, 2.0, 2.0, 1.0]), 4)
    (4, 0)
    """
    # A partition finds the k-th largest score without sorting the whole list.
    kth_score = np.partition(scores, len(scores) - k)[len(scores) - k]
    n_above, n_tied = int((scores > kth_score).sum()), int((scores == kth_score).sum())
    return (k, 0) if n_above + n_tied == k else (n_above, n_tied)


def count_ties(scores: FloatArray) -> tuple[int, ...]:
    """Count the images of each score, highest first; empty where no two images tie.

    Examples
    --------
    >>> count_ties(np.array([1.0, 3.0, 1.0])), count_ties(np.array([1.0, 3.0, 2.0]))
    ((1, 2), ())
    """
    sizes = np.unique(-scores, return_counts=True)[1]
    return () if (sizes == 1).all() else tuple(sizes.tolist())


@lru_cache(maxsize=256)
def expected_max_skew(
    patterns: tuple[tuple[float, ...], ...],
    n_per_pattern: tuple[int, ...],
    expected: tuple[float, ...],
    k: int,
    zero: Zero,
    cut: Cut,
) -> float:
    """Estimate the mean of MaxSkew@K over random orders.

    Examples
    --------
    One of two entries is drawn: its group has all of the top 1, so MaxSkew@1 is log 2 for sure.
    Where the two tie, each has half of it: 0.

    >>> two = ((1.0, 0.0), (0.0, 1.0)), (1, 1), (0.5, 0.5)
    >>> round(expected_max_skew(*two, 1, "1/k", (1, 0)), 4)
    0.6931
    >>> expected_max_skew(*two, 1, "1/k", (0, 2))
    0.0
    """
    # A fixed seed: chance is the same for all models and in every run.
    rng = np.random.default_rng(0)
    available = np.array(n_per_pattern, dtype=np.int64)
    n_certain, n_sharing = cut
    # Images above the tie are drawn first; the tied ones share the remaining places equally.
    n_drawn = rng.multivariate_hypergeometric(available, n_certain, size=_N_DRAWS).astype(
        np.float64
    )
    if n_sharing:
        remaining = available - n_drawn.astype(np.int64)
        n_drawn += (
            (k - n_certain) / n_sharing * _draw_without_replacement(rng, remaining, n_sharing)
        )
    sampled_skews = group_skews(n_drawn @ np.array(patterns), k, np.array(expected), zero)
    # NaN: a group without images in the list, or one that is left out.
    return float(np.nanmax(sampled_skews, axis=1).mean())


def _draw_without_replacement(rng: np.random.Generator, remaining: _Ints, size: int) -> _Ints:
    """Draw entries without replacement from the remaining ones of each pattern ``[r, a]``."""
    sample = np.zeros_like(remaining)
    n_other, n_needed = remaining.sum(axis=1), np.full(len(remaining), size, dtype=np.int64)
    for pattern in range(remaining.shape[1]):
        n_other = n_other - remaining[:, pattern]
        # Pattern by pattern, since numpy's multivariate version takes one population for all draws.
        sample[:, pattern] = rng.hypergeometric(remaining[:, pattern], n_other, n_needed)
        n_needed = n_needed - sample[:, pattern]
    return sample


@lru_cache(maxsize=256)
def expected_ndkl(
    patterns: tuple[tuple[float, ...], ...],
    n_per_pattern: tuple[int, ...],
    expected: tuple[float, ...],
    sizes: tuple[int, ...] = (),
) -> float:
    """Estimate the mean of NDKL over random orders; ``sizes`` are those of ``count_ties``."""
    rng = np.random.default_rng(0)
    rows, shares = np.array(patterns), np.array(expected)
    entry_patterns = np.repeat(np.arange(len(rows)), n_per_pattern)
    of_run = sizes or (1,) * len(entry_patterns)
    # Scores with the same pattern of ties as the query's own.
    ranked = np.repeat(-np.arange(len(of_run), dtype=np.float64), of_run)
    sampled_ndkl = [
        float(ndkl(cumulative_counts(ranked, rows[rng.permutation(entry_patterns)]), shares))
        for _ in range(_N_ORDERS)
    ]
    return float(np.mean(sampled_ndkl))


_N_IMAGE_DRAWS = 200


@dataclass(slots=True)
class ResampledImages:
    """MaxSkew@K of each query on resampled images, summed over queries.

    Parameters
    ----------
    cluster : [n] int
        Of each image of the database, from 0.
    ks : tuple of int
    zero : {"1/k", "leave out"}
    is_uniform : bool
        Whether shares are compared with equal ones, rather than the database's.
    """

    cluster: IntArray
    ks: tuple[int, ...]
    zero: Zero
    is_uniform: bool
    weights: FloatArray = field(init=False)
    max_skew_sum: FloatArray = field(init=False)
    query_variance: FloatArray = field(init=False)
    n_queries: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        multiplicity = np.ones(int(self.cluster.max(initial=-1)) + 1, dtype=np.int64)
        self.weights = draw_multinomial_weights(
            np.random.default_rng(0), multiplicity, _N_IMAGE_DRAWS
        )
        self.max_skew_sum = np.zeros((len(self.ks), _N_IMAGE_DRAWS))
        self.query_variance = np.zeros(len(self.ks))

    def add(self, entries: IntArray, scores: FloatArray, member: FloatArray) -> None:
        """Add one query: its images, their scores and their groups ``[n, a]``."""
        order = np.argsort(-scores, kind="stable")
        # A cluster's weight is how often it was drawn: images count that many times in the list.
        image_weights = self.weights[self.cluster[entries[order]]]  # [n, r]
        group_weights = member[order].T @ image_weights  # [a, r]
        # Expected shares are resampled as well: they are those of the sampled images.
        share = group_weights / np.maximum(group_weights.sum(axis=0), 1e-12)
        if self.is_uniform:
            share = np.full_like(share, 1.0 / len(share))
        cumulative_weight = np.cumsum(image_weights, axis=0)
        self.n_queries += 1
        for k_index, k in enumerate(self.ks):
            # The longest prefix that any draw needs to collect k images.
            stop = int((cumulative_weight < k).sum(axis=0).max(initial=0)) + 1
            included_weights = np.clip(
                k - (cumulative_weight[:stop] - image_weights[:stop]), 0.0, image_weights[:stop]
            )
            counts = member[order[:stop]].T @ included_weights  # [a, r]
            sampled_skews = group_skews(
                counts.T, k, np.where(share > 0, share, np.nan).T, self.zero
            )
            max_skew = np.where(np.isnan(sampled_skews), -np.inf, sampled_skews).max(axis=1)
            is_finite = np.isfinite(max_skew)  # a sample may contain none of a short list's images
            # Draws without a value take the mean of the others, so that none drops out of the sums.
            if not is_finite.any():
                continue
            max_skew = np.where(is_finite, max_skew, max_skew[is_finite].mean())
            self.max_skew_sum[k_index] += max_skew
            self.query_variance[k_index] += float(max_skew.var(ddof=1))

    def standard_error(self, k: int) -> float:
        """Return the standard error of mean MaxSkew@k from the images, which all queries share."""
        if self.n_queries < 2:
            return float("nan")
        k_index = self.ks.index(k)
        mean_variance = float((self.max_skew_sum[k_index] / self.n_queries).var(ddof=1))
        # Resampled images move the mean by what queries share and by independent parts, which the
        # spread between queries contains already.
        independent_variance = self.query_variance[k_index] / self.n_queries**2
        # The difference of two estimates may fall below 0.
        return float(np.sqrt(max(mean_variance - independent_variance, 0.0)))
