"""The tables of the analysis ``confounders``: values, ranking, control, equal mixes, counts.

Numbers are in the metric's unit (fractions, not points), rounded to what a reader can use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses.confounders.cases import PROBABLE, Case, Number, number_of
from isolux.analyses.confounders.words import agreement

__all__ = ["CONTROLLED", "COUNTS", "EQUAL_MIX", "GROUPS", "RANKING", "VALUES", "tables_of"]

GROUPS = "Values by group, and their dispersion"
RANKING = "Explanatory attributes by the dispersion of ProxyAP, and what control leaves"
EQUAL_MIX = "Gaps at an equal mix of explanatory values"
VALUES = "Values and shares at the values of each attribute"
CONTROLLED = "Groups within each value of each attribute"
COUNTS = "People by class and group"
_MOST, _MOST_OF_VALUES = 72, 2_000
_DIGITS = 6

Row = dict[str, Any]
Adjust = Callable[[np.ndarray], np.ndarray]


def tables_of(
    cases: Sequence[Case], adjust: Adjust, probable: float, *, corrected: bool = True
) -> dict[str, pl.DataFrame]:
    """Lay the cases out, by caption; tables without rows are left out."""
    audit = "the audit" if corrected else "the audit, not adjusted"
    judged = [case for case in cases if case.pair is not None]
    rows: dict[str, Iterable[Row]] = {
        GROUPS: (row for case in cases for row in _groups(case)),
        RANKING: (row for case in judged for row in _ranking(case, probable)),
        EQUAL_MIX: (row for case in judged for row in _equal_mix(case, adjust, audit)),
        VALUES: (row for case in judged for row in _values(case)),
        CONTROLLED: (row for case in judged for row in _within(case)),
        COUNTS: (row for case in cases for row in _counts(case)),
    }
    several = len({case.row["model"] for case in cases}) > 1
    found = {}
    for caption, made in rows.items():
        listed = list(made)
        most = _MOST_OF_VALUES if caption in (VALUES, CONTROLLED) else _MOST
        frame = pl.DataFrame(listed[:most], infer_schema_length=None)
        if frame.is_empty():
            continue
        if not several:
            frame = frame.drop("model")
        for name in ("label", "threshold"):
            if name in frame.columns and frame[name].is_null().all():
                frame = frame.drop(name)
        title = caption if len(listed) <= most else f"{caption} (first {most:,} of {len(listed)})"
        found[title] = frame
    return found


def _named(case: Case) -> Row:
    own = {name: case.row[name] for name in ("model", "metric", "label", "threshold")}
    return {**own, "attribute": case.layout.sensitive.name}


def _ends(name: str, x: Number) -> Row:
    return {name: _round(x.value), f"{name}_low": _round(x.low), f"{name}_high": _round(x.high)}


def _round(x: float | None) -> float | None:
    return None if x is None else round(x, _DIGITS)


def _groups(case: Case) -> Iterable[Row]:
    layout, cells = case.layout, case.cells
    value, units = layout.of_groups(cells.value), layout.of_groups(cells.units)
    clusters = layout.of_groups(cells.clusters)
    for g, group in enumerate(layout.sensitive.groups):
        judged = g in case.facts.judged
        row = {
            **_named(case),
            "group": group,
            "n": int(units[g]),
            "clusters": int(clusters[g]),
            "value": _round(number_of(value[g])) if judged else None,
        }
        if case.other_variant is not None:
            other = layout.of_groups(case.other_variant)[g]
            row["value, other AP"] = _round(number_of(other)) if judged else None
        yield row | {"dispersion": _round(number_of(case.facts.sigma.value))}


def _ranking(case: Case, probable: float) -> Iterable[Row]:
    unranked = [s for s in case.singles if s not in case.ranked]
    for place, s in enumerate([*case.ranked, *unranked], start=1):
        one = case.of(s)
        ranked = s in case.ranked
        first = number_of(case.first[s]) if ranked else None
        yield {
            **_named(case),
            "rank": place if ranked else None,
            "explanatory": case.layout.strata[s].name,
            **_ends("proxy_dispersion", case.spread_of(one.sigma)),
            "first_in": _round(first),
            "controlled_dispersion": _round(number_of(one.within.value)),
            **_ends("reduction", case.spread_of(one.reduction)),
            "people_compared": _round(one.covered),
            "verdict": _verdict(case, s, probable),
        }


def _verdict(case: Case, s: int, probable: float) -> str:
    """Give the paper's verdict, which names a cause only where the role lets it."""
    told = case.verdict(s, probable)
    known = told != PROBABLE or case.standing[s].may_cause
    return told if known else "associated (role not known)"


