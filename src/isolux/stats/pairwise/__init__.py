"""Distances between pairs of vectors, and a two-dimensional map of the vectors (t-SNE).

The diversity of faces as FairFace shows it: the distribution of the L1 distances between the
embeddings of two faces (Figure 4), and the embeddings themselves, laid out by t-SNE (Figure 3).
``description`` plots both by group. No n × n matrix is computed: above a number of pairs a seeded
sample is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import InputError
from isolux.core.extras import import_optional

METRICS = ("L1", "L2", "cosine")
"""Sum of absolute differences; length of the difference; 1 − cosine of the angle."""

MAX_PAIRS = 400_000
"""Up to this many pairs, all are measured; of more, this many are sampled."""

_PERPLEXITY = 30.0  # scikit-learn's default; van der Maaten & Hinton (2008) suggest 5 to 50
_MIN_MAP_POINTS = 4  # vectors below which no map is made


@dataclass(frozen=True, slots=True)
class Distances:
    """Distances of the pairs of some vectors.

    Parameters
    ----------
    values : [3, measured] float
        ``METRICS`` in rows; columns are pairs.
    pairs : int
        How many pairs there are.
    is_sampled : bool
        Whether the measured ones are a sample with replacement: a share estimated from it has a
        standard error of at most ½ / √measured: 0.08 % at 400,000.
    same_subject_share : float or None
        Share of the measured pairs that are two photos of one subject; None: no subjects were
        given, or there is no pair.
    """

    values: npt.NDArray[np.float64]
    pairs: int
    is_sampled: bool
    same_subject_share: float | None = None

    def quantiles(self, metric: str, shares: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the quantiles of one metric (linear between order statistics); NaN: no pair."""
        values = self.values[METRICS.index(metric)]
        if not values.size:
            return np.full(np.shape(shares), np.nan)
        return np.asarray(np.quantile(values, np.asarray(shares, dtype=np.float64)))


def sample_pairwise_distances(
    vectors: npt.NDArray[Any],
    *,
    subject: npt.NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Distances:
    """Measure the distances between vectors.

    Shapes: ``vectors`` [n, d], ``subject`` [n].
    FairFace (Kärkkäinen & Joo 2021), "Data Coverage and Diversity", Figure 4.
    """
    from isolux.stats.pairwise.distance_kernels import fill_l1_l2_cosine_distances

    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(
            "these are not vectors",
            expected="finite numbers of shape [n, d]",
            found=f"{vectors.dtype} of shape {list(vectors.shape)}",
        )
    n = len(rows)
    total = n * (n - 1) // 2
    is_sampled = total > MAX_PAIRS
    if is_sampled:
        rng = np.random.default_rng(seed)
        first = rng.integers(n, size=MAX_PAIRS)
        second = rng.integers(n - 1, size=MAX_PAIRS)
        second += second >= first  # uniform over all other vectors
    else:
        first, second = np.triu_indices(n, 1)
    values = np.empty((3, len(first)))
    fill_l1_l2_cosine_distances(rows, first, second, values)
    same_subject_share = None
    if subject is not None and len(first):
        same_subject_share = float(np.mean(subject[first] == subject[second]))
    return Distances(values, total, is_sampled, same_subject_share)


def map_to_plane_by_tsne(
    vectors: npt.NDArray[Any], *, seed: int = 0
) -> npt.NDArray[np.float64] | None:
    """Map vectors to the plane by t-SNE of their directions.

    Shapes: ``vectors`` [n, d].
    van der Maaten, L. & Hinton, G. (2008).
    """
    if len(vectors) < _MIN_MAP_POINTS:
        return None
    extra = {"package": "scikit-learn", "extra": "learn", "purpose": "a map of vectors (t-SNE)"}
    pca = import_optional("sklearn.decomposition", **extra).PCA
    tsne = import_optional("sklearn.manifold", **extra).TSNE
    directions = np.asarray(vectors, dtype=np.float64)
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    width = min(50, *directions.shape)
    # van der Maaten & Hinton (2008): principal components first, which is faster in high d.
    if directions.shape[1] > width:
        directions = pca(
            n_components=width, svd_solver="randomized", random_state=seed
        ).fit_transform(directions)
    if not np.ptp(directions, axis=0).max() > 0.0:
        return np.zeros((len(directions), 2))
    if directions.shape[1] > 1:
        start = pca(n_components=2, random_state=seed).fit_transform(directions)
    else:
        start = np.column_stack([directions[:, 0], np.zeros(len(directions))])
    # t-SNE needs a small initial scale: 1e-4 is that of its authors and of scikit-learn.
    start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
    coordinates = tsne(
        n_components=2,
        # Barnes–Hut t-SNE uses 3 × perplexity neighbours, of n - 1.
        perplexity=min(_PERPLEXITY, (len(directions) - 1) / 3),
        init=start,
        learning_rate="auto",
        random_state=seed,
        n_jobs=1,
    ).fit_transform(directions)
    return np.asarray(coordinates, dtype=np.float64)
