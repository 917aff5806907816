"""Many worlds at once through the product's own functions: worlds are groups of one design.

A coverage law needs thousands of data sets. Here the groups of a batch of worlds lie side by side
in one design and share the bootstrap's weights, so the batch costs what one audit of as many
groups does. Worlds of one batch share weights, not data; several batches with different seeds keep
the shared weights from mattering.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from isolux.core.info import Metric
from isolux.core.spec import Bootstrap, ComparisonSettings
from isolux.groups.estimates import Estimates, Group, Measure
from isolux.groups.interval_methods import compute_intervals_and_methods, standard_error
from isolux.groups.measure import _count_clusters
from isolux.stats.cluster_sums import ClusterSums, build_cluster_sums
from isolux.stats.intervals import Interval
from isolux.stats.resampling.sums import StatisticColumns, replicate_sum_statistics
from isolux.stats.statistic import MEAN
from isolux_worlds.populations.rates import RateWorlds

ACCURACY = Metric(name="accuracy", title="Accuracy", definition="share right", direction="higher")
RECALL = Metric(name="recall", title="Recall", definition="share found", direction="higher")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rates of worlds × groups and what rests on them: ``[worlds, groups, …]``."""

    design: ClusterSums
    value: np.ndarray
    replicates: np.ndarray
    se: np.ndarray
    clusters: np.ndarray
    measure: Measure


def a_mean(first: int, metric: Metric = ACCURACY, model: str = "m") -> Measure:
    """Describe the mean whose sum and count are columns ``first`` and ``first + 1``."""
    columns = StatisticColumns(MEAN, first, first + 2)
    mean = (first, first + 1)
    return Measure(model, "classification", metric.name, None, None, metric, columns, mean)


def worlds_as_groups(worlds: RateWorlds, *, shared: bool) -> ClusterSums:
    """Lay worlds side by side; ``shared``: cluster c is one subject in all groups of a world."""
    n_worlds, n_groups, n_clusters = worlds.photos.shape
    world, group, cluster = np.nonzero(worlds.photos)
    held = worlds.photos[world, group, cluster], worlds.successes[world, group, cluster]
    columns = csr_array(np.stack([held[1], held[0]], axis=1).astype(np.float64))
    cluster_of = cluster if shared else group * n_clusters + cluster
    if not shared:  # numbers without gaps: small groups end in clusters that nobody is in
        cluster_of = np.unique(cluster_of, return_inverse=True)[1]
    at = np.arange(len(world))
    return build_cluster_sums(
        columns, cluster_of.astype(np.int64), world * n_groups + group, at, n_worlds * n_groups
    )


def bootstrap(worlds: RateWorlds, *, shared: bool, replicates: int, seed: int) -> Batch:
    """Resample a batch of worlds."""
    design = worlds_as_groups(worlds, shared=shared)
    shape = worlds.photos.shape[:2]
    measure = a_mean(0)
    drawn = replicate_sum_statistics(
        design, [measure.columns], Bootstrap(replicates=replicates, seed=seed)
    )
    value = measure.columns.evaluate(design.totals()[:, :, None])[:, 0]
    clusters = (worlds.photos > 0).sum(axis=-1)
    se = standard_error(drawn[:, 0], clusters.ravel())
    return Batch(
        design,
        value.reshape(shape),
        drawn[:, 0].reshape(*shape, -1),
        se.reshape(shape),
        clusters,
        measure,
    )


def group_list(attributes: dict[str, int]) -> tuple[Group, ...]:
    """Name the groups of attributes, everyone first."""
    named = [Group(None, "overall", ())]
    for attribute, n in attributes.items():
        named += [Group(attribute, f"g{k}", (f"g{k}",)) for k in range(n)]
    return tuple(named)


def estimates_of(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    attributes: dict[str, int],
    measures: tuple[Measure, ...],
    *,
    domain_of: dict[str, int] | None = None,
) -> Estimates:
    """Lay out one world as ``measure_groups`` would, without a bootstrap: all that tests need.

    Parameters
    ----------
    entries : (columns [n, k], group_of [n], cluster_of [n])
        What a cluster adds to a row of the design; row 0 is everyone, then attribute by attribute,
        then domains. Column 0 counts units.
    attributes : dict of str to int
        How many groups each has.
    """
    columns, group_of, cluster_of = entries
    groups = group_list(attributes)
    n_rows = int(max(group_of.max() + 1, len(groups)))
    at = np.arange(len(group_of))
    design = build_cluster_sums(
        csr_array(columns.astype(np.float64)), cluster_of.astype(np.int64), group_of, at, n_rows
    )
    totals = design.totals()[: len(groups)]
    held = [m.mean for m in measures]
    shape = (len(groups), len(measures))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.stack([totals[:, s] / totals[:, n] for s, n in held], axis=1)
    n_units = np.stack([totals[:, n] for _, n in held], axis=1).astype(np.int64)
    n_clusters = _count_clusters(design)[: len(groups)][:, [n for _, n in held]]
    nothing = np.full(shape, np.nan)
    return Estimates(
        groups, measures, design, domain_of or dict.fromkeys(attributes, 0), value,
        nothing[..., None], nothing, Interval(nothing, nothing), np.full(shape, "none"), n_units,
        n_clusters, np.full(shape, "ok", dtype=object), np.full(shape, None, dtype=object),
    )  # fmt: skip


def with_bootstrap(estimates: Estimates, spec: ComparisonSettings) -> Estimates:
    """Add replicates, standard errors and intervals, by the product's own functions."""
    measures = estimates.measures
    drawn = replicate_sum_statistics(estimates.cluster_sums, [m.columns for m in measures], spec)
    drawn = drawn[: len(estimates.groups)]
    se = standard_error(drawn, estimates.n_clusters)
    interval, method = compute_intervals_and_methods(
        estimates.cluster_sums, measures, estimates.value, drawn, se, estimates.n_clusters, spec
    )
    return replace(estimates, replicates=drawn, standard_error=se, interval=interval, method=method)


def crossed_entries(
    photos: np.ndarray, successes: list[np.ndarray], counts: list[np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn ``[attributes, groups, subjects]`` into a design's entries, everyone's row first."""
    counts = [photos] * len(successes) if counts is None else counts
    stacked = [photos, *(x for pair in zip(successes, counts, strict=True) for x in pair)]
    everyone = np.stack([x[0].sum(axis=0) for x in stacked], axis=1)
    attribute, group, subject = np.nonzero(photos)
    own = np.stack([x[attribute, group, subject] for x in stacked], axis=1)
    rows = 1 + attribute * photos.shape[1] + group
    n = photos.shape[2]
    return (
        np.concatenate([everyone, own]),
        np.concatenate([np.zeros(n, np.int64), rows]),
        np.concatenate([np.arange(n), subject]),
    )


def one_attribute(photos: np.ndarray, successes: np.ndarray, *, shared: bool) -> Estimates:
    """Lay out one attribute ``a``, from ``[groups, clusters]`` as ``simulate_rates`` draws it."""
    n_groups = len(photos)
    if not shared:  # each group's subjects are others
        group, cluster = np.nonzero(photos)
        at = np.arange(len(group))
        own = np.zeros((2, n_groups, len(group)), dtype=np.int64)
        own[0, group, at] = photos[group, cluster]
        own[1, group, at] = successes[group, cluster]
        photos, successes = own
    entries = crossed_entries(photos[None], [successes[None]])
    return estimates_of(entries, {"a": n_groups}, (a_mean(1),))
