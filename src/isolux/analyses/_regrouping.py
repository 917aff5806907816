"""Rebuild a run's groups and measure other metrics in them, with the audit's own intervals.

The settings are those in the run's record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from isolux.core import registry
from isolux.core.containers import Run, Scores
from isolux.core.errors import IsoluxError, SpecError
from isolux.core.info import Metric, TaskInfo
from isolux.core.spec import AuditSpec, Groups, Statistics, read_recorded_spec
from isolux.core.tables import COMPARABLE_STATUSES, MEMBERSHIP, SCORES
from isolux.groups import build_membership, read_groupings
from isolux.groups.measure import measure_groups

RECALL_BY_IOU = "recall_by_iou"
"""Name of the evidence table."""
MAX_GROUPS = 12
"""Groups of an attribute that a figure shows."""
OWN_CLUSTER = pl.coalesce("cluster_id", pl.lit("\N{NULL}unit ") + pl.col("unit_id"))
"""Cluster of each unit; a name that no dataset has makes a unit without one its own cluster."""
ROUNDED_VALUES = pl.col("value", "low", "high").round(5)
IS_COMPARABLE = pl.col("status").is_in(COMPARABLE_STATUSES)
"""Whether a group is large enough to be compared."""


def check_analysis_settings(analysis: str, **settings: tuple[object, bool, str]) -> None:
    """Refuse settings that cannot be used: ``name=(value, whether it can be, what can be)``."""
    for name, (setting, is_usable, expected) in settings.items():
        if not is_usable:
            raise SpecError(
                f"{name} cannot be used",
                expected=expected,
                found=str(setting),
                where=f"--analysis-option {analysis}.{name}",
            )


def build_minimum_check(minimum: int, setting: int | None) -> tuple[object, bool, str]:
    """Build the check that a setting, if set, is large enough."""
    return setting, setting is None or setting >= minimum, f"{minimum} or more"


def read_run_settings(
    run: Run, *, replicates: int | None = None, seed: int | None = None
) -> AuditSpec:
    """Read the settings of a run; with other replicates or another seed, if one is given."""
    spec = read_recorded_spec(
        run.record, **({} if replicates is None else {"replicates": replicates})
    )
    return spec if seed is None else spec.updated(seed=seed)


def build_membership_table(run: Run, settings: Groups, units: pl.Series) -> pl.DataFrame:
    """Build the membership of units in the groups of the run: table ``membership``."""
    by = read_groupings(settings, run.attributes)
    return build_membership(run.attributes, settings.by, by, units=units).frame


def select_largest_groups_by_attribute(members: pl.DataFrame, max_groups: int) -> pl.DataFrame:
    """Select the largest groups of each attribute."""
    sizes = members.group_by("attribute", "group", maintain_order=True).len("n")
    rank = pl.col("n").rank("ordinal", descending=True).over("attribute")
    largest = sizes.filter(rank <= max_groups)
    return members.join(largest, on=["attribute", "group"], how="semi", maintain_order="left")


def find_task_info_or_none(task: str) -> TaskInfo | None:
    """Find a task; None for a run read back where the task's package is not installed."""
    try:
        return registry.task_info(task)
    except IsoluxError:
        return None


def measure_group_means(
    units: pl.DataFrame, members: pl.DataFrame, task: str, metric: Metric, spec: Statistics
) -> pl.DataFrame:
    """Measure a mean of scores by group, with intervals: table ``group_metrics``."""
    task_info = find_task_info_or_none(task) or TaskInfo(
        title=task, summary=task, references=(), metrics=()
    )
    task_info = replace(task_info, metrics=(metric,), defaults=(metric.name,))
    return measure_groups(Scores(units, task_info, task=task), members, spec).to_table()


def measure_group_means_by_stratum(
    units: pl.DataFrame,
    members: pl.DataFrame,
    strata: pl.DataFrame,
    task: str,
    metric: Metric,
    spec: Statistics,
) -> pl.DataFrame:
    """Measure overall (``attribute`` null) and each group in each stratum (``unit_id, stratum``).

    Returns ``group_metrics`` with ``attribute, group, stratum``, and ``at``, the group's rank.
    """
    overall = units.select(
        attribute=pl.lit(None, pl.String), group=pl.lit("overall"), unit_id="unit_id"
    ).unique("unit_id", maintain_order=True)
    grouped = pl.concat([overall, members.select(overall.columns)])
    names = grouped.select("attribute", "group").unique(maintain_order=True).with_row_index("at")
    # Each group becomes an attribute and each stratum a group; numbers avoid clashes of names.
    cells = (
        grouped.join(names, on=["attribute", "group"], nulls_equal=True, maintain_order="left")
        .join(strata, on="unit_id", maintain_order="left")
        .select(
            attribute=pl.col("at").cast(pl.String),
            group="stratum",
            values=pl.concat_list("stratum"),
            unit_id="unit_id",
        )
    )
    metrics = measure_group_means(units, MEMBERSHIP.conform(cells), task, metric, spec)
    stratum_metrics = metrics.drop_nulls("attribute").rename({"group": "stratum"})
    stratum_metrics = stratum_metrics.with_columns(at=pl.col("attribute").cast(pl.UInt32)).drop(
        "attribute"
    )
    return stratum_metrics.join(names, on="at", how="left", maintain_order="left")


def build_scores_by_threshold(
    rows: pl.DataFrame, task: str, metric: str, values: Mapping[float, pl.Expr]
) -> pl.DataFrame:
    """Build a score of 0 or 1 for each person and threshold: table ``scores``."""
    threshold_rows = (
        rows.select(
            "model",
            "unit_id",
            "cluster_id",
            task=pl.lit(task),
            metric=pl.lit(metric),
            threshold=pl.lit(threshold),
            unit_kind=pl.lit("instance"),
            value=score.cast(pl.Float64),
        )
        for threshold, score in values.items()
    )
    return SCORES.conform(pl.concat(threshold_rows))


def read_recall_by_iou_or_none(run: Run) -> pl.DataFrame | None:
    """Return the evidence ``recall_by_iou``; None for no people or for two models compared."""
    recall_by_iou = run.evidence.get(RECALL_BY_IOU)
    if "model_a" in run.disparities.columns:
        return None
    if recall_by_iou is None and run.scores.height:
        raise SpecError(
            "this run does not say at which overlaps people were found",
            expected="a task of boxes, masks or poses that measured average_recall",
            found=f"the task {run.record.get('task')!r} with "
            + ", ".join(run.scores["metric"].unique().sort()),
            hint="audit again with --metric average_recall",
        )
    return None if recall_by_iou is None or recall_by_iou.is_empty() else recall_by_iou
