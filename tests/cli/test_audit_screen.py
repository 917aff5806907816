"""What a finished audit prints: the answer, groups worst first with their intervals, few findings.

Of 300 a 90 % are right, of 200 b 70 %, of 400 c 89 %, of 100 d 88 %, of 20 e half. Everyone:
(270 + 140 + 356 + 88 + 10) / 1020 = 84.7 %.
"""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

from isolux.cli.group_table import draw_interval_bar
from isolux.cli.text_widths import cut_middle_to_width
from isolux.report.document import Estimate
from tests.cli._run import isolux

RIGHT_OF = {"a": (270, 300), "b": (140, 200), "c": (356, 400), "d": (88, 100), "e": (10, 20)}
BLOCKS = re.compile("[━●│┿·]{9,}")


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rows = [
        {"tone": tone, "side": "lr"[i % 2], "truth": "yes", "answer": "yes" if i < right else "no"}
        for tone, (right, n) in RIGHT_OF.items()
        for i in range(n)
    ]
    path = tmp_path_factory.mktemp("screen") / "people.csv"
    pl.DataFrame(rows).with_row_index("id").write_csv(path)
    return path


def audit(monkeypatch, capsys, people, out, *more, width=80, metric="accuracy"):
    ran = isolux(
        monkeypatch, capsys, "audit", f"table:{people}", "--id", "id", "--target", "truth",
        "--prediction-column", "answer", "--by", "tone", "--by", "side", "--metric", metric,
        "--replicates", 200, "--out", out, "--overwrite", *more, width=width,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    return ran.out


def row_of(out: str, group: str) -> str:
    return next(line for line in out.splitlines() if line.startswith(f"  {group} "))


def test_the_answer_stands_before_the_groups_worst_first(monkeypatch, capsys, people, tmp_path):
    out = audit(monkeypatch, capsys, people, tmp_path / "run")
    lines = out.splitlines()
    assert len(lines) <= 34
    assert max(len(line) for line in lines if not line.startswith("report: ")) <= 80
    said, table = (next(i for i, line in enumerate(lines) if word in line)
                   for word in ("works worse for", "accuracy, %"))  # fmt: skip
    assert said < table < len(lines) - 1
    groups = [line.split()[0] for line in lines if BLOCKS.search(line)]
    assert groups[:4] == ["b", "d", "c", "a"], "70, 88, 89, 90 %"
    assert "accuracy 84.7 % (" in " ".join(out.split())
    assert lines[-1] == f"report: {tmp_path / 'run' / 'report.html'}"


def test_a_row_marks_what_is_shown_and_gives_no_p_where_nothing_is(
    monkeypatch, capsys, people, tmp_path
):
    out = audit(monkeypatch, capsys, people, tmp_path / "run")
    shown = r"70\.0  \d\d\.\d–\d\d\.\d .* 200 +−14\.7\d* +< 0\.001  worse$"
    assert re.search(shown, row_of(out, "b"))
    assert re.search(r"100 +\+3\.3\d* +~$", row_of(out, "d"))
    small = row_of(out, "e")
    assert not BLOCKS.search(small)
    assert small.endswith("¹")
    assert out.count("¹ too few to judge: fewer than 50 units") == 1
    assert "~ nothing shown by side in accuracy" in out.splitlines()
    (head,) = [line for line in out.splitlines() if "accuracy, %" in line]
    assert head.endswith("than all"), "marks compare with everyone"
    assert "· 1,020 people, taken as independent ·" in " ".join(out.split())


def test_the_reference_of_the_first_sentence_has_a_row(monkeypatch, capsys, tmp_path):
    right = {f"g{k}": 40 if k == 0 else 79 + k for k in range(10)}  # of 100 each; g9 88 %
    rows = [
        [tone, "yes", "yes" if i < n else "no"] for tone, n in right.items() for i in range(100)
    ]
    path = tmp_path / "people.csv"
    frame = pl.DataFrame(rows, ["tone", "truth", "answer"], orient="row")
    frame.with_columns(side=pl.lit("l")).with_row_index("id").write_csv(path)
    out = audit(monkeypatch, capsys, path, tmp_path / "run")
    assert "tone = g0 than for people with tone = g9" in " ".join(out.split())
    shown = [line.split()[0] for line in out.splitlines() if BLOCKS.search(line)]
    assert shown == ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g9"]
    assert "  … 2 more groups" in out.splitlines()


def test_a_metric_without_a_direction_says_lower(monkeypatch, capsys, people, tmp_path):
    out = audit(monkeypatch, capsys, people, tmp_path / "run", "--positive", "yes",
                metric="selection_rate")  # fmt: skip
    assert row_of(out, "b").endswith("lower")
    assert "worse" not in out


def test_a_wide_screen_has_longer_names(monkeypatch, capsys, tmp_path):
    long = "people of the first kind from the hills"
    rows = [[k, long if k % 2 else "b", "y", "yn"[k % 3 == 0]] for k in range(200)]
    path = tmp_path / "people.csv"
    pl.DataFrame(rows, ["id", "tone", "truth", "answer"], orient="row").write_csv(path)
    for width, is_whole in ((80, False), (120, True)):
        ran = isolux(monkeypatch, capsys, "audit", f"table:{path}", "--id", "id", "--target",
                     "truth", "--prediction-column", "answer", "--by", "tone", "--overwrite",
                     "--replicates", 100, "--out", tmp_path / "run", width=width)  # fmt: skip
        assert ran.code == 0, ran.err
        table = [line for line in ran.out.splitlines() if BLOCKS.search(line)]
        assert (long in "".join(table)) == is_whole
        assert max(map(len, table)) <= width
        assert all(line.split()[-1] in {"worse", "better", "~"} for line in table)


def test_notes_are_counted_until_they_are_asked_for(monkeypatch, capsys, people, tmp_path):
    folded = audit(monkeypatch, capsys, people, tmp_path / "run")
    assert re.search(r"^\d+ notes?: --notes prints them$", folded, re.MULTILINE)
    assert "\nnote: " not in folded
    whole = audit(monkeypatch, capsys, people, tmp_path / "run", "--notes")
    assert "\nnote: " in whole
    record = json.loads((tmp_path / "run" / "audit.json").read_text(encoding="utf-8"))
    assert "notes" not in record["spec"], "it is about printing alone"


def test_json_holds_the_answer_as_data(monkeypatch, capsys, people, tmp_path):
    said = json.loads(audit(monkeypatch, capsys, people, tmp_path / "run", "--json"))
    (answer,) = said["answers"]
    assert answer["of"] == str(tmp_path / "run")
    assert "worse for" in answer["first"]
    assert answer["line"]["metric"] == "accuracy"
    assert answer["attributes"][0] == "tone"


@pytest.mark.parametrize(("settings", "coloured"), [
    ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), ({}, False),
])  # fmt: skip
def test_colour_is_for_terminals_that_want_it(
    monkeypatch, capsys, people, tmp_path, settings, coloured
):
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TERM", "xterm-256color")
    out = audit(monkeypatch, capsys, people, tmp_path / "run")
    assert bool(re.search(r"\x1b\[[\d;]*3[16]m", out)) == coloured
    assert ("\x1b" in out) == ("FORCE_COLOR" in settings)


