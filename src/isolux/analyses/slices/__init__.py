"""The worst slices: where errors are, without a prior hypothesis.

Every combination of values of up to three attributes is a slice. On one half of the clusters the
few that are worst by SliceLine's score (``stats/slices.py``: how much the mean error exceeds the
overall one, minus a penalty for being small) are found exactly. Only those are tested on the other
half, which had no part in choosing them: how much worse each slice is than everyone else there,
with the audit's intervals and null test over clusters, p-values corrected by Holm's method.

SliceLine stops at the first step. Its worst slices then look bad in any case: the worst of
thousands do in any data, especially where a person has many photos (``docs/methods/slices.md``
measures how often). Slices that share most of their people with a worse one are excluded, because
SliceLine's list often repeats one finding ten times.

A slice shows where errors are, not why. What else differs there is for ``confounders``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import polars as pl

from isolux.analyses._features import (
    Features,
    build_boolean_items,
    classify_attributes,
    drop_attributes_determining_outcome,
)
from isolux.analyses._regrouping import (
    build_minimum_check,
    check_analysis_settings,
    read_run_settings,
)
from isolux.analyses._survey_sample import (
    FIXED_WEIGHTS_NOTE,
    read_survey_sample_or_none,
    select_sample_rows_by_unit,
)
from isolux.analyses._unit_scores import (
    ScoreSettings,
    UnitScores,
    build_ranked_findings_table,
    compares_models_or_has_no_scores,
    load_unit_scores_by_model,
)
from isolux.analyses.slices.search import (
    CandidateSlices,
    compare_slices_with_complement,
    find_candidate_slices,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.spec import AuditSpec
from isolux.core.tables import FINDINGS
from isolux.statements.numbers import format_bare_value, format_gap_size, format_with_unit
from isolux.statements.run_terms import RunTerms, format_confidence_level, read_display_terms
from isolux.stats.multiplicity import adjust_p_holm

INFO = AnalysisInfo(
    supports_survey_weights=True,
    title="The worst slices",
    summary="For which people, described by up to three attributes, the model works worst; found "
    "on one half of the data and tested on the other.",
    references=(
        Reference(
            "sliceline",
            "Sagadeeva, S., & Boehm, M. (2021). SliceLine: Fast, linear-algebra-based slice "
            "finding for ML model debugging. In Proceedings of SIGMOD (pp. 2290–2299).",
            "sections 2 and 3: the score and its bounds",
            "https://doi.org/10.1145/3448016.3457323",
        ),
        citations.HOLM.with_location("the correction"),
    ),
    assumptions=(
        (
            "Clusters are independent of one another; which of them suggest slices and which test "
            "them is drawn at random."
        ),
        "A slice tells where errors are, not why: what else differs there is not taken out.",
        (
            "Slices with fewer people than the least support, or than the audit's minimum, are not "
            "looked at; unknown values are not a slice."
        ),
    ),
)
CAPTION = "The worst slices of one half, measured on the other"
"""Of its table."""
_BINS = 4  # quantiles of attributes that are numbers


@dataclass(frozen=True, slots=True)
class _SliceContext:
    """One model's slices: candidates, test results on the other half, and terms."""

    scores: UnitScores
    items: Features
    candidates: CandidateSlices
    test_results: pl.DataFrame
    terms: RunTerms

    def format_name(self, k: int) -> str:
        """Name a slice by its values: ``light: dim, box size: small``."""
        columns = [j for j in self.candidates.slices.members[k].tolist() if j >= 0]
        return ", ".join(
            f"{self.terms.format_attribute(self.items.attribute[j])}: {self.items.value[j]}"
            for j in columns
        )


