"""Points with intervals: one group a row, everyone as a dashed line with its band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isolux.report._labels import short_names
from isolux.report._svg import ACCENT, GREY, INK, WHITE, to_svg
from isolux.report.document import Estimate, LineTable
from isolux.report.wording import count, plain, value_text
from isolux.tables import Status

__all__ = ["axis_title", "dots", "drawn_row", "panels", "scale_of"]

_NAME, _PANEL_NAME = 22, 30
"""Characters of a group's name beside the axis; the table has it whole."""
_WIDTH, _ROW = 236, 23
_PANEL_WIDTH, _PANEL_ROW, _PANEL_COLUMNS = 112, 17, 4


def scale_of(unit: str) -> float:
    """Return what a value is multiplied by to be drawn: fractions are drawn in percent."""
    return 100.0 if unit == "fraction" else 1.0


def axis_title(table: LineTable) -> str:
    """Name an axis with its unit."""
    unit = "%" if table.line.unit == "fraction" else table.line.unit
    return plain(table.line.title) + (f" ({unit})" if unit else "")


def drawn_row(name: str, estimate: Estimate, unit: str) -> dict[str, Any]:
    """Return what one point needs: its place, its interval, and whether it is hollow."""
    scale = scale_of(unit)
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {key: None if n is None else scale * n for key, n in numbers.items()} | {
        "group": name,
        "fill": ACCENT if estimate.status == Status.OK else WHITE,
        "text": value_text(estimate.value, unit),
        "n": count(estimate.n_units),
    }


def _overall(table: LineTable) -> dict[str, float | None]:
    found, scale = table.overall, scale_of(table.line.unit)
    if found is None or found.value is None:
        return {"everyone": None, "from": None, "to": None}
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return {"everyone": scale * found.value, "from": scale * low, "to": scale * high}


def _domain(rows: Sequence[dict[str, Any]], overall: dict[str, float | None]) -> list[float]:
    numbers = [row[name] for row in rows for name in ("value", "low", "high")]
    seen = [n for n in [*numbers, *overall.values()] if n is not None]
    margin = 0.05 * (max(seen) - min(seen)) or 1.0
    return [min(seen) - margin, max(seen) + margin]


def dots(table: LineTable) -> str:
    """Draw the judged groups of one line, in the table's order, each with its value and n."""
    judged = [row for row in table.rows if row.estimate.judged]
    names = short_names([row.group for row in judged], _NAME)
    unit = table.line.unit
    rows = [drawn_row(n, r.estimate, unit) for n, r in zip(names, judged, strict=True)]
    return to_svg(lambda: _dots(table, rows, names), enlarged=1.2)


def _dots(table: LineTable, rows: list[dict[str, Any]], names: list[str]) -> Any:
    import altair as alt

    overall = _overall(table)
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=_domain(rows, overall), nice=False, zero=False),
        axis=alt.Axis(title=axis_title(table), tickCount=5, titlePadding=8),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(y=_groups(names))
    top = alt.Chart(alt.Data(values=[overall]))
    layers = [
        base.mark_rule(strokeWidth=2, color=INK).encode(x="low:Q", x2="high:Q"),
        base.mark_point(size=64, stroke=ACCENT, strokeWidth=2, opacity=1).encode(
            x=x, fill=alt.Fill("fill:N", scale=None, legend=None)
        ),
        *_margin(base, top),
    ]
    if overall["everyone"] is not None:
        layers = [
            top.mark_rect(color=GREY, opacity=0.15).encode(x="from:Q", x2="to:Q"),
            top.mark_rule(strokeDash=[4, 3], color=GREY).encode(x="everyone:Q"),
            top.mark_text(fontSize=11, color=GREY, text="everyone").encode(
                x="everyone:Q", y=alt.value(-8)
            ),
            *layers,
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
    titles = short_names([axis_title(table) for table in tables], 26)
    values = [
        {"line": title}
        | _overall(table)
        | drawn_row(names[row.group], row.estimate, table.line.unit)
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
        data=alt.Data(values=values),
    ).properties(width=_PANEL_WIDTH, height=_PANEL_ROW * len(names))
    header = alt.Header(title=None, labelFontSize=12, labelColor=INK, labelPadding=6)
    facet = alt.Facet("line:N", sort=titles, header=header)
    return layered.facet(facet, columns=_PANEL_COLUMNS, spacing=14).resolve_scale(x="independent")
