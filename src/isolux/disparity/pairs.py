"""Pairs of groups: difference, ratio and log ratio, and each group against everyone.

Rows are oriented so that ``group_a`` is the worse one by the metric's direction (the lower value
where no direction is better); with a reference group, ``group_b`` is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.disparity.detectable import least_detectable
from isolux.disparity.family import Family, Tested, at_once, untested
from isolux.disparity.formulas import difference, log_ratio, ratio
from isolux.disparity.observed import is_among, others_of
from isolux.disparity.rows import Rows, doubts_of, either, rows_of
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods.noisy import is_enlarged
from isolux.io.threads import in_threads
from isolux.stats.deviates import Difference
from isolux.stats.drawn_design import is_census
from isolux.stats.intervals import Interval, normal_quantile, percentile
from isolux.stats.nulls import REST
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status
from isolux.vocabulary.words import NO_RATIO, OUTSIDE, UNTESTED


def pair_rows(estimates: Estimates, family: Family, spec: Comparing) -> list[Rows]:
    """Return the rows of all tested pairs, and of each group against everyone."""
    most = at_once(tested.contrasts for tested in family.tested.values())

    def of_key(key: tuple[str, int]) -> list[Rows]:
        return _Comparison(estimates, family, spec, *key, family.tested[key]).rows()

    found = in_threads(of_key, family.tested, most=most)
    return [rows for some in found for rows in some]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """One kind of comparison of some pairs: value, intervals and smallest detectable value."""

    kind: str
    method: str
    value: FloatArray
    ends: Interval
    simultaneous: Interval
    detectable: FloatArray


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The groups of one attribute, compared by measure j with one another and with everyone."""

    estimates: Estimates
    family: Family
    spec: Comparing
    attribute: str
    j: int
    tested: Tested

    @property
    def measure(self) -> Measure:
        return self.estimates.measures[self.j]

    @property
    def interval_name(self) -> str:
        return "score" if is_enlarged(self.measure) else self.spec.interval

    @property
    def z(self) -> float:
        return normal_quantile(self.spec.level)

    def rows(self) -> list[Rows]:
        tested = self.tested
        is_rest = tested.contrasts[:, 1] == REST
        at = np.flatnonzero(~is_rest)
        first, second = tested.members[tested.contrasts[at]].T
        if not tested.referenced:  # the group that is served worse comes first
            rank = self.estimates.value[:, self.j] * self.measure.sign
            swap = rank[first] > rank[second]
            first, second = np.where(swap, second, first), np.where(swap, first, second)
        doubts = doubts_of(self.estimates, self.j)
        why = either(doubts[first], doubts[second])
        frames = [
            self._frame(numbers, (first, second), at, why)
            for numbers in self._of_pairs(first, second)
        ]
        at = np.flatnonzero(is_rest)
        if not len(at):
            return frames
        first = tested.members[tested.contrasts[at, 0]]
        every = np.zeros_like(first)
        why = either(doubts[first], doubts[every], self._doubts_of_others(doubts, first))
        return [*frames, self._frame(self._of_rests(first), (first, every), at, why)]

    def _doubts_of_others(
        self, doubts: npt.NDArray[np.object_], first: IntArray
    ) -> npt.NDArray[np.object_]:
        """Return what is in doubt of everyone else, where that is the other of two groups."""
        found = np.full(len(first), None, dtype=object)
        if len(self.tested.members) == 2:
            one, two = self.tested.members
            other = np.where(first == one, two, one)
            n_units = self.estimates.n_units[other, self.j]
            whole = others_of(self.estimates, first, self.j) == n_units
            found[whole] = doubts[other][whole]
        return found

    def _frame(
        self,
        numbers: _Numbers,
        groups: tuple[IntArray, IntArray],
        at: IntArray,
        doubts: npt.NDArray[np.object_],
    ) -> Rows:
        undefined = np.isnan(numbers.value)
        tests = self.tested.null.p_value, self.tested.adjusted
        p, adjusted = (np.where(undefined, np.nan, one[at]) for one in tests)
        mute = np.isnan(p) & untested(self.estimates, self.j, *groups)
        open_ = np.isnan(numbers.ends.low) | np.isnan(numbers.ends.high)
        why = doubts.copy()
        if numbers.kind in ("ratio", "log_ratio"):
            why[open_ & ~why.astype(bool)] = NO_RATIO
        why[mute] = UNTESTED
        why[undefined] = "a value of 0 has no ratio"
        sure = np.where(why.astype(bool), Status.BOUNDARY.value, Status.OK.value)
        return rows_of(
            self.estimates,
            self.j,
            self.attribute,
            numbers.kind,
            groups=groups,
            value=numbers.value,
            low=numbers.ends.low,
            high=numbers.ends.high,
            simultaneous=numbers.simultaneous,
            method=numbers.method,
            p_value=p,
            p_adjusted=adjusted,
            test=self.tested.test,
            family=self.family.name,
            detectable=numbers.detectable,
            status=np.where(undefined, Status.UNDEFINED.value, sure).tolist(),
            reason=why.tolist(),
        )

    def _of_pairs(self, first: IntArray, second: IntArray) -> Iterator[_Numbers]:
        """Give pairs' difference and, of measures that cannot be negative, ratio and log ratio."""
        apart = self.tested.compared.pairs(first, second)
        a, b = self.estimates.value[first, self.j], self.estimates.value[second, self.j]
        least = self._least(apart)
        method = self._method_name(apart)
        ends = self._ends(first, second, apart)
        wide = self._simultaneous(apart, ends)
        yield _Numbers("difference", method, difference(a, b), ends, wide, least)
        if self.measure.info.low is None:
            return
        logs = self._ends(first, second, apart, log=True)
        base = float(np.log(self.spec.log_base))
        with np.errstate(divide="ignore", invalid="ignore"):
            # What is detectable concerns the group that is served worse, beside the pair's mean.
            pooled = (a + b) / 2.0
            worse_is_lower = self.measure.sign > 0
            times = np.where(worse_is_lower, 1.0 - least / pooled, 1.0 + least / pooled)
            times = np.where(times > 0, times, np.nan)
            size = np.abs(np.log(times)) / base
        wide = self._simultaneous(apart, logs, log=True)
        ends, family_ends = (Interval(np.exp(of.low), np.exp(of.high)) for of in (logs, wide))
        yield _Numbers("ratio", method, ratio(a, b), ends, family_ends, times)
        ends, family_ends = (Interval(of.low / base, of.high / base) for of in (logs, wide))
        value = log_ratio(a, b, self.spec.log_base)
        yield _Numbers("log_ratio", method, value, ends, family_ends, size)

    def _of_rests(self, first: IntArray) -> _Numbers:
        """Give the difference of groups to everyone: that to everyone else, times the others."""
        others = self.tested.compared.share_of_others(first)
        apart = self.tested.compared.rests(first)
        if self.spec.interval == "percentile":
            drawn = self.estimates.replicates[:, self.j]
            ends = percentile(drawn[first] - drawn[0], self.spec.level)
        else:
            shown = np.isfinite(self.estimates.interval.low[first, self.j])
            ends = apart.interval(self.z).show(shown).times(others)
        return _Numbers(
            "difference_to_overall",
            self._method_name(apart),
            # Of the people whose value is known: means have them in closed form.
            others * (apart.a - apart.b),
            ends,
            self._simultaneous(apart, ends).times(others),
            others * self._least(apart),
        )

    def _least(self, apart: Difference) -> FloatArray:
        # What is not in a whole population's values is not there. What chance adds depends on the
        # gaps themselves, so how large a difference would have been seen, the values do not tell.
        if is_census(self.estimates.design) or is_enlarged(self.measure):
            return np.full(len(apart.a), np.nan)
        lower, most = self.measure.sign > 0, self.measure.span
        return least_detectable(apart, self.family.critical, worse_is_lower=lower, most=most)

    def _simultaneous(self, apart: Difference, own: Interval, *, log: bool = False) -> Interval:
        """Return the family's intervals; NaN where p-values do not come from them, or no own."""
        inverted = self.spec.correction == "max-t" and self.interval_name == "score"
        if not (inverted and np.isfinite(self.family.critical)):
            return own.times(np.nan)
        shown = np.isfinite(own.low) & np.isfinite(own.high)
        return apart.interval(self.family.critical, log=log).show(shown)

    def _ends(
        self, first: IntArray, second: IntArray, apart: Difference, *, log: bool = False
    ) -> Interval:
        """Return the interval that the test asks too; others are put together or replicated."""
        if self.interval_name == "percentile":
            drawn = self.estimates.replicates[:, self.j]
            a, b = drawn[first], drawn[second]
            with np.errstate(divide="ignore", invalid="ignore"):
                return percentile(np.log(a / b) if log else a - b, self.spec.level)
        one, two = (self.estimates.ends(side, self.j) for side in (first, second))
        if self.interval_name != "score":
            return apart.of_ends(one, two, self.z, log=log)
        shown = np.isfinite(one.low) & np.isfinite(two.low)
        return apart.interval(self.z, log=log).show(shown)

    def _method_name(self, apart: Difference) -> str:
        """Say how intervals are made; of what chance enlarges, replicates are enlarged too."""
        if self.interval_name == "percentile":
            return "percentile"
        if is_enlarged(self.measure):
            return "bootstrap t, as is and with chance alike, MOVER"
        asked = self.spec.interval == "score" and apart.gaps is not None
        own = self.estimates.method[0, self.j].split(",")[0]
        return f"{own}, {'of the pair' if asked else 'MOVER'}"


