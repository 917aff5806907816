"""The tables of the analysis ``confounders``: values, ranking, control, equal mixes, counts.

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
    """Lay the cases out, by caption; tables without rows are left out."""
    audit = "the audit" if corrected else "the audit, not adjusted"
    layouts: dict[str, Callable[[Case], Iterator[Row]]] = {
        "Values by group, and their dispersion": _groups,
        "Explanatory attributes by the dispersion of ProxyAP, and what control leaves": _ranking,
        "Gaps at an equal mix of explanatory values": (
            lambda case: _equal_mix(case, family, audit)
        ),
        "Values and shares at the values of each attribute": _values,
        "Groups within each value of each attribute": _within,
        "People by class and group": _counts,
    }
    is_multiple = len({case.row["model"] for case in cases}) > 1
    tables = {}
    for caption, lay_out in layouts.items():
        any_case = lay_out in (_groups, _counts)
        rows = [row for case in cases if any_case or case.pair is not None for row in lay_out(case)]
        most = _MAX_VALUES if lay_out in (_values, _within) else _MAX_ROWS
        frame = pl.DataFrame(rows[:most], infer_schema_length=None)
        if frame.is_empty():
            continue
        empty = [name for name in ("label", "threshold") if name in frame.columns]
        empty = [name for name in empty if frame[name].is_null().all()]
        frame = frame.drop(*empty, *([] if is_multiple else ["model"]))
        title = caption if len(rows) <= most else f"{caption} (first {most:,} of {len(rows)})"
        tables[title] = frame
    return tables


def _named(case: Case) -> Row:
    names = ("model", "metric", "label", "threshold")
    return {name: case.row[name] for name in names} | {"attribute": case.layout.sensitive.name}


def _ends(name: str, x: Number) -> Row:
    return {name: _round(x.value), f"{name}_low": _round(x.low), f"{name}_high": _round(x.high)}


def _round(x: Any) -> float | None:
    return None if x is None or not np.isfinite(x) else round(float(x), _DIGITS)


def _groups(case: Case) -> Iterator[Row]:
    of_groups = case.layout.of_groups
    value, units = of_groups(case.cells.value), of_groups(case.cells.units)
    clusters = of_groups(case.cells.clusters)
    for g, group in enumerate(case.layout.sensitive.groups):
        judged = g in case.facts.judged
        row = {
            **_named(case),
            "group": group,
            "n": int(units[g]),
            "clusters": int(clusters[g]),
            "value": _round(value[g]) if judged else None,
        }
        if case.other_variant is not None:
            row["value, other AP"] = _round(case.other_variant[g]) if judged else None
        yield row | {"dispersion": _round(case.facts.sigma.value)}


def _in_order(case: Case) -> list[int]:
    """List single explanatory attributes, by rank, then those without one."""
    return [*case.ranked, *(s for s in case.singles if s not in case.ranked)]


def _ranking(case: Case) -> Iterator[Row]:
    for rank, s in enumerate(_in_order(case), start=1):
        one, is_ranked, verdict = case.of(s), s in case.ranked, case.verdict(s)
        if verdict == PROBABLE and not case.standing[s].may_cause:
            verdict = "associated (role not known)"
        yield {
            **_named(case),
            "rank": rank if is_ranked else None,
            "explanatory": case.layout.strata[s].name,
            **_ends("proxy_dispersion", case.spread_of(one.sigma)),
            "first_in": _round(case.first[s]) if is_ranked else None,
            "controlled_dispersion": _round(one.within.value),
            **_ends("reduction", case.spread_of(one.reduction)),
            "people_compared": _round(one.covered),
            "verdict": verdict,
        }


def _equal_mix(case: Case, family: Family, audit: str) -> Iterator[Row]:
    raw = case.gap_of(case.facts.gap)
    is_audited = np.isfinite(case.audited.p[case.pair or 0])
    for s in range(len(case.layout.strata)):
        mix = case.mix_of(s, family)
        by, bearing = mix.regression, mix.bearing
        shown = None if mix.standing.reading == "after" else bearing
        yield {
            **_named(case),
            "group": case.names[0],
            "other group": case.names[1],
            "equal mix of": mix.name,
            "unadjusted gap": _round(raw.value),
            "its p_adjusted": _round(case.p_of_gap(family)),
            "tested by": audit if is_audited else "this analysis",
            "gap of those compared": _round(mix.raw.value),
            **_ends("gap", mix.gap),
            "p_adjusted": _round(mix.p),
            **_ends("share left", mix.share),
            "people_compared": _round(mix.covered),
            "people left out": sum(out for _, out, _ in mix.left_out),
            "regression": _round(by.gap) if by else None,
            "regression_low": _round(by.low) if by else None,
            "regression_high": _round(by.high) if by else None,
            "agrees": mix.agrees,
            "role": mix.standing.reading,
            "robustness": _round(shown.gap) if shown else None,
            "robustness of the interval": _round(shown.end) if shown else None,
            "explained of the score": _round(bearing.score) if bearing else None,
            "explained of the groups": _round(bearing.group) if bearing else None,
            "note": mix.reason or (by.reason if by else "") or None,
        }


def _values(case: Case) -> Iterator[Row]:
    for s in _in_order(case):
        people = case.layout.of_both(case.cells.people, s)[case.facts.judged]
        value = case.layout.of_values(case.cells.value, s)
        total = people.sum(axis=1, keepdims=True)
        shares = np.divide(people, total, out=np.zeros_like(people), where=total > 0)
        for row, g, e in _at_values(case, s):
            everyone = {"value of everyone": _round(value[e])}
            yield (
                row
                | everyone
                | {"group": case.groups[g]}
                | {"share of the group": _round(shares[g, e])}
            )


def _within(case: Case) -> Iterator[Row]:
    for s in _in_order(case):
        both = case.layout.of_both(case.cells.value, s)[case.facts.judged]
        units = case.layout.of_both(case.cells.units, s)[case.facts.judged]
        for row, g, e in _at_values(case, s):
            compared = bool(case.of(s).usable[e])
            yield row | {
                "group": case.groups[g],
                "n": int(units[g, e]),
                "value": _round(both[g, e]) if compared else None,
                "compared": compared,
            }


def _at_values(case: Case, s: int) -> Iterator[tuple[Row, int, int]]:
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
