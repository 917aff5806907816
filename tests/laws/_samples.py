"""Samples whose weights matter, drawn without the package: strata, errors drawn more often.

Every world has two groups with one and the same rate in the population; the sample is drawn so
that a reader who ignores weights, strata or clusters is wrong. All is drawn with numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from isolux.core.info import Metric
from isolux.disparity.comparisons import MeanComparisons
from isolux.groups.estimates import Measure
from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.constants import MIN_EFFECTIVE_CLUSTERS
from isolux.stats.raking import Margins, rake_weights_to_shares
from isolux.stats.sampling import Strata, kish_effective_size
from isolux.stats.survey_sums import build_survey_cluster_sums
from isolux.stats.test_inversion import z_statistics_by_test_inversion

LEAST = 50, 10  # units and clusters of a group that is judged at all
Z = 1.9599639845
_RATE = Metric(name="rate", title="Rate", definition="right", direction="higher")
MEASURE = Measure("m", "t", "rate", None, None, _RATE, None, (0, 1))
DRAWN = ("alike", "noise", "errors", "heavy", "strata", "strata and errors", "population", "finite")
_SHARES = np.array([0.7, 0.3])
"""Of the two kinds of people of ``population``, drawn one to three instead."""
_HEAVY, _WEIGH, _ERR = 0.1, 10.0, 12.0
"""Of ``heavy``: share of such clusters, their weight, and how many times as often they err."""
_OF_ALL = 0.6
"""Share of the clusters of a ``finite`` population that are drawn."""


@dataclass(frozen=True)
class Cell:
    """One kind of sample; ``drawn`` says what its weights go with."""

    rate: float = 0.9
    icc: float = 0.2
    clusters: int = 60
    photos: int = 8
    drawn: str = "strata and errors"
    within: bool = False
    prevalence: float = 0.4
    strata: int = 3

    def row(self) -> dict[str, object]:
        """Return what names the cell in a table."""
        where = "within" if self.within else "between"
        return {"rate": self.rate, "correlation": self.icc, "clusters": self.clusters,
                "attribute": where, "weights go with": self.drawn}  # fmt: skip


@dataclass(frozen=True)
class World:
    """Units: cluster, group (0 or 1), right or wrong, weight; and each cluster's stratum."""

    cluster: np.ndarray
    group: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    stratum: np.ndarray
    truth: float | np.ndarray
    kind: np.ndarray | None = None


def draw(rng: np.random.Generator, cell: Cell) -> World:
    """Draw one sample of a population in which the groups do not differ."""
    if cell.drawn == "population":
        return _of_kinds(rng, cell)
    if cell.drawn == "finite":
        return _of_few(rng, cell)
    if cell.drawn == "heavy":
        return _of_heavy(rng, cell)
    h = cell.strata if "strata" in cell.drawn else 1
    stratum = np.arange(cell.clusters) % h
    shares = 4.0 ** -np.arange(h)
    shares /= shares.sum()
    # The strata's rates differ, and the smallest strata are drawn as often as the largest.
    apart = np.linspace(-1.0, 1.0, h) if h > 1 else np.zeros(1)
    rates = 1.0 / (1.0 + np.exp(-(np.log(cell.rate / (1.0 - cell.rate)) + apart)))
    alike = cell.icc or 1e-4
    p = rng.beta(rates[stratum] * (1 - alike) / alike, (1 - rates[stratum]) * (1 - alike) / alike)
    n = rng.poisson(cell.photos * (2 if "errors" in cell.drawn else 1), cell.clusters)
    cluster = np.repeat(np.arange(cell.clusters), n)
    right = rng.random(len(cluster)) < p[cluster]
    own = rng.random(cell.clusters) < cell.prevalence
    mixed = rng.random(len(cluster)) < cell.prevalence
    group = (mixed if cell.within else own[cluster]).astype(np.int64)
    chance = np.where(right, 0.3, 0.9) if "errors" in cell.drawn else np.ones(len(cluster))
    kept = rng.random(len(cluster)) < chance
    weight = (shares * h)[stratum][cluster] / chance
    if cell.drawn == "noise":
        weight = rng.lognormal(0.0, 0.8, len(cluster))
    return World(cluster[kept], group[kept], right[kept].astype(float), weight[kept], stratum,
                 float(shares @ rates))  # fmt: skip


def _of_kinds(rng: np.random.Generator, cell: Cell) -> World:
    """Draw people of two kinds, unlike in their rates and in how often they are drawn."""
    lean = np.log(cell.rate / (1.0 - cell.rate)) + np.array([0.7, -0.7])
    rates = 1.0 / (1.0 + np.exp(-lean))
    cluster = np.repeat(np.arange(cell.clusters), rng.poisson(cell.photos, cell.clusters))
    kind = (rng.random(len(cluster)) < 0.75).astype(np.int64)  # three in four, of 30 %
    alike = cell.icc or 1e-4
    p = np.stack([rng.beta(r * (1 - alike) / alike, (1 - r) * (1 - alike) / alike, cell.clusters)
                  for r in rates])  # fmt: skip
    right = rng.random(len(cluster)) < p[kind, cluster]
    group = _groups(rng, cell, cluster)
    return World(cluster, group, right.astype(float), np.ones(len(cluster)),
                 np.zeros(cell.clusters, dtype=np.int64), float(_SHARES @ rates), kind)  # fmt: skip


