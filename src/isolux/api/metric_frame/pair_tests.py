"""Tests of differences between groups, as an audit has them: p-values, and a pair's interval."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from isolux.api.metric_frame.extremes import Method
from isolux.api.metric_frame.inputs import FrameInputs
from isolux.api.metric_frame.measures import MetricByGroup
from isolux.core.errors import SpecError, refuse_unknown_names


def build_pair_frame(
    inputs: FrameInputs, metrics: Mapping[str, MetricByGroup], group_a: str, group_b: str
) -> pl.DataFrame:
    """Build a row for each metric and level: the first group's value less the second's."""
    names = list(dict.fromkeys(inputs.sensitive_names))
    refuse_unknown_names("group", (group_a, group_b), names)
    frames = []
    for label, metric in metrics.items():
        if metric.compare is None:
            continue
        rows = metric.compare().filter(kind="difference")
        forward_rows = rows.filter(group_a=group_a, group_b=group_b)
        reversed_rows = rows.filter(group_a=group_b, group_b=group_a).with_columns(
            value=-pl.col("value"), low=-pl.col("high"), high=-pl.col("low")
        )
        table = pl.concat([forward_rows, reversed_rows]).sort("level")
        column_blocks = [
            pl.DataFrame({"metric": [label] * table.height}),
            table.select("value", "low", "high", p="p_value", reason="reason"),
        ]
        if inputs.controls.width:
            column_blocks.insert(1, inputs.controls[table["level"].to_list()])
        frames.append(pl.concat(column_blocks, how="horizontal"))
    if not frames:
        raise SpecError(
            "differences of functions are not tested",
            expected="a metric by name, such as 'accuracy'",
            found=", ".join(metrics),
        )
    return pl.concat(frames)


def list_smallest_p(
    inputs: FrameInputs, metrics: Mapping[str, MetricByGroup], method: Method
) -> pl.Series:
    """List, for each metric and level, the smallest adjusted p of its differences."""
    disparity_kind = "difference" if method == "between_groups" else "difference_to_overall"
    smallest_p: list[float | None] = []
    for metric in metrics.values():
        rows = None if metric.compare is None else metric.compare().filter(kind=disparity_kind)
        for level in range(inputs.n_levels):
            tests = None if rows is None else rows.filter(level=level)["p_adjusted"].drop_nulls()
            smallest_p.append(None if tests is None else min(tests.to_list(), default=None))
    return pl.Series("p", smallest_p, dtype=pl.Float64)
