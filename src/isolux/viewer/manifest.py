"""What the page says besides its tables: titles, warnings first, units, and what it holds.

The sentences are the report's own, so that the two cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isolux.io.run_changes import changed_words
from isolux.report.comparison import is_comparison, summarise_comparison
from isolux.report.document import PaperTable, Summary
from isolux.report.summary import summarise
from isolux.report.summary.protocol import protocol_of
from isolux.statements.numbers import cell_text, decimals
from isolux.viewer.coding import Coding
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import crossed

FORMAT = 1
"""Raised when a page could no longer read what an older isolux wrote."""


def manifest_of(
    runs: Sequence[Mapping[str, Any]],
    coding: Coding,
    bins: Mapping[int, Any],
    *,
    names: Sequence[str],
    holds: Mapping[str, Any],
) -> dict[str, Any]:
    """Gather the words of a page as JSON values."""
    return {
        "format": FORMAT,
        "runs": list(runs),
        "models": [
            {"run": run, "model": model, "name": name}
            for (run, model), name in zip(coding.models, names, strict=True)
        ],
        "lines": [_line(line, bins.get(i)) for i, line in enumerate(coding.lines)],
        "attributes": [
            {"name": name, "title": title, "parts": list(crossed(name))}
            for name, title in coding.attributes
        ],
        "holds": dict(holds),
    }


def _line(entry: Mapping[str, Any], bins: Mapping[str, Any] | None) -> dict[str, Any]:
    line = entry["line"]
    return {
        **{name: entry[name] for name in ("task", "metric", "label", "threshold", "title")},
        "definition": line.definition,
        "unit": line.unit,
        "direction": line.direction,
        "bins": None if bins is None else dict(bins),
    }


def run_words(run: Run, changed: Sequence[str] | None) -> dict[str, Any]:
    """Say of one run what a reader must know before its numbers."""
    compared = summarise_comparison(run) if is_comparison(run) else None
    summary: Summary = summarise(run) if compared is None else compared.base
    audited = summary.audited
    answer = None if compared is None else compared.answer
    further = summary.further if answer is None else (*answer.further, *answer.gaps)
    return {
        "title": summary.title if compared is None else compared.title,
        "answer": summary.answer if answer is None else answer.first,
        "accounting": summary.accounting,
        "further": list(further),
        "comparison": compared is not None,
        "models": list(run.record.get("models") or ()),
        "warnings": [*([changed_words(changed)] if changed else []), *summary.warnings],
        "cautions": [[c.headline, c.text] for c in summary.cautions],
        "notes": list(summary.notes),
        "limits": list(summary.limits),
        "dataset": audited.dataset,
        "licence": audited.licence,
        "citation": audited.citation,
        "judgement": audited.judgement,
        "cluster": audited.cluster,
        "n_units": audited.n_units,
        "n_clusters": audited.n_clusters,
        "level": audited.level,
        "alpha": audited.alpha,
        "adjusted": audited.adjusted,
        "version": audited.version,
        "created": audited.created,
        "drawn": audited.drawn,
        "verdicts": [
            {
                "attribute": section.attribute,
                "outcome": section.verdict.outcome,
                "text": section.verdict.text,
                "unknown": section.unknown,
            }
            for section in summary.sections
        ],
    }


def paper_words(run: Run) -> dict[str, Any] | None:
    """Lay out the tables that a published protocol prints of a run; None: it followed none."""
    found = protocol_of(run.record)
    if found is None:
        return None
    return {
        "name": found.name,
        "title": found.title,
        "absent": [list(one) for one in found.absent],
        "disagreements": list(found.disagreements),
        "tables": [_paper_table(table) for table in found.tables],
    }


def _paper_table(table: PaperTable) -> dict[str, Any]:
    places = [decimals(list(column)) for column in zip(*table.rows, strict=True)]
    rows = [[cell_text(cell, n) for cell, n in zip(row, places, strict=True)] for row in table.rows]
    return {"caption": table.caption, "columns": list(table.columns), "rows": rows}
