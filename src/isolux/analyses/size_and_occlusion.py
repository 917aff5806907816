"""Each group's people by size and by occlusion, which might explain a gap.

Detectors find small and occluded people less often. Where one group's people are more often small,
a gap between groups may be due to size; where the gap remains among people of one size, it is not.
This shows both with each disparity: which share of each group is small, medium and large
(COCO's ranges), or occluded, and the metric of each of those. It does not adjust: the analysis
``confounders`` does. No claim is made and nothing is tested; small cells have the audit's own
minimum sizes and statuses.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.analyses._regrouping import (
    ROUNDED_VALUES,
    build_membership_table,
    find_task_info_or_none,
    measure_group_means_by_stratum,
    read_recall_by_iou_or_none,
    read_run_settings,
    select_largest_groups_by_attribute,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import UnknownNameError
from isolux.core.info import AnalysisInfo, Metric
from isolux.core.spec import Statistics, Task
from isolux.core.tables import FINDINGS
from isolux.geometry.matching import AREA_RANGES_PX
from isolux.groups import build_membership, sort_groups_for_display
from isolux.groups.unknown_values import KNOWN_SUFFIX, UNKNOWN
from isolux.statements.run_terms import read_display_terms

INFO = AnalysisInfo(
    makes_claims=False,
    title="By size and occlusion",
    summary="What share of each group is small or hidden, and how well those people are found.",
    references=(citations.HOIEM.with_location("section 3.2: object characteristics"),),
    assumptions=(
        "Size is the annotated area in pixels, not how large or how far away a person is.",
        (
            "A gap that vanishes within sizes may still be the model's: it may see small people "
            "worse than it need."
        ),
    ),
)
CAPTION = "Each group's people by size and occlusion"
"""Of its table; the report shows it with each attribute."""
SIZE = "size"
"""The default division of people: COCO's small, medium and large."""

_OCCLUSION = ("occlusion", "occluded", "visible")
"""Names of the attribute in datasets: WIDER FACE, BDD100K, FACET."""
_MAX_VALUES = 6
_REPLICATES, _MAX_GROUPS = 200, 24
"""Fewer replicates than in the audit are enough, because nothing is tested here."""
_ORDER = ("small", "medium", "large", "none", "partial", "heavy", "false", "true")


def explain(run: Run, *, by: Sequence[str] = ()) -> AnalysisResult:
    """Lay out each group's people by size and occlusion, and the audit's first metric in each.

    Parameters
    ----------
    run : Run
        With the evidence ``recall_by_iou``: detection, face detection, segmentation or keypoints.
    by : sequence of str
        What to divide people by: ``"size"`` or attributes of the dataset with few values. Default:
        size, and ``occlusion``, ``occluded`` or ``visible`` where the dataset has it.

    Returns
    -------
    AnalysisResult
        No findings, and one table: ``model, metric`` (in words), ``attribute`` (null: everyone),
        ``group, by, stratum, people``, ``share`` (of the group's people, 0 to 1), ``value, low,
        high`` (the metric's unit; null with a ``status`` where too few are there).

    Raises
    ------
    SpecError
        A run of another task, or without average recall.
    UnknownNameError
        People have no such attribute.

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
    units, metric = _select_scores_of_first_metric(run, spec.task)
    members = build_membership_table(run, spec.groups, units["unit_id"].unique(maintain_order=True))
    members = select_largest_groups_by_attribute(members, _MAX_GROUPS)
    names = _choose_stratifying_attributes(run, by)
    tables_by_division = {}
    for name in names:
        strata = (
            _assign_coco_size_strata(recall_by_iou)
            if name == SIZE
            else _read_attribute_strata_or_empty(run, name, units["unit_id"].unique())
        )
        if strata["stratum"].n_unique() > 1:
            tables_by_division[name] = _measure_strata_of_groups(
                units, members, strata, name, metric, spec.statistics
            )
    notes = _build_stratification_notes(names, list(tables_by_division))
    if not tables_by_division:
        return AnalysisResult(FINDINGS.empty(), notes=notes)
    metric_name = read_display_terms(run).format_metric(units.row(0, named=True))
    table = pl.concat(tables_by_division.values()).select(
        "model", pl.lit(metric_name).alias("metric"), pl.exclude("model")
    )
    return AnalysisResult(FINDINGS.empty(), {CAPTION: table}, notes)


def _select_scores_of_first_metric(run: Run, task_settings: Task) -> tuple[pl.DataFrame, Metric]:
    """Select the scores of the audit's first metric, at its first threshold, of all classes."""
    measured_names = run.scores["metric"].unique(maintain_order=True).to_list()
    task_info = find_task_info_or_none(str(run.scores["task"][0]))
    defaults, metrics = (task_info.defaults, task_info.metrics) if task_info else ((), ())
    name = next(
        name
        for name in (*task_settings.metrics, *defaults, *measured_names)
        if name in measured_names
    )
    rows = run.scores.filter(metric=name)
    lowest_threshold = rows["threshold"].min()
    rows = rows.filter(pl.col("threshold").eq_missing(pl.lit(lowest_threshold, dtype=pl.Float64)))
    fallback = Metric(name=name, title=name, definition="", direction="none")
    # Class by class a person has one score, under his own class.
    rows = rows.unique(["model", "unit_id"], keep="first", maintain_order=True)
    metric = {metric.name: metric for metric in metrics}.get(name, fallback)
    return rows.with_columns(label=pl.lit(None, pl.String)), metric


