"""Models by size: everyone's value, the lowest and the highest group, how each was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from isolux.report.figures.svg import ACCENT, GREY, INK, field, to_svg

_WIDTH, _HEIGHT = 520, 260
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def models_by_size(
    rows: Sequence[Mapping[str, Any]], *, size: str, title: str, fraction: bool
) -> str:
    """Draw models as SVG."""
    by = 100.0 if fraction else 1.0
    values = [
        {k: (v * by if k in ("value", "low", "high", "least", "most") and v is not None else v)
         for k, v in row.items()}
        for row in rows if row["size"] is not None and row["value"] is not None
    ]  # fmt: skip
    sizes = [row["size"] for row in values]
    kinds = list(dict.fromkeys(row["paradigm"] for row in values))
    ends = [floor(log10(min(sizes))), ceil(log10(max(sizes)))] if sizes else [0, 1]
    marks = {"values": [10.0**k for k in range(ends[0], ends[1] + 1)], "format": "~s"}
    words = {"title": f"{size} (logarithmic)", "labelExpr": "replace(datum.label, 'G', 'B')"}
    x = field("size", axis={**marks, **words, "grid": False},
              scale={"type": "log", "nice": True, "padding": 30})  # fmt: skip
    axis = {"title": f"{title}{' (%)' if fraction else ''}"}
    y = field("value", axis=axis, scale={"zero": False, "nice": True})
    shape = field(
        "paradigm", "nominal", scale={"domain": kinds, "range": list(_SHAPES[: len(kinds)])},
        legend={"title": None, "orient": "top", "symbolFillColor": ACCENT, "symbolStrokeWidth": 0,
                "labelFontSize": 12},
    )  # fmt: skip
    spec = {
        "data": {"values": values}, "width": _WIDTH, "height": _HEIGHT,
        "layer": [
            {"mark": {"type": "rule", "color": GREY, "strokeDash": [2, 3], "strokeWidth": 1.5},
             "encoding": {"x": x, "y": field("least", axis=axis), "y2": {"field": "most"}}},
            {"mark": {"type": "rule", "color": INK, "strokeWidth": 2.5},
             "encoding": {"x": x, "y": field("low", axis=axis), "y2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "color": ACCENT, "size": 110, "opacity": 1},
             "encoding": {"x": x, "y": y, "shape": shape}},
            {"mark": {"type": "text", "dx": 9, "dy": -9, "align": "left", "fontSize": 12},
             "encoding": {"x": x, "y": y, "text": field("name", "nominal")}},
        ],
    }  # fmt: skip
    return to_svg(spec) if values else ""
