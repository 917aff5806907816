"""Who remains when the least sure answers are left to another judge, and how often those are wrong.

A model that abstains below some confidence errs less on the rest; whether it does so for every
group is another question. Jones et al. (2021) show that the gap may grow, and that the worse
group's error may even rise, because its wrong answers are as sure as its right ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses.tradeoffs.curves import Kept, Rows, kept_by_group, rows_of_groups
from isolux.analyses.tradeoffs.evidence import People, Seen, finding
from isolux.statements.numbers import value_text
from isolux.statements.words import Words
from isolux.stats.constants import KEPT_CLUSTERS
from isolux.stats.design import IntArray
from isolux.stats.intervals import Interval, logit_t, student_t
from isolux.stats.multiplicity import holm
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

COVERAGE = "Coverage and error by group, the least sure answers left out"
"""Caption of the curves."""
_FLAT = 1e-9


@dataclass(frozen=True, slots=True)
class _Curve:
    """One model's curves, and the change of each group's gap: ``[g]``.

    ``clusters`` are the group's, or those of everyone else where they are fewer.
    """

    people: People
    rows: Rows
    kept: Kept
    n: IntArray
    clusters: IntArray
    own_clusters: IntArray
    change: FloatArray
    ends: Interval
    p_value: FloatArray


def add_coverage(
    several: Sequence[tuple[People, pl.DataFrame]], coverages: Sequence[float], spec: Statistics,
    words: Words, seen: Seen,
) -> None:  # fmt: skip
    """Add curves of all models, and findings about gaps that abstaining moves."""
    levels = np.unique([*coverages, 1.0])[::-1]
    curves = [_curve(people, members, coverages, spec) for people, members in several]
    if not curves:
        return
    seen.tables[COVERAGE] = pl.concat([_table(one, levels, spec) for one in curves])
    adjusted = holm(np.concatenate([one.p_value for one in curves]))
    at = 0
    for one in curves:
        own = adjusted[at : at + len(one.change)]
        at += len(one.change)
        for attribute in dict.fromkeys(name for name, _ in one.rows.names[1:]):
            seen.findings += _findings(one, own, str(attribute), float(levels[-1]), spec, words)


def _curve(
    people: People, members: pl.DataFrame, coverages: Sequence[float], spec: Statistics
) -> _Curve:
    from scipy.special import stdtr

    rows = rows_of_groups(people.rows, members)
    kept = kept_by_group(rows, coverages, spec)
    n, clusters = rows.count(np.ones(len(rows.score), dtype=np.bool_))
    moved = kept.gap[-1] - kept.gap[0]
    fewest = np.minimum(clusters, rows.clusters_outside())
    change, se = moved[:, 0], kept.standard_error(moved, np.maximum(fewest, 2.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where((se > _FLAT) & (fewest >= spec.min_clusters), change / se, np.nan)
    p = np.asarray(2.0 * stdtr(np.maximum(fewest - 1.0, 1.0), -np.abs(t)), np.float64)
    p[_mirrored(rows, kept)] = np.nan
    ends = student_t(change, se, np.maximum(fewest, 2).astype(np.float64), spec.level)
    return _Curve(people, rows, kept, n, fewest, clusters, change, ends, p)


def _mirrored(rows: Rows, kept: Kept) -> IntArray:
    """Find groups that are everyone but one other group: their test is that of the other."""
    at: dict[str | None, list[int]] = {}
    for j, (attribute, _) in enumerate(rows.names):
        at.setdefault(attribute, []).append(j)
    gap = kept.gap[[0, -1], :, 0]
    left = [
        pair[int(np.argmin(gap[:, pair].max(axis=0)))]
        for attribute, pair in at.items()
        if attribute is not None
        and len(pair) == 2
        and np.abs(gap[:, pair].sum(axis=1)).max() < _FLAT
    ]
    return np.asarray(left, dtype=np.int64)


def _table(one: _Curve, levels: FloatArray, spec: Statistics) -> pl.DataFrame:
    kept, clusters = one.kept, one.clusters
    error, gap = kept.error, kept.gap
    c = np.broadcast_to(np.maximum(clusters, 2).astype(np.float64), error.shape[:2])
    own = np.broadcast_to(one.own_clusters.astype(np.float64), error.shape[:2])
    of_error = logit_t(error[..., 0], kept.standard_error(error, own), own, spec.level)
    of_gap = student_t(gap[..., 0], kept.standard_error(gap, c), c, spec.level)
    k, g = error.shape[:2]
    status = np.where(one.own_clusters < KEPT_CLUSTERS, Status.BOUNDARY.value, Status.OK.value)
    words = np.where(np.isfinite(error[..., 0]), status, Status.UNDEFINED.value)
    return pl.DataFrame(
        {
            "model": [one.people.model] * (k * g),
            "attribute": [name for name, _ in one.rows.names] * k,
            "group": [group for _, group in one.rows.names] * k,
            "coverage of everyone": np.repeat(levels, g),
            "coverage": kept.coverage[..., 0].ravel(),
            "error": error[..., 0].ravel(),
            "error from": of_error.low.ravel(),
            "error to": of_error.high.ravel(),
            "more than everyone else": gap[..., 0].ravel(),
            "from": of_gap.low.ravel(),
            "to": of_gap.high.ravel(),
            "status": words.ravel().tolist(),
        },
        schema_overrides={"attribute": pl.String},
    ).with_columns(pl.selectors.float().fill_nan(None))


def _findings(
    one: _Curve, p: FloatArray, attribute: str, least: float, spec: Statistics, words: Words
) -> list[dict[str, Any]]:
    """Say which groups' gaps abstaining moves; of an attribute without one, that none was shown."""
    own = np.asarray([j for j, (name, _) in enumerate(one.rows.names) if name == attribute])
    own = own[np.isfinite(p[own])]
    if not len(own):
        return []
    before, after = one.kept.gap[0, :, 0], one.kept.gap[-1, :, 0]
    # Of two groups one's gap is the other's turned round: the worse one's is told.
    worse = np.maximum(before, after) > 0
    moved = own[(p[own] <= 1.0 - spec.level) & worse[own]]
    if not len(moved):
        j = own[np.argmax(np.abs(one.change[own]))]
        claim = (
            f"keeping the surest {100 * least:.0f} % of answers is not shown to change a gap in "
            f"error by {words.title(attribute)}; most: {one.rows.names[j][1]}, "
            f"{_points(one, int(j))} points; {words.own_p(float(p[j]))}."
        )
        return [_row(one, claim, int(j), float(p[j]), words)]
    return [_row(one, _claim(one, int(j), least, p, words), int(j), float(p[j]), words)
            for j in moved[np.argsort(p[moved], kind="stable")]]  # fmt: skip


