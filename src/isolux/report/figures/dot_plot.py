"""Points with intervals: one group a row, everyone as a dashed line with its band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isolux.core.printable import clean_line
from isolux.core.tables import Status
from isolux.report.document import Estimate, GroupRow, LineTable
from isolux.report.figures.svg import (
    ACCENT,
    GREY,
    INK,
    WHITE,
    Spec,
    build_channel,
    draw_chart_svg,
    shorten_names_distinctly,
    wrap_names_evenly,
)
from isolux.statements.numbers import (
    format_bare_value,
    format_count,
    format_interval,
    format_with_unit,
)

_NAME, _PANEL_NAME = 22, 30
"""Characters of a group's name at the axis; the table has it whole."""
_WIDTH, _ROW = 236, 23
_PAIRED_WIDTH = 150
_PANEL_WIDTH, _PANEL_ROW, _PANEL_COLUMNS = 112, 17, 4
_NO_OVERALL: dict[str, float | None] = {"overall": None, "from": None, "to": None}


@dataclass(frozen=True, slots=True)
class Point:
    """One row of a plot: a name, a value with its interval, the text of the value, and n."""

    name: str
    value: float
    low: float | None
    high: float | None
    hollow: bool
    text: str
    n: str


def to_dot_plot_point(group_name: str, estimate: Estimate, unit: str) -> Point:
    """Make a point of an estimate that has a value; hollow if it is to be read with caution."""
    hollow = estimate.status != Status.OK
    text = format_bare_value(estimate.value, unit)
    return Point(
        group_name,
        estimate.value or 0.0,
        estimate.low,
        estimate.high,
        hollow,
        text,
        format_count(estimate.n_units),
    )


def add_unit_to_title(title: str, unit: str, fraction_unit: str = "%") -> str:
    """Name an axis with its unit."""
    unit_text = fraction_unit if unit == "fraction" else unit
    return clean_line(title) + (f" ({unit_text})" if unit_text else "")


def _to_chart_record(point: Point, unit: str) -> dict[str, Any]:
    return {
        "group": point.name,
        "fill": WHITE if point.hollow else ACCENT,
        "text": point.text,
        "n": point.n,
        **{
            key: _to_percent_if_fraction(getattr(point, key), unit)
            for key in ("value", "low", "high")
        },
    }


def _to_percent_if_fraction(number: float | None, unit: str) -> float | None:
    if number is None:
        return None
    return 100.0 * number if unit == "fraction" else number


def _read_overall_band(table: LineTable) -> dict[str, float | None]:
    estimate = table.overall
    if estimate is None or estimate.value is None:
        return _NO_OVERALL
    return _build_overall_band(estimate.value, estimate.low, estimate.high, table.line.unit)


def _build_overall_band(
    centre: float, low: float | None, high: float | None, unit: str
) -> dict[str, float | None]:
    bounds = {"overall": centre, "from": centre if low is None else low}
    return {
        k: _to_percent_if_fraction(v, unit)
        for k, v in (bounds | {"to": centre if high is None else high}).items()
    }


def build_tooltip_dot_chart(table: LineTable) -> Spec:
    """Chart every group of one line for a notebook: a pointer on a group tells it whole."""
    unit, band = table.line.unit, _read_overall_band(table)
    names = shorten_names_distinctly([row.group for row in table.rows], _NAME)
    rows = [
        _to_tooltip_record(row, name, unit) for row, name in zip(table.rows, names, strict=True)
    ]
    interval_values = [row[key] for row in rows for key in ("value", "low", "high")]
    domain = _compute_axis_domain([*interval_values, *band.values()], includes_zero=False)
    chart = _build_dot_chart(
        rows, band, add_unit_to_title(table.line.title, unit), domain, has_zero_line=False
    )
    tooltip = [build_channel(name, "nominal") for name in ("name", "value and interval", "people")]
    for layer in chart["layer"]:
        if layer["data"]["values"] == rows:
            layer["encoding"]["tooltip"] = tooltip
    reason = {
        "x": {"value": 4},
        "y": _build_group_axis([row["group"] for row in rows]),
        "text": build_channel("reason", "nominal"),
    }
    word = {"type": "text", "align": "left", "fontSize": 11, "color": GREY}
    chart["layer"].append(_build_layer(word, reason, [row for row in rows if row["value"] is None]))
    return chart