def _of_heavy(rng: np.random.Generator, cell: Cell) -> World:
    """Draw a few clusters that weigh much, and err much more often than the others."""
    heavy = rng.random(cell.clusters) < _HEAVY
    of_all = _HEAVY * _WEIGH / (_HEAVY * _WEIGH + 1.0 - _HEAVY)  # of the weight
    light = (1.0 - cell.rate) / (of_all * _ERR + 1.0 - of_all)
    rates = 1.0 - light * np.where(heavy, _ERR, 1.0)
    alike = cell.icc or 1e-4
    p = rng.beta(rates * (1 - alike) / alike, (1 - rates) * (1 - alike) / alike)
    cluster = np.repeat(np.arange(cell.clusters), rng.poisson(cell.photos, cell.clusters))
    right = (rng.random(len(cluster)) < p[cluster]).astype(float)
    weight = np.where(heavy, _WEIGH, 1.0)[cluster]
    return World(cluster, _groups(rng, cell, cluster), right, weight,
                 np.zeros(cell.clusters, dtype=np.int64), cell.rate)  # fmt: skip


def _of_few(rng: np.random.Generator, cell: Cell) -> World:
    """Draw clusters of a finite population whole; the truth is that population's."""
    every = round(cell.clusters / _OF_ALL)
    cluster = np.repeat(np.arange(every), rng.poisson(cell.photos, every))
    alike = cell.icc or 1e-4
    p = rng.beta(cell.rate * (1 - alike) / alike, (1 - cell.rate) * (1 - alike) / alike, every)
    right = (rng.random(len(cluster)) < p[cluster]).astype(float)
    group = _groups(rng, cell, cluster)
    truth = np.array([right[group == g].mean() for g in (0, 1)])
    kept = cluster < cell.clusters
    return World(cluster[kept], group[kept], right[kept], np.ones(kept.sum()),
                 np.zeros(cell.clusters, dtype=np.int64), truth)  # fmt: skip


def _groups(rng: np.random.Generator, cell: Cell, cluster: np.ndarray) -> np.ndarray:
    own = rng.random(cluster.max() + 1) < cell.prevalence
    mixed = rng.random(len(cluster)) < cell.prevalence
    return np.where(cell.within, mixed, own[cluster]).astype(np.int64)


def judged(world: World) -> bool:
    """Tell whether both groups are large enough, by what their units are worth."""
    for g in (0, 1):
        own = world.group == g
        if (
            kish_effective_size(world.weight[own]) < LEAST[0]
            or len(np.unique(world.cluster[own])) < LEAST[1]
        ):
            return False
    return True


def compared(world: World, *, weights: bool, clusters: bool = True) -> tuple[object, object]:
    """Compare the groups as the package does, with weights and strata or without."""
    n = len(world.right)
    ids = np.arange(n)
    columns = csr_array(np.column_stack([world.right, np.ones(n)]))
    group = np.concatenate([np.zeros(n, dtype=np.int64), world.group + 1])
    unit = np.concatenate([ids, ids])
    seen, dense = np.unique(world.cluster if clusters else ids, return_inverse=True)
    plain = build_cluster_sums(columns, dense, group, unit, 3)
    one, two, rows = np.array([1]), np.array([2]), np.arange(3)
    if not weights:
        found = MeanComparisons.from_design(plain, MEASURE, rows)
        return found.compare_pairs(one, two), found.means
    held = world.stratum[seen]
    strata = None
    if world.stratum.max() > 0:
        strata = Strata(held, np.bincount(world.stratum))
    scaled, margins = world.weight / world.weight.mean(), None
    if world.kind is not None:
        margins = Margins((world.kind,), (2,), scaled)
        scaled, _ = rake_weights_to_shares(scaled, margins, (_SHARES,))
    if isinstance(world.truth, np.ndarray):
        strata = Strata(0 * held, np.array([len(held)]), np.array([1.0 - _OF_ALL]))
    design = build_survey_cluster_sums(
        columns, dense, (group, unit), plain, scaled, strata, margins
    )
    found = MeanComparisons.from_design(design, MEASURE, rows)
    return found.compare_pairs(one, two), found.means


def judge(cell: Cell, worlds: int, seed: int = 0, *, beside: int = 5) -> dict[str, object]:
    """Return a cell's row: p at most .05, and coverage, beside those that ignore the sample.

    ``beside``: every how many worlds these are asked, which need not be known to a point.
    """
    rng = np.random.default_rng([seed, int(1000 * cell.rate), int(1000 * cell.icc), cell.clusters])
    p, covered, shown, naive_p, naive = [], [], [], [], []
    for number in range(worlds):
        world = draw(rng, cell)
        if not judged(world):
            continue
        apart, means = compared(world, weights=True)
        p.append(abs(z_statistics_by_test_inversion(apart, (Z,))[0]) >= Z)
        ends = means.score_interval(Z)
        held = (ends.low[1:] <= world.truth) & (world.truth <= ends.high[1:])
        ok = means.n_effective_clusters >= MIN_EFFECTIVE_CLUSTERS
        covered += held[ok[1:]].tolist()
        shown += ok[1:].tolist()
        if number % beside:
            continue
        apart, means = compared(world, weights=False, clusters=False)
        naive_p.append(abs(z_statistics_by_test_inversion(apart, (Z,))[0]) >= Z)
        ends = means.score_interval(Z)
        naive += ((ends.low[1:] <= world.truth) & (world.truth <= ends.high[1:])).tolist()
    if len(p) < worlds / 4:
        return {**cell.row(), "judged": len(p)}
    differ = cell.drawn == "finite"  # the groups of a finite population do
    return {
        **cell.row(), "judged": len(p), "p <= .05, %": None if differ else float(np.mean(p)),
        "covered where ok, %": float(np.mean(covered)) if sum(shown) >= len(p) / 4 else None,
        "ignored: p <= .05, %": float(np.mean(naive_p)) if naive_p and not differ else None,
        "ignored: covered, %": float(np.mean(naive)) if naive else None,
    }  # fmt: skip
