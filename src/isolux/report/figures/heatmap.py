"""Heat maps: values printed in cells, darker is worse, hatched where there is too little data."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isolux.core.containers import Run
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import Direction
from isolux.core.tables import CAUTION_STATUSES
from isolux.report.document import AttributeSection, Estimate, LineTable
from isolux.report.figures.dot_plot import build_tooltip_dot_chart
from isolux.report.figures.svg import (
    CONFIG,
    FAINT,
    HATCH,
    INK,
    WHITE,
    Spec,
    build_channel,
    draw_chart_svg,
    shorten_names_distinctly,
    wrap_names_evenly,
)
from isolux.report.summary import summarise_run
from isolux.statements.numbers import format_bare_value, format_count

_LIGHT, _DARK = (0xF3, 0xF6, 0xF9), (0x0B, 0x36, 0x54)
_WHITE, _BLACK = (0xFF, 0xFF, 0xFF), (0, 0, 0)
# On the middle shade only pure black or white reaches WCAG's 4.5.

_CELL_WIDTH, _CELL_HEIGHT, _LINE = 64, 28, 14


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its row and column by name, and the estimate that it prints."""

    row: str
    column: str
    estimate: Estimate


def draw_heat_map_svg(
    cells: Sequence[Cell],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    unit: str,
    direction: Direction,
) -> str:
    """Draw a heat map as SVG; combinations without a cell stay empty."""
    row_names = dict(zip(rows, shorten_names_distinctly(rows, 26), strict=True))
    column_names = dict(zip(columns, wrap_names_evenly(columns, 10), strict=True))
    values = [
        cell_record | {"row": row_names[cell.row], "column": column_names[cell.column]}
        for cell, cell_record in zip(cells, _to_shaded_records(cells, unit, direction), strict=True)
    ]
    across = list(column_names.values())
    return draw_chart_svg(
        _build_heat_map_chart(values, list(row_names.values()), across),
        scale=1.2 if len(across) <= 5 else 1.0,
    )


def _build_heat_map_chart(
    values: list[dict[str, str]], rows: list[str], columns: list[str]
) -> Spec:
    more_lines = columns[0].count("\n")
    bare = {"title": None, "domain": False, "ticks": False}
    # Vega hangs further lines below the first: make room for them.
    top_axis = {"orient": "top", "labelAngle": 0, "labelPadding": 6 + _LINE * more_lines}
    split = {"labelExpr": "split(datum.label, '\\n')"}
    x = build_channel(
        "column",
        "nominal",
        scale={"domain": columns, "paddingInner": 0.04},
        axis=bare | top_axis | split,
    )
    y = build_channel(
        "row",
        "nominal",
        scale={"domain": rows, "paddingInner": 0.07},
        axis=bare | {"labelPadding": 6},
    )

    def build_cell_encoding(name: str) -> Spec:
        return {"x": x, "y": y, "fill": build_channel(name, "nominal", scale=None, legend=None)}

    return {
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "rect", "stroke": FAINT}, "encoding": build_cell_encoding("fill")},
            {
                "mark": {"type": "text", "fontSize": 12},
                "encoding": build_cell_encoding("ink") | {"text": build_channel("text", "nominal")},
            },
        ],
        "width": _CELL_WIDTH * len(columns),
        "height": _CELL_HEIGHT * len(rows),
    }


def _to_shaded_records(
    cells: Sequence[Cell], unit: str, direction: Direction
) -> list[dict[str, str]]:
    values = [cell.estimate.value for cell in cells if cell.estimate.value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)

    def to_shaded_record(estimate: Estimate) -> dict[str, str]:
        if estimate.value is None:
            return {
                "fill": f"url(#{HATCH})",
                "ink": INK,
                "text": f"n = {format_count(estimate.n_units)}",
            }
        share = (estimate.value - low) / (high - low) if high > low else 0.0
        dark = 1.0 - share if direction == "higher" and high > low else share
        mark = " ○" if estimate.status in CAUTION_STATUSES else ""
        fill = tuple(round(a + (b - a) * dark) for a, b in zip(_LIGHT, _DARK, strict=True))
        return {
            "fill": "#" + "".join(f"{channel:02x}" for channel in fill),
            "ink": WHITE
            if wcag_contrast_ratio(fill, _WHITE) > wcag_contrast_ratio(fill, _BLACK)
            else "#000000",
            "text": format_bare_value(estimate.value, unit) + mark,
        }

    return [to_shaded_record(cell.estimate) for cell in cells]