def explain(
    run: Run, *, max_slices: int = 5, min_support: float = 0.01, **scores: Unpack[ScoreSettings]
) -> AnalysisResult:
    """Find the worst slices on one half of the clusters and test them on the other.

    Parameters
    ----------
    run : Run
        Its ``scores``, ``attributes`` and settings are read.
    attributes : sequence of str
        Attributes to use; default: all that the run has, except those that the audit's settings
        name as the model's answers and scores. Nothing identifies other models' answers: leave them
        out here.
    max_slices : int
        Slices per model that are tested on the other half.
    min_support : float
        Least share of one half's units in a slice; never fewer than the audit's minimum of units
        and clusters.
    **scores
        Which scores are used, and by which attributes: ``metric`` and ``worse``, described in
        ``ScoreSettings``.

    Returns
    -------
    AnalysisResult
        A finding for each slice that the other half confirms, the worst of the first half first;
        for a model without one, a finding that says so. ``effect, low, high``: its mean score less
        everyone else's there, in the metric's unit; ``n``: its units there; ``p_adjusted``: Holm's,
        over the slices of all models. One table: all slices that were asked about.

    Raises
    ------
    SpecError
        Settings out of range, a metric without a direction, no attribute that differs, too few
        clusters for two halves.
    UnknownNameError
        No such metric or attribute.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_analysis_settings(
        "slices",
        max_slices=build_minimum_check(1, max_slices),
        min_support=(min_support, 0.0 < min_support < 1.0, "above 0 and below 1"),
    )
    if compares_models_or_has_no_scores(run):
        return AnalysisResult(FINDINGS.empty())
    spec, terms = read_run_settings(run), replace(read_display_terms(run), is_adjusted=True)
    scores_by_model = load_unit_scores_by_model(run, spec.task, terms, "slices", scores)
    contexts, notes = [], []
    for model_scores in scores_by_model:
        items, item_notes = _build_slice_items_and_notes(
            run, model_scores, scores.get("attributes", ()), spec
        )
        notes += [*model_scores.notes, *item_notes]
        metric_info = model_scores.build_metric(terms)
        survey_sample = read_survey_sample_or_none(
            run, model_scores.units, model_scores.cluster, "the analysis slices"
        )
        candidates = find_candidate_slices(
            model_scores, items, metric_info, max_slices, min_support, spec.comparing, survey_sample
        )
        task = str(run.scores["task"][0])
        sample_rows = (
            None if survey_sample is None else select_sample_rows_by_unit(run, model_scores.units)
        )
        test_results = compare_slices_with_complement(
            model_scores, candidates, metric_info, task, spec.comparing, sample_rows
        )
        contexts.append(_SliceContext(model_scores, items, candidates, test_results, terms))
        if survey_sample is not None and survey_sample.is_calibrated:
            notes.append(f"slices: {FIXED_WEIGHTS_NOTE}")
    if not contexts:
        return AnalysisResult(FINDINGS.empty(), notes=tuple(notes))
    contexts = _add_holm_p_over_models(contexts)
    rows = [
        row for context in contexts for row in _build_slice_findings(context, spec.statistics.level)
    ]
    table = pl.concat(
        [_build_slices_table(context, has_models=len(contexts) > 1) for context in contexts]
    )
    tables = {CAPTION: table} if table.height else {}
    return AnalysisResult(build_ranked_findings_table(rows), tables, tuple(dict.fromkeys(notes)))


def _build_slice_items_and_notes(
    run: Run, scores: UnitScores, attributes: Sequence[str], spec: AuditSpec
) -> tuple[Features, tuple[str, ...]]:
    notes: list[str] = []
    prediction_settings = spec.predictions
    prediction_columns = (
        prediction_settings.prediction_column,
        prediction_settings.score_column,
        prediction_settings.detected_column,
    )
    present = set(run.attributes["attribute"].unique())
    # With the truth known, a prediction is the error itself: such a slice explains nothing.
    for names, reason in (
        (prediction_columns, "which the model said"),
        ((spec.sample.weight,), "which says how people were drawn"),
    ):
        excluded = [name for name in names if name is not None and name in present]
        if excluded and not attributes:
            attribute_rows = run.attributes.filter(pl.col("attribute").is_in(excluded).not_())
            run = replace(run, attributes=attribute_rows)
            notes.append(f"Slices are not described by {', '.join(excluded)}, {reason}.")
    types = classify_attributes(run, spec, scores.units, attributes, analysis="slices")
    items = drop_attributes_determining_outcome(
        build_boolean_items(run, spec, scores.units, types, bins=_BINS), scores.value
    )
    return items, (*notes, *items.notes)


def _add_holm_p_over_models(contexts: Sequence[_SliceContext]) -> list[_SliceContext]:
    """Add Holm's p-values, over the slices of all models."""
    raw = pl.concat([context.test_results["p_value"] for context in contexts]).cast(pl.Float64)
    adjusted = pl.Series("p_adjusted", adjust_p_holm(raw.fill_null(float("nan")).to_numpy()))
    adjusted, corrected, offset = adjusted.fill_nan(None), [], 0
    for context in contexts:
        n = context.test_results.height
        test_results = context.test_results.with_columns(adjusted.slice(offset, n))
        corrected.append(replace(context, test_results=test_results))
        offset += n
    return corrected


def _build_slice_findings(context: _SliceContext, level: float) -> list[dict[str, Any]]:
    sign = 1.0 if context.scores.higher_is_better else -1.0
    rows = []
    for k, test_result in enumerate(context.test_results.iter_rows(named=True)):
        p = test_result["p_adjusted"]
        if p is not None and p <= 1.0 - level and sign * test_result["difference"] < 0:
            rows.append(
                _build_slice_finding(
                    context,
                    _format_slice_claim(context, k, test_result),
                    test_result,
                    context.format_name(k),
                )
            )
    return rows or [_build_slice_finding(context, _format_no_slice_confirmed(context), None, None)]


