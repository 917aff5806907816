"""From ``group_metrics`` to a paper's layout: one row per model, one column per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import UnknownNameError
from isolux.core.spec import split_intersection
from isolux.disparity import formulas
from isolux.groups.unknown_values import UNKNOWN
from isolux.stats.statistic import FloatArray


def format_merge_settings(
    old_groups_by_new: Mapping[str, Sequence[str]], attribute: str | None = None
) -> tuple[str, ...]:
    """Write a merge as settings: ``race:Asian=East Asian,Southeast Asian``.

    Examples
    --------
    >>> format_merge_settings({"Asian": ("East Asian", "Southeast Asian")}, "race")
    ('race:Asian=East Asian,Southeast Asian',)
    """
    start = f"{attribute}:" if attribute else ""
    return tuple(f"{start}{new}={','.join(old)}" for new, old in old_groups_by_new.items())


def pivot_metric_by_group(
    source: Run | pl.DataFrame, metric: str, group_by_heading: Mapping[str, Mapping[str, str]]
) -> pl.DataFrame:
    """Lay one metric of one attribute or intersection out by group."""
    table = _select_metric_rows_or_raise(source, metric)
    names = list(next(iter(group_by_heading.values())))
    attribute_key = _find_attribute_or_raise(table, names)
    order = split_intersection(attribute_key)
    headings = pl.DataFrame(
        [
            {"_heading": heading, "values": [group[name] for name in order]}
            for heading, group in group_by_heading.items()
        ],
        schema={"_heading": pl.String, "values": pl.List(pl.String)},
    )
    matched = table.filter(attribute=attribute_key).join(headings, on="values", how="inner")
    models = table.select("model").unique(maintain_order=True)
    cells = matched.pivot(on="_heading", index="model", values="value")
    missing_columns = [
        pl.lit(None, dtype=pl.Float64).alias(h) for h in group_by_heading if h not in cells.columns
    ]
    return models.join(
        cells.with_columns(missing_columns), on="model", how="left", maintain_order="left"
    ).select("model", *group_by_heading)


def pivot_metrics_by_class_and_group(
    source: Run | pl.DataFrame,
    metric_and_threshold_by_heading: Mapping[str, tuple[str, float | None]],
    attributes: Sequence[str],
) -> pl.DataFrame:
    """Put several metrics of one attribute or intersection side by side, class by class.

    Examples
    --------
    >>> from isolux.core.tables import GROUP_METRICS
    >>> table = GROUP_METRICS.conform(pl.DataFrame({
    ...     "model": "m", "metric": "recall_at_iou", "threshold": [0.5, 0.75], "attribute": "tone",
    ...     "values": [["1"], ["1"]], "value": [0.9, 0.8], "n_units": 70}))
    >>> measures = {f"AR{at}": ("recall_at_iou", at / 100) for at in (50, 75)}
    >>> pivot_metrics_by_class_and_group(table, measures, ["tone"]).row(0)
    ('m', None, '1', 70, 0.9, 0.8)
    """
    table = to_group_metrics_table(source)
    entry = _find_attribute_in_any_order(table, attributes)
    index = ["model", "label", *attributes]
    names = split_intersection(entry) if entry else list(attributes)
    requested = pl.DataFrame(
        [(heading, *measure) for heading, measure in metric_and_threshold_by_heading.items()],
        schema={"_heading": pl.String, "metric": pl.String, "threshold": pl.Float64},
        orient="row",
    )
    matched = (
        table.filter(attribute=entry or "")
        .join(requested, on=["metric", "threshold"], nulls_equal=True, maintain_order="left")
        .with_columns(pl.col("values").list.get(i).alias(n) for i, n in enumerate(names))
    )
    sizes = matched.group_by(index, maintain_order=True).agg(pl.col("n_units").first())
    pivoted = matched.pivot(on="_heading", index=index, values="value", maintain_order=True)
    missing_columns = [
        pl.lit(None, dtype=pl.Float64).alias(h)
        for h in metric_and_threshold_by_heading
        if h not in pivoted.columns
    ]
    return (
        sizes.join(pivoted, on=index, nulls_equal=True, how="left", maintain_order="left")
        .with_columns(missing_columns)
        .select(*index, "n_units", *metric_and_threshold_by_heading)
    )


def map_known_groups_to_columns(
    source: Run | pl.DataFrame, attribute: str
) -> dict[str, dict[str, str]]:
    """Name the known groups of one attribute as columns for ``pivot_metric_by_group``."""
    table = _select_metric_rows_or_raise(source, "accuracy")
    rows = table.filter(attribute=_find_attribute_or_raise(table, [attribute]))
    values = rows["values"].list.first().unique(maintain_order=True)
    return {group: {attribute: group} for group in values if group != UNKNOWN}


def summarise_across_columns(frame: pl.DataFrame, headings: Sequence[str]) -> dict[str, pl.Series]:
    """Summarise each row's groups, every group counting once."""
    values: FloatArray = frame.select(headings).to_numpy().astype(np.float64)
    has_value = ~np.isnan(values)
    n = has_value.sum(axis=1)
    summaries = {
        "max": np.max(values, axis=1, where=has_value, initial=-np.inf),
        "min": np.min(values, axis=1, where=has_value, initial=np.inf),
        "mean": formulas.ratio(np.where(has_value, values, 0.0).sum(axis=1), n),
        "sd": formulas.standard_deviation(values, ddof=1),
        "epsilon": formulas.epsilon(values, base=10.0),
    }
    finite = {name: np.where(np.isfinite(x), x, np.nan) for name, x in summaries.items()}
    series = {name: pl.Series(x).fill_nan(None) for name, x in finite.items()}
    return series | {"n": pl.Series(n, dtype=pl.Int64)}


def to_group_metrics_table(source: Run | pl.DataFrame) -> pl.DataFrame:
    """Return the table ``group_metrics`` of a run, or the table itself."""
    return source.group_metrics if isinstance(source, Run) else source


def _select_metric_rows_or_raise(source: Run | pl.DataFrame, metric: str) -> pl.DataFrame:
    table = to_group_metrics_table(source)
    rows = table.filter(pl.col("label").is_null(), pl.col("threshold").is_null(), metric=metric)
    if rows.is_empty():
        raise UnknownNameError("metric", metric, table["metric"].unique(), where="group_metrics")
    return rows


def _find_attribute_or_raise(table: pl.DataFrame, attribute_names: Sequence[str]) -> str:
    """Find the attribute or intersection of these parts, in any order."""
    entry = _find_attribute_in_any_order(table, attribute_names)
    if entry is None:
        available = table["attribute"].drop_nulls().unique().sort().to_list()
        raise UnknownNameError(
            "attribute", "*".join(attribute_names), available, where="group_metrics"
        )
    return entry


def _find_attribute_in_any_order(table: pl.DataFrame, attribute_names: Sequence[str]) -> str | None:
    for entry in table["attribute"].drop_nulls().unique().sort():
        if sorted(split_intersection(entry)) == sorted(attribute_names):
            return str(entry)
    return None
