"""From a chart, as Vega-Lite's JSON has it, to a small SVG that can stand inside a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from isolux.report.figures.widths import fit
from isolux.vocabulary.addresses import allowed_addresses
from isolux.vocabulary.errors import DrawingError

Spec = dict[str, Any]
"""A chart or a part of one, in Vega-Lite's own words: altair's objects cost as much again as
drawing does. A test holds every kind of chart against the schema."""

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
"""Fonts of one width: vl-convert lays the text out before the browser draws it, see ``widths``."""
_ADDRESSES = 96 << 30
"""Bytes of address space below which no figure is drawn: the figures' engine reserves 64 GiB beside
what the process has, and ends the process if it may not (measured with vl-convert 1.9)."""

INK, GREY, FAINT, ACCENT, WHITE = "#1b1b1b", "#666666", "#dcdcdc", "#0b4a6f", "#ffffff"
HATCH = "hatch"
"""Id of the pattern for cells that are not judged; the page defines it once."""

_TAG = re.compile(r"<[a-zA-Z][^>]*>")
_NOISE = re.compile(
    r' (?:class|aria-[a-z]+|role|pointer-events|xmlns:xlink|version|font-family)="[^"]*"'
    r'| stroke-miterlimit="10"| opacity="1"'
)
_LONG = re.compile(r"(\d+\.\d)\d{2,}")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
_EMPTY = re.compile(r'<path d="M0,0h0v0h0Z"/>|<path d="" display="none"/>|<g></g>')


CONFIG: dict[str, Any] = {
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


def field(name: str, kind: str = "quantitative", **more: object) -> Spec:
    """Name the column that a channel shows.

    Examples
    --------
    >>> field("group", "nominal", scale=None)
    {'field': 'group', 'type': 'nominal', 'scale': None}
    """
    return {"field": name, "type": kind, **more}


def drawable() -> bool:
    """Tell whether figures can be drawn: whether the extra ``figures`` is installed."""
    return find_spec("vl_convert") is not None


def to_svg(spec: Mapping[str, Any], *, enlarged: float = 1.0) -> str:
    """Draw a chart as an ``<svg>`` element without ids, scripts, links or roles of its own."""
    if not drawable():
        return ""
    svg = _slim(_drawn(spec))
    return _SIZE.sub(
        lambda size: (
            f'width="{float(size[1]) * enlarged:g}" height="{float(size[2]) * enlarged:g}"'
        ),
        svg,
        count=1,
    )


def _drawn(spec: Mapping[str, Any]) -> str:
    """Draw a chart with vl-convert, or say why that would end the process."""
    limit = allowed_addresses()
    if limit is not None and limit < _ADDRESSES:
        raise DrawingError(
            "the report's figures cannot be drawn",
            expected="96 GiB of address space (not memory) for the figures' engine",
            found=f"a limit of {limit // 1024:,} KiB",
            hint="raise the limit (ulimit -v)",
        )
    import vl_convert

    # No address may be read: data are in the spec, and a name that looks like one is a name.
    return str(vl_convert.vegalite_to_svg(dict(spec), config=CONFIG, allowed_base_urls=[]))


def _slim(svg: str) -> str:
    # Inside tags only: vega escapes < and > in texts, so a group's name is never touched.
    def lighter(tag: re.Match[str]) -> str:
        return _LONG.sub(r"\1", _NOISE.sub("", tag.group()))

    svg = _TAG.sub(lighter, svg).replace("<svg ", f'<svg font-family="{FONT}" ', 1)
    while True:
        emptied = _EMPTY.sub("", svg)
        if emptied == svg:
            return fit(svg)
        svg = emptied
