"""The page of ``isolux monitor``: gaps over time in one HTML file, in the report's own dress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.core.containers import Run, tables_to_json
from isolux.core.printable import clean_line
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.report.figures import Figure
from isolux.report.figures.svg import (
    ACCENT,
    GREY,
    INK,
    Spec,
    build_channel,
    draw_chart_svg,
    shorten_names_distinctly,
)
from isolux.report.html import render_run_page
from isolux.report.summary import summarise_run
from isolux.statements.numbers import format_count

_WIDTH, _HEIGHT = 230, 110
_MAX_GAPS = 12


def render_monitoring_page(
    gap_snapshots: pl.DataFrame,
    gaps: pl.DataFrame,
    findings: Sequence[str],
    notes: Sequence[str],
    record: Mapping[str, Any],
) -> str:
    """Print what was seen over time as one self-contained HTML document."""
    table_types = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    scores, attributes, metrics, disparities, no_findings = (
        table_type.empty() for table_type in table_types
    )
    looks = len(record["runs"])
    alarms = gaps["alarm at look"].count()
    answer = (
        f"{format_count(alarms)} of {format_count(gaps.height)} gaps raised an alarm in"
        f" {format_count(looks)} looks."
    )
    (printed_table,) = tables_to_json(
        {"Gaps, and what is known of them after the last look": gaps}
    ).items()
    caption, cells = printed_table
    return render_run_page(
        "monitor.html.j2",
        title=f"{record['model']} over time",
        answer=answer,
        summary=summarise_run(Run({}, scores, attributes, metrics, disparities, no_findings)),
        figure=_draw_gap_sequences(gap_snapshots),
        table={"caption": caption, **cells},
        findings=list(findings),
        notes=list(notes),
        record=record,
    )


def _draw_gap_sequences(gap_snapshots: pl.DataFrame) -> Figure | None:
    """Draw each gap's looks as points and its confidence sequence as a band; a rule at an alarm."""
    keys = ["metric", "label", "threshold", "attribute", "group"]
    gap_rows = gap_snapshots.group_by(keys, maintain_order=True)
    names = [
        " ".join(str(x) for x in (key[4], f"({key[3]})", *key[1:3]) if x is not None)
        for key, _ in gap_rows
    ]
    short = shorten_names_distinctly(names, 34)[:_MAX_GAPS]
    values: list[dict[str, Any]] = []
    for name, (_, rows) in zip(short, gap_rows, strict=False):
        alarm = rows.filter("alarm")["look"].min()
        values += [
            {
                "gap": name,
                "alarm at": alarm if row["look"] == alarm else None,
                **{k: row[k] for k in ("look", "low", "high")},
                "of the look": row["gap"],
            }
            for row in rows.iter_rows(named=True)
        ]
    if not values:
        return None
    remainder = f" The first {_MAX_GAPS} of {len(names)} gaps." if len(names) > _MAX_GAPS else ""
    alt = clean_line(
        "Gaps by look, with their confidence sequences. The table below has the numbers."
    )
    caption = (
        "Points: the gap of one look alone. Band: every gap that, held at all looks, is not ruled "
        f"out. Upright line: alarm.{remainder}"
    )
    return Figure(draw_chart_svg(_build_gap_chart(values, short)), alt, caption)


def _build_gap_chart(values: list[dict[str, Any]], gap_names: list[str]) -> Spec:
    x = build_channel("look", axis={"title": "look", "grid": False, "tickMinStep": 1})

    def build_y_channel(name: str) -> Spec:
        return build_channel(name, axis={"title": "group less the others"})

    layers = [
        {
            "mark": {"type": "area", "color": ACCENT, "opacity": 0.18, "interpolate": "step-after"},
            "encoding": {"x": x, "y": build_y_channel("low"), "y2": {"field": "high"}},
        },
        {"mark": {"type": "rule", "color": GREY}, "encoding": {"y": {"datum": 0.0}}},
        {
            "mark": {"type": "point", "color": INK, "size": 8, "filled": True},
            "encoding": {"x": x, "y": build_y_channel("of the look")},
        },
        {
            "mark": {"type": "rule", "color": INK, "strokeDash": [4, 3]},
            "encoding": {"x": build_channel("alarm at")},
        },
    ]
    header = {"title": None, "labelFontSize": 12, "labelPadding": 4}
    return {
        "data": {"values": values},
        "facet": build_channel("gap", "nominal", sort=gap_names, header=header),
        "columns": 2,
        "spacing": 18,
        "spec": {"layer": layers, "width": _WIDTH, "height": _HEIGHT},
    }