def _choose_stratifying_attributes(run: Run, by: Sequence[str]) -> list[str]:
    attributes = run.attributes["attribute"].unique().sort().to_list()
    for name in by:
        if name not in (SIZE, *attributes):
            raise UnknownNameError("attribute", name, [SIZE, *attributes], where="by")
    return list(dict.fromkeys(by)) or [SIZE, *(name for name in _OCCLUSION if name in attributes)]


def _assign_coco_size_strata(recall_by_iou: pl.DataFrame) -> pl.DataFrame:
    """Assign each person COCO's size by annotated area: ``unit_id, stratum``."""
    area = pl.col("area_px")
    size = (
        pl.when(area < AREA_RANGES_PX["medium"][0])
        .then(pl.lit("small"))
        .when(area < AREA_RANGES_PX["large"][0])
        .then(pl.lit("medium"))
        .when(area.is_not_null())
        .then(pl.lit("large"))
        .otherwise(pl.lit(UNKNOWN))
    )
    return recall_by_iou.select("unit_id", stratum=size).unique("unit_id", maintain_order=True)


def _read_attribute_strata_or_empty(run: Run, attribute: str, units: pl.Series) -> pl.DataFrame:
    """Read each person's values of an attribute; an empty table if it has too many values."""
    if run.attributes.filter(attribute=attribute)["value"].n_unique() > _MAX_VALUES:
        return pl.DataFrame(schema={"unit_id": pl.String, "stratum": pl.String})
    memberships = build_membership(run.attributes, [attribute], units=units).frame
    return memberships.select("unit_id", stratum="group")


def _measure_strata_of_groups(
    units: pl.DataFrame,
    members: pl.DataFrame,
    strata: pl.DataFrame,
    name: str,
    metric: Metric,
    spec: Statistics,
) -> pl.DataFrame:
    """Measure each stratum of each group, and of overall."""
    is_division = pl.col("attribute").str.strip_suffix(KNOWN_SUFFIX) == name
    task = str(units["task"][0])
    metrics = measure_group_means_by_stratum(
        units, members.filter(~is_division), strata, task, metric, spec
    )
    order = _order_strata_by_meaning(strata["stratum"].unique().sort().to_list())
    stratum_rank = pl.col("stratum").replace_strict(order, range(len(order)), return_dtype=pl.Int64)
    total = pl.col("n_units").sum().over("model", "at")
    # Null where no person is scored.
    share = pl.when(total > 0).then(pl.col("n_units") / total).round(5)
    columns = ("model", "attribute", "group", pl.lit(name).alias("by"), "stratum")
    return (
        metrics.with_columns(share=share, people="n_units")
        .sort("model", "at", stratum_rank, maintain_order=True)
        .select(*columns, "people", "share", ROUNDED_VALUES, "status")
    )


def _order_strata_by_meaning(strata: Sequence[str]) -> list[str]:
    """Order strata by meaning where that is known, else in natural order."""
    unlisted = sort_groups_for_display([stratum for stratum in strata if stratum not in _ORDER])
    return [stratum for stratum in (*_ORDER, *unlisted) if stratum != UNKNOWN] + [UNKNOWN]


def _build_stratification_notes(names: Sequence[str], divided: Sequence[str]) -> tuple[str, ...]:
    excluded = [name for name in names if name not in divided]
    message = f"People were not divided by {', '.join(excluded)}: it has one value or more than "
    return (f"{message}{_MAX_VALUES}.",) if excluded else ()
