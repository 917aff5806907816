"""Effect of wrong group labels on gaps: corrected for misclassification, or bounded.

A gap between groups is a gap between labels. Label errors that are independent of the score shrink
a gap; errors that depend on it can change the gap in either direction. Three ways to quantify that:

- With a *confusion matrix* of the labels (``matrix``: a file of counts of true by labelled group),
  or several annotators of each person (Dawid & Skene), the true groups' means are estimated, with
  intervals that include the matrix's own error: its counts are resampled together with clusters.
- Without one, *bounds*: the range of the gap if up to a share of the labels is wrong, no matter
  whose (``max_error_rate``). Nothing is assumed, so they are wide; the share at which the gap
  could be 0 is also given.
- People of *unknown* group: the range of the gap, whichever group each of them is of.

Gaps are a group's mean minus that of all others. Formulas and references: ``stats/label_noise.py``;
simulation tests and costs: ``docs/methods/label_errors.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._regrouping import read_run_settings
from isolux.analyses._unit_scores import (
    build_ranked_findings_table,
    check_attributes_exist,
    round_floats,
)
from isolux.analyses.label_errors.annotators import (
    warn_of_unreliable_annotators as doubts_of_annotators,
)
from isolux.analyses.label_errors.gaps import (
    ANNOTATORS_METHOD,
    CorrectedGaps,
    LabelErrorGap,
    bonferroni_interval_level,
    bound_gap_with_label_errors,
    build_empty_correction,
    correct_gaps_by_annotators,
    correct_gaps_by_confusion_matrix,
    list_groups_with_distinct_gaps,
)
from isolux.analyses.label_errors.labelled_scores import (
    MEASURE,
    LabelledScores,
    count_annotator_labels_or_none,
    iterate_labelled_scores,
    note_labels_correction_cannot_use,
    read_unit_labels_and_groups,
)
from isolux.analyses.label_errors.sentences import (
    format_corrected_gap,
    format_unknown_group_bounds,
    format_wrong_label_bounds,
    is_corrected_mean_out_of_range,
    is_gap_interval_uninformative,
)
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.notes import Caution
from isolux.core.spec import AuditSpec
from isolux.core.tables import FINDINGS, Status
from isolux.statements.run_terms import RunTerms, read_display_terms
from isolux.stats.confusion import caution_if_labels_look_swapped, read_confusion_matrix

MATRIX_METHOD, BOUNDS, ANNOTATORS = "greenland-1988", "horowitz-manski-1995", "dawid-skene-1979"
_GROUPS = "Groups, as labelled and with labels corrected"
_GAPS = "Gaps to everyone else, if labels are wrong"
_REVERSED_NOTE = (
    "by this matrix most labels of some group are wrong, so that undoing them turns the difference "
    "round: check that its columns and names are not exchanged"
)
_MAX_ROWS = 72

INFO = AnalysisInfo(
    makes_claims=False,
    title="If group labels are wrong",
    summary="Gaps corrected for errors of the group labels, or bounds of how far they could be.",
    references=(
        Reference(
            MATRIX_METHOD,
            "Greenland, S. (1988). Variance estimation for epidemiologic effect estimates under "
            "misclassification. Statistics in Medicine 7(7), 745-757.",
            "the matrix method",
        ),
        Reference(
            BOUNDS,
            "Horowitz, J. L., & Manski, C. F. (1995). Identification and robustness with "
            "contaminated and corrupted data. Econometrica 63(2), 281-302.",
            "sharp bounds of means",
        ),
        Reference(
            "imbens-manski-2004",
            "Imbens, G. W., & Manski, C. F. (2004). Confidence intervals for partially identified "
            "parameters. Econometrica 72(6), 1845-1857.",
            "the interval of a bounded gap",
        ),
        Reference(
            ANNOTATORS,
            "Dawid, A. P., & Skene, A. M. (1979). Maximum likelihood estimation of observer "
            "error-rates using the EM algorithm. Applied Statistics 28(1), 20-28.",
            "the annotators' posterior",
        ),
    ),
    assumptions=(
        (
            "Corrections: among people truly of one group, an error of the label does not depend "
            "on the score. Bounds do not assume it."
        ),
        "The people on whom the matrix was counted are labelled as those of the audit are.",
        "Annotators err independently of one another, given the true group.",
    ),
)


def explain(
    run: Run,
    *,
    matrix: str = "",
    max_error_rate: float = 0.1,
    attribute: Sequence[str] = (),
    annotators: bool = True,
    replicates: int | None = None,
) -> AnalysisResult:
    """Say what gaps are with labels corrected, and how far they could be if labels are wrong.

    Parameters
    ----------
    run : Run
        Its scores, attributes and record are read.
    matrix : str
        A file with columns ``true``, ``labelled`` and ``count`` (people), or ``share`` (rows of one
        true group sum to 1; taken as exact), and ``attribute`` where there are several. Empty: no
        correction by a matrix.
    max_error_rate : float
        Share of each side's labels that may be wrong, 0 to below 0.5.
    attribute : sequence of str
        Default: the single attributes of the audit's ``by``.
    annotators : bool
        Whether labels of several named annotators are used where no matrix is given.
    replicates : int
        Replicates of the cluster bootstrap. Default: the audit's.

    Returns
    -------
    AnalysisResult
        Of the run's first metric and each attribute, the gap of the group farthest from the others:
        corrected, its bounds, and those with the unknown. ``effect``: the gap (corrected, or as
        labelled; group less others, in the metric's unit); ``low, high``: its interval, of bounds
        Imbens and Manski's. None has a p: whether groups differ the audit has tested. Tables have
        all groups.

    Raises
    ------
    SpecError, UnknownNameError, TableError
        A share that is none, no such attribute, people in several groups, or a matrix
        that cannot be used: negative, rows that do not sum to 1, singular, other groups.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if not 0.0 <= max_error_rate < 0.5:
        raise SpecError(
            "with this share of wrong labels, nothing can be said",
            expected="0 to below 0.5",
            found=str(max_error_rate),
            where="--analysis-option label_errors.max_error_rate",
            hint=f"it is a share: {max_error_rate / 100:g} is {max_error_rate:g} %"
            if 1 <= max_error_rate < 50
            else None,
        )
    if run.scores.is_empty() or "model_a" in run.disparities.columns:
        return AnalysisResult(FINDINGS.empty())
    spec, terms = read_run_settings(run, replicates=replicates), read_display_terms(run)
    rows: list[dict[str, Any]] = []
    tables: dict[str, list[dict[str, Any]]] = {_GROUPS: [], _GAPS: []}
    notes: list[str] = []
    check_attributes_exist(run, attribute, "--analysis-option label_errors.attribute")
    names = list(dict.fromkeys(attribute)) or [
        attribute_name for attribute_name in spec.groups.by if "*" not in attribute_name
    ]
    for name in names:
        labels, groups = read_unit_labels_and_groups(run, spec, name)
        if not attribute and len(names) > 1 and len(groups) < 2:
            notes.append(f"label_errors: {name} has one group with scores and is left out")
            continue
        group_index = list_groups_with_distinct_gaps(len(groups))
        level = bonferroni_interval_level(spec.statistics.level, len(group_index))
        for people in iterate_labelled_scores(run, labels, name, groups):
            corrected = _correct_gaps_by_best_method(
                run, people, spec, matrix, annotators=annotators, notes=notes
            )
            gaps = [
                bound_gap_with_label_errors(people, g, max_error_rate, level, spec.statistics.seed)
                for g in group_index
            ]
            rows += _iterate_label_error_findings(people, corrected, gaps, max_error_rate, terms)
            tables[_GROUPS] += _iterate_group_mean_rows(people, corrected)
            tables[_GAPS] += [
                _build_corrected_gap_row(people, corrected, gap, k) for k, gap in enumerate(gaps)
            ]
    printed_tables = {
        c: pl.DataFrame(r[:_MAX_ROWS], infer_schema_length=None) for c, r in tables.items() if r
    }
    return AnalysisResult(
        build_ranked_findings_table(rows), printed_tables, tuple(dict.fromkeys(notes))
    )


def _correct_gaps_by_best_method(
    run: Run,
    people: LabelledScores,
    spec: AuditSpec,
    matrix: str,
    *,
    annotators: bool,
    notes: list[str],
) -> CorrectedGaps:
    """Correct by the matrix, else by several annotators; else return an empty correction."""
    bootstrap_settings = (spec.statistics.replicates, spec.statistics.level, spec.statistics.seed)
    source = f"label_errors, {people.attribute}"
    if matrix:
        confusion = read_confusion_matrix(
            matrix,
            people.attribute,
            people.groups,
            alternative="without a matrix, bounds are given: leave out label_errors.matrix",
        )
        warnings = caution_if_labels_look_swapped(confusion)
        notes += [Caution(f"{source}: {warning[:1].lower()}{warning[1:]}") for warning in warnings]
        if confusion.counts is None:
            notes.append(
                f"{source}: the confusion matrix has shares and no counts, so intervals take it as "
                "exact; with a column count they would carry its own error"
            )
        if confusion.dropped_unknown:
            notes.append(
                f"{source}: people whom the matrix has as labelled unknown are left out of it"
            )
        return replace(
            correct_gaps_by_confusion_matrix(people, confusion, *bootstrap_settings),
            warning=_REVERSED_NOTE if warnings else "",
        )
    if not annotators:
        return build_empty_correction(people, "")
    annotator_votes = count_annotator_labels_or_none(run, people)
    notes += [
        f"{source}: {text}"
        for text in note_labels_correction_cannot_use(
            run, people, has_used=annotator_votes is not None
        )
    ]
    if annotator_votes is None:
        return build_empty_correction(people, "")
    votes, annotator_names = annotator_votes
    assessment = doubts_of_annotators(votes, annotator_names, spec.statistics.seed)
    notes += [Caution(f"{source}: {warning}") for warning in assessment.list_all()]
    if assessment.impossible_reason:
        return build_empty_correction(people, ANNOTATORS_METHOD, assessment.impossible_reason)
    n_excluded = int((votes.sum(axis=(1, 2)) == 0).sum())
    if n_excluded:
        notes.append(
            f"{source}: {n_excluded:,} people without a named annotator's label "
            "are left out of the correction"
        )
    return replace(
        correct_gaps_by_annotators(people, votes, *bootstrap_settings),
        warning="; ".join(assessment.caution_reasons),
    )


def _iterate_label_error_findings(
    people: LabelledScores,
    corrected: CorrectedGaps,
    gaps: Sequence[LabelErrorGap],
    max_error_rate: float,
    terms: RunTerms,
) -> Iterator[dict[str, Any]]:
    sizes = [abs(gap.labelled) for gap in gaps]
    if not np.isfinite(sizes).any():
        return
    k = int(np.nanargmax(sizes))
    gap = gaps[k]
    common = {
        "analysis": "label_errors",
        "n": len(people.score),
        "metric": people.row["metric"],
        "label": people.row["label"],
        "attribute": people.attribute,
        "group_a": people.groups[gap.group],
        "group_b": people.groups[1 - gap.group] if len(people.groups) == 2 else None,
        "status": Status.OK.value,
    }
    if corrected.method:
        corrected_gap, low, high = (
            float(x[k]) for x in (corrected.gap, corrected.gap_low, corrected.gap_high)
        )
        yield {
            **common,
            "claim": format_corrected_gap(people, corrected, gap, k, terms),
            **round_floats({"effect": corrected_gap, "low": low, "high": high}),
            "reference": ANNOTATORS if corrected.method == ANNOTATORS_METHOD else MATRIX_METHOD,
            "status": _choose_corrected_gap_status(people, corrected, k),
        }
    texts = [(format_wrong_label_bounds(people, gap, max_error_rate, terms), gap.sampled_bounds)]
    if gap.unknown_bounds is not None:
        n_unknown = int((people.label_code < 0).sum())
        texts.append(
            (format_unknown_group_bounds(people, gap, n_unknown, terms), gap.sampled_unknown_bounds)
        )
    for claim, bounds in texts:
        yield {
            **common,
            "claim": claim,
            "effect": gap.labelled,
            **round_floats({"low": bounds.low, "high": bounds.high}),
            "reference": BOUNDS,
        }


def _choose_corrected_gap_status(people: LabelledScores, corrected: CorrectedGaps, k: int) -> str:
    """Choose the status: undefined; doubtful if unreliable, uninformative or out of range."""
    low, high = corrected.gap_low[k], corrected.gap_high[k]
    if not np.isfinite([corrected.gap[k], low, high]).all():
        return Status.UNDEFINED.value
    is_doubtful = bool(corrected.warning) or is_gap_interval_uninformative(
        people, float(low), float(high)
    )
    return (
        Status.DOUBTFUL_CORRECTION
        if is_doubtful or is_corrected_mean_out_of_range(people, corrected)
        else Status.OK
    ).value


def _iterate_group_mean_rows(
    people: LabelledScores, corrected: CorrectedGaps
) -> Iterator[dict[str, Any]]:
    for g, group in enumerate(people.groups):
        group_scores = people.score[people.label_code == g]
        yield round_floats(
            {
                **{name: people.row[name] for name in MEASURE},
                "attribute": people.attribute,
                "group": group,
                "n": len(group_scores),
                "as labelled": group_scores.mean() if len(group_scores) else None,
                "corrected": corrected.value[g],
                "low": corrected.low[g],
                "high": corrected.high[g],
            }
        )


def _build_corrected_gap_row(
    people: LabelledScores, corrected: CorrectedGaps, gap: LabelErrorGap, k: int
) -> dict[str, Any]:
    row = {
        **{name: people.row[name] for name in MEASURE},
        "attribute": people.attribute,
        "group": people.groups[gap.group],
        "as labelled": gap.labelled,
        "corrected": corrected.gap[k],
        "corrected_low": corrected.gap_low[k],
        "corrected_high": corrected.gap_high[k],
        "least": gap.label_error_bounds.low,
        "largest": gap.label_error_bounds.high,
        "interval_low": gap.sampled_bounds.low,
        "interval_high": gap.sampled_bounds.high,
        "wrong labels for a gap of 0": gap.breakdown,
        "least with unknown": gap.unknown_bounds.low if gap.unknown_bounds else None,
        "largest with unknown": gap.unknown_bounds.high if gap.unknown_bounds else None,
    }
    return round_floats(row)
