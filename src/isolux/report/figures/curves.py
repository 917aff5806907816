"""Recall against overlap, a small panel for each group: its line and band, everyone's dashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isolux.report._views import Curve
from isolux.report.figures.labels import short_names
from isolux.report.figures.svg import ACCENT, GREY, Spec, field, to_svg
from isolux.report.wording import plain

__all__ = ["curve_panels"]

_WIDTH, _HEIGHT, _COLUMNS = 118, 86, 4


def curve_panels(everyone: Curve | None, curves: Sequence[Curve]) -> str:
    """Draw the groups' curves in the order given, all panels on one scale."""
    names = short_names([curve.group for curve in curves], 20)
    base = {} if everyone is None else {p.overlap: 100.0 * p.value for p in everyone.points}
    values = [
        {
            "group": name,
            "overlap": point.overlap,
            "recall": 100.0 * point.value,
            "low": 100.0 * (point.value if point.low is None else point.low),
            "high": 100.0 * (point.value if point.high is None else point.high),
            "everyone": base.get(point.overlap),
        }
        for name, curve in zip(names, curves, strict=True)
        for point in curve.points
    ]
    return to_svg(_spec(values, names, plain(curves[0].measure)))


def _spec(values: list[dict[str, Any]], names: list[str], measure: str) -> Spec:
    ticks = {"title": measure, "values": [0.5, 0.7, 0.9], "format": ".1f", "grid": False}
    x = field("overlap", scale={"domain": [0.5, 0.95], "nice": False}, axis=ticks)

    def y(name: str) -> Spec:
        axis = {"title": "found (%)", "values": [0, 50, 100]}
        return field(name, scale={"domain": [0, 100]}, axis=axis)

    dashed = {"type": "line", "color": GREY, "strokeDash": [4, 3], "strokeWidth": 1.2}
    layers = [
        {
            "mark": {"type": "area", "color": ACCENT, "opacity": 0.18},
            "encoding": {"x": x, "y": y("low"), "y2": {"field": "high"}},
        },
        {"mark": dashed, "encoding": {"x": x, "y": y("everyone")}},
        {
            "mark": {"type": "line", "color": ACCENT, "strokeWidth": 2},
            "encoding": {"x": x, "y": y("recall")},
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
