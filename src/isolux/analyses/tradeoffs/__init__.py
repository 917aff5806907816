"""Trade-offs: rates of each group by threshold, and the effect of abstention on the gap.

Two views of a score. By threshold: the true and false positive rates of each group, and the
threshold at which each group would have the overall true positive rate of the operating threshold
(equal opportunity). By coverage: when the least confident predictions are rejected, which people
remain, and their error rate; abstention lowers everyone's error and may still widen the gap (Jones
et al. 2021).

Detectors have the first view for people detected at an IoU of .50, verifiers for pairs at
thresholds set by the overall false match rate. Every interval resamples clusters; those of curves
are pointwise. Separate thresholds for each group are no recommendation: they treat people by their
group, which may be unlawful, and compensate a score that should be corrected in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._regrouping import build_membership_table, read_run_settings
from isolux.analyses._unit_scores import (
    build_ranked_findings_table,
    compares_models_or_has_no_scores,
)
from isolux.analyses.tradeoffs.curves import (
    CoverageCurves,
    SortedScoreRows,
    build_sorted_score_rows,
    estimate_coverage_curves,
)
from isolux.analyses.tradeoffs.evidence import (
    CLASSIFICATION,
    DETECTIONS,
    ScoredPeople,
    TradeoffView,
    build_tradeoff_finding,
    read_confidences,
    read_detection_scores,
    read_positive_scores,
    select_large_groups_and_note_others,
)
from isolux.analyses.tradeoffs.pairs import MATCHES, PAIRS, add_match_rates_at_fixed_fmr
from isolux.analyses.tradeoffs.thresholds import (
    RATES,
    add_threshold_curves_and_findings,
    format_thresholds_caption,
)
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.spec import Groups, Statistics
from isolux.core.tables import FINDINGS, Status
from isolux.statements.numbers import format_bare_value
from isolux.statements.run_terms import RunTerms, read_display_terms
from isolux.stats.cluster_sums import IntArray
from isolux.stats.constants import MIN_CLUSTERS_FOR_NOMINAL_COVERAGE
from isolux.stats.intervals import Interval, logit_or_wilson_interval_at_level, t_interval_at_level
from isolux.stats.multiplicity import adjust_p_holm
from isolux.stats.statistic import FloatArray

__all__ = ["COVERAGE", "INFO", "MATCHES", "RATES", "explain", "format_thresholds_caption"]

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


def explain(run: Run, *, operating: float = 0.5, replicates: int | None = None) -> AnalysisResult:
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
    AnalysisResult
        Findings. Of each attribute, the group whose threshold lies furthest off: ``effect, low,
        high`` are its threshold less ``operating``, in the score's unit (below 0: the group's
        scores are too low), ``n`` its positives. And the groups whose gap in error is moved by
        abstaining: ``effect`` is the gap at the least coverage less that at 1, 0 to 1 (above 0: it
        widens), ``p_adjusted`` Holm's over all groups and models.
        Tables ``RATES``, ``format_thresholds_caption(operating)``, ``COVERAGE``, ``MATCHES``, those
        that the run allows.

    Raises
    ------
    SpecError
        A run without scores, or with one and the same for all people.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if compares_models_or_has_no_scores(run):
        return AnalysisResult(FINDINGS.empty())
    spec = read_run_settings(run, replicates=replicates)
    view = TradeoffView()
    terms = read_display_terms(run)

    def select_large_groups_of_people(people: ScoredPeople) -> pl.DataFrame:
        members = _build_membership_of_largest_groups(run, spec.groups, people.rows["unit_id"])
        return select_large_groups_and_note_others(people, members, spec.statistics, view)

    for people in [*read_positive_scores(run, view), *read_detection_scores(run, view)]:
        members = select_large_groups_of_people(people)
        add_threshold_curves_and_findings(people, members, operating, spec.statistics, terms, view)
    confident_people = [
        (people, select_large_groups_of_people(people)) for people in read_confidences(run, view)
    ]
    add_coverage_curves_and_findings(confident_people, spec.statistics, terms, view)
    if PAIRS in run.evidence:
        units = _list_units_in_pairs(run.evidence[PAIRS])
        add_match_rates_at_fixed_fmr(
            run, _build_membership_of_largest_groups(run, spec.groups, units), spec.statistics, view
        )
    if not view.tables:
        raise _build_no_scores_error(run, view)
    notes = dict.fromkeys(
        [*view.notes, *(f"Trade-offs: {reason}." for reason in view.missing_reasons)]
    )
    return AnalysisResult(build_ranked_findings_table(view.findings), view.tables, tuple(notes))


def _build_membership_of_largest_groups(
    run: Run, settings: Groups, units: pl.Series
) -> pl.DataFrame:
    return build_membership_table(run, settings, units.unique(maintain_order=True))


def _list_units_in_pairs(pairs: pl.DataFrame) -> pl.Series:
    first = pairs["unit_id"].cast(pl.String)
    second = pairs["other_id"].explode().unique().cast(pl.String)
    return pl.concat([first, second]).drop_nulls().unique().sort()


def _build_no_scores_error(run: Run, view: TradeoffView) -> SpecError:
    found_text = "; ".join(view.missing_reasons) or "none of them; the task " + repr(
        run.record.get("task")
    )
    return SpecError(
        "this run has no scores that a threshold could part",
        expected=f"the evidence {CLASSIFICATION} with scores, {DETECTIONS} or {PAIRS}",
        found=found_text,
        where="the analysis tradeoffs",
        hint="audit again with --score-column (and --positive), of detectors with --metric "
        "average_precision, of verifiers with keep_pairs",
    )


# Selective classification: people and error rates that remain when the least confident predictions
# are rejected. A model that abstains below some confidence has fewer errors on the rest; whether it
# does so for every group is another question. Jones et al. (2021) show that the gap may grow, and
# that the worse group's error may even rise, because its errors are as confident as its correct
# predictions.

COVERAGE = "Coverage and error by group, the least sure answers left out"
"""Caption of the curves."""
_COVERAGES = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Overall coverages; the gap at the smallest is compared with that at 1."""
_ZERO_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class _ModelCurves:
    """One model's curves, and the change of each group's gap: ``[g]``.

    ``n_min_clusters`` are the group's or its complement's, whichever are fewer.
    """

    people: ScoredPeople
    rows: SortedScoreRows
    coverage_curves: CoverageCurves
    n_units: IntArray
    n_min_clusters: IntArray
    n_group_clusters: IntArray
    change: FloatArray
    change_interval: Interval
    p_value: FloatArray


