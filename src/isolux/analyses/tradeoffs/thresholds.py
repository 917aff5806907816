"""Rates by threshold and group, and the threshold at which each group has the overall rate.

Equal opportunity (Hardt, Price & Srebro 2016) requires equal true positive rates; with one score it
is possible with a threshold for each group. The difference of that threshold from the operating one
measures how biased a group's scores are, in the score's own unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._regrouping import (
    ROUNDED_VALUES,
    build_scores_by_threshold,
    measure_group_means,
)
from isolux.analyses.tradeoffs.curves import (
    OperatingRates,
    SortedScoreRows,
    build_sorted_score_rows,
    find_equal_rate_thresholds,
)
from isolux.analyses.tradeoffs.evidence import ScoredPeople, TradeoffView, build_tradeoff_finding
from isolux.core.info import Metric
from isolux.core.spec import Statistics
from isolux.core.tables import Status
from isolux.statements.numbers import format_bare_value
from isolux.statements.run_terms import RunTerms, lower_unless_acronym
from isolux.stats.cluster_sums import IntArray
from isolux.stats.constants import MIN_CLUSTERS_FOR_NOMINAL_COVERAGE
from isolux.stats.intervals import percentile_interval

RATES = "Rates at each threshold, by group"
"""Caption of the curves."""
_THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)


def format_thresholds_caption(operating: float) -> str:
    """Caption the table of thresholds.

    Examples
    --------
    >>> format_thresholds_caption(0.5)
    "Each group's threshold at which it would fare as everyone does at 0.5"
    """
    return f"Each group's threshold at which it would fare as everyone does at {operating:g}"


def add_threshold_curves_and_findings(
    people: ScoredPeople,
    members: pl.DataFrame,
    operating: float,
    spec: Statistics,
    terms: RunTerms,
    view: TradeoffView,
) -> None:
    """Add one model's curves, its thresholds, and a finding for each attribute."""
    rows = build_sorted_score_rows(people.rows, members)
    equal_rates = find_equal_rate_thresholds(rows, operating, spec)
    n, n_clusters = rows.count_units(rows.is_marked)
    table = _build_equal_rate_threshold_table(people, rows, equal_rates, (n, n_clusters), spec)
    _append_rows_to_captioned_table(view, format_thresholds_caption(operating), table)
    _append_rows_to_captioned_table(
        view, RATES, _measure_rates_at_fixed_thresholds(people, members, spec)
    )
    for attribute in dict.fromkeys(name for name, _ in rows.names[1:]):
        attribute_rows = table.filter(attribute=attribute)
        row = _build_furthest_threshold_finding(
            attribute_rows, table.row(0, named=True), people, operating, terms
        )
        view.findings += [row] if row else []


def _append_rows_to_captioned_table(view: TradeoffView, caption: str, table: pl.DataFrame) -> None:
    existing = view.tables.get(caption)
    view.tables[caption] = table if existing is None else pl.concat([existing, table])


def _build_equal_rate_threshold_table(
    people: ScoredPeople,
    rows: SortedScoreRows,
    equal_rates: OperatingRates,
    counts: tuple[IntArray, IntArray],
    spec: Statistics,
) -> pl.DataFrame:
    n, n_clusters = counts
    interval = percentile_interval(
        np.where(np.isfinite(equal_rates.threshold), equal_rates.threshold, np.nan)[:, 1:],
        spec.level,
    )
    # With too many replicates without a threshold the interval has no lower bound.
    is_open_below = (
        np.mean(~np.isfinite(equal_rates.threshold[:, 1:]), axis=1) > (1.0 - spec.level) / 2.0
    )
    is_large_enough = (n >= spec.min_units) & (n_clusters >= spec.min_clusters)
    threshold = np.where(
        is_large_enough & np.isfinite(equal_rates.threshold[:, 0]),
        equal_rates.threshold[:, 0],
        np.nan,
    )
    is_defined = np.isfinite(threshold)
    low = np.where(is_defined & ~is_open_below, interval.low, np.nan)
    status = np.where(
        n_clusters < MIN_CLUSTERS_FOR_NOMINAL_COVERAGE, Status.FEW_CLUSTERS.value, Status.OK.value
    )
    status = np.where(np.isfinite(equal_rates.threshold[:, 0]), status, Status.UNDEFINED.value)
    status = np.where(n_clusters < spec.min_clusters, Status.INSUFFICIENT_CLUSTERS.value, status)
    status = np.where(n < spec.min_units, Status.INSUFFICIENT_UNITS.value, status)
    columns: dict[str, Any] = {
        "model": [people.model] * len(n),
        "attribute": [name for name, _ in rows.names],
        "group": [group for _, group in rows.names],
        "people": n,
        people.positive_rate_name: np.where(
            is_large_enough, equal_rates.positive_rate[:, 0], np.nan
        ),
    }
    if people.false_rate_name:
        columns[people.false_rate_name] = np.where(
            is_large_enough, equal_rates.false_rate[:, 0], np.nan
        )
    columns |= {
        "threshold": threshold,
        "from": low,
        "to": np.where(is_defined, interval.high, np.nan),
    }
    if people.false_rate_name:
        false_at_threshold = np.where(is_defined, equal_rates.false_rate_at_threshold[:, 0], np.nan)
        columns[f"{people.false_rate_name} there"] = false_at_threshold
    columns["status"] = status.tolist()
    schema = {"attribute": pl.String}
    return pl.DataFrame(columns, schema_overrides=schema).with_columns(
        pl.selectors.float().fill_nan(None)
    )


