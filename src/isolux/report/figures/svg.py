"""From a chart, as Vega-Lite's JSON has it, to a small SVG that can stand inside a page."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from importlib.util import find_spec
from typing import Any

from isolux.core.address_space import read_address_space_limit_bytes
from isolux.core.printable import clean_line

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


def build_channel(column: str, data_type: str = "quantitative", **options: object) -> Spec:
    """Name the column that a channel shows.

    Examples
    --------
    >>> build_channel("group", "nominal", scale=None)
    {'field': 'group', 'type': 'nominal', 'scale': None}
    """
    return {"field": column, "type": data_type, **options}


def can_draw_figures() -> bool:
    """Tell whether figures can be drawn; without them a report has its tables."""
    return find_drawing_obstacle() is None


def find_drawing_obstacle() -> tuple[str, str] | None:
    """Say why no figure can be drawn and what helps; None where figures can be drawn."""
    if find_spec("vl_convert") is None:
        return "the package that draws them is not installed", "pip install 'isolux[figures]'"
    limit = read_address_space_limit_bytes()
    if limit is None or limit >= _ADDRESSES:
        return None
    reason = (
        f"the engine that draws them reserves {_ADDRESSES >> 30} GiB of addresses, and ulimit -v"
        f" allows {limit // 1024:,} KiB"
    )
    return reason, "ulimit -v unlimited"


def draw_chart_svg(spec: Mapping[str, Any], *, scale: float = 1.0) -> str:
    """Draw a chart as an ``<svg>`` element without ids, scripts, links or roles of its own."""
    if not can_draw_figures():
        return ""
    svg = _strip_svg_noise(_draw_with_vl_convert(spec))
    return _SIZE.sub(
        lambda size: f'width="{float(size[1]) * scale:g}" height="{float(size[2]) * scale:g}"',
        svg,
        count=1,
    )


def _draw_with_vl_convert(spec: Mapping[str, Any]) -> str:
    """Draw a chart with vl-convert."""
    import vl_convert

    # No address may be read: data are in the spec, and a name that looks like one is a name.
    return str(vl_convert.vegalite_to_svg(dict(spec), config=CONFIG, allowed_base_urls=[]))


def _strip_svg_noise(svg: str) -> str:
    # Inside tags only: vega escapes < and > in texts, so a group's name is never touched.
    def strip_tag_noise(tag: re.Match[str]) -> str:
        return _LONG.sub(r"\1", _NOISE.sub("", tag.group()))

    svg = _TAG.sub(strip_tag_noise, svg).replace("<svg ", f'<svg font-family="{FONT}" ', 1)
    while True:
        emptied = _EMPTY.sub("", svg)
        if emptied == svg:
            return fix_text_widths(svg)
        svg = emptied


# Advance widths in thousandths of the font's size: Helvetica's own (Adobe's font metrics).
_ADVANCES = {
    191: "'",
    222: "ijl’‘",
    260: "|",
    278: " \N{NO-BREAK SPACE}!,./:;I[\\]ft",
    333: "()-`r“”·",
    334: "{}",
    355: '"',
    389: "*",
    400: "°",
    469: "^",
    500: "Jcksvxyz",
    549: "±",
    556: "#$?_0123456789Labdeghnopqu–",
    584: "+<=>~×−",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1000: "—…",
    1015: "@",
}
_EM = {letter: width / 1000 for width, letters in _ADVANCES.items() for letter in letters}
_OTHER_SCRIPT_EM, _WIDE = 0.75, 1.0
"""Other scripts: as wide as the widest of their letters mostly are; East Asian: a square."""

_TEXT = re.compile(r"<text ([^>]*)>(.*?)</text>", re.DOTALL)
_LINE = re.compile(r"<tspan([^>]*)>([^<]*)</tspan>")
_FONT_SIZE = re.compile(r'font-size="([\d.]+)px"')
_TRANSLATION = re.compile(r"translate\((-?[\d.]+)")
_FRAME = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="0 0 [\d.]+ [\d.]+"')


def has_exact_width(text: str) -> bool:
    """Tell whether Helvetica has every letter of a text, so that its width is exact.

    Examples
    --------
    >>> has_exact_width("São Tomé"), has_exact_width("東京")
    (True, False)
    """
    return all(_strip_accents(letter) in _EM for letter in text)


def estimate_text_width_em(text: str) -> float:
    """Return how wide a text is, in sizes of its font; at least as wide for unknown scripts.

    Examples
    --------
    >>> round(estimate_text_width_em("Black"), 3), estimate_text_width_em("東京")
    (2.445, 2.0)
    """
    return sum(_estimate_letter_width_em(letter) for letter in re.sub(" +", " ", text).strip(" "))


def _strip_accents(letter: str) -> str:
    return unicodedata.normalize("NFD", letter)[0]  # é is as wide as e


def _estimate_letter_width_em(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    wide = unicodedata.east_asian_width(letter) in "WF"
    return _EM.get(_strip_accents(letter), _WIDE if wide else _OTHER_SCRIPT_EM)


def fix_text_widths(svg: str) -> str:
    """Tell every text of a drawing how long it is, and widen the drawing for what is not known.

    Examples
    --------
    >>> fix_text_widths('<text font-size="20px">Black</text>')
    '<text font-size="20px" textLength="48.9" lengthAdjust="spacingAndGlyphs">Black</text>'
    """
    return _TEXT.sub(_set_text_length, _widen_for_unknown_scripts(svg))


def _set_text_length(text_match: re.Match[str]) -> str:
    attributes, inner = text_match.groups()
    size = float(size[1]) if (size := _FONT_SIZE.search(attributes)) else 0.0
    if "<" not in inner:
        return f"<text {attributes}{_format_text_length_attribute(inner, size)}>{inner}</text>"
    lines = _LINE.sub(
        lambda t: f"<tspan{t[1]}{_format_text_length_attribute(t[2], size)}>{t[2]}</tspan>", inner
    )
    return f"<text {attributes}>{lines}</text>"


def _format_text_length_attribute(escaped_text: str, font_size_px: float) -> str:
    text = unescape(escaped_text)
    text_width_px = font_size_px * estimate_text_width_em(text)
    if not text_width_px or not has_exact_width(text):
        return ""
    return f' textLength="{text_width_px:.1f}" lengthAdjust="spacingAndGlyphs"'


def _widen_for_unknown_scripts(svg: str) -> str:
    """Widen the frame where a text of an unknown script may pass its left or right edge."""
    frame = _FRAME.search(svg)
    if frame is None or has_exact_width(unescape(re.sub(r"<[^>]*>", "", svg))):
        return svg
    wide = float(frame[1])
    text_bounds = list(_yield_unknown_text_bounds(ET.fromstring(svg), 0.0))  # noqa: S314 - our own drawing
    left_px = max(0, math.ceil(-min((low for low, _ in text_bounds), default=0.0)))
    right = max(0, math.ceil(max((high for _, high in text_bounds), default=0.0) - wide))
    size = f"{wide + left_px + right:g}"
    box = f'width="{size}" height="{frame[2]}" viewBox="{-left_px} 0 {size} {frame[2]}"'
    return svg.replace(frame[0], box, 1)


def _yield_unknown_text_bounds(
    element: ET.Element, offset_px: float
) -> Iterator[tuple[float, float]]:
    transform = element.get("transform", "")
    if "rotate" in transform:
        return  # the title of an upright axis: as long as the figure is high, at most
    offset_px += float(translation[1]) if (translation := _TRANSLATION.search(transform)) else 0.0
    if element.tag.endswith("}text"):
        size = float(element.get("font-size", "0px").removesuffix("px"))
        lines = [line for line in element.itertext() if not has_exact_width(line)]
        long = size * max(map(estimate_text_width_em, lines), default=0.0)
        before = {"end": 1.0, "middle": 0.5}.get(element.get("text-anchor", ""), 0.0)
        yield offset_px - before * long, offset_px + (1.0 - before) * long
        return
    for child in element:
        yield from _yield_unknown_text_bounds(child, offset_px)


def shorten_names_distinctly(names: Sequence[str], max_letters: int) -> list[str]:
    """Cut names to ``max_letters`` characters; names that would become alike are numbered.

    Examples
    --------
    >>> shorten_names_distinctly(["Black", "a long name one", "a long name two"], 8)
    ['Black', 'a long …', 'a long … 2']
    >>> shorten_names_distinctly(["東京都の人々"], 8)
    ['東京都…']
    """
    shortened_names: list[str] = []
    counts: dict[str, int] = {}
    for name in names:
        text = " ".join(clean_line(name).split()) or "(empty)"
        room = _count_fitting_letters(text, max_letters)
        cut = text if len(text) <= room else text[: room - 1] + "…"
        counts[cut] = counts.get(cut, 0) + 1
        shortened_names.append(cut if counts[cut] == 1 else f"{cut} {counts[cut]}")
    return shortened_names


def wrap_names_evenly(names: Sequence[str], letters_per_line: int, max_lines: int = 3) -> list[str]:
    r"""Break names over lines, all over the same number of them, the last line filled.

    Examples
    --------
    >>> wrap_names_evenly(["Latino_Hispanic", "White"], 9)
    ['Latino_\nHispanic', '\nWhite']
    """
    split = [
        _wrap_name(name, letters_per_line, max_lines)
        for name in shorten_names_distinctly(names, letters_per_line * max_lines - 4)
    ]
    n_lines = max((len(name_lines) for name_lines in split), default=1)
    return ["\n".join([""] * (n_lines - len(name_lines)) + name_lines) for name_lines in split]


def _wrap_name(name: str, letters_per_line: int, max_lines: int) -> list[str]:
    room = _count_fitting_letters(name, letters_per_line)
    segments = textwrap.wrap(name.replace("_", "_ "), room, max_lines=max_lines, placeholder="…")
    return [segment.replace("_ ", "_") for segment in segments]


def _count_fitting_letters(name: str, n_latin_letters: int) -> int:
    """Count the letters of a name that fit so many Latin ones' width: half as many squares."""
    return (
        n_latin_letters // 2
        if any(unicodedata.east_asian_width(letter) in "WF" for letter in name)
        else n_latin_letters
    )
