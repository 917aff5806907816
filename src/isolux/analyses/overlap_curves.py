"""Recall at each IoU threshold, by group: a gap at every threshold, or only at strict ones.

A detector that detects all people but with imprecise boxes around one group loses recall there at
an IoU of .75 and not at .50; one that misses them loses it at every threshold. FACET (section 6.2)
prints recall at .50, .75 and the mean; the curve shows the rest. From the evidence
``recall_by_iou`` of tasks of boxes, masks and poses to a table that the report draws; it claims
nothing, and tests nothing. Intervals are pointwise, by the audit's method (clusters are
resampled): they do not cover a whole curve with the level.
"""

from __future__ import annotations

import polars as pl

from isolux.analyses._regrouping import (
    IS_COMPARABLE,
    MAX_GROUPS,
    ROUNDED_VALUES,
    build_membership_table,
    build_scores_by_threshold,
    find_task_info_or_none,
    measure_group_means,
    read_recall_by_iou_or_none,
    read_run_settings,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.info import AnalysisInfo, Metric
from isolux.core.tables import FINDINGS
from isolux.geometry.matching import IOU_THRESHOLDS

INFO = AnalysisInfo(
    makes_claims=False,
    title="Recall at each overlap",
    summary="The share of each group that is found, at ten overlaps from .50 to .95.",
    references=(
        citations.COCO.with_location(
            "detection evaluation: https://cocodataset.org/#detection-eval"
        ),
    ),
    assumptions=(
        "Overlap at high thresholds also measures how the annotators drew.",
        "Intervals hold for one overlap at a time, not for the curve.",
    ),
)
CAPTION = "Share of each group's people found, at each overlap"
"""Of its table; the report draws it with each attribute."""
_REPLICATES = 200  # fewer than in an audit are enough for a figure

_RECALL = Metric(
    name="recall_at_overlap",
    title="Recall at an overlap",
    definition="Share of people found at an overlap of at least the threshold.",
    direction="higher",
)


def explain(run: Run) -> AnalysisResult:
    """Measure recall at each of the ten overlaps, for everyone and 12 groups.

    Parameters
    ----------
    run : Run
        With the evidence ``recall_by_iou``: detection, face detection, segmentation (mask overlap)
        or keypoints (OKS similarity in the place of overlap) with ``average_recall``.

    Returns
    -------
    AnalysisResult
        No findings, and one table of the groups of each attribute, not below the audit's minimum,
        whose average recall is furthest from everyone's: ``model, attribute`` (null: everyone),
        ``group``, ``measure`` ("overlap", of poses "similarity"), ``overlap`` (.5 to .95),
        ``recall, low, high`` (fractions), ``people, status``. Class by class, people of all classes
        are taken together.

    Raises
    ------
    SpecError
        A run of another task, or of other metrics.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    recall_by_iou = read_recall_by_iou_or_none(run)
    if recall_by_iou is None:
        return AnalysisResult(FINDINGS.empty())
    spec = read_run_settings(run, replicates=_REPLICATES)
    task = str(run.scores["task"].first() or spec.task.name)
    members = build_membership_table(
        run, spec.groups, recall_by_iou["unit_id"].unique(maintain_order=True)
    )
    bit = pl.col("at").cast(pl.Int64)
    values = {overlap: (bit // 2**t) % 2 for t, overlap in enumerate(IOU_THRESHOLDS)}
    units = build_scores_by_threshold(recall_by_iou, task, _RECALL.name, values)
    metrics = measure_group_means(units, members, task, _RECALL, spec.statistics)
    curves, n_omitted = _select_groups_furthest_from_overall(metrics, MAX_GROUPS)
    note = (
        f"Curves of recall by overlap: of {n_omitted:,} groups none is drawn; of each attribute "
        f"the {MAX_GROUPS} furthest from everyone are."
    )
    task_info = find_task_info_or_none(task)
    is_of_poses = task_info is not None and any(
        m.name == "recall_at_oks" for m in task_info.metrics
    )
    table = (
        curves.sort(
            "model", "attribute", "group", pl.col("threshold").round(2), maintain_order=True
        )
        .with_columns(
            measure=pl.lit("similarity" if is_of_poses else "overlap"),
            overlap=pl.col("threshold").round(2),
            people="n_units",
        )
        .select(
            "model", "attribute", "group", "measure", "overlap", ROUNDED_VALUES, "people", "status"
        )
        .rename({"value": "recall"})
    )
    return AnalysisResult(FINDINGS.empty(), {CAPTION: table}, (note,) if n_omitted else ())


def _select_groups_furthest_from_overall(
    metrics: pl.DataFrame, max_groups: int
) -> tuple[pl.DataFrame, int]:
    """Select each attribute's groups furthest from overall by mean recall; count the others."""
    keys = ["model", "attribute", "group"]
    is_comparable = pl.col("value").is_not_null() & IS_COMPARABLE
    comparable = metrics.filter(is_comparable).select(keys).unique()
    mean = metrics.group_by(keys, maintain_order=True).agg(pl.col("value").mean())
    overall = mean.filter(pl.col("attribute").is_null()).select("model", overall="value")
    distances = (
        mean.join(overall, on="model", how="left")
        .join(comparable, on=keys, how="semi", nulls_equal=True, maintain_order="left")
        .with_columns(far=(pl.col("value") - pl.col("overall")).abs())
        .with_columns(rank=pl.col("far").rank("ordinal", descending=True).over(keys[:2]))
    )
    furthest = distances.filter(pl.col("rank") <= max_groups).select(keys)
    curves = metrics.join(furthest, on=keys, how="semi", nulls_equal=True, maintain_order="left")
    return curves, distances.height - furthest.height