def _to_tooltip_record(group_row: GroupRow, short_name: str, unit: str) -> dict[str, Any]:
    estimate, point = group_row.estimate, to_dot_plot_point(short_name, group_row.estimate, unit)
    record = _to_chart_record(point, unit) | {"name": group_row.group, "people": point.n}
    if not estimate.is_comparable:
        reason = estimate.reason or estimate.status
        empty = dict.fromkeys(("value", "low", "high")) | {"text": "–"}
        return record | empty | {"reason": reason, "value and interval": reason}
    interval_text = (
        "" if estimate.low is None else f" ({format_interval(estimate.low, estimate.high, unit)})"
    )
    return record | {"value and interval": format_with_unit(estimate.value, unit) + interval_text}


@dataclass(frozen=True, slots=True)
class PairedPoint:
    """One group by two models: its change, and its value by the first and by the second."""

    change: Point
    first: float
    second: float


def draw_paired_values_svg(points: Sequence[PairedPoint], title: str, unit: str) -> str:
    """Draw each group's two values, joined, and beside them the change around a zero line."""
    names = shorten_names_distinctly([point.change.name for point in points], _NAME)
    rows = [
        _to_chart_record(replace(point.change, name=name), unit)
        | {
            "first": _to_percent_if_fraction(point.first, unit),
            "second": _to_percent_if_fraction(point.second, unit),
        }
        for name, point in zip(names, points, strict=True)
    ]
    domain = _compute_axis_domain(
        [row[key] for row in rows for key in ("value", "low", "high")], includes_zero=True
    )
    axis = add_unit_to_title("Change", unit, "points")
    change = _build_dot_chart(rows, _NO_OVERALL, axis, domain, has_zero_line=True, has_names=False)
    values_domain = _compute_axis_domain(
        [row[key] for row in rows for key in ("first", "second")], includes_zero=False
    )
    y = _build_group_axis(names)
    x = build_channel(
        "second",
        scale={"domain": values_domain, "nice": False, "zero": False},
        axis={"title": add_unit_to_title(title, unit), "tickCount": 4, "titlePadding": 8},
    )
    segment_encoding = {"x": build_channel("first"), "x2": {"field": "second"}, "y": y}
    values = {
        "layer": [
            _build_layer({"type": "rule", "strokeWidth": 2, "color": GREY}, segment_encoding, rows),
            _build_layer(
                _build_point_mark(52, 1.6) | {"fill": WHITE, "stroke": GREY},
                {"x": build_channel("first"), "y": y},
                rows,
            ),
            _build_layer(_build_point_mark(64, 2) | {"fill": ACCENT}, {"x": x, "y": y}, rows),
        ],
        "width": _PAIRED_WIDTH,
        "height": change["height"],
    }
    return draw_chart_svg({"hconcat": [values, change], "spacing": 18}, scale=1.2)


def _compute_axis_domain(numbers: Sequence[float | None], *, includes_zero: bool) -> list[float]:
    known_numbers = [n for n in numbers if n is not None] + ([0.0] if includes_zero else [])
    known_numbers = known_numbers or [0.0, 1.0]  # no group can be judged
    margin = 0.05 * (max(known_numbers) - min(known_numbers)) or 1.0
    return [min(known_numbers) - margin, max(known_numbers) + margin]


def _build_dot_chart(
    rows: list[dict[str, Any]],
    band: dict[str, float | None],
    title: str,
    domain: list[float],
    *,
    has_zero_line: bool,
    has_names: bool = True,
) -> Spec:
    names = [row["group"] for row in rows]
    x = build_channel(
        "value",
        scale={"domain": domain, "nice": False, "zero": False},
        axis={"title": title, "tickCount": 5, "titlePadding": 8},
    )
    y = _build_group_axis(names)
    if not has_names:
        y["axis"] = None
    rule = {"x": build_channel("low"), "x2": {"field": "high"}, "y": y}
    return {
        "layer": [
            *_build_overall_band_layers(band, has_zero_line=has_zero_line),
            _build_layer({"type": "rule", "strokeWidth": 2, "color": INK}, rule, rows),
            _build_layer(_build_point_mark(64, 2), {"x": x, "y": y, "fill": _FILL}, rows),
            *_build_number_columns(rows, y),
        ],
        "width": _WIDTH,
        "height": _ROW * len(names),
    }


_FILL = build_channel("fill", "nominal", scale=None, legend=None)


def _build_point_mark(size: int, stroke_width: float) -> Spec:
    return {
        "type": "point",
        "size": size,
        "stroke": ACCENT,
        "strokeWidth": stroke_width,
        "opacity": 1,
    }


