"""Many worlds at once, as sums per cluster: what laws about intervals and tests are shown on.

No people and no tables: only how many photos of each group each subject has, and how many of
them the model got right, in every world. Rates are those of ``_draw.py``: beta-binomial
within a subject, with exactly the injected mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isolux.core.errors import SpecError
from isolux_worlds._random_streams import (
    FloatArray,
    IntArray,
    beta_parameters_from_mean_and_icc,
    beta_quantile_from_mean_and_icc,
)

__all__ = ["RateWorlds", "simulate_crossed", "simulate_rates"]


@dataclass(frozen=True, slots=True)
class RateWorlds:
    """Sums per cluster in many worlds.

    Parameters
    ----------
    photos : [worlds, groups, clusters] int
        Photos of the group in the cluster. Zero: the cluster is not in the group.
    successes : [worlds, groups, clusters] int
        How many of them were right.
    """

    photos: IntArray
    successes: IntArray

    def rates(self) -> FloatArray:
        """Observed rate of each group in each world, ``[worlds, groups]``; NaN without photos."""
        n, hits = (x.sum(axis=-1).astype(np.float64) for x in (self.photos, self.successes))
        return np.asarray(np.divide(hits, n, out=np.full_like(n, np.nan), where=n > 0))


def simulate_rates(
    rng: np.random.Generator,
    *,
    groups: int,
    subjects_per_group: int | Sequence[int],
    photos: int | tuple[int, int],
    rates: float | Sequence[float],
    icc: float,
    within_cluster: bool,
    worlds: int,
) -> RateWorlds:
    """Draw many worlds of one attribute.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : int
    subjects_per_group : int, or one for each group
        Each group's own subjects. Within clusters: an int, and the subjects, all told, are
        ``groups`` times it.
    photos : int or (int, int)
        Photos of each subject, or a range drawn from uniformly, ends included.
    rates : float, or one for each group, 0 to 1
        The true rates.
    icc : float, 0 to below 1
        Intra-class correlation between photos of one subject.
    within_cluster : bool
        False: a subject belongs to one group (ancestry); the clusters axis is as long as the
        largest group, and smaller groups end in clusters without photos. True: each photo falls
        in a group at random, equally likely (light), so every cluster may be in every group, and
        the cluster with the same number is the same subject in each.
    worlds : int

    Returns
    -------
    RateWorlds
        ``[worlds, groups, clusters]``.

    Examples
    --------
    >>> made = simulate_rates(np.random.default_rng(0), groups=2, subjects_per_group=30,
    ...     photos=10, rates=(0.8, 0.7), icc=0.3, within_cluster=False, worlds=100)
    >>> made.successes.shape, made.rates().mean(axis=0).round(1).tolist()
    ((100, 2, 30), [0.8, 0.7])
    """
    sizes = np.broadcast_to(np.asarray(subjects_per_group, dtype=np.int64), (groups,))
    means = np.broadcast_to(np.asarray(rates, dtype=np.float64), (groups,))
    _check_simulation_settings(means, icc, sizes, within_cluster=within_cluster)
    if within_cluster:
        total = _draw_photos_per_subject(rng, photos, (worlds, int(sizes.sum())))
        return _simulate_within_clusters(rng, means, total, icc)
    clusters = int(sizes.max())
    total = _draw_photos_per_subject(rng, photos, (worlds, groups, clusters))
    total = total * (np.arange(clusters) < sizes[:, None])
    cluster_rate = np.broadcast_to(means[:, None], total.shape).astype(np.float64)
    if icc:
        a, b = beta_parameters_from_mean_and_icc(np.clip(cluster_rate, 1e-12, 1 - 1e-12), icc)
        cluster_rate = rng.beta(a, b)
    return RateWorlds(total, rng.binomial(total, cluster_rate))


def simulate_crossed(
    rng: np.random.Generator,
    *,
    attributes: int,
    groups: int,
    subjects: int,
    photos: int,
    rate: float,
    icc: float,
    within_cluster: bool,
    worlds: int,
) -> RateWorlds:
    """Draw many worlds in which several attributes group the same answers, none with an effect.

    The null of a family: every attribute's groups have the same true rate, but their sums are
    dependent, because the answers are the same.

    Parameters
    ----------
    attributes, groups, subjects, photos : int
        Attributes, groups of each, subjects all told, photos of each subject.
    rate, icc : float
        The one true rate, and the intra-class correlation.
    within_cluster : bool
        False: subjects are dealt into groups of equal size (to within one), anew for each
        attribute and world. True: each photo falls in a group at random.
    worlds : int

    Returns
    -------
    RateWorlds
        With one more axis: ``[worlds, attributes, groups, subjects]``.
    """
    _check_simulation_settings(np.array([rate]), icc, np.array([subjects]), within_cluster=False)
    subject_rates = beta_quantile_from_mean_and_icc(
        np.array(rate), icc, rng.random((worlds, subjects))
    )
    right = rng.random((worlds, 1, subjects, photos)) < subject_rates[:, None, :, None]
    if within_cluster:
        label = rng.integers(0, groups, (worlds, attributes, subjects, photos), dtype=np.int16)
    else:
        dealt = np.broadcast_to(np.arange(subjects) % groups, (worlds, attributes, subjects))
        label = rng.permuted(dealt, axis=-1)[..., None].astype(np.int16)
    shape = (worlds, attributes, groups, subjects)
    counts, hits = np.empty(shape, np.int64), np.empty(shape, np.int64)
    for group in range(groups):
        is_in_group = np.broadcast_to(label == group, (*label.shape[:-1], photos))
        counts[:, :, group] = is_in_group.sum(axis=-1)
        hits[:, :, group] = (is_in_group & right).sum(axis=-1)
    return RateWorlds(counts, hits)


def _simulate_within_clusters(
    rng: np.random.Generator, means: FloatArray, total: IntArray, icc: float
) -> RateWorlds:
    """Deal each subject's photos ``[worlds, clusters]`` to groups."""
    groups = len(means)
    dealt = rng.multinomial(total, np.full(groups, 1.0 / groups))  # [worlds, clusters, groups]
    split = np.moveaxis(dealt, -1, 1)
    uniform = rng.random(total.shape)
    # Quantiles are dear: one pass for each distinct rate, not for each group.
    distinct, rate_index = np.unique(means, return_inverse=True)
    subject_rates = np.stack(
        [beta_quantile_from_mean_and_icc(p, icc, uniform) for p in distinct], axis=1
    )[:, rate_index]
    return RateWorlds(split, rng.binomial(split, subject_rates))


def _draw_photos_per_subject(
    rng: np.random.Generator, photos: int | tuple[int, int], shape: tuple[int, ...]
) -> IntArray:
    if isinstance(photos, int):
        return np.full(shape, photos, dtype=np.int64)
    return rng.integers(*photos, shape, endpoint=True)


def _check_simulation_settings(
    means: FloatArray, icc: float, sizes: IntArray, *, within_cluster: bool
) -> None:
    if means.min() < 0 or means.max() > 1 or not 0 <= icc < 1:
        raise SpecError(
            "these worlds cannot be drawn",
            expected="rates of 0 to 1, an icc of 0 or more and less than 1",
            found=f"rates {means.min():.4g} to {means.max():.4g}, icc {icc:.4g}",
        )
    if within_cluster and len(set(sizes.tolist())) > 1:
        raise SpecError(
            "groups that share their subjects do not have separate sizes",
            expected="one number as subjects_per_group with within_cluster=True",
            found=str(sizes.tolist()),
        )
