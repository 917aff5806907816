"""One number for a whole attribute: whether its groups differ, and by how much in all.

``any_difference`` and ``noise_corrected_sd`` come first in every report. The range (max − min),
the extreme ratio and ε are never below their "nothing differs" value however little the groups
differ, and grow with the number of groups and with noise; a percentile interval of them never
holds 0. So their interval here is simultaneous: every pair's interval at the level at which all
of them hold together (from the attribute's own null of the largest |t|); the largest lower and
upper end among the pairs then bound the true range with at least the level's coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.disparity.family import Family, Tested, at_once, untested
from isolux.disparity.kinds import PlainMeasure, measures
from isolux.disparity.observed import is_among
from isolux.disparity.rows import Rows, doubts_of, rows_of
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.noisy import ENLARGED, is_enlarged
from isolux.groups.unknown import UNKNOWN
from isolux.io.threads import in_threads
from isolux.stats.constants import MIN_GROUPS_OF_SPREAD
from isolux.stats.design import parts_clusters
from isolux.stats.detectable import two_sided_critical
from isolux.stats.deviates import Difference
from isolux.stats.dispersion import noise_corrected_sd, pooled_covariance
from isolux.stats.drawn_design import unweighted
from isolux.stats.intervals import normal_quantile, percentile
from isolux.stats.multiplicity import critical_value, reached
from isolux.stats.nulls import REST
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status
from isolux.vocabulary.words import NO_RATIO, UNTESTED

_FLAT = "nothing varies within the groups"
_FEW = "fewer than five groups"


def whole_rows(estimates: Estimates, family: Family, spec: Comparing) -> list[Rows]:
    """Return the whole-attribute rows of every attribute and metric."""
    judged, plain = estimates.judged(), measures()

    def of_key(key: tuple[str, int]) -> list[Rows]:
        attribute, j = key
        tested = family.tested.get(key)
        if tested is None:
            few = int(judged[estimates.members(attribute), j].sum())
            return [_undefined(estimates, j, attribute, few)]
        return _Whole(estimates, family, spec, attribute, j, tested).frames(plain)

    keys = [(attribute, j) for attribute in estimates.domain_of for j in range(judged.shape[1])]
    most = at_once(tested.contrasts for tested in family.tested.values())
    return [rows for some in in_threads(of_key, keys, most=most) for rows in some]


class _Whole:
    """The rows of one attribute and metric: their common inputs, computed once."""

    def __init__(
        self,
        estimates: Estimates,
        family: Family,
        spec: Comparing,
        attribute: str,
        j: int,
        tested: Tested,
    ) -> None:
        self.estimates, self.family, self.spec = estimates, family, spec
        self.attribute, self.j = attribute, j
        self.tested = of_known(estimates, tested)
        self.members = self.tested.members
        self.value = estimates.value[self.members, j]
        self.drawn = estimates.replicates[self.members, j]
        self.enlarged = is_enlarged(estimates.measures[j])
        sign = estimates.measures[j].sign
        order = np.argsort(self.value * sign, kind="stable")
        self.worst, self.best = int(self.members[order[0]]), int(self.members[order[-1]])
        self.bounds: dict[bool, tuple[float, float]] = {}
        self.doubt = next(filter(None, doubts_of(estimates, j)[self.members]), None)

    def frames(self, plain: Sequence[PlainMeasure]) -> list[Rows]:
        of = self.estimates.measures[self.j]
        centred = self.tested.referenced or is_among(self.estimates, self.attribute, self.j)
        wanted = [
            one
            for one in plain
            if one.fits(of.metric, of.info.low) and (centred or not one.of_centre)
        ]
        found = [self._any_difference(), self._noise_corrected()]
        return [*found, *map(self._plain, wanted)]

    def _row(
        self,
        kind: str,
        value: float,
        ends: tuple[float, float] = (math.nan, math.nan),
        *,
        method: str | None = None,
        p: tuple[float, float] = (math.nan, math.nan),
        groups: tuple[int | None, int | None] | None = None,
        why: str = "the formula divides by nothing here",
        doubt: str | None = None,
    ) -> Rows:
        """Lay out one row; ``why`` it has no value, or is in ``doubt`` beside its groups."""
        a, b = (self.worst, self.best) if groups is None else groups
        test = self.tested.test if not math.isnan(p[0]) else None
        undefined = not math.isfinite(value)
        doubt = self.doubt or doubt
        sure = Status.OK if doubt is None else Status.BOUNDARY
        if undefined:
            ends = (math.nan, math.nan)
        return rows_of(
            self.estimates,
            self.j,
            self.attribute,
            kind,
            groups=(None if a is None else np.array([a]), None if b is None else np.array([b])),
            value=np.array([value]),
            low=np.array([ends[0]]),
            high=np.array([ends[1]]),
            method=method,
            p_value=np.array([p[0]]),
            p_adjusted=np.array([p[1]]),
            test=test,
            family=self.family.name if test else None,
            status=[(Status.UNDEFINED if undefined else sure).value],
            reason=[why if undefined else doubt],
        )

    def _any_difference(self) -> Rows:
        pair = self.tested.contrasts[:, 1] != REST
        t = np.where(pair, np.abs(self.tested.null.t), np.nan)
        if np.isnan(t).all():
            members = self.members[self.tested.contrasts[pair]]
            if untested(self.estimates, self.j, *members.T).any():
                return self._row("any_difference", math.nan, why=UNTESTED)
            return self._row("any_difference", 0.0, p=(1.0, 1.0))
        at = int(np.nanargmax(t))
        largest = self.tested.null.largest_pair
        p = (1.0 + reached(largest, t[at]).sum()) / (len(largest) + 1.0)
        p = max(p, float(self.tested.null.p_value[at]))  # that of any pair, of the best one too
        adjusted = float(self.tested.adjusted[at])
        if self.spec.correction != "max-t":  # the attribute's own p bounds its best pair's
            adjusted = max(adjusted, p) if self.spec.correction != "none" else p
        groups = [int(self.members[k]) for k in self.tested.contrasts[at]]
        sign = self.estimates.measures[self.j].sign
        groups.sort(key=lambda g: float(self.estimates.value[g, self.j]) * sign)
        return self._row(
            "any_difference",
            float(t[at]),
            method="largest |t| over pairs",
            p=(p, adjusted),
            groups=(groups[0], groups[1]),
        )

    def _noise_corrected(self) -> Rows:
        if self.enlarged or len(self.members) < MIN_GROUPS_OF_SPREAD:
            why = ENLARGED if self.enlarged else _FEW
            return self._row("noise_corrected_sd", math.nan, groups=(None, None), why=why)
        clusters = self.estimates.n_clusters[self.members, self.j]
        covariance = self._covariance()
        if self._shares_no_cluster():
            worth = self.estimates.worth
            sizes = clusters if worth is None else worth.clusters[self.members, self.j]
            covariance = pooled_covariance(covariance, sizes)
        found = noise_corrected_sd(
            self.value, covariance, self.spec.level, degrees_of_freedom=clusters - 1.0
        )
        # Of few groups the interval has no upper end to speak of; values between two ends have one.
        of = self.estimates.measures[self.j].info
        most = math.inf
        if of.low is not None and of.high is not None:
            half = (of.high - of.low) / 2.0
            n = len(self.members)
            largest = math.sqrt((n * n // 4) / (n * max(n - 1, 1)))  # over n - 1, of 0 to 1
            wide = (of.high - of.low) * largest
            most = half if found.tau < half else max(wide, found.tau)
        flat = self._is_flat()
        ends = (math.nan, math.nan) if flat else (found.low, min(found.high, most))
        return self._row(
            "noise_corrected_sd",
            found.tau,
            ends,
            method="Paule–Mandel, Q-profile",
            groups=(None, None),
            doubt=_FLAT if flat else None,
        )

    def _shares_no_cluster(self) -> bool:
        """Tell whether variances may be pooled: tau calls noise a difference near 1 otherwise."""
        estimates = self.estimates
        domain = estimates.domain_of[self.attribute]
        design = unweighted(estimates.design)
        return parts_clusters(design, estimates.members(self.attribute), domain)

    def _covariance(self) -> FloatArray:
        """Covariance of the groups' values; at 0 and 1 the variance that Wilson's width implies."""
        drawn = np.where(np.isfinite(self.drawn), self.drawn, self.value[:, None])
        covariance = np.cov(drawn)
        clusters = self.estimates.n_clusters[self.members, self.j].astype(float)
        grown = np.sqrt(clusters / np.maximum(clusters - 1.0, 1.0))
        covariance = covariance * grown[:, None] * grown[None, :]
        ends = self.estimates.interval
        width = ends.high[self.members, self.j] - ends.low[self.members, self.j]
        floor = (width / (2.0 * normal_quantile(self.spec.level))) ** 2
        flat = np.diagonal(covariance) <= 0
        covariance[np.diag_indices_from(covariance)] += np.where(flat, np.nan_to_num(floor), 0.0)
        return np.asarray(covariance)

    def _plain(self, measure: PlainMeasure) -> Rows:
        """Return the row of one measure of the groups' values."""
        overall, overall_drawn, g = self._centre()
        chosen = {"ddof": self.spec.ddof, "log_base": self.spec.log_base}
        value = float(measure.value(self.value, {"overall": np.array(overall), **chosen}))
        if measure.info.interval != "percentile":
            log = measure.info.interval == "largest log ratio"
            ends = measure.ends(self._bounds(log=log), chosen)
            bare = (NO_RATIO if log else UNTESTED) if math.isnan(ends[0]) else None
            return self._row(measure.name, value, ends, method="simultaneous pairs", doubt=bare)
        if self._is_flat():
            return self._row(measure.name, value, groups=(None, None), doubt=_FLAT)
        drawn = measure.value(self.drawn.T, {"overall": overall_drawn, **chosen})
        of = percentile(drawn, self.spec.level)
        # Noise moves groups apart: all replicates may lie above a spread that is next to 0.
        return self._row(
            measure.name,
            value,
            (float(np.minimum(of.low, value)), float(np.maximum(of.high, value))),
            method="percentile (cannot hold 0)",
            groups=(None, g if measure.of_centre else None),
        )

    def _is_flat(self) -> bool:
        """Tell whether every replicate is alike, so that none says how sure a value is."""
        known = np.isfinite(self.drawn)
        low = np.min(self.drawn, axis=1, where=known, initial=np.inf)
        high = np.max(self.drawn, axis=1, where=known, initial=-np.inf)
        return bool((high - low <= 1e-12 * np.abs(high)).all())

    def _bounds(self, *, log: bool) -> tuple[float, float]:
        """Bound the largest difference or log ratio, once for all measures that read it."""
        if log not in self.bounds:
            self.bounds[log] = range_interval(
                self.estimates, self.tested, self.j, self.spec, log=log
            )
        return self.bounds[log]

    def _centre(self) -> tuple[float, FloatArray, int]:
        """Return what gaps are taken to: the reference group's value, or everyone's."""
        pairs = self.tested.contrasts[self.tested.contrasts[:, 1] != REST]
        g = int(self.members[pairs[0, 1]]) if self.tested.referenced else 0
        value = float(self.estimates.value[g, self.j])
        return value, self.estimates.replicates[g, self.j], g


