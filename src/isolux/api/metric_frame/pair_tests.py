"""Tests of differences between groups, as an audit has them: p-values, and a pair's interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.api.metric_frame.inputs import FrameInputs
from isolux.core.errors import SpecError, refuse_unknown_names
from isolux.core.spec import ComparisonSettings
from isolux.disparity.family import ComparisonFamily
from isolux.disparity.pairwise_differences import build_pair_disparity_rows
from isolux.disparity.rows import stack_rows
from isolux.groups.estimates import Estimates
from isolux.stats.null_distribution import COMPLEMENT

if TYPE_CHECKING:
    from isolux.api.metric_frame.extremes import Method
    from isolux.api.metric_frame.measures import MetricByGroup


@dataclass(frozen=True, slots=True)
class GroupTests:
    """The tests of an audit whose attributes are levels, and whose groups are numbers."""

    estimates: Estimates
    family: ComparisonFamily
    spec: ComparisonSettings

    def find_smallest_p(self, level: int, metric: str, method: Method) -> float | None:
        """Find the smallest adjusted p of pairs, or of groups against the others."""
        p_values = [
            tests.adjusted[(tests.contrasts[:, 1] == COMPLEMENT) == (method == "to_overall")]
            for (attribute, j), tests in self.family.tested.items()
            if attribute == str(level) and self.estimates.measures[j].metric == metric
        ]
        smallest_p = np.fmin.reduce(np.concatenate([[np.nan], *p_values]))
        return None if np.isnan(smallest_p) else float(smallest_p)

    def build_pairs(self, metric: str, names: Mapping[str, str]) -> pl.DataFrame:
        """Build a row for each pair of groups of each level, groups by their names."""
        rows = build_pair_disparity_rows(self.estimates, self.family, self.spec)
        return (
            stack_rows(rows)
            .filter(kind="difference", metric=metric)
            .with_columns(
                pl.col("group_a", "group_b").replace_strict(names, default=None),
                level=pl.col("attribute").cast(pl.Int64),
            )
        )


def build_pair_frame(
    inputs: FrameInputs, metrics: Mapping[str, MetricByGroup], group_a: str, group_b: str
) -> pl.DataFrame:
    """Build a row for each metric and level: the first group's value less the second's."""
    names = {str(k): name for k, name in enumerate(inputs.sensitive_names)}
    refuse_unknown_names("group", (group_a, group_b), list(dict.fromkeys(names.values())))
    frames = []
    for label, metric in metrics.items():
        if metric.run_tests is None:
            continue
        rows = metric.run_tests().build_pairs(metric.metric, names)
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
    smallest_p = [
        None
        if metric.run_tests is None
        else metric.run_tests().find_smallest_p(level, metric.metric, method)
        for metric in metrics.values()
        for level in range(inputs.n_levels)
    ]
    return pl.Series("p", smallest_p, dtype=pl.Float64)
