"""What a rule asks of a finished audit, as slacks: how far a value is on the right side of a limit.

Every rule becomes cells of one kind. A cell has a slack and bounds of it at any reach: it passes
where the lower bound is not below 0, and fails where the upper bound is below 0. "No two groups
differ by more than 5 points" is a slack for each pair of groups and each direction, which is two
one-sided tests (Schuirmann 1987) for every pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isolux.disparity.comparisons import compare_groups
from isolux.disparity.replicated import effective_clusters
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods import families_of
from isolux.groups.interval_methods.noisy import chance_of, down_by, is_enlarged
from isolux.groups.interval_methods.number import of_numbers
from isolux.groups.interval_methods.root import is_of_squares, roots
from isolux.groups.means import means_of
from isolux.stats.constants import KEPT_EFFECTIVE
from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference, Reach
from isolux.stats.differences import of_means, of_replicates
from isolux.stats.intervals import Interval, logit_reach, student_reach
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.tables import Status

Bounds = Callable[[float], Interval]


@dataclass(frozen=True, slots=True)
class Side:
    """The groups on one side of some cells: their rows in some estimates, and the measure."""

    estimates: Estimates
    j: int
    rows: IntArray

    @property
    def names(self) -> list[str]:
        """The groups' names."""
        return [self.estimates.groups[g].name for g in self.rows]

    @property
    def value(self) -> FloatArray:
        """The groups' values."""
        return np.asarray(self.estimates.value[self.rows, self.j])

    @property
    def units(self) -> FloatArray:
        """How many units each rests on."""
        return np.asarray(self.estimates.n_units[self.rows, self.j], dtype=np.float64)

    @property
    def clusters(self) -> FloatArray:
        """How many clusters each rests on."""
        return np.asarray(self.estimates.n_clusters[self.rows, self.j], dtype=np.float64)

    def means(self) -> ClusterMeans | None:
        """Reduce the groups' clusters; None where the measure is no mean."""
        measure = self.estimates.measures[self.j]
        return means_of(self.estimates.design, measure, self.rows) if measure.mean else None

    def intervals(self) -> Callable[[float], Interval]:
        """Give the groups' own intervals at any reach: those that are every audit's default."""
        e, measure, means = self.estimates, self.estimates.measures[self.j], self.means()
        if is_of_squares(measure):
            own = roots(e.design, measure, families_of(e.groups)).at(self.rows)
            return lambda z: own.interval(z, careful=True)
        if means is not None:
            if means.shares:
                return means.score_interval
            every = means_of(e.design, measure, np.arange(len(e.groups)))
            whole = of_numbers(every, families_of(e.groups), measure)
            return lambda z: _only(whole(z), self.rows)
        freedom = np.maximum(effective_clusters(e)[self.rows] - 1.0, 1.0)
        value, error = self.value, e.standard_error[self.rows, self.j]
        reach = logit_reach if measure.fraction else student_reach
        if is_enlarged(measure):
            added = chance_of(e.design, measure, self.rows).added
            return lambda z: down_by(reach(value, error, freedom, z), added)
        return lambda z: reach(value, error, freedom, z)

    def alone(self) -> Callable[[float], Interval]:
        """Give the ends that a value by itself is held to a limit with."""
        means = self.means()
        if means is None or not means.shares:
            return self.intervals()

        def exact(z: float) -> Interval:
            from scipy.special import ndtr

            from isolux.stats.proportions import clopper_pearson

            score = means.score_interval(z)
            held = np.isfinite(means.value) & (means.units > 0)
            n = np.where(held, means.units / means.design_effect(z), 1.0)
            good = np.where(held, means.value, 0.0) * n
            ends = clopper_pearson(good, n, 2.0 * float(ndtr(z)) - 1.0)
            # The farther end of the two: Wilson's is the wider one now and then.
            return Interval(
                np.where(held, np.minimum(ends.low, score.low), np.nan),
                np.where(held, np.maximum(ends.high, score.high), np.nan),
            )

        return exact


