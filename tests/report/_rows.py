"""Rows of an audit's tables, made of given rates instead of an audit.

Standard errors are those of a rate with a design effect. Nothing here claims that an audit would
give these numbers, only that the tables pass ``check``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tables:
    """Rows of the three tables, as they grow."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    disparities: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    min_units: int = 50


Rates = Mapping[tuple[str, ...], tuple[int, float]]


def line(metric: str, label: str | None = None, model: str = "erm") -> dict[str, Any]:
    return {
        "model": model,
        "task": "classification",
        "metric": metric,
        "label": label,
        "threshold": None,
    }


def add_everyone(tables: Tables, of: Mapping[str, Any], n: int, rate: float) -> None:
    row = _estimate(n, rate, tables.min_units)
    tables.metrics.append({**of, "attribute": None, "group": "overall", "values": [], **row})


def add_attribute(
    tables: Tables,
    of: Mapping[str, Any],
    attribute: str,
    rates: Rates,
    *,
    everyone: float,
    p: float | None = None,
    pairs: bool = True,
) -> None:
    """Add all rows of one line and attribute; ``p`` is the adjusted p of 'do these differ'."""
    judged = []
    for values, (n, rate) in rates.items():
        row = _estimate(n, rate, tables.min_units)
        group = " × ".join(values)
        tables.metrics.append(
            {**of, "attribute": attribute, "group": group, "values": list(values), **row}
        )
        if row["value"] is not None:
            judged.append((group, n, rate, row["standard_error"]))
    base = {**of, "attribute": attribute, "status": "ok"}
    for group, n, rate, se in judged:
        gap = rate - everyone
        tables.disparities.append(
            {**base, "kind": "difference_to_overall", "group_a": group, "group_b": "overall"}
            | gap_of(gap, se)
            | {"n_units_a": n}
        )
    if pairs:
        _add_pairs(tables, base, judged)
    _add_spread(tables, base, judged, everyone, p)


def _estimate(n: int, rate: float, least: int) -> dict[str, Any]:
    clusters = max(n // 3, 1) if n else 0
    if n < least:
        nothing = dict.fromkeys(("value", "low", "high", "standard_error", "method"))
        return {
            **nothing,
            "n_units": n,
            "n_clusters": clusters,
            "status": "insufficient units",
            "reason": f"fewer than {least} units",
        }
    se = math.sqrt(max(rate * (1 - rate), 0.004) / n * 1.4)
    few = clusters < 30
    return {
        "n_units": n,
        "n_clusters": clusters,
        "value": rate,
        "low": max(rate - 1.96 * se, 0.0),
        "high": min(rate + 1.96 * se, 1.0),
        "standard_error": se,
        "method": "score",
        "status": "few clusters" if few else "ok",
        "reason": "fewer than 30 clusters: the interval may be too narrow" if few else None,
    }


def gap_of(gap: float, se: float) -> dict[str, Any]:
    p = math.erfc(abs(gap) / se / math.sqrt(2))
    return {
        "value": gap,
        "low": gap - 1.96 * se,
        "high": gap + 1.96 * se,
        "method": "MOVER",
        "p_value": p,
        "p_adjusted": min(1.0, 20 * p),
        "test": "score interval",
        "family": "all pairs, groups and metrics of this audit (m = 412)",
        "detectable": 4.2 * se,
    }


def _add_pairs(tables: Tables, base: Mapping[str, Any], judged: Sequence[Any]) -> None:
    for one, other in itertools.combinations(judged, 2):
        a, b = sorted((one, other), key=lambda row: row[2])
        counts = {"group_a": a[0], "group_b": b[0], "n_units_a": a[1], "n_units_b": b[1]}
        gap = gap_of(a[2] - b[2], math.hypot(a[3], b[3]))
        tables.disparities.append({**base, **counts, **gap, "kind": "difference"})
        ratio = {"value": a[2] / b[2], "p_adjusted": gap["p_adjusted"]}
        tables.disparities.append({**base, **counts, **ratio, "kind": "ratio"})


def _add_spread(
    tables: Tables,
    base: Mapping[str, Any],
    judged: Sequence[Any],
    everyone: float,
    p: float | None,
) -> None:
    if len(judged) < 2:
        reason = "fewer than two groups are large enough"
        row = {**base, "kind": "omnibus_test", "status": "insufficient units", "reason": reason}
        tables.disparities.append(row)
        return
    ranked = sorted(judged, key=lambda row: row[2])
    rates = [row[2] for row in ranked]
    mean = sum(rates) / len(rates)
    sd = math.sqrt(sum((r - mean) ** 2 for r in rates) / (len(rates) - 1))
    noise = sum(row[3] ** 2 for row in ranked) / len(ranked)
    tau = math.sqrt(max(sd**2 - noise, 0.0))
    ends = {"group_a": ranked[0][0], "group_b": ranked[-1][0]}
    if p is None:
        z = (rates[-1] - rates[0]) / math.hypot(ranked[0][3], ranked[-1][3])
        p = min(1.0, len(ranked) ** 2 * math.erfc(z / math.sqrt(2)))
    test = {"p_value": p / 3, "p_adjusted": p, "test": "score interval"}
    spread = {
        "omnibus_test": {"value": 9.1, **test},
        "range": {"value": rates[-1] - rates[0]},
        "ratio_min_max": {"value": rates[0] / rates[-1]},
        "epsilon": {"value": math.log10(rates[-1] / rates[0])},
        "standard_deviation": {"value": sd},
        "noise_corrected_sd": {"value": tau, "low": 0.7 * tau, "high": 1.9 * tau},
        "mean_absolute_gap": {"value": sum(abs(r - everyone) for r in rates) / len(rates)},
    }
    for kind, row in spread.items():
        tables.disparities.append({**base, **ends, "kind": kind, **row})
