"""Figures as self-contained SVG, each with the words that replace it.

Charts of Vega-Lite, drawn by vl-convert (no browser, no network), which is imported when the first
figure is drawn.
Shape and lightness carry the meaning, never hue: filled points are sound, hollow ones have an
interval that cannot be assured, darker cells are worse. Every figure comes with a description
that gives a screen reader the numbers' gist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolux.core.info import Direction
from isolux.core.printable import clean_line
from isolux.groups import sort_groups_for_display
from isolux.report._extra_figures import Curve
from isolux.report.document import AttributeSection, Block, GroupRow, LineTable
from isolux.report.figures.dot_plot import (
    PairedPoint,
    Point,
    draw_metric_panels_svg,
    draw_paired_values_svg,
)
from isolux.report.figures.heatmap import Cell, draw_heat_map_svg
from isolux.report.figures.svg import (
    ACCENT,
    GREY,
    Spec,
    build_channel,
    draw_chart_svg,
    shorten_names_distinctly,
)
from isolux.report.wording import join_with_and
from isolux.statements.metric_lines import MetricLine
from isolux.statements.numbers import (
    format_bare_value,
    format_count,
    format_interval,
    format_with_unit,
)

if TYPE_CHECKING:
    from isolux.report.comparison import Change, ChangeTable

PANELS_SHOWN = 8
"""With more lines than this, the classes of a metric become a heat map of classes by groups."""
GROUPS_IN_PANELS = 20
CLASSES_SHOWN = 20
CURVES_SHOWN = 12
PHONE = 460
_VIEW_BOX = re.compile(r'viewBox="\S+ 0 ([\d.]+) ')


@dataclass(frozen=True, slots=True)
class Figure:
    """An SVG element, its text alternative, and the caption under it."""

    svg: str
    alt: str
    caption: str

    @property
    def scrolls(self) -> bool:
        """Whether a phone shows it in full size, to be scrolled: its text would be too small."""
        view_box = _VIEW_BOX.search(self.svg)
        return view_box is not None and float(view_box[1]) > PHONE


def draw_intersection_heat_map(section: AttributeSection) -> Figure | None:
    """Draw an intersection's main metric as a heat map; None where no group can be judged."""
    table = section.main
    comparable_rows = _list_comparable_rows(table)
    return (
        _draw_crossed_values_heat_map(section, table, comparable_rows)
        if comparable_rows and section.is_intersection
        else None
    )


def draw_secondary_metric_figures(section: AttributeSection) -> list[Figure]:
    """Draw the other metrics of one attribute, small; classes by the dozen become a heat map."""
    group_order = [row.group for row in section.main.rows]
    panel_tables: list[LineTable] = []
    figures: list[Figure] = []
    for block in section.blocks:
        lines = [table for table in block.tables if table is not section.main]
        if len(lines) > PANELS_SHOWN:
            figures += _draw_class_heat_map(section, block)
        else:
            panel_tables += lines
    drawable_tables = [t for t in panel_tables if any(row.estimate.is_comparable for row in t.rows)]
    if drawable_tables and len(group_order) <= GROUPS_IN_PANELS:
        names = join_with_and([t.line.title for t in drawable_tables])
        note = " ".join(
            _format_alt_text(section.title, t, _list_comparable_rows(t)) for t in drawable_tables
        )
        caption = f"{names}, with intervals. Dashed line: overall. Each panel has its own scale."
        figures.insert(
            0,
            Figure(
                draw_metric_panels_svg(drawable_tables[:PANELS_SHOWN], group_order), note, caption
            ),
        )
    return figures


def _list_comparable_rows(table: LineTable) -> list[GroupRow]:
    return [row for row in table.rows if row.estimate.is_comparable]


def _format_alt_text(
    attribute_title: str, table: LineTable, comparable_rows: Sequence[GroupRow]
) -> str:
    line = table.line
    sign = -1.0 if line.direction == "lower" else 1.0
    ranked = sorted(comparable_rows, key=lambda row: sign * (row.estimate.value or 0.0))
    lowest_word, highest_word = (
        ("lowest", "highest") if line.direction == "none" else ("worst", "best")
    )
    sentences = [f"{line.title} by {attribute_title}, {format_count(len(comparable_rows))} groups."]
    sentences.append(f"{lowest_word.capitalize()}: {_format_group_value(ranked[0], line)}.")
    if len(ranked) > 1:
        sentences.append(f"{highest_word.capitalize()}: {_format_group_value(ranked[-1], line)}.")
    if table.overall and table.overall.is_comparable:
        sentences.append(f"Everyone: {format_with_unit(table.overall.value, line.unit)}.")
    n_without_data = len(table.rows) - len(comparable_rows)
    if n_without_data:
        have = "group has" if n_without_data == 1 else "groups have"
        sentences.append(f"{format_count(n_without_data)} {have} too little data to judge.")
    return " ".join(sentences)


def _format_group_value(group_row: GroupRow, line: MetricLine) -> str:
    estimate = group_row.estimate
    interval_text = (
        f" ({format_interval(estimate.low, estimate.high, line.unit)})"
        if estimate.low is not None
        else ""
    )
    return f"{group_row.group} {format_with_unit(estimate.value, line.unit)}{interval_text}"