def _measure_rates_at_fixed_thresholds(
    people: ScoredPeople, members: pl.DataFrame, spec: Statistics
) -> pl.DataFrame:
    """Measure both rates at fixed thresholds with the audit's own intervals."""
    tables, keys = [], ["model", "attribute", "group", "threshold"]
    for name, prefix, is_positive in (
        (people.positive_rate_name, "", True),
        (people.false_rate_name, "false ", False),
    ):
        if not name:
            continue
        marked_rows = people.rows.filter(mark=is_positive)
        marked_rows = marked_rows.with_columns(model=pl.lit(people.model))
        metric = Metric(
            name=name, title=name, definition=name, direction="higher" if is_positive else "lower"
        )
        values = {threshold: pl.col("score") >= threshold for threshold in _THRESHOLDS}
        scores = build_scores_by_threshold(marked_rows, "tradeoffs", name, values)
        marked_members = members.join(marked_rows.select("unit_id"), on="unit_id", how="semi")
        metrics = measure_group_means(scores, marked_members, "tradeoffs", metric, spec)
        names = {"value": name, "low": f"{prefix}from", "high": f"{prefix}to"}
        tables.append(metrics.select(*keys, ROUNDED_VALUES).rename(names))
    joined_table = tables[0]
    for table in tables[1:]:
        joined_table = joined_table.join(
            table, on=keys, how="left", nulls_equal=True, maintain_order="left"
        )
    return joined_table.sort("model", "attribute", "group", "threshold", maintain_order=True)


def _build_furthest_threshold_finding(
    attribute_rows: pl.DataFrame,
    overall: dict[str, Any],
    people: ScoredPeople,
    operating: float,
    terms: RunTerms,
) -> dict[str, Any] | None:
    """Build the finding on the group whose threshold is furthest from the operating one."""
    candidates = attribute_rows.drop_nulls("threshold").with_columns(
        off=(pl.col("threshold") - operating).abs()
    )
    if (
        attribute_rows.height < 2
        or candidates.is_empty()
        or overall[people.positive_rate_name] is None
    ):
        return None
    row = candidates.sort("off", descending=True, maintain_order=True).row(0, named=True)
    interval_text = (
        f"{row['from']:.3g} to {row['to']:.3g}" if row["from"] is not None else "not known"
    )
    claim = (
        f"at the threshold {operating:g} the {lower_unless_acronym(people.positive_rate_name)} is "
        f"{format_bare_value(row[people.positive_rate_name], 'fraction')} % for {row['group']} "
        f"({terms.format_attribute(row['attribute'])}),"
        f" {format_bare_value(overall[people.positive_rate_name], 'fraction')} % for "
        f"everyone; for as much it needs {row['threshold']:.3g} ({interval_text})."
    )
    numbers = {
        "effect": row["threshold"] - operating,
        "n": row["people"],
        "status": row["status"],
        "low": None if row["from"] is None else row["from"] - operating,
        "high": None if row["to"] is None else row["to"] - operating,
        "reference": "hardt-2016",
        "metric": people.positive_rate_name,
        "group_b": "overall",
    }
    return build_tradeoff_finding(
        terms, people.model, claim, numbers, (row["attribute"], row["group"])
    )
