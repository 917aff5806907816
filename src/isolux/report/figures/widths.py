"""How wide a text is, so that a figure keeps its layout whatever font a reader's system has.

A figure is laid out when the report is written, by Helvetica's widths (the bundled font of
vl-convert and Arial have them too), and drawn by the browser of whoever reads it. Where that has
none of the three, its own sans-serif can be a fifth wider: names would be cut at the figure's edge.
So each text says how long it is, and the browser fits the letters to that. Scripts that
Helvetica has no letters of are left as they are, and the figure is made wide enough for them.
"""

from __future__ import annotations

import math
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html import unescape

# Advance widths in thousandths of the font's size: Helvetica's own (Adobe's font metrics).
_ADVANCES = {
    191: "'", 222: "ijl’‘", 260: "|", 278: " \N{NO-BREAK SPACE}!,./:;I[\\]ft", 333: "()-`r“”·",
    334: "{}", 355: '"', 389: "*", 400: "°", 469: "^", 500: "Jcksvxyz", 549: "±",
    556: "#$?_0123456789Labdeghnopqu–", 584: "+<=>~×−", 611: "FTZ", 667: "&ABEKPSVXY",
    722: "CDHNRUw", 778: "GOQ", 833: "Mm", 889: "%", 944: "W", 1000: "—…", 1015: "@",
}  # fmt: skip
_EM = {letter: width / 1000 for width, letters in _ADVANCES.items() for letter in letters}
_OTHER, _WIDE = 0.75, 1.0
"""Other scripts: as wide as the widest of their letters mostly are; East Asian: a square."""

_TEXT = re.compile(r"<text ([^>]*)>(.*?)</text>", re.DOTALL)
_LINE = re.compile(r"<tspan([^>]*)>([^<]*)</tspan>")
_FONT_SIZE = re.compile(r'font-size="([\d.]+)px"')
_MOVED = re.compile(r"translate\((-?[\d.]+)")
_FRAME = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="0 0 [\d.]+ [\d.]+"')


def known(text: str) -> bool:
    """Tell whether Helvetica has every letter of a text, so that its width is exact.

    Examples
    --------
    >>> known("São Tomé"), known("東京")
    (True, False)
    """
    return all(_plain(letter) in _EM for letter in text)


def width_em(text: str) -> float:
    """Return how wide a text is, in sizes of its font; at least as wide for unknown scripts.

    Examples
    --------
    >>> round(width_em("Black"), 3), width_em("東京")
    (2.445, 2.0)
    """
    return sum(_letter(letter) for letter in re.sub(" +", " ", text).strip(" "))


def _plain(letter: str) -> str:
    return unicodedata.normalize("NFD", letter)[0]  # é is as wide as e


def _letter(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    wide = unicodedata.east_asian_width(letter) in "WF"
    return _EM.get(_plain(letter), _WIDE if wide else _OTHER)


def fit(svg: str) -> str:
    """Tell every text of a drawing how long it is, and widen the drawing for what is not known.

    Examples
    --------
    >>> fit('<text font-size="20px">Black</text>')
    '<text font-size="20px" textLength="48.9" lengthAdjust="spacingAndGlyphs">Black</text>'
    """
    return _TEXT.sub(_told, _roomy(svg))


def _told(found: re.Match[str]) -> str:
    attributes, inner = found.groups()
    size = float(size[1]) if (size := _FONT_SIZE.search(attributes)) else 0.0
    if "<" not in inner:
        return f"<text {attributes}{_length(inner, size)}>{inner}</text>"
    lines = _LINE.sub(lambda t: f"<tspan{t[1]}{_length(t[2], size)}>{t[2]}</tspan>", inner)
    return f"<text {attributes}>{lines}</text>"


def _length(escaped: str, size: float) -> str:
    text = unescape(escaped)
    long = size * width_em(text)
    if not long or not known(text):
        return ""
    return f' textLength="{long:.1f}" lengthAdjust="spacingAndGlyphs"'


def _roomy(svg: str) -> str:
    """Widen the frame where a text of an unknown script may pass its left or right edge."""
    frame = _FRAME.search(svg)
    if frame is None or known(unescape(re.sub(r"<[^>]*>", "", svg))):
        return svg
    wide = float(frame[1])
    ends = list(_ends(ET.fromstring(svg), 0.0))  # noqa: S314 - our own drawing
    left = max(0, math.ceil(-min((low for low, _ in ends), default=0.0)))
    right = max(0, math.ceil(max((high for _, high in ends), default=0.0) - wide))
    size = f"{wide + left + right:g}"
    box = f'width="{size}" height="{frame[2]}" viewBox="{-left} 0 {size} {frame[2]}"'
    return svg.replace(frame[0], box, 1)


def _ends(element: ET.Element, x: float) -> Iterator[tuple[float, float]]:
    turned = element.get("transform", "")
    if "rotate" in turned:
        return  # the title of an upright axis: as long as the figure is high, at most
    x += float(moved[1]) if (moved := _MOVED.search(turned)) else 0.0
    if element.tag.endswith("}text"):
        size = float(element.get("font-size", "0px").removesuffix("px"))
        lines = [line for line in element.itertext() if not known(line)]
        long = size * max(map(width_em, lines), default=0.0)
        before = {"end": 1.0, "middle": 0.5}.get(element.get("text-anchor", ""), 0.0)
        yield x - before * long, x + (1.0 - before) * long
        return
    for child in element:
        yield from _ends(child, x)
