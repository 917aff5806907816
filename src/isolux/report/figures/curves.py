"""A share against overlap or confidence, a small panel for each group: line, band, everyone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isolux.report._views import Curve
from isolux.report.figures.labels import short_names
from isolux.report.figures.svg import ACCENT, GREY, Spec, field, to_svg
from isolux.report.wording import plain

_WIDTH, _HEIGHT, _COLUMNS = 118, 86, 4
_OVERLAPS = ([0.5, 0.95], [0.5, 0.7, 0.9])
_AXES = {"confidence": ([0.0, 1.0], [0.0, 0.5, 1.0])}
"""Where the axis of a measure begins and ends, and its ticks."""


def curve_panels(everyone: Curve | None, curves: Sequence[Curve]) -> str:
    """Draw the groups' curves in the order given, all panels on one scale."""
    names = short_names([curve.group for curve in curves], 20)
    base = {} if everyone is None else {p.at: 100.0 * p.value for p in everyone.points}
    values = [
        {
            "group": name,
            "at": point.at,
            "share": 100.0 * point.value,
            "low": 100.0 * (point.value if point.low is None else point.low),
            "high": 100.0 * (point.value if point.high is None else point.high),
            "everyone": base.get(point.at),
        }
        for name, curve in zip(names, curves, strict=True)
        for point in curve.points
    ]
    return to_svg(_spec(values, names, curves[0]))


def _top(values: list[dict[str, Any]], curve: Curve) -> int:
    """Return where the shares' axis ends: at 100 for what is found, else where the drawing does."""
    if curve.measure not in _AXES:
        return 100
    most = max(max(row["high"], row["everyone"] or 0.0) for row in values)
    return next(top for top in (2, 4, 10, 20, 40, 100) if top >= min(most, 100.0))


def _spec(values: list[dict[str, Any]], names: list[str], curve: Curve) -> Spec:
    domain, at = _AXES.get(curve.measure, _OVERLAPS)
    ticks = {"title": plain(curve.measure), "values": at, "format": ".1f", "grid": False}
    x = field("at", scale={"domain": domain, "nice": False}, axis=ticks)
    word, top = curve.share.split()[0], _top(values, curve)

    def y(name: str) -> Spec:
        axis = {"title": f"{word} (%)", "values": [0, top // 2, top]}
        return field(name, scale={"domain": [0, top]}, axis=axis)

    dashed = {"type": "line", "color": GREY, "strokeDash": [4, 3], "strokeWidth": 1.2}
    layers = [
        {
            "mark": {"type": "area", "color": ACCENT, "opacity": 0.18},
            "encoding": {"x": x, "y": y("low"), "y2": {"field": "high"}},
        },
        {"mark": dashed, "encoding": {"x": x, "y": y("everyone")}},
        {
            "mark": {"type": "line", "color": ACCENT, "strokeWidth": 2},
            "encoding": {"x": x, "y": y("share")},
        },
    ]
    header = {"title": None, "labelFontSize": 12, "labelPadding": 4}
    return {
        "data": {"values": values},
        "facet": field("group", "nominal", sort=names, header=header),
        "columns": min(_COLUMNS, len(names)),
        "spacing": 16,
        "spec": {"layer": layers, "width": _WIDTH, "height": _HEIGHT},
    }