def _build_layer(mark: Spec, encoding: Spec, values: Sequence[Mapping[str, Any]] = ({},)) -> Spec:
    # Data stand in the chart itself: a figure reads no file and no address.
    return {"mark": mark, "encoding": encoding, "data": {"values": list(values)}}


def _build_overall_band_layers(band: dict[str, float | None], *, has_zero_line: bool) -> list[Spec]:
    """Draw everyone's line and band, and the line of no difference."""
    layers = (
        [_build_layer({"type": "rule", "color": INK}, {"x": {"datum": 0.0}})]
        if has_zero_line
        else []
    )
    if band["overall"] is None:
        return layers
    overall_x = build_channel("overall")
    band_encoding = {"x": build_channel("from"), "x2": {"field": "to"}}
    word = {"type": "text", "fontSize": 11, "color": GREY, "text": "overall"}
    return [
        *layers,
        _build_layer({"type": "rect", "color": GREY, "opacity": 0.15}, band_encoding, [band]),
        _build_layer(
            {"type": "rule", "strokeDash": [4, 3], "color": GREY}, {"x": overall_x}, [band]
        ),
        _build_layer(word, {"x": overall_x, "y": {"value": -8}}, [band]),
    ]


def _build_number_columns(rows: list[dict[str, Any]], y_channel: Spec) -> list[Spec]:
    """Return the two columns of numbers to the right, with their headings."""
    # Expressions, so that the columns stay to the right of a chart that a notebook makes wider.
    right = {k: {"value": {"expr": f"width + {x}"}} for k, x in (("text", 44), ("n", 92))}
    column = {"type": "text", "align": "right", "fontSize": 12, "color": INK}
    heading = {"type": "text", "align": "right", "fontSize": 11, "color": GREY, "text": "n"}
    numbers = [
        _build_layer(column, {"x": x, "y": y_channel, "text": build_channel(name, "nominal")}, rows)
        for name, x in right.items()
    ]
    return [*numbers, _build_layer(heading, {"x": right["n"], "y": {"value": -8}})]


def _build_group_axis(names: Sequence[str]) -> Spec:
    axis = {"title": None, "domain": False, "ticks": False, "labelPadding": 8, "grid": False}
    return build_channel("group", "nominal", scale={"domain": list(names)}, axis=axis)


def draw_metric_panels_svg(tables: Sequence[LineTable], group_order: Sequence[str]) -> str:
    """Draw several lines side by side, the groups in one order, each panel on its own scale."""
    names = dict(zip(group_order, shorten_names_distinctly(group_order, _PANEL_NAME), strict=True))
    axes = [add_unit_to_title(table.line.title, table.line.unit) for table in tables]
    titles = wrap_names_evenly(axes, 20, 2)
    values = [
        {"line": title}
        | _read_overall_band(table)
        | _to_chart_record(
            to_dot_plot_point(names[row.group], row.estimate, table.line.unit), table.line.unit
        )
        for title, table in zip(titles, tables, strict=True)
        for row in table.rows
        if row.estimate.is_comparable and row.group in names
    ]
    return draw_chart_svg(_build_panel_chart(values, titles, list(names.values())))


def _build_panel_chart(values: list[dict[str, Any]], titles: list[str], names: list[str]) -> Spec:
    x = build_channel(
        "value",
        scale={"zero": False, "nice": False, "padding": 8},
        axis={"title": None, "tickCount": 3},
    )
    y = _build_group_axis(names)
    overall_encoding = {"x": build_channel("overall", aggregate="mean")}
    header = {
        "title": None,
        "labelFontSize": 12,
        "labelColor": INK,
        "labelPadding": 6,
        "labelExpr": "split(datum.label, '\\n')",
        "labelLineHeight": 14,
    }
    layers = [
        {
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": GREY},
            "encoding": overall_encoding,
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "color": INK},
            "encoding": {"x": build_channel("low"), "x2": {"field": "high"}, "y": y},
        },
        {"mark": _build_point_mark(44, 1.6), "encoding": {"x": x, "y": y, "fill": _FILL}},
    ]
    return {
        "data": {"values": values},
        "facet": build_channel("line", "nominal", sort=titles, header=header),
        "columns": _PANEL_COLUMNS,
        "spacing": 14,
        "resolve": {"scale": {"x": "independent"}},
        "spec": {"layer": layers, "width": _PANEL_WIDTH, "height": _PANEL_ROW * len(names)},
    }