def _equal_mix(case: Case, adjust: Adjust, audit: str) -> Iterable[Row]:
    worse, other = (case.groups[side] for side in case.sides)
    raw = case.gap_of(case.raw)
    for s, strata in enumerate(case.layout.strata):
        left, share = case.gap_of(case.level[s]), case.remaining(s)
        pair = case.pair or 0
        p = adjust(case.level[s].statistic[[pair]])[0]
        audited = np.isfinite(case.audited.p[pair])
        own = case.audited.p[pair] if audited else adjust(case.raw.statistic[[pair]])[0]
        by = case.regression.get(s)
        yield {
            **_named(case),
            "group": worse,
            "other group": other,
            "equal mix of": strata.name,
            "unadjusted gap": _round(raw.value),
            "its p_adjusted": _round(number_of(own)),
            "tested by": audit if audited else "this analysis",
            "gap of those compared": _round(case.gap_of(case.beside(s)).value),
            **_ends("gap", left),
            "p_adjusted": _round(number_of(p)),
            **_ends("share left", share),
            "people_compared": _round(case.covered(s)),
            "people left out": sum(out for _, out, _ in case.left_out(s)),
            "regression": _round(number_of(by.gap)) if by else None,
            "regression_low": _round(number_of(by.low)) if by else None,
            "regression_high": _round(number_of(by.high)) if by else None,
            "agrees": agreement(case, s),
            "role": case.standing[s].reading,
            **_bearing(case, s),
            "note": case.why_apart(s) or (by.reason if by else "") or None,
        }


def _bearing(case: Case, s: int) -> Row:
    """Give the robustness value of a gap and of its interval, and what the values explain."""
    found = case.bearing.get(s)
    after = case.standing[s].reading == "after"
    shown = None if after else found
    return {
        "robustness": _round(shown.gap) if shown else None,
        "robustness of the interval": _round(shown.end) if shown else None,
        "explained of the score": _round(found.score) if found else None,
        "explained of the groups": _round(found.group) if found else None,
    }


def _values(case: Case) -> Iterable[Row]:
    for s in _in_order(case):
        yield from _values_of(case, s)


def _in_order(case: Case) -> list[int]:
    """List single explanatory attributes, the one that ranks first before the others."""
    return [*case.ranked, *(s for s in case.singles if s not in case.ranked)]


def _values_of(case: Case, s: int) -> Iterable[Row]:
    people = case.layout.of_both(case.cells.people, s)[case.facts.judged]
    value = case.layout.of_values(case.cells.value, s)
    every = people.sum(axis=1, keepdims=True)
    shares = np.divide(people, every, out=np.zeros_like(people), where=every > 0)
    for e, name in enumerate(case.layout.strata[s].values):
        for g, group in enumerate(case.groups):
            yield {
                **_named(case),
                "explanatory": case.layout.strata[s].name,
                "at": name,
                "value of everyone": _round(number_of(value[e])),
                "group": group,
                "share of the group": _round(float(shares[g, e])),
            }


def _within(case: Case) -> Iterable[Row]:
    for s in _in_order(case):
        yield from _within_of(case, s)


def _within_of(case: Case, s: int) -> Iterable[Row]:
    both = case.layout.of_both(case.cells.value, s)[case.facts.judged]
    units = case.layout.of_both(case.cells.units, s)[case.facts.judged]
    one = case.of(s)
    for e, name in enumerate(case.layout.strata[s].values):
        for g, group in enumerate(case.groups):
            yield {
                **_named(case),
                "explanatory": case.layout.strata[s].name,
                "at": name,
                "group": group,
                "n": int(units[g, e]),
                "value": _round(number_of(both[g, e])) if one.usable[e] else None,
                "compared": bool(one.usable[e]),
            }


def _counts(case: Case) -> Iterable[Row]:
    if case.row["label"] is None:
        return
    units = case.layout.of_groups(case.cells.units)
    for g, group in enumerate(case.layout.sensitive.groups):
        yield {
            "model": case.row["model"],
            "label": case.row["label"],
            "attribute": case.layout.sensitive.name,
            "group": group,
            "n": int(units[g]),
        }
