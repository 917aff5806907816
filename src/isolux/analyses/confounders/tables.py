"""The tables of the analysis ``confounders``: values, ranking, control, adjusted gaps, counts.

Numbers are in the metric's unit (fractions, not points), rounded to what a reader can use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._unit_scores import round_floats
from isolux.analyses.confounders.audit_tests import MaxStatistic
from isolux.analyses.confounders.metric_cases import (
    PROBABLE,
    MetricCase,
    Robustness,
    ValueWithInterval,
)
from isolux.analyses.confounders.regression import RegressionGap

_MAX_ROWS, _MAX_VALUES = 72, 2_000

Row = dict[str, Any]


def build_tables_by_caption(
    cases: Sequence[MetricCase], family: MaxStatistic, *, corrected: bool = True
) -> dict[str, pl.DataFrame]:
    """Build the tables by caption, without those that have no rows."""
    audit = "the audit" if corrected else "the audit, not adjusted"
    ranking_caption = "Explanatory attributes by the dispersion of ProxyAP, and what control leaves"
    builders: dict[str, Callable[[MetricCase], Iterator[Row]]] = {
        "Values by group, and their dispersion": _iterate_dispersion_rows,
        ranking_caption: _iterate_ranking_rows,
        "Gaps at an equal mix of explanatory values": (
            lambda case: _iterate_equal_mix_rows(case, family, audit)
        ),
        "Values and shares at the values of each attribute": _iterate_value_rows,
        "Groups within each value of each attribute": _iterate_group_rows,
        "People by class and group": _iterate_count_rows,
    }
    is_multiple = len({case.row["model"] for case in cases}) > 1
    tables = {}
    for caption, build_rows in builders.items():
        is_for_all_cases = build_rows in (_iterate_dispersion_rows, _iterate_count_rows)
        rows = [
            row
            for case in cases
            if is_for_all_cases or case.pair is not None
            for row in map(round_floats, build_rows(case))
        ]
        max_rows = (
            _MAX_VALUES if build_rows in (_iterate_value_rows, _iterate_group_rows) else _MAX_ROWS
        )
        frame = pl.DataFrame(rows[:max_rows], infer_schema_length=None)
        if frame.is_empty():
            continue
        empty_columns = [name for name in ("label", "threshold") if name in frame.columns]
        empty_columns = [name for name in empty_columns if frame[name].is_null().all()]
        frame = frame.drop(*empty_columns, *([] if is_multiple else ["model"]))
        title = (
            caption if len(rows) <= max_rows else f"{caption} (first {max_rows:,} of {len(rows)})"
        )
        tables[title] = frame
    return tables


def _build_case_key_cells(case: MetricCase) -> Row:
    names = ("model", "metric", "label", "threshold")
    return {name: case.row[name] for name in names} | {"attribute": case.layout.sensitive.name}


def _build_interval_cells(name: str, x: ValueWithInterval) -> Row:
    return {name: x.value, f"{name}_low": x.low, f"{name}_high": x.high}


def _iterate_dispersion_rows(case: MetricCase) -> Iterator[Row]:
    take_groups = case.layout.take_groups
    group_values, units = take_groups(case.cells.value), take_groups(case.cells.units)
    clusters = take_groups(case.cells.clusters)
    for g, group in enumerate(case.layout.sensitive.groups):
        is_comparable = g in case.effects.comparable
        row = {
            **_build_case_key_cells(case),
            "group": group,
            "n": int(units[g]),
            "clusters": int(clusters[g]),
            "value": group_values[g] if is_comparable else None,
        }
        if case.area_values is not None:
            row["value, other AP"] = case.area_values[g] if is_comparable else None
        yield row | {"dispersion": case.effects.dispersion.value}


def _order_single_strata_by_rank(case: MetricCase) -> list[int]:
    """List single explanatory attributes by rank, then those without a rank."""
    return [*case.ranked_strata, *(s for s in case.single_strata if s not in case.ranked_strata)]


def _iterate_ranking_rows(case: MetricCase) -> Iterator[Row]:
    for rank, s in enumerate(_order_single_strata_by_rank(case), start=1):
        explanation = case.get_explanation(s)
        is_ranked = s in case.ranked_strata
        verdict = case.classify_explanation(s)
        if verdict == PROBABLE and not case.statuses[s].is_causal:
            verdict = "associated (role not known)"
        yield {
            **_build_case_key_cells(case),
            "rank": rank if is_ranked else None,
            "explanatory": case.layout.strata[s].name,
            **_build_interval_cells(
                "proxy_dispersion", case.get_dispersion(explanation.proxy_dispersion)
            ),
            "first_in": case.first_rank_share[s] if is_ranked else None,
            "controlled_dispersion": explanation.controlled_dispersion.value,
            **_build_interval_cells("reduction", case.get_dispersion(explanation.reduction)),
            "people_compared": explanation.coverage,
            "values_compared": f"{explanation.is_usable.sum()} of {len(explanation.is_usable)}",
            "verdict": verdict,
        }


def _iterate_equal_mix_rows(case: MetricCase, family: MaxStatistic, audit: str) -> Iterator[Row]:
    unadjusted = case.get_pair_gap(case.effects.gap)
    is_audited = np.isfinite(case.audit_results.p[case.pair or 0])
    for s in range(len(case.layout.strata)):
        mix = case.build_equal_mix_gap(s, family)
        regression, robustness = mix.regression or RegressionGap("linear"), mix.robustness
        reported = Robustness() if mix.status.effective_role == "after" else robustness
        yield {
            **_build_case_key_cells(case),
            "group": case.names[0],
            "other group": case.names[1],
            "equal mix of": mix.name,
            "unadjusted gap": unadjusted.value,
            "its p_adjusted": case.get_gap_p(family),
            "tested by": audit if is_audited else "this analysis",
            "gap of those compared": mix.raw.value,
            **_build_interval_cells("gap", mix.gap),
            "p_adjusted": mix.p,
            **_build_interval_cells("share left", mix.remaining_share),
            "people_compared": mix.coverage,
            "people left out": sum(out for _, out, _ in mix.left_out),
            "regression": regression.gap,
            "regression_low": regression.low,
            "regression_high": regression.high,
            "agrees": mix.is_consistent,
            "role": mix.status.effective_role,
            "robustness": reported.gap,
            "robustness of the interval": reported.interval_bound,
            "explained of the score": robustness.score_explained,
            "explained of the groups": robustness.group_explained,
            "note": mix.reason or regression.reason or None,
        }


def _iterate_value_rows(case: MetricCase) -> Iterator[Row]:
    for s in _order_single_strata_by_rank(case):
        people = case.layout.take_groups_by_value(case.cells.composition_counts, s)[
            case.effects.comparable
        ]
        stratum_values = case.layout.take_values(case.cells.value, s)
        total = people.sum(axis=1, keepdims=True)
        shares = np.divide(people, total, out=np.zeros_like(people), where=total > 0)
        for row, g, e in _iterate_groups_at_stratum_values(case, s):
            yield row | {
                "overall value": stratum_values[e],
                "group": case.groups[g],
                "share of the group": shares[g, e],
            }


def _iterate_group_rows(case: MetricCase) -> Iterator[Row]:
    for s in _order_single_strata_by_rank(case):
        cell_values = case.layout.take_groups_by_value(case.cells.value, s)[case.effects.comparable]
        units = case.layout.take_groups_by_value(case.cells.units, s)[case.effects.comparable]
        for row, g, e in _iterate_groups_at_stratum_values(case, s):
            is_compared = bool(case.get_explanation(s).is_usable[e])
            yield row | {
                "group": case.groups[g],
                "n": int(units[g, e]),
                "value": cell_values[g, e] if is_compared else None,
                "compared": is_compared,
            }


def _iterate_groups_at_stratum_values(case: MetricCase, s: int) -> Iterator[tuple[Row, int, int]]:
    strata = case.layout.strata[s]
    for e, name in enumerate(strata.values):
        for g in range(len(case.groups)):
            yield {**_build_case_key_cells(case), "explanatory": strata.name, "at": name}, g, e


def _iterate_count_rows(case: MetricCase) -> Iterator[Row]:
    if case.row["label"] is None:
        return
    units = case.layout.take_groups(case.cells.units)
    for g, group in enumerate(case.layout.sensitive.groups):
        row = _build_case_key_cells(case) | {"group": group, "n": int(units[g])}
        yield {name: x for name, x in row.items() if name not in ("metric", "threshold")}
