"""A run's chart of one metric and one attribute for a notebook, as Vega-Lite."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from isolux.report.document import AttributeSection, LineTable
from isolux.report.figures.dot_plot import with_tooltips
from isolux.report.figures.svg import CONFIG, Spec
from isolux.report.summary import summarise
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError, UnknownNameError

_WIDTH = 76
_TAG = re.compile(r"<(?=[/!?a-zA-Z])")


def chart_of(
    run: Run,
    metric: str | None = None,
    attribute: str | None = None,
    *,
    label: str | None = None,
    threshold: float | None = None,
) -> Spec:
    """Chart a metric of each group of an attribute, with intervals; warnings stand in its title."""
    summary = summarise(run)
    section = _section(summary.sections, attribute)
    table = _table(section, metric, label, threshold)
    told = [f"WARNING: {text}" for text in summary.warnings]
    few = sum(not row.estimate.judged for row in table.rows)
    told += [f"{few} of {len(table.rows)} groups have too little data to judge."] if few else []
    drawn = "Dashed line and band: everyone."
    if any(row.estimate.judged and row.estimate.status != "ok" for row in table.rows):
        drawn += " Hollow: the interval is in doubt."
    lines = [line for text in (*told, drawn) for line in textwrap.wrap(text, _WIDTH)]
    title = {"text": f"{table.line.title} by {section.title}", "subtitle": lines}
    config = {**CONFIG, "background": "white"}
    placed = {"anchor": "start", "offset": 22}
    chart: Spec = _harmless({"title": title | placed, **with_tooltips(table), "config": config})
    return chart


def _harmless(part: Any) -> Any:
    """Part each ``<`` from what would make a tag of it, by a mark that takes no room."""
    if isinstance(part, str):
        return _TAG.sub("<\N{WORD JOINER}", part)
    if isinstance(part, dict):
        return {key: _harmless(one) for key, one in part.items()}
    return [_harmless(one) for one in part] if isinstance(part, list) else part


def _section(sections: tuple[AttributeSection, ...], attribute: str | None) -> AttributeSection:
    if not sections:
        raise SpecError(
            "this run has no metric of groups to draw",
            expected="an audit; two models compared are drawn in their report",
        )
    if attribute is None:
        return sections[0]
    for section in sections:
        if section.attribute == attribute:
            return section
    raise UnknownNameError("attribute", attribute, [one.attribute for one in sections])


def _table(
    section: AttributeSection, metric: str | None, label: str | None, threshold: float | None
) -> LineTable:
    every = [table for block in section.blocks for table in block.tables]
    if metric is None and label is None and threshold is None:
        return section.main
    metric = section.main.line.metric if metric is None else metric
    found = [table for table in every if table.line.metric == metric]
    if not found:
        known = dict.fromkeys(table.line.metric for table in every)
        raise UnknownNameError("metric", metric, list(known))
    for name, asked in (("threshold", threshold), ("label", label)):
        held = list(dict.fromkeys(getattr(table.line, name) for table in found))
        if asked is None and (None in held or len(held) == 1 or name == "threshold"):
            asked = None if None in held else held[0]  # noqa: PLW2901 - the first in reading order
        elif asked is None or asked not in held:
            raise SpecError(
                f"{metric} has several of {name}"
                if asked is None
                else f"{metric} has no such {name}",
                expected=f"{name}= one of {', '.join(map(repr, held))}",
                found="none" if asked is None else repr(asked),
            )
        found = [table for table in found if getattr(table.line, name) == asked]
    return found[0]