def _build_slice_finding(
    context: _SliceContext, claim: str, test_result: dict[str, Any] | None, name: str | None
) -> dict[str, Any]:
    numbers = test_result or dict.fromkeys(("difference", "low", "high", "p_adjusted"))
    row = context.scores.build_finding(
        "slices",
        context.terms.begin_sentence(context.scores.model, claim),
        reference="sliceline",
        n=test_result["n"] if test_result else int(context.candidates.is_second_half.sum()),
        effect=numbers["difference"],
        low=numbers["low"],
        high=numbers["high"],
    )
    return row | {
        "status": test_result["status"] if test_result else "ok",
        "group_a": name,
        "group_b": None if name is None else "everyone else",
        "p_adjusted": numbers["p_adjusted"],
    }


def _format_slice_claim(context: _SliceContext, k: int, test_result: dict[str, Any]) -> str:
    terms, row = context.terms, context.scores.row
    unit = terms.find_unit(row)
    direction = "lower" if test_result["difference"] < 0 else "higher"
    cluster_text = (
        f" of {test_result['n_clusters']:,} clusters" if terms.cluster is not None else ""
    )
    return (
        f"{terms.format_metric(row)} with {context.format_name(k)} is"
        f" {format_with_unit(test_result['value'], unit)}, and"
        f" {format_with_unit(test_result['others'], unit)} for everyone else:"
        f" {format_gap_size(test_result['difference'], unit)} {direction}"
        f" ({format_confidence_level(terms)} interval"
        f" {_format_difference_interval(test_result, unit, flip=test_result['difference'] < 0)};"
        f" {terms.format_p(test_result['p_adjusted'])}; {test_result['n']:,} units{cluster_text})."
        f" One half of the data suggested this slice, {100 * context.candidates.share[k]:.1f} % of"
        " its units; these numbers are the other half's."
    )


def _format_difference_interval(
    test_result: dict[str, Any], unit: str, *, flip: bool = False
) -> str:
    if test_result["low"] is None:
        return "not known"
    low, high = (
        (-test_result["high"], -test_result["low"])
        if flip
        else (test_result["low"], test_result["high"])
    )
    return f"{format_bare_value(low, unit)} to {format_bare_value(high, unit)}"


def _format_no_slice_confirmed(context: _SliceContext) -> str:
    """Write that no slice was confirmed; never that there is none."""
    terms, row = context.terms, context.scores.row
    measure = terms.format_metric(row)
    if context.test_results.is_empty():
        return (
            f"{measure}: no slice of one half of the data is enough worse than everyone in that "
            "half to make up for its size, so none was tested on the other half."
        )
    tested = context.test_results.drop_nulls("p_adjusted")
    claim_start = (
        f"{measure}: none of the {context.test_results.height} slices that one half of the data "
    )
    if tested.is_empty():
        return f"{claim_start}suggested has enough people in the other half to be judged."
    first = tested.row(0, named=True)
    k = int(np.flatnonzero(context.test_results["p_adjusted"].is_not_null())[0])
    unit = terms.find_unit(row)
    unit_text = " points" if unit == "fraction" else f" {unit}".rstrip()
    return (
        f"{claim_start}suggested was confirmed on the other. The first of them,"
        f" {context.format_name(k)}, differs from everyone else there by"
        f" {format_bare_value(first['difference'], unit)}{unit_text}"
        f" ({format_confidence_level(terms)} interval {_format_difference_interval(first, unit)};"
        f" {terms.format_p(first['p_adjusted'])})."
    )


def _build_slices_table(context: _SliceContext, *, has_models: bool) -> pl.DataFrame:
    slices, results = context.candidates.slices, context.test_results
    names = [context.format_name(k) for k in range(len(slices.score))]
    table = pl.DataFrame(
        {
            "slice": pl.Series(names, dtype=pl.String),
            "share": context.candidates.share,
            "score": slices.score,
            "mean where suggested": context.candidates.means,
            "units": results["n"],
            "clusters": results["n_clusters"],
            "mean": results["value"],
            "of everyone else": results["others"],
            "difference": results["difference"],
            "from": results["low"],
            "to": results["high"],
            "adjusted p": results["p_adjusted"],
            "status": results["status"],
        }
    ).with_columns(pl.selectors.float().fill_nan(None))
    return (
        table.insert_column(0, pl.Series("model", [context.scores.model] * table.height))
        if (has_models)
        else table
    )