def _only(ends: Interval, rows: IntArray) -> Interval:
    return Interval(ends.low[rows], ends.high[rows])


@dataclass(frozen=True, slots=True)
class Closed:
    """What a rule asks about and the run cannot answer: it fails, or more people are needed.

    Parameters
    ----------
    who : str
        The metric, attribute or group, by its name.
    why : str
        A clause that follows a colon.
    lacks_units, lacks_clusters : int
        How many more a group needs to be judged at all; both 0: no number of people would do.
    untold : bool
        Whether more people would do, and nobody can tell how many.
    """

    who: str
    why: str
    lacks_units: int = 0
    lacks_clusters: int = 0
    untold: bool = False

    @property
    def fails(self) -> bool:
        """Whether the rule fails by it; else more people could answer it."""
        return not (self.lacks_units or self.lacks_clusters or self.untold)


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of one rule and one measure.

    Parameters
    ----------
    slack : [h] float
        Above 0 on the right side of the limit, in the metric's unit (of ratios on the log scale).
    bounds : callable
        Bounds of the slack that reach z standard errors.
    first, second : Side
        Whose value it is, and whom it is held to; second None: a limit.
    sign, offset : float
        The estimate is ``sign × slack + offset``.
    log : bool
        Whether estimate and slack are logarithms of ratios.
    rest : str
        Whom everyone in ``second`` is: "everyone else", "the baseline"; empty: groups of their own.
    """

    slack: FloatArray
    bounds: Bounds
    first: Side
    second: Side | None
    sign: float
    offset: float
    log: bool = False
    rest: str = ""

    def estimate(self, slack: FloatArray) -> FloatArray:
        """Turn slacks into what was estimated: a value, a difference, a ratio."""
        found = self.sign * slack + self.offset
        return np.exp(found) if self.log else np.asarray(found)

    def others(self) -> list[str | None]:
        """Name whom each cell is held to; None: a limit."""
        if self.second is None or self.rest:
            return [self.rest or None] * len(self.slack)
        return list(self.second.names)


def of_values(side: Side, limit: float, sign: float) -> Cells:
    """Ask that values lie above (sign 1) or below (sign −1) a limit."""
    own = side.alone()

    def bounds(z: float) -> Interval:
        ends = own(z)
        low, high = (ends.low, ends.high) if sign > 0 else (ends.high, ends.low)
        return Interval(sign * (low - limit), sign * (high - limit))

    return Cells(sign * (side.value - limit), bounds, side, None, sign, limit)


def of_differences(
    first: Side, second: Side, apart: Difference, margin: float, sign: float, rest: str = ""
) -> Cells:
    """Ask that ``sign × (first − second)`` lies above −margin."""

    def bounds(z: float) -> Interval:
        ends = apart.interval(z, careful=True)
        low, high = (ends.low, ends.high) if sign > 0 else (-ends.high, -ends.low)
        return Interval(margin + low, margin + high)

    slack = margin + sign * (apart.a - apart.b)
    return Cells(slack, bounds, first, second, sign, -sign * margin, rest=rest)


def of_ratios(first: Side, second: Side, apart: Difference, least: float) -> Cells:
    """Ask that first over second is at least a ratio, with careful ends as of differences."""
    log = float(np.log(least))

    def bounds(z: float) -> Interval:
        ends = apart.interval(z, log=True, careful=True)
        return Interval(ends.low - log, ends.high - log)

    with np.errstate(divide="ignore", invalid="ignore"):
        slack = np.log(apart.a / apart.b) - log
    return Cells(slack, bounds, first, second, 1.0, log, log=True)


def too_small(
    estimates: Estimates, j: int, rows: IntArray, least: tuple[int, int]
) -> tuple[IntArray, list[Closed]]:
    """Part groups that may be decided about from those that may not, and say why not.

    Shapes: ``estimates, j, rows`` [g]; returns [k].
    """
    kept, closed = [], []
    worth = _worth(estimates, j)
    for g in rows:
        word, why = str(estimates.status[g, j]), str(estimates.reason[g, j] or "")
        name = estimates.groups[g].name
        units, clusters = _lacks(estimates, (int(g), j), least)
        if word == Status.OK.value:
            kept.append(g)
        elif word == Status.BOUNDARY.value:
            more = int(np.ceil(max(KEPT_EFFECTIVE - worth[g], 0.0)))
            closed.append(Closed(name, why.partition(":")[0], lacks_clusters=more, untold=not more))
        elif word in (Status.INSUFFICIENT_UNITS.value, Status.INSUFFICIENT_CLUSTERS.value):
            # A rarer class may be what is too few: then one more is all that can be told.
            short = units or clusters
            closed.append(Closed(name, why, units if short else 1, clusters))
        else:
            closed.append(Closed(name, f"{word}: {why}" if why else word))
    return np.array(kept, dtype=np.int64), closed


def _lacks(estimates: Estimates, at: tuple[int, int], least: tuple[int, int]) -> tuple[int, int]:
    """Count the units and clusters that a group lacks, by what they are worth where they weigh."""
    there = int(estimates.n_units[at]), int(estimates.n_clusters[at])
    worth = estimates.worth
    if worth is None:
        return max(least[0] - there[0], 0), max(least[1] - there[1], 0)
    lacks = []
    for n, own, asked in zip(there, (worth.units[at], worth.clusters[at]), least, strict=True):
        # More of such weights: as many times as many as they are worth too little.
        times = asked / own if own > 0 else max(asked / max(n, 1), 1.0)
        lacks.append(_two_digits(max(times - 1.0, 0.0) * max(n, 1) - 1e-6))
    # Where each unit is a cluster of its own, people are all that is asked for.
    return lacks[0], 0 if there[0] == there[1] else lacks[1]


def _two_digits(number: float) -> int:
    """Round up to two digits: more is not known of weights that are yet to be drawn.

    Examples
    --------
    >>> _two_digits(29_350.2), _two_digits(7.0), _two_digits(-1e-6)
    (30000, 7, 0)
    """
    whole = int(np.ceil(number))
    step = int(10 ** max(len(str(whole)) - 2, 0))
    return -(-whole // step) * step


def _worth(estimates: Estimates, j: int) -> FloatArray:
    """Return how many clusters of one size each group is worth on a measure: ``[g]``."""
    if estimates.measures[j].mean is None:
        return effective_clusters(estimates)
    every = np.arange(len(estimates.groups))
    return means_of(estimates.design, estimates.measures[j], every).effective_clusters


def pairs_of(
    estimates: Estimates, attribute: str, j: int, first: IntArray, second: IntArray
) -> Difference:
    """Compare groups; of what chance enlarges, either group's interval reaches down by its part.

    Shapes: ``first, second`` [h].
    """
    apart = compare_groups(estimates, attribute, j).pairs(first, second)
    measure = estimates.measures[j]
    if not is_enlarged(measure):
        return apart
    one, two = (chance_of(estimates.design, measure, rows).added for rows in (first, second))

    def ends(z: Reach) -> tuple[Interval, Interval]:
        a, b = apart.ends(z)
        return down_by(a, one), down_by(b, two)

    return replace(apart, ends=ends)


def independent(one: Side, two: Side) -> Difference:
    """Compare values of people who have nothing in common."""
    none = np.zeros(len(one.rows))
    measures = [side.estimates.measures[side.j] for side in (one, two)]
    if all(m.mean is not None for m in measures):
        a, b = (means_of(s.estimates.design, s.estimates.measures[s.j], s.rows) for s in (one, two))
        if a.shares == b.shares:
            return of_means(a, b, none, none)
    ends = logit_reach if measures[0].fraction else student_reach
    parts = [
        (s.value, s.estimates.standard_error[s.rows, s.j], np.maximum(s.clusters - 1.0, 1.0))
        for s in (one, two)
    ]
    return of_replicates(parts[0], parts[1], none, ends)
