"""Points with intervals: one group a row, everyone as a dashed line with its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from isolux.report._labels import short_names
from isolux.report._svg import ACCENT, GREY, INK, WHITE, inline, to_svg
from isolux.report.document import Estimate, LineTable
from isolux.report.wording import count, plain, value_text
from isolux.tables import Status

__all__ = ["Point", "differences", "dots", "panels"]

_NAME, _PANEL_NAME = 22, 30
"""Characters of a group's name beside the axis; the table has it whole."""
_WIDTH, _ROW = 236, 23
_PANEL_WIDTH, _PANEL_ROW, _PANEL_COLUMNS = 112, 17, 4
_NONE: dict[str, float | None] = {"everyone": None, "from": None, "to": None}


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


def point_of(name: str, found: Estimate, unit: str) -> Point:
    """Make a point of an estimate that has a value; hollow if its interval is not assured."""
    hollow = found.status != Status.OK
    text = value_text(found.value, unit)
    return Point(
        name, found.value or 0.0, found.low, found.high, hollow, text, count(found.n_units)
    )


def with_unit_of(title: str, unit: str, fraction: str = "%") -> str:
    """Name an axis with its unit."""
    shown = fraction if unit == "fraction" else unit
    return plain(title) + (f" ({shown})" if shown else "")


def _drawn(point: Point, unit: str) -> dict[str, Any]:
    return {
        "group": point.name,
        "fill": WHITE if point.hollow else ACCENT,
        "text": point.text,
        "n": point.n,
        **{key: _scaled(getattr(point, key), unit) for key in ("value", "low", "high")},
    }


def _scaled(value: float | None, unit: str) -> float | None:
    if value is None:
        return None
    return 100.0 * value if unit == "fraction" else value


def _overall(table: LineTable) -> dict[str, float | None]:
    found = table.overall
    if found is None or found.value is None:
        return _NONE
    return _band(found.value, found.low, found.high, table.line.unit)


def _band(
    value: float, low: float | None, high: float | None, unit: str
) -> dict[str, float | None]:
    ends = {"everyone": value, "from": value if low is None else low}
    return {
        k: _scaled(v, unit) for k, v in (ends | {"to": value if high is None else high}).items()
    }


def dots(table: LineTable) -> str:
    """Draw the judged groups of one line, in the table's order, each with its value and n."""
    judged = [row for row in table.rows if row.estimate.judged]
    unit = table.line.unit
    points = [point_of(row.group, row.estimate, unit) for row in judged]
    return _plotted(points, _overall(table), with_unit_of(table.line.title, unit), unit)


def differences(points: Sequence[Point], everyone: Point | None, title: str, unit: str) -> str:
    """Draw differences around a zero line, everyone's as a dashed line with its band."""
    band = _NONE if everyone is None else _band(everyone.value, everyone.low, everyone.high, unit)
    return _plotted(points, band, with_unit_of(title, unit, "points"), unit, zero=True)


def _plotted(
    points: Sequence[Point],
    band: dict[str, float | None],
    title: str,
    unit: str,
    *,
    zero: bool = False,
) -> str:
    names = short_names([point.name for point in points], _NAME)
    rows = [
        _drawn(replace(point, name=name), unit) for name, point in zip(names, points, strict=True)
    ]
    seen = [row[key] for row in rows for key in ("value", "low", "high")]
    return to_svg(
        lambda: _chart(rows, band, title, _domain([*seen, *band.values()], zero=zero), zero=zero),
        enlarged=1.2,
    )


def _domain(numbers: Sequence[float | None], *, zero: bool) -> list[float]:
    seen = [n for n in numbers if n is not None] + ([0.0] if zero else [])
    margin = 0.05 * (max(seen) - min(seen)) or 1.0
    return [min(seen) - margin, max(seen) + margin]


