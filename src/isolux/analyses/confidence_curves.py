"""Rate of harmful and of non-harmful labels against the least confidence, by group.

A classifier that is unsure of its harmful labels loses them at a low threshold; one that is sure of
them gives them at any. Fairness Indicators (section 5.1, Figure 3, bottom row) draws both rates
over all thresholds. From the evidence of ``label_association`` to a table that the report draws; it
claims nothing, and tests nothing. Intervals are pointwise, of the kind that the audit chose.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.analyses._regrouping import (
    IS_SOUND,
    MOST_GROUPS,
    ROUNDED,
    groups_of,
    measure_again,
    scores_at,
    settings_of,
)
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Metric
from isolux.vocabulary.tables import FINDINGS

EVIDENCE = "label_association"
INFO = AnalysisInfo(
    tests=False,
    title="Label rates at each confidence",
    summary=(
        "How many people of each group get harmful and non-harmful labels, at confidences "
        "from 0 to 1."
    ),
    references=(works.FAIRNESS_INDICATORS.at("section 5.1, Figure 3"),),
    assumptions=(
        "Confidences of one model: those of two models need not mean the same.",
        "Intervals hold for one confidence at a time, not for the curve.",
    ),
)
CAPTION = "Share of each group that is given harmful and non-harmful labels, at each confidence"
"""Of its table; the report draws it with each attribute."""

_RATES = {"harmful": ("non_human", "crime"), "non-harmful": ("human",)}
_STEPS = 20
_METRIC = Metric(
    name="label_rate",
    title="Rate of labels at a confidence",
    definition="Share of people given such a label with at least the confidence.",
    direction="none",
)


def explain(run: Run) -> Explained:
    """Measure both rates at 21 confidences from 0 to 1, for everyone and 12 groups.

    Parameters
    ----------
    run : Run
        Of ``label_association``.

    Returns
    -------
    Explained
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
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    sure = _evidence(run)
    if sure is None or (sure["any"].fill_null(0.0) == 0.0).all():
        return Explained(FINDINGS.empty())  # labels without confidence have no curve
    spec = settings_of(run)
    members = groups_of(run, spec.groups, sure["unit_id"].unique(maintain_order=True))
    measured = pl.concat(
        measure_again(
            _units(sure, types), members, EVIDENCE, _METRIC, spec.statistics
        ).with_columns(labels=pl.lit(labels))
        for labels, types in _RATES.items()
    )
    sound = measured.filter(pl.col("value").is_not_null() & IS_SOUND)
    sizes = sound.group_by("attribute", "group").agg(pl.col("n_units").max())
    kept = sizes.filter(
        pl.col("n_units").rank("ordinal", descending=True).over("attribute") <= MOST_GROUPS
    )
    shown = sound.join(kept, on=["attribute", "group"], how="semi", nulls_equal=True)
    table = (
        shown.with_columns(confidence=pl.col("threshold").round(2), people="n_units")
        .sort("model", "labels", "attribute", "group", "confidence", maintain_order=True)
        .select("model", "attribute", "group", "labels", "confidence", ROUNDED, "people", "status")
        .rename({"value": "rate"})
    )
    left = sizes.height - kept.height
    note = (
        f"Curves of labels by confidence: of {left:,} groups none is drawn; of each attribute the "
        f"{MOST_GROUPS} largest are."
    )
    return Explained(FINDINGS.empty(), {CAPTION: table}, (note,) if left else ())


def _evidence(run: Run) -> pl.DataFrame | None:
    """Return the evidence of people who were judged; None for no people, or two models compared."""
    sure = run.evidence.get(EVIDENCE)
    compared = "model_a" in run.disparities.columns
    if compared or not run.scores.height:
        return None
    if sure is None:
        raise SpecError(
            "this run does not say how sure a classifier was of harmful labels",
            expected="--task label_association",
            found=f"the task {run.record.get('task')!r}",
        )
    return sure.filter(pl.col("reason").is_null())


def _units(sure: pl.DataFrame, types: tuple[str, ...]) -> pl.DataFrame:
    """Make a score of 0 or 1 for each person and confidence: table ``scores``."""
    highest = pl.max_horizontal(*types)
    confidences = np.linspace(0.0, 1.0, _STEPS + 1).round(2).tolist()
    values = {at: (highest >= at).fill_null(value=False) for at in confidences}
    return scores_at(sure, EVIDENCE, _METRIC.name, values)
