"""Gaps between the groups of a model of several runs: the mean over runs, with its interval.

The gap of each run is that of the audit. Its half-width is the average of the runs', times the
ratio of standard errors of the mean and of one run, combined with the variance between the runs'
gaps by Cochran (``seeds``), as for a model's values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import polars as pl

from isolux.api.side_by_side.seeds import (
    ModelRuns,
    SamplingError,
    combine_half_widths,
    compute_error_ratios,
    find_model_columns,
    p_values,
)
from isolux.disparity.comparisons import build_comparisons
from isolux.groups.estimates import Estimates
from isolux.stats.cluster_sums import IntArray
from isolux.stats.intervals import two_sided_normal_quantile
from isolux.stats.multiplicity import adjust_p_holm
from isolux.stats.statistic import FloatArray

_COLUMNS: dict[str, pl.DataType] = {
    **dict.fromkeys(("model", "task", "metric", "label"), pl.String()),
    "threshold": pl.Float64(),
    **dict.fromkeys(("attribute", "group_a", "group_b"), pl.String()),
    **dict.fromkeys(("value", "low", "high", "seed_sd", "p_value", "p_adjusted"), pl.Float64()),
    "runs": pl.Int64(),
    "family": pl.String(),
}
RowPairs = tuple[IntArray, IntArray]


def build_model_gaps(
    estimates: Estimates, models: ModelRuns, level: float, references: Mapping[str, str]
) -> pl.DataFrame:
    """Build the gaps of the models of several runs: the table ``gaps`` of ``SideBySide``.

    A row for each two groups of an attribute (with a reference: each group and it), ``group_a``
    less ``group_b``; p-values are adjusted over a model's gaps (Holm).
    """
    frames = [pl.DataFrame(schema=_COLUMNS)]
    for name, labels in models.runs.items():
        if len(labels) < 2:
            continue
        rows = pl.concat([frames[0], *_iterate_gaps(estimates, models, name, level, references)])
        p_adjusted = pl.Series(adjust_p_holm(rows["p_value"].to_numpy())).fill_nan(None)
        family = f"all gaps of {name}"
        frames.append(rows.with_columns(p_adjusted=p_adjusted, family=pl.lit(family)))
    return pl.concat(frames)


def _iterate_gaps(
    estimates: Estimates,
    models: ModelRuns,
    name: str,
    level: float,
    references: Mapping[str, str],
) -> Iterator[pl.DataFrame]:
    attributes = dict.fromkeys(g.attribute for g in estimates.groups if g.attribute is not None)
    for columns_by_model in find_model_columns(estimates, models).values():
        columns = columns_by_model[name]
        is_comparable = np.asarray(estimates.is_comparable()[:, columns].all(axis=1))
        for attribute in attributes:
            rows = estimates.attribute_rows(attribute)
            pairs = _pair_rows(estimates, rows[is_comparable[rows]], references.get(attribute))
            if len(pairs[0]):
                yield _build_gap_rows(estimates, (name, attribute), columns, pairs, level)


def _pair_rows(estimates: Estimates, rows: IntArray, reference: str | None) -> RowPairs:
    """Pair the groups, or each group with the reference."""
    pairs = [
        (a, b) if reference != estimates.groups[a].name else (b, a)
        for a, b in combinations(rows.tolist(), 2)
        if reference is None or reference in (estimates.groups[a].name, estimates.groups[b].name)
    ]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return first, second


def _build_gap_rows(
    estimates: Estimates,
    names: tuple[str, str],
    columns: IntArray,
    pairs: RowPairs,
    level: float,
) -> pl.DataFrame:
    first, second = pairs
    n_runs, z = len(columns), two_sided_normal_quantile(level)
    differences = estimates.value[first][:, columns] - estimates.value[second][:, columns]
    mean = differences.mean(axis=1)
    between = [(differences.var(axis=1, ddof=1) / n_runs, n_runs)]
    replicates = [estimates.replicates[first, j] - estimates.replicates[second, j] for j in columns]
    ratios = compute_error_ratios(np.mean(replicates, axis=0), replicates, [replicates])
    intervals = [
        build_comparisons(estimates, names[1], int(j)).compare_pairs(first, second).interval(z)
        for j in columns
    ]
    below = np.mean([differences[:, k] - i.low for k, i in enumerate(intervals)], axis=0)
    above = np.mean([i.high - differences[:, k] for k, i in enumerate(intervals)], axis=0)

    width_to_zero = np.asarray(np.where(mean > 0, below, above), dtype=np.float64)

    def scale(width: FloatArray) -> SamplingError:
        return SamplingError(width * ratios.mean, width * ratios.shared)

    measure = estimates.measures[int(columns[0])]
    cells = {
        "model": names[0],
        "task": measure.task,
        "metric": measure.metric,
        "label": measure.label,
        "threshold": measure.threshold,
        "attribute": names[1],
        "group_a": [estimates.groups[row].name for row in first],
        "group_b": [estimates.groups[row].name for row in second],
        "value": mean,
        "low": mean - combine_half_widths(scale(below), between, level),
        "high": mean + combine_half_widths(scale(above), between, level),
        "seed_sd": np.sqrt(between[0][0] * n_runs),
        "p_value": p_values(mean, scale(width_to_zero), between, level),
        "p_adjusted": None,
        "runs": n_runs,
        "family": None,
    }
    floats = pl.selectors.float().fill_nan(None)
    return pl.DataFrame(cells, schema_overrides=_COLUMNS).with_columns(floats)
