"""What help shows first, and what is said of a flag that is not there."""

from __future__ import annotations

import re

import pytest

from tests.cli._run import isolux as run

COMMANDS = ("describe", "check", "sample", "explain", "compare", "export", "report")


def flags(text: str) -> set[str]:
    return set(re.findall(r"^  (--[a-z][a-z-]*)", text, re.MULTILINE))


def test_help_shows_what_is_needed_often_and_an_example(monkeypatch, capsys):
    shown = run(monkeypatch, capsys, "audit", "--help").out
    assert 10 <= len(flags(shown)) <= 19
    assert {"--target", "--predictions", "--by", "--cluster", "--out"} <= flags(shown)
    assert "Groups:" in shown
    assert "isolux audit table:people.csv" in shown
    assert "--help-all" in shown


def test_the_example_of_a_command_is_its_own(monkeypatch, capsys):
    assert "--balance race" in run(monkeypatch, capsys, "sample", "--help").out
    assert "--balance race" not in run(monkeypatch, capsys, "curate", "sample", "--help").out
    told = run(monkeypatch, capsys, "curate", "consensus", "--help").out
    assert "isolux curate consensus ratings:ratings.csv" in told


def test_help_all_shows_every_setting_of_the_task(monkeypatch, capsys):
    shown = run(monkeypatch, capsys, "audit", "--help-all", "--task", "face_verification").out
    assert {"--far", "--impostors", "--seed", "--level", "--votes"} <= flags(shown)
    assert "--matching" not in flags(shown)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_of_every_command_is_explained(monkeypatch, capsys, command):
    shown = run(monkeypatch, capsys, command, "--help").out
    lines = [line for line in shown.splitlines() if line.startswith("  --")]
    assert lines
    assert [line for line in lines if len(line.split("  ")) < 3 and len(line) < 26] == []
    assert "Parameters" not in shown


def test_a_flag_of_another_task_says_whose_it_is(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "audit", "table:x.csv", "--score-threshold", "0.5")
    assert ran.code == 2
    assert (
        "belongs to the task detection or face_detection or label_association or segmentation"
        in ran.plain
    )


def test_a_misspelt_flag_names_the_nearest(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "audit", "table:x.csv", "--targt", "job")
    assert ran.code == 2
    assert "did you mean 'target'?" in ran.plain


@pytest.mark.parametrize("data", ["people.csv", "csv:people.csv", "coco:people.csv"])
def test_a_table_that_is_called_something_else_is_pointed_to(monkeypatch, capsys, tmp_path, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("id,race\n1,Black\n2,White\n")
    ran = run(monkeypatch, capsys, "audit", data, "--by", "race", "--prediction-column", "race")
    assert ran.code == 2
    assert "table:people.csv reads" in ran.plain


def test_attributes_with_a_comma_are_explained(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("id,race,age,said\n1,Black,3,a\n2,White,4,b\n")
    ran = run(monkeypatch, capsys, "audit", "table:people.csv", "--by", "race,age",
              "--target", "said", "--prediction-column", "said")  # fmt: skip
    assert ran.code == 2
    assert '--by race --by age compares by each; --by "race*age"' in ran.plain


def test_settings_that_tasks_share_are_flags_with_help_of_each(monkeypatch, capsys):
    def task(name: str) -> str:
        shown = run(monkeypatch, capsys, "audit", "--help-all", "--task", name).out
        return shown.partition(f"Task {name}:")[2].partition("\n\n")[0]

    shared = {"--matching", "--max-detections", "--common-count", "--person-label"}
    of_boxes = {"--iou-thresholds", "--score-threshold", "--score-iou"}
    for name in ("detection", "segmentation", "face_detection"):
        assert shared | of_boxes <= flags("\n" + task(name)), name
    poses = task("keypoints")
    assert shared <= flags("\n" + poses)
    assert not of_boxes & flags("\n" + poses)
    assert "highest-scoring poses" in " ".join(poses.split()), "a task's own words come first"
    assert "As in open-vocabulary" not in task("grounding")


def test_the_command_is_the_first_word_that_is_no_flag(monkeypatch, capsys):
    shown = run(monkeypatch, capsys, "--", "compare", "one", "two")
    assert "one" in shown.err
    assert "unexpected extra" not in shown.err, "compare has its arguments"