def _describe_cell_shading(direction: Direction, comparable_rows: Sequence[GroupRow]) -> str:
    has_doubtful = any(row.estimate.status != "ok" for row in comparable_rows)
    worse = {"higher": "lower, hence worse", "lower": "higher, hence worse", "none": "higher"}
    circle = " ○: read with caution." if has_doubtful else ""
    return f"Darker is {worse[direction]}. Hatched: too little data to judge.{circle}"


def _draw_crossed_values_heat_map(
    section: AttributeSection, table: LineTable, comparable_rows: Sequence[GroupRow]
) -> Figure:
    split = [(_join_attribute_values(row.values[:-1]), row.values[-1], row) for row in table.rows]
    firsts = sort_groups_for_display(dict.fromkeys(first for first, _, _ in split))
    seconds = sort_groups_for_display(dict.fromkeys(second for _, second, _ in split))
    if len(seconds) > len(firsts) and len(section.attributes) == 2:
        split = [(b, a, row) for a, b, row in split]
        firsts, seconds = seconds, firsts
    cells = [Cell(a, b, row.estimate) for a, b, row in split]
    line = table.line
    return Figure(
        svg=draw_heat_map_svg(cells, firsts, seconds, unit=line.unit, direction=line.direction),
        alt=_format_alt_text(section.title, table, comparable_rows),
        caption=f"{line.title}{_format_percent_note(line)}. "
        f"{_describe_cell_shading(line.direction, comparable_rows)}",
    )


def _format_percent_note(line: MetricLine) -> str:
    return ", in percent" if line.unit == "fraction" else ""


def _join_attribute_values(values: Sequence[str]) -> str:
    return " × ".join(values)


def _draw_class_heat_map(section: AttributeSection, block: Block) -> list[Figure]:
    def compute_value_range(table: LineTable) -> float:
        values = [row.estimate.value for row in table.rows if row.estimate.value is not None]
        return max(values) - min(values) if len(values) > 1 else -1.0

    tables = sorted(block.tables, key=compute_value_range, reverse=True)[:CLASSES_SHOWN]
    cells = [
        Cell(str(table.line.label), row.group, row.estimate)
        for table in tables
        for row in table.rows
    ]
    groups = [row.group for row in section.main.rows]
    if len(groups) > GROUPS_IN_PANELS or not any(cell.estimate.is_comparable for cell in cells):
        return []
    line = tables[0].line
    rows = [str(table.line.label) for table in tables]
    comparable_rows = [row for table in tables for row in _list_comparable_rows(table)]
    selection_text = (
        f"the {len(rows)} of {format_count(len(block.tables))} classes with the widest range"
    )
    return [
        Figure(
            svg=draw_heat_map_svg(cells, rows, groups, unit=line.unit, direction=line.direction),
            alt=f"{block.title} by class and {section.title}, {selection_text}. "
            + " ".join(
                _format_alt_text(section.title, t, _list_comparable_rows(t))
                for t in tables[:3]
                if _list_comparable_rows(t)
            ),
            caption=f"{block.title} by class{_format_percent_note(line)}: {selection_text}. "
            f"{_describe_cell_shading(line.direction, comparable_rows)}",
        )
    ]


def draw_share_curve_figures(section: AttributeSection) -> tuple[Figure, ...]:
    """Draw each group's share against overlap or confidence, a figure for each kind of share."""
    shares = dict.fromkeys(curve.share for curve in section.curves)
    figures = [_draw_share_curve_figure(section, share) for share in shares]
    return tuple(figure for figure in figures if figure is not None)


def _draw_share_curve_figure(section: AttributeSection, share: str) -> Figure | None:
    share_curves = [curve for curve in section.curves if curve.share == share]
    overall_curve = next((c for c in share_curves if c.group == "overall"), None)
    curves_by_group = {c.group: c for c in share_curves if c is not overall_curve and c.points}
    order = [row.group for row in section.main.rows if row.group in curves_by_group][:CURVES_SHOWN]
    curves = [curves_by_group[group] for group in order]
    if not curves:
        return None
    summaries = [
        f"{c.group} {format_with_unit(c.points[0].value)} at {c.points[0].position:g}, "
        f"{format_with_unit(c.points[-1].value)} at {c.points[-1].position:g}"
        for c in curves
    ]
    n_omitted = len(section.main.rows) - len(curves)
    measure = curves[0].measure
    return Figure(
        svg=draw_curve_panels_svg(overall_curve, curves),
        alt=f"People {share} at each {measure}, by {section.title}: {'; '.join(summaries)}.",
        caption=f"Share of people {share} at {_add_indefinite_article(measure)} of at least the "
        "value on the axis, with"
        f" intervals for one {measure} at a time. Dashed: overall."
        + (f" {format_count(n_omitted)} more have no panel." if n_omitted > 0 else ""),
    )


def _add_indefinite_article(noun: str) -> str:
    return f"an {noun}" if noun[:1] in "aeio" else f"a {noun}"


