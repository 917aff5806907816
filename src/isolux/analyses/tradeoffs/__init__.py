"""Trade-offs: what a threshold gives each group, and what abstaining does to the gap.

Two views of a score. Against the threshold: how many of each group's positives and of its others
lie at or above it, and where each group's threshold would have to lie for its positives to fare as
everyone's do at the operating one (equal opportunity). Against coverage: when the least sure
answers are left to another judge, who remains, and how often the rest is wrong; abstaining lowers
everyone's error and may still widen the gap (Jones et al. 2021).

Detectors have the first view for people found at an overlap of .50, verifiers for pairs at
thresholds that everyone's impostors set. Every interval resamples clusters; those of curves hold at
one point at a time. A threshold of its own for each group is no advice: it treats people by their
group, which may be unlawful, and it mends a score that should be mended where it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._judged import findings_table, nothing_to_judge
from isolux.analyses._regrouping import groups_of, settings_of
from isolux.analyses.tradeoffs.curves import Kept, Rows, kept_by_group, rows_of_groups
from isolux.analyses.tradeoffs.evidence import (
    CLASSIFICATION,
    DETECTIONS,
    People,
    Seen,
    finding,
    found_people,
    graded_people,
    large_groups,
    sure_people,
)
from isolux.analyses.tradeoffs.pairs import MATCHES, PAIRS, add_pairs
from isolux.analyses.tradeoffs.thresholds import RATES, add_thresholds, meets_at
from isolux.statements.numbers import value_text
from isolux.statements.words import Words, words_of
from isolux.stats.constants import KEPT_CLUSTERS
from isolux.stats.design import IntArray
from isolux.stats.intervals import Interval, logit_t, student_t
from isolux.stats.multiplicity import holm
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.spec import Groups, Statistics
from isolux.vocabulary.tables import FINDINGS, Status

__all__ = ["COVERAGE", "INFO", "MATCHES", "RATES", "explain", "meets_at"]

INFO = AnalysisInfo(
    title="Trade-offs",
    summary="Rates by group against the threshold, thresholds at which groups would meet, and "
    "whether abstaining widens the gap.",
    references=(
        Reference(
            "jones-2021",
            "Jones, E., Sagawa, S., Koh, P. W., Kumar, A., & Liang, P. (2021). Selective "
            "classification can magnify disparities across groups. In International Conference on "
            "Learning Representations (ICLR).",
            "section 3: group accuracies against coverage",
            "https://arxiv.org/abs/2010.14134",
        ),
        Reference(
            "hardt-2016",
            "Hardt, M., Price, E., & Srebro, N. (2016). Equality of opportunity in supervised "
            "learning. In Advances in Neural Information Processing Systems 29 (pp. 3315–3323).",
            "section 2: equal opportunity; section 4: thresholds by group",
            "https://arxiv.org/abs/1610.02413",
        ),
    ),
    assumptions=(
        "Scores of one model are of one scale for all people.",
        "Intervals of curves hold at one point at a time, not for the curve.",
        "Separate thresholds for each group would treat people by their group: this measures only.",
        "People who are left out are judged in another way, whose errors are not counted here.",
        (
            "Leaving out the least confident answers lowers all errors, and with them gaps in "
            "points; the two errors, not the gap, show whether a gap shrinks as fast as the errors "
            "do."
        ),
    ),
)


def explain(run: Run, *, operating: float = 0.5, replicates: int | None = None) -> Explained:
    """Lay out rates against thresholds and errors against coverage, by the 6 largest groups.

    Parameters
    ----------
    run : Run
        With the evidence of classification (with scores), ``detections`` (boxes, masks or poses
        with average precision) or ``pairs`` (verification).
    operating : float
        The threshold in use: for each group, the threshold is found at which its positives do as
        well as everyone's do at this one.
    replicates : int, optional
        Bootstrap replicates; default: the audit's own.

    Returns
    -------
    Explained
        Findings. Of each attribute, the group whose threshold lies furthest off: ``effect, low,
        high`` are its threshold less ``operating``, in the score's unit (below 0: the group's
        scores are too low), ``n`` its positives. And the groups whose gap in error is moved by
        abstaining: ``effect`` is the gap at the least coverage less that at 1, 0 to 1 (above 0: it
        widens), ``p_adjusted`` Holm's over all groups and models.
        Tables ``RATES``, ``meets_at(operating)``, ``COVERAGE``, ``MATCHES``, those that the run
        allows.

    Raises
    ------
    SpecError
        A run without scores, or with one and the same for all people.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec, seen, words = settings_of(run, replicates=replicates), Seen(), words_of(run)

    def members_of(people: People) -> pl.DataFrame:
        members = _groups(run, spec.groups, people.rows["unit_id"])
        return large_groups(people, members, spec.statistics, seen)

    for people in [*graded_people(run, seen), *found_people(run, seen)]:
        members = members_of(people)
        add_thresholds(people, members, operating, spec.statistics, words, seen)
    sure = [(people, members_of(people)) for people in sure_people(run, seen)]
    add_coverage(sure, spec.statistics, words, seen)
    if PAIRS in run.evidence:
        units = _of_pairs(run.evidence[PAIRS])
        add_pairs(run, _groups(run, spec.groups, units), spec.statistics, seen)
    if not seen.tables:
        raise _nothing(run, seen)
    notes = dict.fromkeys([*seen.notes, *(f"Trade-offs: {why}." for why in seen.lacking)])
    return Explained(findings_table(seen.findings), seen.tables, tuple(notes))


