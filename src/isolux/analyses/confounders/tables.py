"""The tables of the analysis ``confounders``: values, ranking, control, adjusted gaps, counts.

Numbers are in the metric's unit (fractions, not points), rounded to what a reader can use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses.confounders.cases import PROBABLE, Case, Number
from isolux.analyses.confounders.tests import Family

_MAX_ROWS, _MAX_VALUES = 72, 2_000
_DIGITS = 6

Row = dict[str, Any]


def tables_of(
    cases: Sequence[Case], family: Family, *, corrected: bool = True
) -> dict[str, pl.DataFrame]:
    """Build the tables by caption, without those that have no rows."""
    audit = "the audit" if corrected else "the audit, not adjusted"
    ranking_caption = "Explanatory attributes by the dispersion of ProxyAP, and what control leaves"
    builders: dict[str, Callable[[Case], Iterator[Row]]] = {
        "Values by group, and their dispersion": _groups,
        ranking_caption: _build_ranking_rows,
        "Gaps at an equal mix of explanatory values": (
            lambda case: _build_equal_mix_rows(case, family, audit)
        ),
        "Values and shares at the values of each attribute": _values,
        "Groups within each value of each attribute": _within,
        "People by class and group": _counts,
    }
    is_multiple = len({case.row["model"] for case in cases}) > 1
    tables = {}
    for caption, build_rows in builders.items():
        is_for_all_cases = build_rows in (_groups, _counts)
        rows = [
            row
            for case in cases
            if is_for_all_cases or case.pair is not None
            for row in build_rows(case)
        ]
        max_rows = _MAX_VALUES if build_rows in (_values, _within) else _MAX_ROWS
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


def _named(case: Case) -> Row:
    names = ("model", "metric", "label", "threshold")
    return {name: case.row[name] for name in names} | {"attribute": case.layout.sensitive.name}


def _ends(name: str, x: Number) -> Row:
    return {
        name: _round_finite(x.value),
        f"{name}_low": _round_finite(x.low),
        f"{name}_high": _round_finite(x.high),
    }


def _round_finite(x: Any) -> float | None:
    return None if x is None or not np.isfinite(x) else round(float(x), _DIGITS)


def _groups(case: Case) -> Iterator[Row]:
    take_groups = case.layout.of_groups
    group_values, units = take_groups(case.cells.value), take_groups(case.cells.units)
    clusters = take_groups(case.cells.clusters)
    for g, group in enumerate(case.layout.sensitive.groups):
        is_comparable = g in case.facts.judged
        row = {
            **_named(case),
            "group": group,
            "n": int(units[g]),
            "clusters": int(clusters[g]),
            "value": _round_finite(group_values[g]) if is_comparable else None,
        }
        if case.other_variant is not None:
            row["value, other AP"] = _round_finite(case.other_variant[g]) if is_comparable else None
        yield row | {"dispersion": _round_finite(case.facts.sigma.value)}


def _in_order(case: Case) -> list[int]:
    """List single explanatory attributes by rank, then those without a rank."""
    return [*case.ranked, *(s for s in case.singles if s not in case.ranked)]


def _build_ranking_rows(case: Case) -> Iterator[Row]:
    for rank, s in enumerate(_in_order(case), start=1):
        explanation, is_ranked, verdict = case.of(s), s in case.ranked, case.verdict(s)
        if verdict == PROBABLE and not case.standing[s].may_cause:
            verdict = "associated (role not known)"
        yield {
            **_named(case),
            "rank": rank if is_ranked else None,
            "explanatory": case.layout.strata[s].name,
            **_ends("proxy_dispersion", case.spread_of(explanation.sigma)),
            "first_in": _round_finite(case.first[s]) if is_ranked else None,
            "controlled_dispersion": _round_finite(explanation.within.value),
            **_ends("reduction", case.spread_of(explanation.reduction)),
            "people_compared": _round_finite(explanation.covered),
            "verdict": verdict,
        }


def _build_equal_mix_rows(case: Case, family: Family, audit: str) -> Iterator[Row]:
    unadjusted = case.gap_of(case.facts.gap)
    is_audited = np.isfinite(case.audited.p[case.pair or 0])
    for s in range(len(case.layout.strata)):
        mix = case.mix_of(s, family)
        regression, robustness = mix.regression, mix.bearing
        reported = None if mix.standing.reading == "after" else robustness
        yield {
            **_named(case),
            "group": case.names[0],
            "other group": case.names[1],
            "equal mix of": mix.name,
            "unadjusted gap": _round_finite(unadjusted.value),
            "its p_adjusted": _round_finite(case.p_of_gap(family)),
            "tested by": audit if is_audited else "this analysis",
            "gap of those compared": _round_finite(mix.raw.value),
            **_ends("gap", mix.gap),
            "p_adjusted": _round_finite(mix.p),
            **_ends("share left", mix.share),
            "people_compared": _round_finite(mix.covered),
            "people left out": sum(out for _, out, _ in mix.left_out),
            "regression": _round_finite(regression.gap) if regression else None,
            "regression_low": _round_finite(regression.low) if regression else None,
            "regression_high": _round_finite(regression.high) if regression else None,
            "agrees": mix.agrees,
            "role": mix.standing.reading,
            "robustness": _round_finite(reported.gap) if reported else None,
            "robustness of the interval": _round_finite(reported.end) if reported else None,
            "explained of the score": _round_finite(robustness.score) if robustness else None,
            "explained of the groups": _round_finite(robustness.group) if robustness else None,
            "note": mix.reason or (regression.reason if regression else "") or None,
        }


def _values(case: Case) -> Iterator[Row]:
    for s in _in_order(case):
        people = case.layout.of_both(case.cells.people, s)[case.facts.judged]
        stratum_values = case.layout.of_values(case.cells.value, s)
        total = people.sum(axis=1, keepdims=True)
        shares = np.divide(people, total, out=np.zeros_like(people), where=total > 0)
        for row, g, e in _iterate_values(case, s):
            overall_cell = {"value of everyone": _round_finite(stratum_values[e])}
            yield (
                row
                | overall_cell
                | {"group": case.groups[g]}
                | {"share of the group": _round_finite(shares[g, e])}
            )


def _within(case: Case) -> Iterator[Row]:
    for s in _in_order(case):
        cell_values = case.layout.of_both(case.cells.value, s)[case.facts.judged]
        units = case.layout.of_both(case.cells.units, s)[case.facts.judged]
        for row, g, e in _iterate_values(case, s):
            is_compared = bool(case.of(s).usable[e])
            yield row | {
                "group": case.groups[g],
                "n": int(units[g, e]),
                "value": _round_finite(cell_values[g, e]) if is_compared else None,
                "compared": is_compared,
            }


def _iterate_values(case: Case, s: int) -> Iterator[tuple[Row, int, int]]:
    strata = case.layout.strata[s]
    for e, name in enumerate(strata.values):
        for g in range(len(case.groups)):
            yield {**_named(case), "explanatory": strata.name, "at": name}, g, e


def _counts(case: Case) -> Iterator[Row]:
    if case.row["label"] is None:
        return
    units = case.layout.of_groups(case.cells.units)
    for g, group in enumerate(case.layout.sensitive.groups):
        row = _named(case) | {"group": group, "n": int(units[g])}
        yield {name: x for name, x in row.items() if name not in ("metric", "threshold")}