def unjudged_rows(estimates: Estimates, spec: Comparing) -> list[Rows]:
    """Say of each group that was too small, or not scored, that it was not compared."""
    judged = estimates.judged()
    frames = []
    for attribute in estimates.domain_of:
        rows = estimates.members(attribute)
        for j in range(len(estimates.measures)):
            frames += _beside_no_measure(estimates, spec, attribute, j, rows[judged[rows, j]])
            left = rows[~judged[rows, j]]
            status, reason = estimates.status[left, j].tolist(), estimates.reason[left, j].tolist()
            frames += _to_everyone(estimates, attribute, j, left, status, reason)
    return frames


def _to_everyone(
    estimates: Estimates,
    attribute: str,
    j: int,
    groups: IntArray,
    status: list[str],
    reason: list[str | None],
) -> list[Rows]:
    """Give groups that are not compared with everyone, and why."""
    if not len(groups):
        return []
    return [
        rows_of(
            estimates,
            j,
            attribute,
            "difference_to_overall",
            groups=(groups, np.zeros_like(groups)),
            value=np.full(len(groups), np.nan),
            status=status,
            reason=reason,
        )
    ]


def _beside_no_measure(
    estimates: Estimates, spec: Comparing, attribute: str, j: int, judged: IntArray
) -> list[Rows]:
    """Say of groups why they are not held to everyone, or to everyone else."""
    if not estimates.measures[j].info.pooled or len(judged) < 2:
        return []
    word, why = Status.UNDEFINED, OUTSIDE
    if not estimates.judged()[0, j]:
        word, why = Status(str(estimates.status[0, j])), f"everyone: {estimates.reason[0, j]}"
    elif is_among(estimates, attribute, j):
        judged = judged[others_of(estimates, judged, j) < max(spec.min_units, 1)]
        word, why = Status.INSUFFICIENT_UNITS, f"everyone else: fewer than {spec.min_units} units"
    n = len(judged)
    return _to_everyone(estimates, attribute, j, judged, [word.value] * n, [why] * n)