def of_known(estimates: Estimates, tested: Tested) -> Tested:
    """Leave out people whose value is not known, where two groups are left: they are not a group.

    Range, spread, worst group and test then speak of the same groups.
    """
    known = [g for g in tested.members if UNKNOWN not in estimates.groups[g].values]
    if len(known) < 2 or len(known) == len(tested.members):
        return tested
    kept = among(tested, np.array(known, dtype=np.int64))
    return kept if (kept.contrasts[:, 1] != REST).any() else tested


def range_interval(
    estimates: Estimates, tested: Tested, j: int, spec: Comparing, *, log: bool
) -> tuple[float, float]:
    """Bound the largest difference (or log ratio) between any two groups, all pairs at once."""
    members = tested.members
    if np.isnan(estimates.interval.low[members, j]).any():
        return math.nan, math.nan
    if log and (estimates.value[members, j] <= 0.0).any():
        return math.nan, math.nan
    critical = critical_value(tested.null.largest_pair, 1.0 - spec.level)
    flat = not np.isfinite(critical) or critical <= 0  # nothing varies: nothing was drawn
    critical = 0.0 if flat else critical
    t = np.abs(tested.null.t[tested.contrasts[:, 1] != REST])
    strongest = float(np.max(t, where=np.isfinite(t), initial=0.0))
    # A tie by rounding is no finding.
    found_any = not flat and strongest * (1.0 - 1e-10) > critical
    if tested.referenced or flat:  # not all pairs were drawn; the range is over all
        n_pairs = len(members) * (len(members) - 1) // 2
        critical = max(critical, float(two_sided_critical(1.0 - spec.level, n_pairs)))
    z = max(critical, float(two_sided_critical(1.0 - spec.level)))
    first, second = np.triu_indices(len(members), 1)
    apart = tested.compared.pairs(members[first], members[second])
    # The other way round a pair's interval is the mirror image.
    ends = apart.farthest(z, log=log)
    if not np.isfinite(ends).any():
        return math.nan, math.nan
    high = float(np.nanmax(ends))
    return (max(nearest(apart, z, log=log), 0.0) if found_any else 0.0), high


