"""The error budget of a report: one family-wise error rate, shared by the audit and its analyses.

An audit and the explanations that are named with it (``--explain``) were planned before anything
was seen. Together they hold one family-wise error rate (5 % at the level 95 %) by Bonferroni's
weights: four fifths are the audit's, one fifth is shared equally by the explanations. Where none is
named the audit has all of it. What is explained afterwards has no share: it was chosen after
looking, so each of its sentences is labelled "Exploratory". The run's record keeps the ledger.

References
----------
.. [1] Bretz, F., Maurer, W., Brannath, W. and Posch, M. (2009). A graphical approach to
   sequentially rejective multiple test procedures. Statistics in Medicine 28, 586-604: the weights
   of its first step. No weight is passed on, as a family of many pairs is never rejected whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.core import registry
from isolux.statements.numbers import format_p_value_equation

AUDIT_SHARE = 0.8
"""The audit's share of the error rate where explanations are planned."""

EXPLORATORY_LABEL = "Exploratory: "
_NOTE_PREFIX = "Error rate: "


def compute_audit_error_share(planned: Sequence[str]) -> float:
    """Return the audit's share of the error rate when these analyses are named with it.

    Examples
    --------
    >>> (
    ...     compute_audit_error_share([]),
    ...     compute_audit_error_share(["power"]),
    ...     compute_audit_error_share(["patterns", "slices"]),
    ... )
    (1.0, 1.0, 0.8)
    """
    return AUDIT_SHARE if _select_analyses_with_claims(planned) else 1.0


def _select_analyses_with_claims(names: Sequence[str]) -> list[str]:
    return [n for n in dict.fromkeys(names) if registry.load_analysis_info(n).makes_claims]


def label_exploratory(
    findings: pl.DataFrame, record: Mapping[str, Any], name: str, planned: Sequence[str]
) -> pl.DataFrame:
    """Label findings as exploratory unless they are significant at the analysis's share."""
    if not _select_analyses_with_claims([name]) or not findings.height:
        return findings
    if name not in planned:
        return findings.with_columns(claim=EXPLORATORY_LABEL + pl.col("claim"))
    spec = record.get("spec") or {}
    alpha = round(1.0 - float(spec.get("level", 0.95)), 10)
    share = (1.0 - AUDIT_SHARE) / len(_select_analyses_with_claims(planned))
    p = pl.col("p_adjusted")
    report_p = (p / share).clip(upper_bound=1.0)
    is_claimed = (p <= alpha).fill_null(value=False)
    is_exploratory = (is_claimed & (report_p > alpha)) | (
        p.is_null() & pl.col("effect").is_not_null()
    )
    suffix = report_p.map_elements(
        lambda p: f" Over the whole report {format_p_value_equation(p)}.", return_dtype=pl.String
    )
    claim = pl.when(is_claimed).then(pl.col("claim") + suffix.fill_null("")).otherwise("claim")
    return findings.with_columns(
        claim=pl.when(is_exploratory).then(EXPLORATORY_LABEL + claim).otherwise(claim),
        p_adjusted=report_p,
    )


def add_error_budget_entry(
    record: Mapping[str, Any], name: str, planned: Sequence[str]
) -> dict[str, Any]:
    """Add an analysis to the record's error-rate ledger, and update the note about it."""
    if not _select_analyses_with_claims([name]):
        return dict(record)
    rows = {row["name"]: dict(row) for row in record.get("ledger") or _start_error_budget(planned)}
    earlier_entry = rows.get(name, {"name": name, "planned": True, "share": 0.0, "looks": 0})
    is_planned = name in planned
    share = (1.0 - AUDIT_SHARE) / len(_select_analyses_with_claims(planned)) if is_planned else 0.0
    rows[name] = {
        "name": name,
        "planned": is_planned,
        "share": round(share, 6),
        "looks": earlier_entry["looks"] + 1,
    }
    notes = [note for note in record.get("notes", ()) if not note.startswith(_NOTE_PREFIX)]
    ledger = list(rows.values())
    return {**record, "ledger": ledger, "notes": [*notes, _format_note(record, ledger)]}


def _start_error_budget(planned: Sequence[str]) -> list[dict[str, Any]]:
    share = compute_audit_error_share(planned)
    return [{"name": "group_gaps", "planned": True, "share": share, "looks": 1}]


def _format_note(record: Mapping[str, Any], ledger: Sequence[Mapping[str, Any]]) -> str:
    spec = record.get("spec") or {}
    rate = f"{100 * (1.0 - float(spec.get('level', 0.95))):g} %"
    rate_name = (
        "false discovery rate" if spec.get("correction") == "bh" else "family-wise error rate"
    )
    planned_names = [
        row["name"] for row in ledger if row["planned"] and row["name"] != "group_gaps"
    ]
    exploratory_names = [row["name"] for row in ledger if not row["planned"]]
    sentence = f"{_NOTE_PREFIX}the audit's findings hold a {rate_name} of {rate}"
    if planned_names:
        sentence = (
            f"{_NOTE_PREFIX}the audit and {', '.join(planned_names)} together hold a"
            f" {rate_name} of {rate}"
        )
        sentence += f" (the audit {100 * AUDIT_SHARE:g} % of it)"
        sentence += _note_too_few_replicates(spec, len(planned_names))
    if exploratory_names:
        sentence += f"; {', '.join(exploratory_names)} ran afterwards and are exploratory"
    return f"{sentence}."


def _note_too_few_replicates(spec: Mapping[str, Any], n_explanations: int) -> str:
    """Note where the smallest p of so many replicates exceeds an explanation's share."""
    replicates = spec.get("replicates")
    share = (1.0 - float(spec.get("level", 0.95))) * (1.0 - AUDIT_SHARE) / n_explanations
    min_replicates = math.ceil(1.0 / share - 1e-6) - 1
    if replicates is None or int(replicates) >= min_replicates:
        return ""
    return f"; explanations need --replicates {min_replicates} or more to claim anything"
