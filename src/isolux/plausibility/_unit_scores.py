"""One score of each person, by model: of the metric asked for first, beside whether truth is known.

Arrays are aligned with ``membership.units``: ``[n]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.counts import COUNTS, TIMES
from isolux.core.grouping import split_intersection
from isolux.core.info import Metric
from isolux.core.survey_sample import SAMPLE
from isolux.groups.unknown_values import KNOWN_SUFFIX, UNKNOWN
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.label_noise import GapBounds
from isolux.stats.statistic import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]
ALPHA = 0.01
"""Of all tests of one check in one audit together (Bonferroni), so that sound data raise an alarm
in at most 1 of 100 audits."""
MIN_BIAS = 0.005
"""Half a point: what missing labels can move by less, no printed comparison shows."""
MAX_PEOPLE = 10_000_000
"""Of an audit in shards: bounds sort the score of each person."""
_MIN_EXPECTED = 5.0
"""Expected counts of a category below which chi-squared is no good approximation (Cochran 1954)."""
_MAX_LISTED, _ROUNDING = 3, 1e-12


@dataclass(frozen=True, slots=True)
class PersonScores:
    """A model's scores: NaN where there is none; ``reason`` says why.

    ``cluster`` are codes, −1 where a unit is of none; ``times``: for how many people it stands.
    """

    model: str
    metric: Metric | None
    score: FloatArray
    reason: pl.Series
    cluster: IntArray
    times: FloatArray

    @property
    def is_fraction(self) -> bool:
        """Whether scores are from 0 to 1 and printed in points."""
        return self.metric is None or self.metric.unit == "fraction"

    @property
    def title(self) -> str:
        """Name the metric within a sentence."""
        return self.metric.title.lower() if self.metric is not None else "the share right"

    def mean(self, members: BoolArray) -> float:
        """Average the scores of people who all have one."""
        return float(np.average(self.score[members], weights=self.times[members]))

    def expand(self, members: BoolArray) -> FloatArray:
        """Return the score of each person, not of each unit."""
        return np.repeat(self.score[members], self.times[members].astype(np.int64))

    def format(self, value: float) -> str:
        """Print a mean score."""
        if self.is_fraction:
            return f"{100 * value:.1f} %"
        return f"{value:.3g} {self.metric.unit if self.metric else ''}".strip()

    def format_gap(self, bounds: Sequence[float]) -> str:
        """Print differences of means: one, or the ends of a range."""
        scale = 100.0 if self.is_fraction else 1.0
        texts = [f"{scale * b:+.1f}".replace("-", "−").replace("+0.0", "0.0") for b in bounds]
        return " to ".join(texts) + (" points" if self.is_fraction else "")


def read_unit_scores(inputs: AuditInputs, reason: str | None = None) -> list[PersonScores]:
    """Read the scores of each model; empty where a row is a case of a table, or has no score.

    ``reason``: only if people are without a score for it. Whoever has no truth is in no row of a
    rate: then whether answers are right is read in place of the metric.
    """
    if inputs.task == COUNTS:
        return []
    rows, metric = _select_metric(inputs)
    if not rows.height or (reason is not None and not (rows["reason"] == reason).any()):
        rows, metric = _select_correctness(inputs), None
    if reason is not None and not (rows["reason"] == reason).any():
        return []
    units = pl.DataFrame({"unit_id": inputs.membership.units.cast(pl.String)})
    times = np.ones(units.height)
    if COUNTS in inputs.scores.evidence:
        counts = inputs.scores.evidence[COUNTS].select(pl.col("unit_id").cast(pl.String), TIMES)
        people = units.join(
            counts.unique("unit_id"), on="unit_id", how="left", maintain_order="left"
        )
        times = people[TIMES].fill_null(1).cast(pl.Float64).to_numpy()
    unit_scores = []
    for (model,), model_rows in rows.group_by("model", maintain_order=True):
        by_unit = model_rows.group_by("unit_id").agg(
            pl.col("value").mean(),
            pl.col("reason").drop_nulls().first(),
            pl.col("cluster_id").drop_nulls().first(),
        )
        aligned = units.join(by_unit, on="unit_id", how="left", maintain_order="left")
        unit_scores.append(
            PersonScores(
                str(model),
                metric,
                aligned["value"].fill_null(float("nan")).to_numpy(),
                aligned["reason"],
                (aligned["cluster_id"].rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy(),
                times,
            )
        )
    return unit_scores


_COLUMNS = ("model", "unit_id", "cluster_id", "reason")


def _select_metric(inputs: AuditInputs) -> tuple[pl.DataFrame, Metric | None]:
    """Select the first metric's rows, of its first threshold: ``_COLUMNS, value``."""
    units = inputs.scores.units
    present = units["metric"].unique(maintain_order=True).cast(pl.String).to_list()
    requested = [m for m in inputs.options.get("metric") or () if m in present]
    name = next(iter([*requested, *present]), None)
    metric = next((m for m in inputs.scores.info.metrics if m.name == name), None)
    rows = units.filter(pl.col("metric").eq_missing(pl.lit(name)))
    if rows.height:
        rows = rows.filter(pl.col("threshold").eq_missing(pl.lit(rows["threshold"][0])))
    return rows.select(pl.col(_COLUMNS).cast(pl.String), "value"), metric


