"""Two shares of clustered 0/1 rows: one variance, which the test and the intervals both ask.

The interval of a - b is all gaps g at which ``(a - b - g)² <= z² V(g)``; the test asks at g = 0,
the interval of a ratio r at ``(a - r b)² <= z² V``. So a p-value of .05 or less, a 95 % interval of
the difference without 0 and one of the ratio without 1 are one and the same statement.

V has to hold where a group is flawless by chance, where few clusters are alike within and where the
groups differ in all of that; and no term may cost power where it is not needed:

- **At which shares?** At the likeliest ones if the gap were g (Mee; Farrington and Manning), as far
  as a group could not show its own: the weight of its own share is e / (e + 40), where e is how
  many of the rarer answers its rows are worth. A group without an error among 50 rows thus has
  nearly the variance of everyone's share, not 0; one with hundreds of errors has its own.
- **Which design effect?** Those of one pair are added up before they are held against one another.
  V is the own clusters' variance (CR2), times Student's t squared over the normal quantile's, on
  Welch and Satterthwaite's degrees of freedom; but at least a weighted geometric mean of the own
  variance (.6) and the one that everyone's correlation gives (.4). The own one alone errs in up to
  9 of 100 worlds where clusters are very unequal; the larger of both finds 10 points less there.
- Neither is below the effect of rare answers (``stats/shares.py``), nor below 1 without weights.

A 95 % interval holds as it is. Who asks one end alone asks a *careful* one: rates near 1 of few
people move in steps, and the plain end lets through up to 7.5 % on the one side and 9.3 % on the
other where 5 are promised (50 people beside 200 or 100; counted, ``tests/laws/test_gate.py``).

References
----------
.. [1] Mee, R. W. (1984). Confidence bounds for the difference between two probabilities. Biometrics
   40, 1175-1176.
.. [2] Miettinen, O. and Nurminen, M. (1985). Comparative analysis of two rates. Statistics in
   Medicine 4(2), 213-226.
.. [3] Farrington, C. P. and Manning, G. (1990). Test statistics and sample size formulae for
   comparative binomial trials. Statistics in Medicine 9(12), 1447-1454.
.. [4] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear
   regression with multi-stage samples. Survey Methodology 28(2), 169-181.
.. [5] Rao, J. N. K. and Scott, A. J. (1992). A simple method for the analysis of clustered binary
   data. Biometrics 48(2), 577-585.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import (
    CAREFUL_PEOPLE,
    FURTHEST,
    HALF_OWN_ANSWERS,
    OWN_VARIANCE_POWER,
    WIDEST_LOG_RATIO,
)
from isolux.stats.intervals import Interval, quantile
from isolux.stats.roots import Excess, Rising, Slope, both_ends, farthest_end, passing_zero
from isolux.stats.rows import take_rows
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray

_FLAT = 1e-14  # a variance of shares below this is rounding: nothing varies
_LEAST = 1e-300

Parts = tuple[FloatArray, FloatArray, FloatArray]
"""Of V, over p (1 - p): the first group's part, the second's, and what both share."""


@dataclass(frozen=True, slots=True)
class ShareGaps:
    """Differences a - b of h pairs of shares.

    Parameters
    ----------
    a, b : [h] float
        Shares, 0 to 1.
    worth : ([h] float, [h] float)
        Independent rows that each group's are worth.
    own, pooled : Parts
        Of the variance by the groups' own clusters, and by everyone's correlation.
    freedom, of_rows : [h] float
        Degrees of freedom of ``own``, and what they would be if rows were independent; both inf
        where they are.
    """

    a: FloatArray
    b: FloatArray
    worth: tuple[FloatArray, FloatArray]
    own: Parts
    pooled: Parts
    freedom: FloatArray
    of_rows: FloatArray

    @classmethod
    def of(
        cls, a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, shared: FloatArray
    ) -> ShareGaps:
        """Put two groups together; ``covariance`` and ``shared`` as ``differences.of_means``."""
        flat = (a.variance <= _FLAT) | (b.variance <= _FLAT)
        spread = np.sqrt(np.maximum(a.value * (1 - a.value) * b.value * (1 - b.value), 0.0))
        tie = np.divide(covariance, spread, out=np.zeros_like(spread), where=~flat & (spread > 0))
        tied = np.where(flat, 0.0, a.correlation * shared)
        least = [group.least_effect() for group in (a, b)]
        own = [np.maximum(g.own_effect(), y) for g, y in zip((a, b), least, strict=True)]
        pooled = [np.maximum(g.pooled_effect(), y) for g, y in zip((a, b), least, strict=True)]
        worth = [g.units / np.maximum(x, y) for g, x, y in zip((a, b), own, pooled, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            own, pooled = ([x / a.units, y / b.units] for x, y in (own, pooled))
        return cls(
            a.value,
            b.value,
            (worth[0], worth[1]),
            (own[0], own[1], tie),
            (pooled[0], pooled[1], tied),
            *_freedom(a, b),
        )

    def at(self, a: FloatArray, b: FloatArray) -> ShareGaps:
        """Return the same pairs as they would be at other shares."""
        return replace(self, a=a, b=b)

    def only(self, rows: npt.NDArray[np.intp]) -> ShareGaps:
        """Return some of the pairs."""
        found: ShareGaps = take_rows(self, rows)
        return found

    def growth(self, z: float | FloatArray) -> FloatArray:
        """Square of Student's t over what independent rows would take, at a normal quantile."""
        plain = np.isinf(self.freedom)
        if plain.all():  # independent rows: nothing to look up
            return np.ones(np.broadcast_shapes(self.freedom.shape, np.shape(z)))
        own = quantile(z, np.where(plain, 1.0, self.freedom))
        rows = quantile(z, np.where(plain, 1.0, self.of_rows))
        ratio = np.divide(own, rows, out=np.ones_like(own), where=rows > 0)
        return np.asarray(np.where(plain, 1.0, ratio**2))

    def variances(
        self, gap: float | FloatArray = 0.0, ratio: float | FloatArray = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance of a - r b by the own clusters, and the least that V may be, if a = r b + gap.

        One of ``gap`` and ``ratio`` is as it is by default.
        """
        n, m = self.worth
        with np.errstate(invalid="ignore", divide="ignore"):
            first, second = self._if(gap, ratio)
            alike = (n * self.a + m * self.b) / (n + m)
            rarer = np.minimum(alike, 1.0 - alike)
            shares = []
            for own, under, worth in ((self.a, first, n), (self.b, second, m)):
                e = worth * rarer
                shares.append((e * own + HALF_OWN_ANSWERS * under) / (e + HALF_OWN_ANSWERS))
            p, q = (np.maximum(x * (1.0 - x), 0.0) for x in shares)
            both = np.sqrt(p * q)
            own_of, pooled = (
                np.maximum(x * p + y * q * ratio**2 - 2.0 * ratio * t * both, 0.0)
                for x, y, t in (self.own, self.pooled)
            )
        return own_of, own_of**OWN_VARIANCE_POWER * pooled ** (1.0 - OWN_VARIANCE_POWER)

    def _if(
        self, gap: float | FloatArray, ratio: float | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return both shares as they are likeliest if a = ratio × b + gap, all rows worth alike."""
        n, m = self.worth
        if np.ndim(ratio) == 0 and ratio == 1.0:
            if np.ndim(gap) == 0 and gap == 0.0:
                alike = (n * self.a + m * self.b) / (n + m)
                return alike, alike
            first = _likeliest_apart(self.a, self.b, m / n, gap)
            return first, np.clip(first - gap, 0.0, 1.0)
        second = _likeliest_times(self.a, self.b, (n, m), ratio)
        return np.clip(second * ratio, 0.0, 1.0), second

    def reach(
        self,
        z: float | FloatArray,
        gap: float | FloatArray = 0.0,
        *,
        ratio: float | FloatArray = 1.0,
        careful: bool = False,
    ) -> FloatArray:
        """Return how far from a gap a - r b must lie to be z standard errors away."""
        own, least = self.variances(gap, ratio)
        found = z * np.sqrt(np.maximum(self.growth(z) * own, least))
        return np.asarray(found + self.aside(ratio) if careful else found)

    def aside(self, ratio: float | FloatArray = 1.0) -> FloatArray:
        """Return by how much farther out a careful end of a - r b lies."""
        n, m = (np.maximum(worth, 1.0) for worth in self.worth)
        return np.asarray(CAREFUL_PEOPLE * np.maximum(1.0 / n, ratio / m))

    def deviates(self, gap: float | FloatArray = 0.0) -> FloatArray:
        """Return how many standard errors a - b lies from a gap, with its sign: ``[h]``."""
        off = self.a - self.b - gap
        size = np.abs(off)
        own, least = self.variances(gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_least = np.where(least > 0, size / np.sqrt(least), np.inf)
            student = np.where(own > 0, size / np.sqrt(own), np.inf)
        found = np.minimum(np.minimum(by_least, self._normal(student)), FURTHEST)
        found = np.where(size > 0, found, 0.0)
        return np.asarray(np.where(np.isnan(off), np.nan, np.sign(off) * found))

    def _normal(self, t: FloatArray) -> FloatArray:
        """Find the z at which ``z sqrt(growth(z))`` is t."""
        if np.isinf(self.freedom).all():
            return t
        most = np.minimum(t, FURTHEST)

        def of(pairs: ShareGaps, t: FloatArray) -> Excess:
            return lambda z: z * np.sqrt(pairs.growth(z)) - t

        found = passing_zero(
            of(self, t), np.zeros(len(t)), most, lambda rows: of(self.only(rows), t[rows])
        )
        return np.where(np.isinf(self.freedom), t, found)

    def interval(self, z: float, *, careful: bool = False) -> Interval:
        """Return the interval of a - b that reaches z standard errors; NaN where a share is."""
        return both_ends(*self._of_gaps(z, careful=careful))

    def log_ratio_interval(self, z: float, *, careful: bool = False) -> Interval:
        """Return the interval of ln(a / b); NaN where a share is 0 or not known."""
        return both_ends(*self._of_ratios(z, careful=careful))

    def farthest(self, z: float, *, log: bool = False, towards: bool = False) -> FloatArray:
        """Return the larger of ``high`` and ``-low``; -inf of pairs sure to be below the largest.

        ``log``: of ln(a / b). ``towards``: the larger of ``low`` and ``-high``.
        """
        asked = self._of_ratios(z) if log else self._of_gaps(z)
        return farthest_end(*asked, towards=towards)

    def _of_gaps(
        self, z: float, *, careful: bool = False
    ) -> tuple[Rising, FloatArray, float, Slope]:
        """Return what ends of a - b are looked for with, for both ends of every pair."""
        both, growth = self._twice(), _twice(self.growth(z))
        aside = _twice(self.aside()) if careful else np.zeros(len(both.a))

        def of(rows: npt.NDArray[np.intp] | None = None) -> Excess:
            at = slice(None) if rows is None else rows
            pairs = both if rows is None else both.only(rows)
            off, grown, more = pairs.a - pairs.b, growth[at], aside[at]

            def excess(gap: FloatArray) -> FloatArray:
                own, least = pairs.variances(gap)
                return np.abs(off - gap) - z * np.sqrt(np.maximum(grown * own, least)) - more

            return excess

        return of, both.a - both.b, 1.0, lambda gap, _: np.ones_like(gap)

    def _of_ratios(
        self, z: float, *, careful: bool = False
    ) -> tuple[Rising, FloatArray, float, Slope]:
        """Return the same for ln(a / b)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            known = (self.a > 0) & (self.b > 0)
            log = np.where(known, np.log(self.a) - np.log(self.b), np.nan)
        both, growth = self._twice(), _twice(self.growth(z))

        def of(rows: npt.NDArray[np.intp] | None = None) -> Excess:
            pairs, grown = (both, growth) if rows is None else (both.only(rows), growth[rows])

            def excess(log_ratio: FloatArray) -> FloatArray:
                ratio = np.exp(log_ratio)
                own, least = pairs.variances(0.0, ratio)
                off = np.abs(pairs.a - ratio * pairs.b)
                off = off - pairs.aside(ratio) if careful else off
                # In units of a large ratio it would bend like the exponential.
                return (off - z * np.sqrt(np.maximum(grown * own, least))) / (1.0 + ratio)

            return excess

        def slope(log_ratio: FloatArray, rows: npt.NDArray[np.intp] | None) -> FloatArray:
            ratio = np.exp(log_ratio)
            return ratio * (both.b if rows is None else both.b[rows]) / (1.0 + ratio)

        return of, _twice(log), WIDEST_LOG_RATIO, slope

    def _twice(self) -> ShareGaps:
        """Lay the pairs out twice, for both ends of an interval at once."""
        return self.only(np.tile(np.arange(len(self.a)), 2))


def _likeliest_apart(
    a: FloatArray, b: FloatArray, more: FloatArray, gap: float | FloatArray
) -> FloatArray:
    """Return the likeliest first share if it lies ``gap`` above the second: ``[h]``.

    The cubic equation of Miettinen and Nurminen, solved as Farrington and Manning do.
    """
    third = 3.0 * (1.0 + more)
    total = a + more * b
    square = -(1.0 + more + total + gap * (more + 2.0)) / third
    linear = gap**2 + gap * (2.0 * a + more + 1.0) + total
    # Products: numpy takes ten times as long for a third power.
    v = square * (square * square - 1.5 * linear / third) - 1.5 * a * gap * (1.0 + gap) / third
    u = np.sqrt(np.maximum(square * square - linear / third, 0.0))
    u = np.where(v >= 0, u, -u)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(u == 0, 1.0, np.clip(v / (u * u * u), -1.0, 1.0))
    found = 2.0 * u * np.cos((np.pi + np.arccos(cosine)) / 3.0) - square
    return np.asarray(np.clip(found, np.maximum(gap, 0.0), np.minimum(1.0 + gap, 1.0)))


def _likeliest_times(
    a: FloatArray, b: FloatArray, rows: tuple[FloatArray, FloatArray], ratio: float | FloatArray
) -> FloatArray:
    """Return the likeliest second share if the first is ``ratio`` times as large: ``[h]``."""
    n, m = rows
    right = n * a + m * b
    square = (n + m) * ratio
    linear = n * ratio + n * a + m + m * b * ratio
    root = np.sqrt(np.maximum(linear**2 - 4.0 * square * right, 0.0))
    # The smaller root, written so that nothing cancels where few are right.
    found = np.divide(2.0 * right, linear + root, out=np.zeros_like(root), where=linear + root > 0)
    return np.asarray(np.clip(found, 0.0, np.minimum(1.0, 1.0 / ratio)))


def _freedom(a: ClusterMeans, b: ClusterMeans) -> tuple[FloatArray, FloatArray]:
    """Degrees of freedom of both groups' own variances, and of as many independent rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = a.own_effect() / a.units, b.own_effect() / b.units
        found = welch_freedom(one, a.freedom, two, b.freedom)
        rows = [np.maximum(g.units - 1.0, 1.0) for g in (a, b)]
        of_rows = welch_freedom(1.0 / a.units, rows[0], 1.0 / b.units, rows[1])
    plain = a.plain & b.plain
    return np.where(plain, np.inf, found), np.where(plain, np.inf, of_rows)


def _twice(x: FloatArray) -> FloatArray:
    return np.concatenate([x, x])


def welch_freedom(
    one: FloatArray, free_one: FloatArray, two: FloatArray, free_two: FloatArray
) -> FloatArray:
    """Degrees of freedom of a sum of two variances (Welch and Satterthwaite).

    Examples
    --------
    >>> welch_freedom(*(np.array([x]) for x in (1.0, 10.0, 1.0, 10.0))).item()
    20.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (one + two) ** 2 / (one**2 / free_one + two**2 / free_two)
    return np.asarray(np.nan_to_num(found, nan=1.0))
