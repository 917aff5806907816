"""How wide a text is: against the engine that lays the figures out, and for what it cannot tell."""

from __future__ import annotations

import re

import pytest

from isolux.report.figures.svg import (
    build_channel,
    draw_chart_svg,
    estimate_text_width_em,
    fix_text_widths,
    has_exact_width,
)

pytest.importorskip("vl_convert", reason="EXTRA figures ABSENT: no width was compared")

NAMES = [
    "Southeast Asian",
    '<script>alert("x")</script>',
    "São Tomé & Príncipe",
    "more than 70",
    "Latino_Hispanic × Female",
    "12,345.6 ± 7 (±1)",
    "A'B\"C@D#E$F%G*H{I}J|K~L^M`N=O?P",
    "the quick brown fox jumps over the lazy dog",
    "QUICK WIZARDS JUMP VEXED BY FOG · …",
]


def drawn(name):
    axis = {"title": None, "domain": False, "ticks": False, "labelPadding": 0}
    y = build_channel("g", "nominal", axis=axis)
    size = {"width": 10, "height": 20}
    return draw_chart_svg(
        {"data": {"values": [{"g": name}]}, "mark": "point", **size, "encoding": {"y": y}}
    )


def width(svg):
    return float(re.search(r'width="([\d.]+)"', svg)[1])


@pytest.mark.parametrize("name", NAMES)
def test_a_width_is_what_the_engine_leaves_room_for(name):
    room = width(drawn(name)) - width(drawn(""))
    # The engine rounds up to whole pixels, and sets some pairs (AV) a little closer.
    assert 12 * estimate_text_width_em(name) == pytest.approx(room, abs=1.5)
    assert f'textLength="{12 * estimate_text_width_em(name):.1f}"' in drawn(name)


def test_of_other_scripts_the_figure_is_wide_enough_and_their_letters_are_not_squeezed():
    name = "東京都東京都東京都"  # nine squares of 12 px, for which the engine leaves 81 px
    svg = drawn(name)
    assert not has_exact_width(name)
    assert "textLength" not in svg
    low = re.search(r'viewBox="(-?[\d.]+) ', svg)[1]
    at = float(re.search(r"translate\((-?[\d.]+)", svg)[1])
    assert at - 9 * 12 >= float(low) - 1
    assert width(svg) - width(drawn("")) >= 9 * 12 - 2  # the margin


def test_lines_of_a_text_are_told_one_by_one_and_entities_count_once():
    svg = '<text font-size="10px"><tspan>a &amp;</tspan><tspan x="0">b</tspan></text>'
    # a 0.556, space 0.278, & 0.667: 1.501 sizes of the font
    assert re.findall(r'textLength="([\d.]+)"', fix_text_widths(svg)) == ["15.0", "5.6"]
    assert fix_text_widths('<text font-size="10px"></text>') == '<text font-size="10px"></text>'