def _chart(
    rows: list[dict[str, Any]],
    band: dict[str, float | None],
    title: str,
    domain: list[float],
    *,
    zero: bool,
) -> Any:
    import altair as alt

    names = [row["group"] for row in rows]
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=domain, nice=False, zero=False),
        axis=alt.Axis(title=title, tickCount=5, titlePadding=8),
    )
    base = alt.Chart(inline(rows)).encode(y=_groups(names))
    top = alt.Chart(inline([band]))
    below = [top.mark_rule(color=INK).encode(x=alt.datum(0.0))] if zero else []
    if band["everyone"] is not None:
        below += [
            top.mark_rect(color=GREY, opacity=0.15).encode(x="from:Q", x2="to:Q"),
            top.mark_rule(strokeDash=[4, 3], color=GREY).encode(x="everyone:Q"),
            top.mark_text(fontSize=11, color=GREY, text="everyone").encode(
                x="everyone:Q", y=alt.value(-8)
            ),
        ]
    layers = [
        *below,
        base.mark_rule(strokeWidth=2, color=INK).encode(x="low:Q", x2="high:Q"),
        base.mark_point(size=64, stroke=ACCENT, strokeWidth=2, opacity=1).encode(
            x=x, fill=alt.Fill("fill:N", scale=None, legend=None)
        ),
        *_margin(base, top),
    ]
    return alt.layer(*layers).properties(width=_WIDTH, height=_ROW * len(names))


def _margin(base: Any, top: Any) -> list[Any]:
    """Return the two columns of numbers to the right, with their headings."""
    import altair as alt

    right = {"value": _WIDTH + 44, "n": _WIDTH + 92}
    column = {"align": "right", "fontSize": 12, "color": INK}
    heading = {"align": "right", "fontSize": 11, "color": GREY}
    return [
        base.mark_text(**column).encode(x=alt.value(right["value"]), text="text:N"),
        base.mark_text(**column).encode(x=alt.value(right["n"]), text="n:N"),
        top.mark_text(**heading, text="n").encode(x=alt.value(right["n"]), y=alt.value(-8)),
    ]


def _groups(names: Sequence[str]) -> Any:
    import altair as alt

    axis = alt.Axis(title=None, domain=False, ticks=False, labelPadding=8, grid=False)
    return alt.Y("group:N", scale=alt.Scale(domain=list(names)), axis=axis)


def panels(tables: Sequence[LineTable], order: Sequence[str]) -> str:
    """Draw several lines side by side, the groups in one order, each panel on its own scale."""
    names = dict(zip(order, short_names(order, _PANEL_NAME), strict=True))
    axes = [with_unit_of(table.line.title, table.line.unit) for table in tables]
    titles = short_names(axes, 26)
    values = [
        {"line": title}
        | _overall(table)
        | _drawn(point_of(names[row.group], row.estimate, table.line.unit), table.line.unit)
        for title, table in zip(titles, tables, strict=True)
        for row in table.rows
        if row.estimate.judged and row.group in names
    ]
    return to_svg(lambda: _panels(values, titles, list(names.values())))


def _panels(values: list[dict[str, Any]], titles: list[str], names: list[str]) -> Any:
    import altair as alt

    x = alt.X(
        "value:Q",
        scale=alt.Scale(zero=False, nice=False, padding=8),
        axis=alt.Axis(title=None, tickCount=3),
    )
    base = alt.Chart().encode(y=_groups(names))
    layered = alt.layer(
        alt.Chart().mark_rule(strokeDash=[4, 3], color=GREY).encode(x="mean(everyone):Q"),
        base.mark_rule(strokeWidth=1.5, color=INK).encode(x="low:Q", x2="high:Q"),
        base.mark_point(size=44, stroke=ACCENT, strokeWidth=1.6, opacity=1).encode(
            x=x, fill=alt.Fill("fill:N", scale=None, legend=None)
        ),
        data=inline(values),
    ).properties(width=_PANEL_WIDTH, height=_PANEL_ROW * len(names))
    header = alt.Header(title=None, labelFontSize=12, labelColor=INK, labelPadding=6)
    facet = alt.Facet("line:N", sort=titles, header=header)
    return layered.facet(facet, columns=_PANEL_COLUMNS, spacing=14).resolve_scale(x="independent")