def _select_correctness(inputs: AuditInputs) -> pl.DataFrame:
    """Select whether answers are right: ``_COLUMNS, value``."""
    evidence = inputs.scores.evidence.get("classification")
    if evidence is None or not {*_COLUMNS, "correct"} <= set(evidence.columns):
        schema = {**dict.fromkeys(_COLUMNS, pl.String), "value": pl.Float64}
        return pl.DataFrame(schema=schema)
    correct = pl.col("correct").cast(pl.Float64)
    return evidence.select(pl.col(_COLUMNS).cast(pl.String), value=correct)


def can_bound(inputs: AuditInputs) -> bool:
    """Check whether a gap is one of plain means, and of people who are few enough to sort."""
    times = inputs.scores.evidence.get(COUNTS, pl.DataFrame({TIMES: [0]}))[TIMES]
    is_weighted = SAMPLE in inputs.scores.evidence
    return (
        inputs.scores.info.has_independent_scores and not is_weighted and times.sum() <= MAX_PEOPLE
    )


def mask_attributes(inputs: AuditInputs) -> dict[str, dict[str, BoolArray]]:
    """Mask the members ``[n]`` of each known group, also of attributes that are only crossed."""
    n = len(inputs.membership.units)
    masks: dict[str, dict[str, BoolArray]] = {}
    crossings = [c for c in inputs.membership.intersections if KNOWN_SUFFIX not in c.handle]
    for crossing in sorted(crossings, key=lambda c: len(split_intersection(c.handle))):
        for k, name in enumerate(split_intersection(crossing.handle)):
            if name in masks:
                continue
            values = [cell[k] for cell in crossing.cells]
            masks[name] = {v: np.zeros(n, np.bool_) for v in dict.fromkeys(values) if v != UNKNOWN}
            for cell, value in enumerate(values):
                if value != UNKNOWN:
                    masks[name][value][crossing.unit[crossing.cell == cell]] = True
    return masks


# Tests: ``p`` of no association, with clusters counted at what they are worth.


def _compute_design_effect(residuals: FloatArray, cluster: IntArray, times: FloatArray) -> float:
    """Return the variance of a mean in clusters over that of independent people; at least 1."""
    squares = float(times @ residuals**2)
    in_cluster = cluster >= 0
    sums = np.bincount(cluster[in_cluster], (times * residuals)[in_cluster])
    clustered = float((sums**2).sum()) + float((times * residuals**2)[~in_cluster].sum())
    return max(clustered / squares, 1.0) if squares > 0 else 1.0


def compare_means(scores: PersonScores, first: BoolArray, second: BoolArray) -> float:
    """Test whether two sets of people score alike: Fisher's test of 0 and 1, else Welch's."""
    from scipy.special import stdtr
    from scipy.stats import fisher_exact

    n = np.array([scores.times[mask].sum() for mask in (first, second)])
    if not n.all():
        return 1.0
    means = np.array([scores.mean(mask) for mask in (first, second)])
    residuals = np.zeros(len(first))
    for mask, mean in zip((first, second), means, strict=True):
        residuals[mask] = scores.score[mask] - mean
    deff = _compute_design_effect(residuals, scores.cluster, scores.times)
    if np.isin(scores.score[first | second], (0.0, 1.0)).all():
        return float(fisher_exact(np.rint(np.array([means * n, n - means * n]) / deff))[1])
    n_independent = n / deff
    if n_independent.min() < 2.0:
        return 1.0
    squares = [scores.times[mask] @ residuals[mask] ** 2 for mask in (first, second)]
    variance = float((np.array(squares) / n / (n_independent - 1.0)).sum())
    if variance == 0.0:
        return 1.0
    # The fewer of the two give the degrees of freedom: fewer than Welch's.
    return 2.0 * float(stdtr(n_independent.min() - 1.0, -abs(means[0] - means[1]) / variance**0.5))


