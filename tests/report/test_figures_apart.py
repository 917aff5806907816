"""Figures drawn in a process of their own: the same ones, and its end is not ours."""

from __future__ import annotations

import pytest

from isolux.report.figures import apart, svg
from isolux.vocabulary.errors import DrawingError, OutputError

CHART = {
    "data": {"values": [{"a": 1, "b": "Ärzte <&> \u2028"}]},
    "mark": "point",
    "encoding": {"x": svg.field("a"), "y": svg.field("b", "nominal")},
}


@pytest.fixture(autouse=True)
def _no_process_stays():
    yield
    apart.end_renderer()


def test_a_figure_is_the_same_from_another_process(monkeypatch):
    here = svg.to_svg(CHART)
    monkeypatch.setattr(svg, "addresses_are_limited", lambda: True)
    assert svg.to_svg(CHART) == here
    assert svg.to_svg(CHART) == here  # by the same process, which stays
    assert "Ärzte &lt;&amp;&gt;" in here


def test_a_chart_that_cannot_be_drawn_says_why():
    with pytest.raises(RuntimeError, match="ValueError"):
        apart.draw_apart({"mark": "no such mark"}, {})


def test_a_renderer_that_ended_by_itself_is_replaced_and_its_pipes_are_closed():
    drawn = apart.draw_apart(CHART, {})
    (ended,) = apart._renderers
    ended.kill()
    ended.wait()
    assert apart.draw_apart(CHART, {}) == drawn
    assert ended.stdin is not None
    assert ended.stdout is not None
    assert (ended.stdin.closed, ended.stdout.closed) == (True, True)


@pytest.mark.parametrize(("end", "says"), [("os.abort()", "SIGABRT"), ("os._exit(3)", "code 3")])
def test_the_end_of_the_renderer_is_an_error_by_name(tmp_path, monkeypatch, end, says):
    (tmp_path / "renderer.py").write_text(f"import os\n{end}\n")
    monkeypatch.setattr(apart, "_RENDERER", tmp_path / "renderer.py")
    with pytest.raises(DrawingError, match=f"(?s)figures cannot be drawn.*{says}") as caught:
        apart.draw_apart(CHART, {})
    assert isinstance(caught.value, OutputError)