def test_every_warning_is_there_and_the_fourth_is_one_line(monkeypatch, capsys, tmp_path):
    from isolux.cli.audit_screen import print_audit
    from isolux.core.containers import Run
    from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES

    tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    warnings = [f"Warning number {k}: {'many words ' * 20}" for k in range(5)]
    monkeypatch.setenv("COLUMNS", "80")
    print_audit(Run({"model": "m", "warnings": warnings}, *(t.empty() for t in tables)), None)
    out = capsys.readouterr().out
    assert out.count("WARNING: Warning number") == 5
    assert out.count(" …") == 2


def test_an_interval_is_drawn_on_the_scale_with_everyones_value():
    estimate = Estimate(0.4, 0.2, 0.6, 50, 50, "ok")
    everyone = Estimate(0.5, 0.4, 0.6, 99, 99, "ok")
    assert draw_interval_bar(estimate, everyone, (0.0, 1.0), 11) == "··━━●┿━····"
    few = Estimate(None, None, None, 3, 3, "insufficient units")
    assert draw_interval_bar(few, everyone, (0.0, 1.0), 11) == " " * 11


def test_names_are_cut_in_the_middle_by_what_they_take_on_a_screen():
    from rich.cells import cell_len

    for name in ("Latino_Hispanic × Female", "李明李明李明李明李明", "a\u0301" * 30):
        short = cut_middle_to_width(name, 12)
        assert cell_len(short) <= 12
        assert short[0] == name[0]
        assert short[-1] == name[-1]


def test_a_terminal_of_ascii_keeps_its_columns(people, tmp_path):
    import os
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "isolux", "audit", f"table:{people}", "--id", "id", "--target",
         "truth", "--prediction-column", "answer", "--by", "tone", "--metric", "accuracy",
         "--replicates", "200", "--out", str(tmp_path / "run")],
        capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii",
                                                           "PYTHONUTF8": "0", "COLUMNS": "80"},
    )  # fmt: skip
    rows = [line for line in done.stdout.decode("ascii").splitlines()
            if re.match(r"  [abcd] ", line)]  # fmt: skip
    assert len(rows) == 4
    assert all(re.search(r"[=o|+.]{9,}", row) for row in rows)
    assert "?" not in "".join(rows)
