"""Worlds of people judged by metrics that are no means, one group of whom is most of everyone."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.core.survey_sample import SAMPLE
from isolux.core.tables import MEMBERSHIP
from isolux.disparity.comparisons import build_comparisons
from isolux.groups.estimates import OVERALL
from isolux.groups.measure import measure_groups
from isolux.stats.roc import roc_auc_statistic
from isolux.stats.statistic import SumStatistic
from isolux.stats.test_inversion import two_sided_p_from_z, z_statistics_by_test_inversion
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from tests._scored import scored

Z = 1.9599639845400545
NAMES = ("a", "b", "c")


def _f1(sums: np.ndarray) -> np.ndarray:
    hit, wrong = sums[..., 0], sums[..., 1]
    both = 2.0 * hit + wrong
    return np.divide(2.0 * hit, both, out=np.full(both.shape, np.nan), where=both > 0)


def _f1_columns(evidence: pl.DataFrame) -> np.ndarray:
    truth, said = (evidence[name].to_numpy() for name in ("is_positive", "said"))
    return np.column_stack([truth & said, truth ^ said]).astype(np.float64)


def _metric(name: str, statistic: object) -> Metric:
    return Metric(name=name, title=name, definition=name, direction="higher", evidence="judged",
                  statistic=statistic)  # fmt: skip


METRICS = (
    _metric("balanced_accuracy", BALANCED_ACCURACY),
    _metric("f1", SumStatistic(_f1_columns, _f1)),
    _metric("roc_auc", roc_auc_statistic()),
)


@dataclass(frozen=True)
class Cell:
    """One kind of world; ``share`` of everyone's subjects, or of photos, are in the first group."""

    share: float = 0.8
    rate: float = 0.9
    clusters: int = 150
    photos: int = 8
    icc: float = 0.3
    groups: int = 2
    within: bool = False
    weights: str = "equal"
    positive: tuple[float, float] = (0.4, 0.4)
    apart: float = 0.0

    def row(self) -> dict[str, object]:
        """Return what names the cell in a table."""
        rows = "photos" if self.photos == 1 else "subjects"
        return {
            "largest group, % of people": f"{100 * self.share:g}", "groups": self.groups,
            "rate": self.rate, "of": f"{self.clusters} {rows}",
            "attribute": "within" if self.within else "between", "weights": self.weights,
            "positive": "/".join(f"{p:g}" for p in self.positive), "apart": self.apart,
        }  # fmt: skip


@dataclass(frozen=True)
class World:
    """Photos: subject, group, class, whether it was told right, score, weight."""

    subject: np.ndarray
    group: np.ndarray
    truth: np.ndarray
    right: np.ndarray
    score: np.ndarray
    weight: np.ndarray


def draw(rng: np.random.Generator, cell: Cell) -> World:
    """Draw photos whose groups are all served alike, or the first ``apart`` better."""
    c = cell.clusters
    shares = np.array([cell.share] + [(1.0 - cell.share) / (cell.groups - 1)] * (cell.groups - 1))
    subject = np.repeat(np.arange(c), cell.photos)
    n = len(subject)
    if cell.within:
        group = rng.choice(cell.groups, n, p=shares)
    else:
        edges = np.rint(np.cumsum(shares) * c).astype(int)
        group = rng.permutation(np.searchsorted(edges, np.arange(c), side="right"))[subject]
    positive = np.where(group == 0, *cell.positive)
    truth = rng.random(n) < positive
    rate = np.where(group == 0, cell.rate, cell.rate - cell.apart)
    luck = rng.normal(0.0, np.sqrt(cell.icc), c)[subject]
    own = luck + rng.normal(0.0, np.sqrt(1.0 - cell.icc), n)
    shift = rng.normal(0.0, np.sqrt(cell.icc), c)[subject]
    score = np.sqrt(2.0) * ndtri(rate) * truth + shift
    score = score + rng.normal(0.0, np.sqrt(1.0 - cell.icc), n)
    weight = np.ones(n)
    if cell.weights == "unequal":
        weight = rng.lognormal(0.0, 0.8, n)
    elif cell.weights == "by group":  # the others were drawn more often than there are of them
        weight = np.where(group == 0, 3.0, 1.0) * rng.lognormal(0.0, 0.3, n)
    return World(subject, group, truth, ndtr(own) < rate, score, weight)


