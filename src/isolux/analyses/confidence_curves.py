"""Rate of harmful and of non-harmful labels at each confidence threshold, by group.

A classifier with low confidence in its harmful labels loses them at a low threshold; one with high
confidence gives them at any. Fairness Indicators (section 5.1, Figure 3, bottom row) draws both
rates over all thresholds. From the evidence of ``label_association`` to a table that the report
draws; it claims nothing, and tests nothing. Intervals are pointwise, by the audit's method.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.analyses._regrouping import (
    IS_COMPARABLE,
    MAX_GROUPS,
    ROUNDED_VALUES,
    build_membership_table,
    build_scores_by_threshold,
    measure_group_means,
    read_run_settings,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo, Metric
from isolux.core.tables import FINDINGS

EVIDENCE = "label_association"
INFO = AnalysisInfo(
    makes_claims=False,
    title="Label rates at each confidence",
    summary=(
        "How many people of each group get harmful and non-harmful labels, at confidences "
        "from 0 to 1."
    ),
    references=(citations.FAIRNESS_INDICATORS.with_location("section 5.1, Figure 3"),),
    assumptions=(
        "Confidences of one model: those of two models need not mean the same.",
        "Intervals hold for one confidence at a time, not for the curve.",
    ),
)
CAPTION = "Share of each group that is given harmful and non-harmful labels, at each confidence"
"""Of its table; the report draws it with each attribute."""

_RATES = {"harmful": ("non_human", "crime"), "non-harmful": ("human",)}
_N_STEPS = 20
_METRIC = Metric(
    name="label_rate",
    title="Rate of labels at a confidence",
    definition="Share of people given such a label with at least the confidence.",
    direction="none",
)


def explain(run: Run) -> AnalysisResult:
    """Measure both rates at 21 confidences from 0 to 1, for everyone and 12 groups.

    Parameters
    ----------
    run : Run
        Of ``label_association``.

    Returns
    -------
    AnalysisResult
        No findings, and one table of the largest groups of each attribute that are not below the
        audit's minimum: ``model, attribute`` (null: everyone), ``group``, ``labels``
        (harmful, non-harmful), ``confidence`` (0 to 1), ``rate, low, high`` (fractions),
        ``people, status``. None of labels without confidence.

    Raises
    ------
    SpecError
        A run of another task.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    label_confidence = _read_label_confidence_or_none(run)
    if label_confidence is None or (label_confidence["any"].fill_null(0.0) == 0.0).all():
        return AnalysisResult(FINDINGS.empty())  # labels without confidence have no curve
    spec = read_run_settings(run)
    members = build_membership_table(
        run, spec.groups, label_confidence["unit_id"].unique(maintain_order=True)
    )
    metrics = pl.concat(
        measure_group_means(
            _build_scores_by_confidence_threshold(label_confidence, types),
            members,
            EVIDENCE,
            _METRIC,
            spec.statistics,
        ).with_columns(labels=pl.lit(labels))
        for labels, types in _RATES.items()
    )
    comparable = metrics.filter(pl.col("value").is_not_null() & IS_COMPARABLE)
    sizes = comparable.group_by("attribute", "group").agg(pl.col("n_units").max())
    largest = sizes.filter(
        pl.col("n_units").rank("ordinal", descending=True).over("attribute") <= MAX_GROUPS
    )
    curves = comparable.join(largest, on=["attribute", "group"], how="semi", nulls_equal=True)
    table = (
        curves.with_columns(confidence=pl.col("threshold").round(2), people="n_units")
        .sort("model", "labels", "attribute", "group", "confidence", maintain_order=True)
        .select(
            "model",
            "attribute",
            "group",
            "labels",
            "confidence",
            ROUNDED_VALUES,
            "people",
            "status",
        )
        .rename({"value": "rate"})
    )
    n_omitted = sizes.height - largest.height
    note = (
        f"Curves of labels by confidence: of {n_omitted:,} groups none is drawn; of each attribute "
        f"the {MAX_GROUPS} largest are."
    )
    return AnalysisResult(FINDINGS.empty(), {CAPTION: table}, (note,) if n_omitted else ())


def _read_label_confidence_or_none(run: Run) -> pl.DataFrame | None:
    """Read the evidence of scored people; None for no people, or for a comparison of two models."""
    label_confidence = run.evidence.get(EVIDENCE)
    is_comparison = "model_a" in run.disparities.columns
    if is_comparison or not run.scores.height:
        return None
    if label_confidence is None:
        raise SpecError(
            "this run does not say how sure a classifier was of harmful labels",
            expected="--task label_association",
            found=f"the task {run.record.get('task')!r}",
        )
    return label_confidence.filter(pl.col("reason").is_null())


def _build_scores_by_confidence_threshold(
    label_confidence: pl.DataFrame, types: tuple[str, ...]
) -> pl.DataFrame:
    """Build a score of 0 or 1 for each person and confidence threshold: table ``scores``."""
    highest = pl.max_horizontal(*types)
    confidences = np.linspace(0.0, 1.0, _N_STEPS + 1).round(2).tolist()
    values = {threshold: (highest >= threshold).fill_null(value=False) for threshold in confidences}
    return build_scores_by_threshold(label_confidence, EVIDENCE, _METRIC.name, values)