def add_coverage_curves_and_findings(
    people_and_members: Sequence[tuple[ScoredPeople, pl.DataFrame]],
    spec: Statistics,
    terms: RunTerms,
    view: TradeoffView,
) -> None:
    """Add curves of all models, and findings on gaps that abstention changes."""
    levels = np.unique([*_COVERAGES, 1.0])[::-1]
    curves = [
        _estimate_model_coverage_curves(people, members, spec)
        for people, members in people_and_members
    ]
    if not curves:
        return
    view.tables[COVERAGE] = pl.concat(
        [_build_coverage_table(curve, levels, spec) for curve in curves]
    )
    adjusted = adjust_p_holm(np.concatenate([curve.p_value for curve in curves]))
    offset = 0
    for curve in curves:
        curve_p = adjusted[offset : offset + len(curve.change)]
        offset += len(curve.change)
        for attribute in dict.fromkeys(name for name, _ in curve.rows.names[1:]):
            view.findings += _build_coverage_findings(
                curve, curve_p, str(attribute), float(levels[-1]), spec, terms
            )


def _estimate_model_coverage_curves(
    people: ScoredPeople, members: pl.DataFrame, spec: Statistics
) -> _ModelCurves:
    from scipy.special import stdtr

    rows = build_sorted_score_rows(people.rows, members)
    coverage_curves = estimate_coverage_curves(rows, _COVERAGES, spec)
    n, clusters = rows.count_units(np.ones(len(rows.score), dtype=np.bool_))
    gap_changes = coverage_curves.gap[-1] - coverage_curves.gap[0]
    min_clusters = np.minimum(clusters, rows.count_complement_clusters())
    observed_change = gap_changes[:, 0]
    se = coverage_curves.standard_error(gap_changes, np.maximum(min_clusters, 2.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(
            (se > _ZERO_TOLERANCE) & (min_clusters >= spec.min_clusters),
            observed_change / se,
            np.nan,
        )
    p = np.asarray(2.0 * stdtr(np.maximum(min_clusters - 1.0, 1.0), -np.abs(t)), np.float64)
    p[_find_mirrored_groups(rows, coverage_curves)] = np.nan
    interval = t_interval_at_level(
        observed_change, se, np.maximum(min_clusters, 2).astype(np.float64), spec.level
    )
    return _ModelCurves(
        people, rows, coverage_curves, n, min_clusters, clusters, observed_change, interval, p
    )


def _find_mirrored_groups(rows: SortedScoreRows, coverage_curves: CoverageCurves) -> IntArray:
    """Find, of two complementary groups, the one with the same test as the other: ``[k]``."""
    positions_by_attribute: dict[str | None, list[int]] = {}
    for j, (attribute, _) in enumerate(rows.names):
        positions_by_attribute.setdefault(attribute, []).append(j)
    gap = coverage_curves.gap[[0, -1], :, 0]
    mirrored = [
        pair[int(np.argmin(gap[:, pair].max(axis=0)))]
        for attribute, pair in positions_by_attribute.items()
        if attribute is not None
        and len(pair) == 2
        and np.abs(gap[:, pair].sum(axis=1)).max() < _ZERO_TOLERANCE
    ]
    return np.asarray(mirrored, dtype=np.int64)


def _build_coverage_table(
    curves: _ModelCurves, levels: FloatArray, spec: Statistics
) -> pl.DataFrame:
    coverage_curves, clusters = curves.coverage_curves, curves.n_min_clusters
    error, gap = coverage_curves.error, coverage_curves.gap
    gap_clusters = np.broadcast_to(np.maximum(clusters, 2).astype(np.float64), error.shape[:2])
    group_clusters = np.broadcast_to(curves.n_group_clusters.astype(np.float64), error.shape[:2])
    error_interval = logit_or_wilson_interval_at_level(
        error[..., 0],
        coverage_curves.standard_error(error, group_clusters),
        group_clusters,
        spec.level,
    )
    gap_interval = t_interval_at_level(
        gap[..., 0], coverage_curves.standard_error(gap, gap_clusters), gap_clusters, spec.level
    )
    k, g = error.shape[:2]
    status = np.where(
        curves.n_group_clusters < MIN_CLUSTERS_FOR_NOMINAL_COVERAGE,
        Status.FEW_CLUSTERS.value,
        Status.OK.value,
    )
    statuses = np.where(np.isfinite(error[..., 0]), status, Status.UNDEFINED.value)
    return pl.DataFrame(
        {
            "model": [curves.people.model] * (k * g),
            "attribute": [name for name, _ in curves.rows.names] * k,
            "group": [group for _, group in curves.rows.names] * k,
            "overall coverage": np.repeat(levels, g),
            "coverage": coverage_curves.coverage[..., 0].ravel(),
            "error": error[..., 0].ravel(),
            "error from": error_interval.low.ravel(),
            "error to": error_interval.high.ravel(),
            "difference to everyone else": gap[..., 0].ravel(),
            "from": gap_interval.low.ravel(),
            "to": gap_interval.high.ravel(),
            "status": statuses.ravel().tolist(),
        },
        schema_overrides={"attribute": pl.String},
    ).with_columns(pl.selectors.float().fill_nan(None))


def _build_coverage_findings(
    curves: _ModelCurves,
    p: FloatArray,
    attribute: str,
    min_coverage: float,
    spec: Statistics,
    terms: RunTerms,
) -> list[dict[str, Any]]:
    """Build findings on gaps that abstention changes; else one that no change was shown."""
    group_index = np.asarray(
        [j for j, (name, _) in enumerate(curves.rows.names) if name == attribute]
    )
    group_index = group_index[np.isfinite(p[group_index])]
    if not len(group_index):
        return []
    before, after = curves.coverage_curves.gap[0, :, 0], curves.coverage_curves.gap[-1, :, 0]
    # Of two groups the gaps have opposite signs: only the worse group's is reported.
    worse = np.maximum(before, after) > 0
    changed = group_index[(p[group_index] <= 1.0 - spec.level) & worse[group_index]]
    if not len(changed):
        j = group_index[np.argmax(np.abs(curves.change[group_index]))]
        claim = (
            f"keeping the surest {100 * min_coverage:.0f} % of answers is not shown to change a "
            f"gap in error by {terms.format_attribute(attribute)}; most: {curves.rows.names[j][1]},"
            f" {_format_gap_change(curves, int(j))} points; {terms.format_adjusted_p(float(p[j]))}."
        )
        return [_build_coverage_finding(curves, claim, int(j), float(p[j]), terms)]
    return [
        _build_coverage_finding(
            curves,
            _format_abstention_claim(curves, int(j), min_coverage, p, terms),
            int(j),
            float(p[j]),
            terms,
        )
        for j in changed[np.argsort(p[changed], kind="stable")]
    ]


def _format_abstention_claim(
    curves: _ModelCurves, j: int, min_coverage: float, p: FloatArray, terms: RunTerms
) -> str:
    before, after = curves.coverage_curves.gap[0, j, 0], curves.coverage_curves.gap[-1, j, 0]
    attribute, group = curves.rows.names[j]
    verb = "widens" if curves.change[j] > 0 else "narrows"
    return (
        f"keeping the surest {100 * min_coverage:.0f} % of answers {verb} the gap in error of"
        f" {group} ({terms.format_attribute(str(attribute))}) from"
        f" {format_bare_value(before, 'fraction')} to {format_bare_value(after, 'fraction')}"
        f" points, by {_format_gap_change(curves, j)}; {terms.format_adjusted_p(float(p[j]))}."
    )


def _format_gap_change(curves: _ModelCurves, j: int) -> str:
    change, low, high = (
        format_bare_value(x[j], "fraction")
        for x in (curves.change, curves.change_interval.low, curves.change_interval.high)
    )
    return f"{change} ({low} to {high})"


def _build_coverage_finding(
    curves: _ModelCurves, claim: str, j: int, p: float, terms: RunTerms
) -> dict[str, Any]:
    status = (
        Status.FEW_CLUSTERS
        if curves.n_min_clusters[j] < MIN_CLUSTERS_FOR_NOMINAL_COVERAGE
        else Status.OK
    )
    numbers = {
        "effect": float(curves.change[j]),
        "low": float(curves.change_interval.low[j]),
        "high": float(curves.change_interval.high[j]),
        "n": int(curves.n_units[j]),
        "status": status.value,
        "reference": "jones-2021",
        "metric": "error at coverage",
        "p_adjusted": p,
        "group_b": "everyone else",
    }
    return build_tradeoff_finding(terms, curves.people.model, claim, numbers, curves.rows.names[j])