def nearest(apart: Difference, z: float, *, log: bool) -> float:
    """Return the largest lower end of all pairs, each taken the way round that has the larger."""
    return float(np.nanmax(apart.farthest(z, log=log, towards=True)))


def both_ways(members: IntArray) -> tuple[IntArray, IntArray]:
    """List all ordered pairs of groups.

    Examples
    --------
    >>> first, second = both_ways(np.array([3, 5]))
    >>> first.tolist(), second.tolist()
    ([3, 5], [5, 3])
    """
    first, second = np.nonzero(~np.eye(len(members), dtype=bool))
    return members[first], members[second]


def among(tested: Tested, members: IntArray) -> Tested:
    """Keep the contrasts of some groups. The null of all pairs then errs on the side of caution."""
    place = np.full(len(tested.members), -1)
    place[np.isin(tested.members, members)] = np.arange(len(members))
    first, second = tested.contrasts.T
    with_rest = second == REST
    moved = np.where(with_rest, REST, place[np.where(with_rest, 0, second)])
    kept = (place[first] >= 0) & (with_rest | (moved >= 0))
    return replace(
        tested,
        members=members,
        contrasts=np.column_stack([place[first], moved])[kept],
        null=replace(tested.null, t=tested.null.t[kept], p_value=tested.null.p_value[kept]),
        adjusted=tested.adjusted[kept] if len(tested.adjusted) else tested.adjusted,
    )


