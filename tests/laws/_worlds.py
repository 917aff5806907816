"""Many worlds at once through the product's own functions: worlds are groups of one design.

A coverage law needs thousands of data sets. Here the groups of a batch of worlds lie side by side
in one design and share the bootstrap's weights, so the batch costs what one audit of as many
groups does. Worlds of one batch share weights, not data; several batches with different seeds keep
the shared weights from mattering.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from isolux.groups.measure import Group, Measure, _standard_error
from isolux.info import Metric
from isolux.spec import Bootstrap
from isolux.stats.design import Design, build_design
from isolux.stats.resampling import Columns, replicate_sums
from isolux.stats.statistic import MEAN
from isolux.synthetic.rates import RateWorlds

FULL = os.environ.get("ISOLUX_LAWS") == "full"
ACCURACY = Metric(name="accuracy", title="Accuracy", definition="share right", direction="higher")
RECALL = Metric(name="recall", title="Recall", definition="share found", direction="higher")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rates of worlds × groups, their replicates and what rests on them, ``[worlds, groups, …]``."""

    design: Design
    value: np.ndarray
    replicates: np.ndarray
    se: np.ndarray
    clusters: np.ndarray
    measure: Measure


def a_mean(first: int, metric: Metric = ACCURACY, model: str = "m") -> Measure:
    """Describe the mean whose sum and count are columns ``first`` and ``first + 1``."""
    columns = Columns(MEAN, first, first + 2)
    mean = (first, first + 1)
    return Measure(model, "classification", metric.name, None, None, metric, columns, mean)


def worlds_as_groups(worlds: RateWorlds, *, shared: bool) -> Design:
    """Lay worlds side by side; ``shared``: cluster c is one subject in all groups of a world."""
    n_worlds, n_groups, n_clusters = worlds.photos.shape
    world, group, cluster = np.nonzero(worlds.photos)
    held = worlds.photos[world, group, cluster], worlds.successes[world, group, cluster]
    columns = csr_array(np.stack([held[1], held[0]], axis=1).astype(np.float64))
    cluster_of = cluster if shared else group * n_clusters + cluster
    if not shared:  # numbers without gaps: small groups end in clusters that nobody is in
        cluster_of = np.unique(cluster_of, return_inverse=True)[1]
    at = np.arange(len(world))
    return build_design(
        columns, cluster_of.astype(np.int64), world * n_groups + group, at, n_worlds * n_groups
    )


def bootstrap(worlds: RateWorlds, *, shared: bool, replicates: int, seed: int) -> Batch:
    """Resample a batch of worlds."""
    design = worlds_as_groups(worlds, shared=shared)
    shape = worlds.photos.shape[:2]
    measure = a_mean(0)
    drawn = replicate_sums(design, [measure.columns], Bootstrap(replicates=replicates, seed=seed))
    value = measure.columns.value(design.totals()[:, :, None])[:, 0]
    clusters = (worlds.photos > 0).sum(axis=-1)
    se = _standard_error(drawn[:, 0], clusters.ravel())
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
    named = [Group(None, "everyone", ())]
    for attribute, n in attributes.items():
        named += [Group(attribute, f"g{k}", (f"g{k}",)) for k in range(n)]
    return tuple(named)
