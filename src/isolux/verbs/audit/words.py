"""What an audit says of itself where it is printed: in a notebook, or at a prompt."""

from __future__ import annotations

import textwrap

from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import words_of

_WIDTH, _CLAIMS, _WARNINGS, _LINES = 80, 3, 2, 5


def audit_text(run: Run) -> str:
    """Say in a screen what was audited, the first findings, and where the tables are."""
    record = run.record
    spec, clusters = record.get("spec") or {}, record.get("clusters") or {}
    target = f" of {spec['target']}" if spec.get("target") else ""
    dataset = (record.get("dataset") or {}).get("title")
    of = f" on {dataset}" if dataset else ""
    column = clusters.get("column")
    within = f" in {clusters.get('n_clusters', 0):,} clusters ({column})" if column else ""
    claims = run.findings.sort("rank")["claim"].to_list()
    head = (
        f"Audit of {record.get('model')}{of}: {record.get('task')}{target}, "
        f"{clusters.get('n_units', 0):,} units{within}, by {', '.join(spec.get('by') or ())}"
    )
    told = [_brief(text) for text in (head, words_of(record)) if text]
    warnings = list(record.get("warnings") or ())
    told += [_brief(f"WARNING: {text}") for text in warnings[:_WARNINGS]]
    if len(warnings) > _WARNINGS:
        told.append(f"… and {len(warnings) - _WARNINGS:,} more in .run.record['warnings']")
    told += [_brief(f"• {claim}") for claim in claims[:_CLAIMS]]
    if len(claims) > _CLAIMS:
        told.append(f"… and {len(claims) - _CLAIMS:,} more in .findings")
    told.append("Tables: .group_metrics, .disparities, .findings; .report(DIR) writes the page.")
    return "\n".join(told)


def _brief(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH, max_lines=_LINES, placeholder=" …"))