def _claim(one: _Curve, j: int, least: float, p: FloatArray, words: Words) -> str:
    before, after = one.kept.gap[0, j, 0], one.kept.gap[-1, j, 0]
    attribute, group = one.rows.names[j]
    way = "widens" if one.change[j] > 0 else "narrows"
    return (
        f"keeping the surest {100 * least:.0f} % of answers {way} the gap in error of {group} "
        f"({words.title(str(attribute))}) from {value_text(before, 'fraction')} to "
        f"{value_text(after, 'fraction')} points, by {_points(one, j)}; {words.own_p(float(p[j]))}."
    )


def _points(one: _Curve, j: int) -> str:
    change, low, high = (value_text(x[j], "fraction") for x in
                         (one.change, one.ends.low, one.ends.high))  # fmt: skip
    return f"{change} ({low} to {high})"


def _row(one: _Curve, claim: str, j: int, p: float, words: Words) -> dict[str, Any]:
    status = Status.BOUNDARY if one.clusters[j] < KEPT_CLUSTERS else Status.OK
    numbers = {
        "effect": float(one.change[j]), "low": float(one.ends.low[j]),
        "high": float(one.ends.high[j]), "n": int(one.n[j]), "status": status.value,
        "reference": "jones-2021", "metric": "error at coverage", "p_adjusted": p,
        "group_b": "everyone else",
    }  # fmt: skip
    return finding(words, one.people.model, claim, numbers, one.rows.names[j])