def wcag_contrast_ratio(rgb_a: tuple[int, ...], rgb_b: tuple[int, ...]) -> float:
    """Return WCAG's contrast ratio of two colours, 1 to 21; text needs 4.5.

    Examples
    --------
    >>> round(wcag_contrast_ratio((0, 0, 0), (255, 255, 255)), 2)
    21.0
    """
    dark, light = sorted((_wcag_relative_luminance(rgb_a), _wcag_relative_luminance(rgb_b)))
    return (light + 0.05) / (dark + 0.05)


def _wcag_relative_luminance(rgb: tuple[int, ...]) -> float:
    channels = [c / 255 for c in rgb]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_WIDTH = 76
_TAG = re.compile(r"<(?=[/!?a-zA-Z])")


def build_metric_dot_chart(
    run: Run,
    metric: str | None = None,
    attribute: str | None = None,
    *,
    label: str | None = None,
    threshold: float | None = None,
) -> Spec:
    """Chart a metric of each group of an attribute, with intervals; warnings stand in its title."""
    summary = summarise_run(run)
    section = _select_section(summary.sections, attribute)
    table = _select_line_table(section, metric, label, threshold)
    notes = [f"WARNING: {text}" for text in summary.warnings]
    n_small_groups = sum(not row.estimate.is_comparable for row in table.rows)
    notes += (
        [f"{n_small_groups} of {len(table.rows)} groups have too little data to judge."]
        if n_small_groups
        else []
    )
    legend_note = "Dashed line and band: overall."
    if any(row.estimate.is_comparable and row.estimate.status != "ok" for row in table.rows):
        legend_note += " Hollow: read with caution."
    lines = [line for text in (*notes, legend_note) for line in textwrap.wrap(text, _WIDTH)]
    title = {"text": f"{table.line.title} by {section.title}", "subtitle": lines}
    config = {**CONFIG, "background": "white"}
    title_position = {"anchor": "start", "offset": 22}
    chart: Spec = _break_html_tags(
        {"title": title | title_position, **build_tooltip_dot_chart(table), "config": config}
    )
    return chart


def _break_html_tags(node: Any) -> Any:
    """Insert a word joiner (zero width) after each ``<`` that could begin an HTML tag."""
    if isinstance(node, str):
        return _TAG.sub("<\N{WORD JOINER}", node)
    if isinstance(node, dict):
        return {key: _break_html_tags(child) for key, child in node.items()}
    return [_break_html_tags(child) for child in node] if isinstance(node, list) else node


def _select_section(
    sections: tuple[AttributeSection, ...], attribute: str | None
) -> AttributeSection:
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
    raise UnknownNameError("attribute", attribute, [candidate.attribute for candidate in sections])


def _select_line_table(
    section: AttributeSection, metric: str | None, label: str | None, threshold: float | None
) -> LineTable:
    all_tables = [table for block in section.blocks for table in block.tables]
    if metric is None and label is None and threshold is None:
        return section.main
    metric = section.main.line.metric if metric is None else metric
    matches = [table for table in all_tables if table.line.metric == metric]
    if not matches:
        metric_names = dict.fromkeys(table.line.metric for table in all_tables)
        raise UnknownNameError("metric", metric, list(metric_names))
    for name, requested in (("threshold", threshold), ("label", label)):
        available = list(dict.fromkeys(getattr(table.line, name) for table in matches))
        if requested is None and (None in available or len(available) == 1 or name == "threshold"):
            requested = None if None in available else available[0]  # noqa: PLW2901 - the first in reading order
        elif requested is None or requested not in available:
            raise SpecError(
                f"{metric} has several of {name}"
                if requested is None
                else f"{metric} has no such {name}",
                expected=f"{name}= one of {', '.join(map(repr, available))}",
                found="none" if requested is None else repr(requested),
            )
        matches = [table for table in matches if getattr(table.line, name) == requested]
    return matches[0]
