"""An analysis of another package: which group of each attribute has the lowest value."""

from __future__ import annotations

import polars as pl

from isolux.core.containers import AnalysisResult, Run
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.tables import FINDINGS

INFO = AnalysisInfo(
    title="Lowest group",
    summary="Names the group with the lowest value of each attribute.",
    references=(Reference(key="dimmest", citation="Made for a test of isolux."),),
    assumptions=("a low value is worth a sentence whether or not it is a chance",),
)


def explain(run: Run, *, most: int = 3) -> AnalysisResult:
    """Say the lowest group of each attribute and metric.

    Parameters
    ----------
    run : Run
        Its ``group_metrics`` are read.
    most : int
        Sentences at most.

    Returns
    -------
    Explained

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    groups = run.group_metrics.drop_nulls(["attribute", "value"])
    keys = ["metric", "attribute"]
    lowest = groups.sort(*keys, "value", "group").unique(keys, keep="first", maintain_order=True)
    rows = [
        {
            "rank": rank, "analysis": "dimmest", "status": row["status"], "n": row["n_units"],
            "claim": f"Of {row['attribute']}, {row['group']} has the lowest "
            f"{row['metric'].replace('_', ' ')}: {row['value']:.3f}.",
            "effect": row["value"], "low": row["low"], "high": row["high"],
            "metric": row["metric"], "attribute": row["attribute"], "group_a": row["group"],
        }
        for rank, row in enumerate(lowest.head(most).iter_rows(named=True), start=1)
    ]  # fmt: skip
    return AnalysisResult(FINDINGS.conform(pl.DataFrame(rows)) if rows else FINDINGS.empty())
