"""Figures drawn in a process of their own: the same ones, and its end is not ours."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isolux.report.figures import apart, svg
from isolux.report.figures.meanwhile import meanwhile
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


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(apart, "cores", lambda: 2)


def test_a_renderer_that_was_started_ahead_draws_the_same_figure(two_cores, monkeypatch):
    here = svg.to_svg(CHART)
    apart.draw_ahead()
    assert apart.is_ahead()
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # this process draws no more
    monkeypatch.setattr(svg, "drawable", lambda: True)
    assert svg.to_svg(CHART) == here
    apart.end_renderer()
    with pytest.raises(ImportError):
        svg.to_svg(CHART)


def test_a_renderer_is_not_started_ahead_where_it_would_take_the_only_core(monkeypatch):
    monkeypatch.setattr(apart, "cores", lambda: 1)
    apart.draw_ahead()
    assert not apart.is_ahead()


def test_where_a_renderer_that_was_started_ahead_has_ended_this_process_draws(
    two_cores, tmp_path, monkeypatch
):
    here = svg.to_svg(CHART)
    (tmp_path / "renderer.py").write_text("import sys\nsys.stdin.readline()\n")
    monkeypatch.setattr(apart, "_RENDERER", tmp_path / "renderer.py")
    apart.draw_ahead()
    assert apart.is_ahead()
    assert svg.to_svg(CHART) == here  # it ends without an answer
    assert not apart.is_ahead()


def test_ctrl_c_is_left_to_the_process_that_asks(two_cores):
    here = svg.to_svg(CHART)
    apart.draw_ahead()
    assert apart.draw_apart(CHART, svg.CONFIG)  # it listens
    apart._renderers[-1].send_signal(signal.SIGINT)
    assert svg.to_svg(CHART) == here
    assert apart.is_ahead()


def test_a_renderer_ends_with_a_process_that_is_killed():
    code = (
        "import os, signal\nfrom isolux.report.figures import apart\napart.cores = lambda: 2\n"
        "apart.draw_ahead()\nprint(apart._renderers[0].pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    left, until = int(killed.stdout), time.monotonic() + 60
    while _lives(left):
        assert time.monotonic() < until
        time.sleep(0.02)


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ahead", [True, False])
def test_works_meanwhile_are_done_once_and_told_by_name(two_cores, ahead):
    if ahead:
        apart.draw_ahead()
    done: list[str] = []

    def work(name: str) -> str:
        done.append(name)
        return name.upper()

    with meanwhile({name: lambda name=name: work(name) for name in "abc"}) as drawn:
        assert [drawn(name) for name in "cab"] == ["C", "A", "B"]
    assert done == ["a", "b", "c"]


@pytest.mark.parametrize("ahead", [True, False])
def test_what_a_work_raises_meanwhile_is_raised_where_it_is_waited_for(two_cores, ahead):
    if ahead:
        apart.draw_ahead()

    def fail() -> str:
        raise DrawingError("no ink")

    with pytest.raises(DrawingError, match="no ink"), meanwhile({"a": fail}) as drawn:
        drawn("a")