def measured(world: World, replicates: int, seed: int):
    """Measure everyone and every group by all metrics."""
    n = len(world.group)
    ids = [f"u{k}" for k in range(n)]
    clusters = [f"s{k}" for k in world.subject]
    both = {"model": "m", "unit_id": ids, "cluster_id": clusters}
    evidence = {"judged": pl.DataFrame({
        **both, "truth": np.where(world.truth, "yes", "no"), "correct": world.right,
        "is_positive": world.truth, "said": world.truth == world.right,
        "positive_score": world.score,
    }).with_columns(truth=pl.concat_list("truth"))}  # fmt: skip
    if not (world.weight == 1.0).all():
        evidence[SAMPLE] = pl.DataFrame({
            **both, "weight": world.weight, "stratum": pl.Series([None] * n, dtype=pl.String),
            "stratum_clusters": pl.Series([None] * n, dtype=pl.Int64),
        })  # fmt: skip
    names = [NAMES[k] for k in world.group]
    members = pl.DataFrame({"attribute": "g", "group": names, "unit_id": ids})
    members = members.with_columns(values=pl.concat_list("group"))
    scores = scored(world.right.astype(float).tolist(), clusters, evidence=evidence,
                    others=METRICS)  # fmt: skip
    spec = ComparisonSettings(replicates=replicates, seed=seed)
    membership = MEMBERSHIP.conform(members.sort("group", maintain_order=True))
    return measure_groups(scores, membership, spec)


def truths(cell: Cell, photos: int = 2_000_000) -> dict[str, float]:
    """Return by how much the first group is above everyone in the population, by metric."""
    if not cell.apart and cell.positive[0] == cell.positive[1]:
        return dict.fromkeys((m.name for m in METRICS), 0.0)
    rng = np.random.default_rng(7)
    large = Cell(**{**asdict(cell), "clusters": photos // cell.photos})
    world = draw(rng, large)
    found = {}
    evidence = pl.DataFrame({"is_positive": world.truth, "said": world.truth == world.right,
                             "positive_score": world.score})  # fmt: skip
    first = world.group == 0
    for metric in METRICS:
        if metric.name == "balanced_accuracy":
            values = [_balanced(world, rows) for rows in (first, np.ones_like(first))]
        else:
            values = [
                float(metric.statistic(evidence.filter(rows), world.weight[rows]))
                for rows in (first, np.ones_like(first))
            ]
        found[metric.name] = values[0] - values[1]
    return found


def _balanced(world: World, rows: np.ndarray) -> float:
    kinds = [rows & (world.truth == kind) for kind in (True, False)]
    return float(np.mean([np.average(world.right[k], weights=world.weight[k]) for k in kinds]))


@dataclass(frozen=True)
class Asked:
    """One metric of one world: the first group beside everyone, and beside the second group."""

    metric: str
    p: float
    low: float
    high: float
    joined: float
    pair: float
    same_sign: bool
    ok: bool


def asked(estimates) -> list[Asked]:
    """Ask whether the first group differs from everyone, three ways."""
    one, two = (k for k, g in enumerate(estimates.groups) if g.name in NAMES[:2])
    first, second = np.array([one]), np.array([two])
    assert estimates.groups[0].name == OVERALL
    found = []
    for j, measure in enumerate(estimates.measures):
        if measure.mean is not None or not estimates.is_comparable()[[one, two], j].all():
            continue
        compared = build_comparisons(estimates, "g", j)
        apart, pair = compared.compare_with_complement(first), compared.compare_pairs(first, second)
        z, of_pair = (
            z_statistics_by_test_inversion(apart, (Z,)),
            z_statistics_by_test_inversion(pair, (Z,)),
        )
        joined = z_statistics_by_test_inversion(
            compared.compare_pairs(first, np.zeros(1, dtype=np.int64)), (Z,)
        )
        ends = apart.interval(Z)
        found.append(Asked(
            measure.metric, two_sided_p_from_z(z).item(), ends.low.item(), ends.high.item(),
            two_sided_p_from_z(joined).item(), two_sided_p_from_z(of_pair).item(),
            bool(z[0] * of_pair[0] >= 0),
            bool((estimates.status[[0, one], j] == "ok").all()),
        ))  # fmt: skip
    return found