def draw_model_change_figure(
    title: str, table: ChangeTable, models: tuple[str, str]
) -> Figure | None:
    """Draw each group's values by both models and its change; None where no group has one."""
    rows = [row for row in table.rows if row.difference is not None]
    if not rows:
        return None
    unit, overall_change = table.line.unit, table.overall_change
    points = [_to_paired_point(row, table) for row in rows]
    if overall_change and overall_change.difference is not None:
        points.append(_to_paired_point(overall_change, table))
    description = f"Change of {table.line.phrase} by {title}, {format_count(len(rows))} groups. "
    first, last = (_format_group_change(row, unit) for row in (rows[0], rows[-1]))
    description += f"First: {first}. Last: {last}."
    return Figure(
        svg=draw_paired_values_svg(points, table.line.title, unit),
        alt=description,
        caption=f"Left: each group by {models[0]} (hollow) and {models[1]} (filled). Right: the "
        "change with its interval, the worst first. Solid line: no change."
        + (" Hollow: read with caution." if any(r.status != "ok" for r in rows) else ""),
    )


def _to_paired_point(change: Change, table: ChangeTable) -> PairedPoint:
    text = format_bare_value(
        change.difference, table.line.unit, with_sign=True, n_decimals=table.n_decimals
    )
    return PairedPoint(
        Point(
            change.group,
            change.difference or 0.0,
            change.low,
            change.high,
            change.status != "ok",
            text,
            format_count(change.n_units),
        ),
        change.first or 0.0,
        change.second or 0.0,
    )


def _format_group_change(change: Change, unit: str) -> str:
    interval_text = (
        f" ({format_interval(change.low, change.high, unit)})" if change.low is not None else ""
    )
    return (
        f"{change.group} "
        f"{format_bare_value(change.difference, unit, with_sign=True)}{interval_text}"
    )


# A share against overlap or confidence, a small panel for each group: line, band, everyone.

_WIDTH, _HEIGHT, _COLUMNS = 118, 86, 4
_OVERLAPS = ([0.5, 0.95], [0.5, 0.7, 0.9])
_AXES = {"confidence": ([0.0, 1.0], [0.0, 0.5, 1.0])}
"""Where the axis of a measure begins and ends, and its ticks."""


def draw_curve_panels_svg(overall_curve: Curve | None, curves: Sequence[Curve]) -> str:
    """Draw the groups' curves in the order given, all panels on one scale."""
    names = shorten_names_distinctly([curve.group for curve in curves], 20)
    base = (
        {} if overall_curve is None else {p.position: 100.0 * p.value for p in overall_curve.points}
    )
    values = [
        {
            "group": name,
            "at": point.position,
            "share": 100.0 * point.value,
            "low": 100.0 * (point.value if point.low is None else point.low),
            "high": 100.0 * (point.value if point.high is None else point.high),
            "overall": base.get(point.position),
        }
        for name, curve in zip(names, curves, strict=True)
        for point in curve.points
    ]
    return draw_chart_svg(_build_curve_chart(values, names, curves[0]))


def _choose_share_axis_max(chart_rows: list[dict[str, Any]], curve: Curve) -> int:
    """Return where the shares' axis ends: at 100 for what is found, else where the drawing does."""
    if curve.measure not in _AXES:
        return 100
    max_share = max(max(row["high"], row["overall"] or 0.0) for row in chart_rows)
    return next(top for top in (2, 4, 10, 20, 40, 100) if top >= min(max_share, 100.0))


def _build_curve_chart(
    chart_rows: list[dict[str, Any]], group_names: list[str], curve: Curve
) -> Spec:
    domain, tick_values = _AXES.get(curve.measure, _OVERLAPS)
    ticks = {
        "title": clean_line(curve.measure),
        "values": tick_values,
        "format": ".1f",
        "grid": False,
    }
    x = build_channel("at", scale={"domain": domain, "nice": False}, axis=ticks)
    word, top = curve.share.split()[0], _choose_share_axis_max(chart_rows, curve)

    def build_y_channel(name: str) -> Spec:
        axis = {"title": f"{word} (%)", "values": [0, top // 2, top]}
        return build_channel(name, scale={"domain": [0, top]}, axis=axis)

    dashed = {"type": "line", "color": GREY, "strokeDash": [4, 3], "strokeWidth": 1.2}
    layers = [
        {
            "mark": {"type": "area", "color": ACCENT, "opacity": 0.18},
            "encoding": {"x": x, "y": build_y_channel("low"), "y2": {"field": "high"}},
        },
        {"mark": dashed, "encoding": {"x": x, "y": build_y_channel("overall")}},
        {
            "mark": {"type": "line", "color": ACCENT, "strokeWidth": 2},
            "encoding": {"x": x, "y": build_y_channel("share")},
        },
    ]
    header = {"title": None, "labelFontSize": 12, "labelPadding": 4}
    return {
        "data": {"values": chart_rows},
        "facet": build_channel("group", "nominal", sort=group_names, header=header),
        "columns": min(_COLUMNS, len(group_names)),
        "spacing": 16,
        "spec": {"layer": layers, "width": _WIDTH, "height": _HEIGHT},
    }
