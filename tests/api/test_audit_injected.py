"""What was injected is read in the words of the data, and stands in the report beside the audit."""

from __future__ import annotations

import json

import pytest

from isolux.api.audit.injected_effects import read_injected_effects
from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux_worlds.synthesis import read_world_or_preset, synthesize
from tests.cli._run import isolux

SMALL = read_world_or_preset("biased").model_copy(update={"households": 250})


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    out = tmp_path_factory.mktemp("injected") / "world"
    synthesize(SMALL, out, pixels=False)
    return out


def test_groups_have_the_datas_names_and_the_exact_rates(world):
    rows = read_injected_effects(
        world / "injected.json",
        task="detection",
        by=("skin_tone", "gender_presentation", "skin_tone*gender_presentation"),
        model="aurora",
    )
    assert all(r["metric"] == "recall_at_iou" and r["threshold"] == 0.5 for r in rows)
    of_tones = {
        r["group"]: r["value"] for r in rows if r["attribute"] == "skin_tone" and "group" in r
    }
    # The preset's base rate is .85 and nothing is injected for the seven lighter tones.
    assert [of_tones[str(t)] for t in range(1, 8)] == pytest.approx([0.85] * 7)
    assert of_tones["9"] < 0.7
    gaps = {r["attribute"]: r for r in rows if r.get("kind") == "difference"}
    assert set(gaps) == {"skin_tone", "gender_presentation", "skin_tone*gender_presentation"}
    assert gaps["gender_presentation"]["group_a"] == "fem"
    assert gaps["skin_tone*gender_presentation"]["group_a"] == "8 × fem"
    # Of an intersection the widest gap alone.
    assert not any("group" in r and "*" in r["attribute"] for r in rows)


def test_the_worlds_own_words_do_where_the_data_keep_them(world):
    rows = read_injected_effects(
        world / "injected.json", task="classification", by=("age_group",), model="borealis"
    )
    assert {r["group"] for r in rows if "group" in r} == {"young", "middle", "older"}


def test_an_attribute_of_nobodys_is_passed_over(world):
    assert not read_injected_effects(
        world / "injected.json", task="detection", by=("weather",), model="aurora"
    )


TASKS = '{"tasks": {"detection": {"metric": "recall_at_iou", "threshold": 0.5}}, '


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Expecting value"),
        ("[1]", "no models in it"),
        ('{"models": {}}', "no models in it"),
        (
            TASKS + '"models": {"m": {"groups": [{}], "widest": []}}}',
            "KeyError",
        ),
        (
            TASKS + '"models": {"m": 3}}',
            "TypeError",
        ),
        ('{"models": {"m": 3}}', "no metric of any task"),
        ("[" * 20_000, "recursion"),
    ],
)
def test_another_file_is_named(tmp_path, text, says):
    (tmp_path / "injected.json").write_text(text)
    with pytest.raises(FileError, match="does not say what was injected") as caught:
        read_injected_effects(tmp_path / "injected.json", task="detection", by=("a",), model="m")
    assert says in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_what_cannot_be_held_against_the_truth_is_refused(world, tmp_path):
    where = world / "injected.json"
    with pytest.raises(SpecError, match="several models' truths"):
        read_injected_effects(where, task="detection", by=("skin_tone",), model=None)
    with pytest.raises(UnknownNameError, match="aurora"):
        read_injected_effects(where, task="detection", by=("skin_tone",), model="auror")
    with pytest.raises(SpecError, match="no value of the task retrieval is injected exactly"):
        read_injected_effects(where, task="retrieval", by=("skin_tone",), model="aurora")
    with pytest.raises(FileError, match="there is no such file"):
        read_injected_effects(tmp_path / "none", task="detection", by=(), model="aurora")


def test_the_report_shows_the_truth_beside_what_was_found(world, tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    done = isolux(
        monkeypatch, capsys, "audit", f"facet:{world / 'data'}", "--task", "detection",
        "--predictions", world / "predictions/aurora/detection.json", "--model-name", "aurora",
        "--metric", "recall_at_iou", "--votes", "top", "--by", "gender_presentation",
        "--option", f"injected={world / 'injected.json'}", "--replicates", "200", "--out", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    injected = json.loads((out / "audit.json").read_text())["injected"]
    assert {r["group"] for r in injected if "group" in r} == {"masc", "fem", "non_binary"}
    page = (out / "report.html").read_text()
    assert "injected" in page.lower()
    assert "this audit did not measure it" not in page
