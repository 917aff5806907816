"""Long work says what it is doing, on standard error, and quick work says nothing."""

from __future__ import annotations

import io

from isolux.cli import progress
from isolux.cli.progress import ProgressLine
from isolux.core.progress import listen_to_steps
from tests.cli._run import isolux as run


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def teller(*, terminal):
    clock, stream = Clock(), io.StringIO()
    return ProgressLine(stream, is_terminal=terminal, clock=clock), clock, stream


def test_on_a_terminal_one_line_from_three_seconds_on_and_none_is_left():
    told, clock, stream = teller(terminal=True)
    told.set_step("reading the people")
    clock.now = 2.9
    told.update()
    assert stream.getvalue() == ""
    clock.now = progress.ON_TERMINAL_S
    told.update()
    told.set_step("scoring detection")
    clock.now = 65.0
    told.update()
    lines = stream.getvalue().split("\r")[1:]
    assert lines[0] == "reading the people … 3 s"
    assert lines[1].rstrip() == "scoring detection … 65 s"
    told.clear()
    assert stream.getvalue().endswith(" \r")
    assert "\n" not in stream.getvalue()


def test_in_a_log_a_line_after_ten_seconds_and_again_each_half_minute():
    told, clock, stream = teller(terminal=False)
    for now in range(60):
        clock.now = float(now)
        told.set_step(f"painting: {now} of 100")
        told.update()
    assert stream.getvalue().splitlines() == [
        "isolux: painting: 10 of 100 … 10 s so far",
        "isolux: painting: 40 of 100 … 40 s so far",
    ]


def test_what_shows_itself_is_not_shown_twice():
    told, clock, stream = teller(terminal=False)
    told.set_step("reading")
    told.set_step("")
    clock.now = 100.0
    told.update()
    assert stream.getvalue() == ""


def test_an_audit_names_its_steps_and_a_world_how_far_it_is(monkeypatch, capsys, tmp_path):
    steps = []
    with listen_to_steps(steps.append):
        done = run(monkeypatch, capsys, "synthesize", "fair", "--out", tmp_path / "fair",
                   "--layout", "coco", "--households", 5)  # fmt: skip
        assert done.code == 0, done.err
        assert any(" of " in step for step in steps)
        steps.clear()
        done = run(monkeypatch, capsys, "audit", f"table:{tmp_path / 'fair' / 'people.csv'}",
                   "--target", "occupation", "--id", "instance_id", "--by", "lighting",
                   "--predictions", tmp_path / "fair/predictions/aurora/occupation.csv",
                   "--prediction-column", "label", "--min-units", 1, "--replicates", 100,
                   "--out", tmp_path / "run")  # fmt: skip
        assert done.code == 0, done.err
    assert [step for step in steps if step][:4] == [
        "reading the people", "reading the answers", "scoring classification",
        "measuring the groups",
    ]  # fmt: skip