def _undefined(estimates: Estimates, j: int, attribute: str, few: int) -> Rows:
    words = ("no group has", "only one group has", "the reference group, or all but one, lacks")
    word = words[min(few, 2)]
    return rows_of(
        estimates,
        j,
        attribute,
        "any_difference",
        groups=(None, None),
        value=np.array([np.nan]),
        status=[Status.UNDEFINED.value],
        reason=[f"{word} enough units and clusters to be compared"],
    )


def odds_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Return equalized odds: the larger of the two rates' ranges (as fairlearn does)."""
    rates = ["true_positive_rate", "false_positive_rate"]
    ranges = table.filter((pl.col("kind") == "range") & pl.col("metric").is_in(rates))
    keys = ["model", "task", "label", "attribute"]
    worst = ranges.sort("value", descending=True, nulls_last=True).group_by(
        keys, maintain_order=True
    )
    odds = worst.agg(
        pl.all().exclude(*keys, "low", "high").first(),
        pl.col("low").max(),
        pl.col("high").max(),
        _n=pl.col("metric").n_unique(),
    ).filter(pl.col("_n") == len(rates))
    return odds.with_columns(
        kind=pl.lit("equalized_odds_difference"),
        metric=pl.lit("equalized_odds"),
        method=pl.lit("worst case of the two rates, simultaneous pairs"),
    ).select(table.columns)