def _groups(run: Run, settings: Groups, units: pl.Series) -> pl.DataFrame:
    return groups_of(run, settings, units.unique(maintain_order=True))


def _of_pairs(pairs: pl.DataFrame) -> pl.Series:
    first = pairs["unit_id"].cast(pl.String)
    second = pairs["other_id"].explode().unique().cast(pl.String)
    return pl.concat([first, second]).drop_nulls().unique().sort()


def _nothing(run: Run, seen: Seen) -> SpecError:
    found = "; ".join(seen.lacking) or "none of them; the task " + repr(run.record.get("task"))
    return SpecError(
        "this run has no scores that a threshold could part",
        expected=f"the evidence {CLASSIFICATION} with scores, {DETECTIONS} or {PAIRS}",
        found=found,
        where="the analysis tradeoffs",
        hint="audit again with --score-column (and --positive), of detectors with --metric "
        "average_precision, of verifiers with keep_pairs",
    )


# Who remains when the least sure answers are left to another judge, and how often those are
# wrong.
# A model that abstains below some confidence errs less on the rest; whether it does so for every
# group is another question. Jones et al. (2021) show that the gap may grow, and that the worse
# group's error may even rise, because its wrong answers are as sure as its right ones.

COVERAGE = "Coverage and error by group, the least sure answers left out"
"""Caption of the curves."""
_COVERAGES = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Shares of everyone that are kept; the gap at the smallest is compared with that at 1."""
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
    several: Sequence[tuple[People, pl.DataFrame]], spec: Statistics, words: Words, seen: Seen
) -> None:
    """Add curves of all models, and findings about gaps that abstaining moves."""
    levels = np.unique([*_COVERAGES, 1.0])[::-1]
    curves = [_curve(people, members, spec) for people, members in several]
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


def _curve(people: People, members: pl.DataFrame, spec: Statistics) -> _Curve:
    from scipy.special import stdtr

    rows = rows_of_groups(people.rows, members)
    kept = kept_by_group(rows, _COVERAGES, spec)
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
    return [
        _row(one, _claim(one, int(j), least, p, words), int(j), float(p[j]), words)
        for j in moved[np.argsort(p[moved], kind="stable")]
    ]


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
    change, low, high = (
        value_text(x[j], "fraction") for x in (one.change, one.ends.low, one.ends.high)
    )
    return f"{change} ({low} to {high})"


def _row(one: _Curve, claim: str, j: int, p: float, words: Words) -> dict[str, Any]:
    status = Status.BOUNDARY if one.clusters[j] < KEPT_CLUSTERS else Status.OK
    numbers = {
        "effect": float(one.change[j]),
        "low": float(one.ends.low[j]),
        "high": float(one.ends.high[j]),
        "n": int(one.n[j]),
        "status": status.value,
        "reference": "jones-2021",
        "metric": "error at coverage",
        "p_adjusted": p,
        "group_b": "everyone else",
    }
    return finding(words, one.people.model, claim, numbers, one.rows.names[j])