def compare_shares(missing: BoolArray, category: IntArray, scores: PersonScores) -> float:
    """Test whether a share is the same in all categories ``[n]`` (codes; −1: in none)."""
    from scipy.stats import chi2_contingency, fisher_exact

    is_counted = category >= 0
    lacks, codes, times = missing[is_counted], category[is_counted], scores.times[is_counted]
    if not lacks.any() or lacks.all():
        return 1.0
    share = float(np.average(lacks, weights=times))
    deff = _compute_design_effect(
        np.asarray(lacks - share, dtype=np.float64), scores.cluster[is_counted], times
    )
    n = np.bincount(codes, times) / deff
    n_missing = np.bincount(codes, times * lacks) / deff
    n, n_missing = _pool_rare(n, n_missing, min(share, 1 - share))
    if len(n) < 2:
        return 1.0
    table = np.rint(np.array([n_missing, n - n_missing]))
    if not table.sum(axis=0).all() or not table.sum(axis=1).all():
        return 1.0
    test = fisher_exact if len(n) == 2 else chi2_contingency
    return float(test(table)[1])


def _pool_rare(n: FloatArray, n_missing: FloatArray, share: float) -> tuple[FloatArray, FloatArray]:
    """Pool the categories whose expected counts are too few for chi-squared; of two, none."""
    n, n_missing = n[n > 0], n_missing[n > 0]
    is_rare = n * share < _MIN_EXPECTED
    if len(n) <= 2 or not is_rare.any():
        return n, n_missing
    return (
        np.append(n[~is_rare], n[is_rare].sum()),
        np.append(n_missing[~is_rare], n_missing[is_rare].sum()),
    )


# Bounds: of the widest gap between a group and all others.


@dataclass(frozen=True, slots=True)
class BoundedGap:
    """A group's mean less that of everyone else: of those known, and its bounds."""

    group: str
    gap: float
    bounds: GapBounds

    @property
    def max_bias(self) -> float:
        """How far the gap may be from what it is of those known."""
        return max(self.bounds.high - self.gap, self.gap - self.bounds.low)


def bound_widest_gap(
    scores: PersonScores,
    groups: dict[str, BoolArray],
    bound: Callable[[BoolArray, BoolArray], GapBounds],
) -> BoundedGap | None:
    """Bound the widest gap: ``bound`` receives the members of a group and those of the others."""
    scored = np.isfinite(scores.score)
    any_group = np.logical_or.reduce([*groups.values(), np.zeros(len(scored), dtype=np.bool_)])
    widest: tuple[float, str] | None = None
    for name, members in groups.items():
        other_members = any_group & ~members
        if (members & scored).any() and (other_members & scored).any():
            gap = float(
                scores.score[members & scored].mean() - scores.score[other_members & scored].mean()
            )
            if widest is None or abs(gap) > abs(widest[0]) + _ROUNDING:
                widest = gap, name
    if widest is None:
        return None
    gap, name = widest
    return BoundedGap(name, gap, bound(groups[name], any_group & ~groups[name]))


def list_shares(names: Sequence[str], missing: Sequence[int], n: Sequence[int]) -> str:
    """Print the largest shares, and the smallest: ``B 31 of 491 (6 %); A 0 of 509 (0 %)``."""
    order = sorted(range(len(n)), key=lambda k: (-missing[k] / max(n[k], 1), k))
    if len(order) > _MAX_LISTED:
        order = [*order[: _MAX_LISTED - 1], order[-1]]
    return "; ".join(
        f"{names[k]} lacks {missing[k]:,} of {n[k]:,} ({100 * missing[k] / max(n[k], 1):.0f} %)"
        for k in order
    )
