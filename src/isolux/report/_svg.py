"""From an altair chart to a small SVG that can stand inside a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["ACCENT", "FAINT", "FONT", "GREY", "HATCH", "INK", "WHITE", "inline", "to_svg"]

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
"""Fonts of one width on every system: vl-convert lays the text out before the browser draws it."""

INK, GREY, FAINT, ACCENT, WHITE = "#1b1b1b", "#666666", "#dcdcdc", "#0b4a6f", "#ffffff"
HATCH = "hatch"
"""Id of the pattern for cells that are not judged; the page defines it once."""

CHECKED = False
"""Whether altair checks every part of a chart against vega-lite's schema.

That costs as much as drawing it. Our charts differ in their data only; a test checks each kind.
"""

_TAG = re.compile(r"<[a-zA-Z][^>]*>")
_NOISE = re.compile(
    r' (?:class|aria-[a-z]+|role|pointer-events|xmlns:xlink|version|font-family)="[^"]*"'
    r'| stroke-miterlimit="10"| opacity="1"'
)
_LONG = re.compile(r"(\d+\.\d)\d{2,}")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
_EMPTY = re.compile(r'<path d="M0,0h0v0h0Z"/>|<path d="" display="none"/>|<g></g>')


_CONFIG: dict[str, Any] = {
    "aria": False,
    "background": "transparent",
    "font": FONT,
    "padding": {"top": 5, "right": 2, "bottom": 2, "left": 2},
    "view": {"stroke": None},
    "axis": {
        "domainColor": GREY,
        "gridColor": "#ececec",
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 400,
        "tickColor": GREY,
        "titleColor": GREY,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
}


def inline(values: Sequence[Mapping[str, Any]]) -> Any:
    """Put rows into the chart itself: a figure reads no file and no address."""
    import altair as alt

    return alt.Data(values=list(values))  # type: ignore[no-untyped-call]


def to_svg(draw: Callable[[], Any], *, enlarged: float = 1.0) -> str:
    """Draw a chart as an ``<svg>`` element without ids, scripts, links or roles of its own.

    ``enlarged`` sets the size at which a wide screen shows it; a narrow one scales it down.

    The page names the figure (``role="img"``), so vega's own roles would only be read twice.
    """
    import vl_convert
    from altair.utils.schemapi import debug_mode

    with debug_mode(arg=CHECKED):
        spec = draw().to_dict(validate=CHECKED)
    # No address may be read: data are in the spec, and a name that looks like one is a name.
    svg = _slim(vl_convert.vegalite_to_svg(spec, config=_CONFIG, allowed_base_urls=[]))
    return _SIZE.sub(
        lambda size: (
            f'width="{float(size[1]) * enlarged:g}" height="{float(size[2]) * enlarged:g}"'
        ),
        svg,
        count=1,
    )


def _slim(svg: str) -> str:
    # Inside tags only: vega escapes < and > in texts, so a group's name is never touched.
    def lighter(tag: re.Match[str]) -> str:
        return _LONG.sub(r"\1", _NOISE.sub("", tag.group()))

    svg = _TAG.sub(lighter, svg).replace("<svg ", f'<svg font-family="{FONT}" ', 1)
    while True:
        emptied = _EMPTY.sub("", svg)
        if emptied == svg:
            return svg
        svg = emptied
