"""Runs whose tables are written by hand: values of groups, and adjusted p of their pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.groups.unknown_values import UNKNOWN

Row = dict[str, Any]
MEASURE: Row = {"model": "m", "task": "classification", "metric": "accuracy", "label": None,
                "threshold": None}  # fmt: skip
SPEC: Row = {
    "data": "table:people.csv",
    "level": 0.95,
    "correction": "max-t",
    "min_units": 50,
    "min_clusters": 10,
}


def block(
    values: Mapping[str, float],
    *pairs: tuple[str, str, float | None],
    attribute: str = "race",
    sizes: Mapping[str, int] | None = None,
    half: float = 0.01,
    status: Mapping[str, Row] | None = None,
    **measure: Any,
) -> list[Row]:
    """Write one measure's groups of one attribute, and pairs (a, b, adjusted p).

    ``half``: half the width of each simultaneous interval; a pair's own is half as wide. A pair
    whose second group is ``everyone`` is a group against everyone.
    """
    key = MEASURE | measure | {"attribute": attribute}
    n = {name: (sizes or {}).get(name, 500) for name in values} | {"overall": 2000}
    groups = [
        key | {"group": name, "values": name.split(" × "), "value": value, "n_units": n[name],
               "n_clusters": n[name], "status": "ok"}
        for name, value in values.items()
    ]  # fmt: skip
    known = [value for name, value in values.items() if UNKNOWN not in name]
    value_of = {**values, "overall": sum(known) / len(known)}
    return groups + [
        key | {"kind": "difference_to_overall" if b == "overall" else "difference",
               "group_a": a, "group_b": b, "value": (gap := value_of[a] - value_of[b]),
               "low": gap - half / 2, "high": gap + half / 2, "simultaneous_low": gap - half,
               "simultaneous_high": gap + half, "p_value": p, "p_adjusted": p, "status": "ok",
               "n_units_a": n[a], "n_units_b": n[b], "n_clusters_a": n[a],
               "n_clusters_b": n[b]} | (status or {}).get(a, {})
        for a, b, p in pairs
    ]  # fmt: skip


def small(name: str, n: int, attribute: str = "race", **measure: Any) -> list[Row]:
    """Write a group that is too small to be judged."""
    row = {"attribute": attribute, "group": name, "values": name.split(" × "), "n_units": n,
           "n_clusters": n, "status": "insufficient units",
           "reason": "fewer than 50 units"}  # fmt: skip
    return [MEASURE | row | measure]


def run_of(*blocks: Sequence[Row], record: Row | None = None, **spec: Any) -> Run:
    """Make a run of blocks; everyone's row is added to each measure."""
    rows = [row for part in blocks for row in part]
    disparities = [row for row in rows if "kind" in row]
    groups = [row for row in rows if "kind" not in row]
    measures = {tuple(row[name] for name in MEASURE): row for row in groups}.values()
    everyone = [
        {name: row[name] for name in MEASURE}
        | {"attribute": None, "group": "overall", "values": [], "value": 0.9, "n_units": 2000,
           "n_clusters": 2000, "status": "ok"}
        for row in measures
    ]  # fmt: skip
    by = list(dict.fromkeys(row["attribute"] for row in groups))
    return Run(
        {"spec": SPEC | {"by": by} | spec, "model": "m", **(record or {})},
        SCORES.empty(),
        ATTRIBUTES.empty(),
        GROUP_METRICS.conform(pl.DataFrame([*everyone, *groups], infer_schema_length=None)),
        DISPARITIES.conform(pl.DataFrame(disparities, infer_schema_length=None))
        if disparities
        else DISPARITIES.empty(),
        FINDINGS.empty(),
    )
