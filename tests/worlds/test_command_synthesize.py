"""``isolux synthesize`` as somebody types it."""

from __future__ import annotations

import pytest

from isolux_worlds.layouts import LAYOUTS
from isolux_worlds.photo_world.settings import PRESETS, read_world
from tests.cli._run import isolux


def test_without_a_world_it_says_what_there_is(monkeypatch, capsys):
    ran = isolux(monkeypatch, capsys, "synthesize")
    assert ran.code == 0, ran.err
    for name in (*PRESETS, *LAYOUTS):
        assert f"\n{name} " in ran.out
    assert "isolux synthesize biased --out biased --layout facet" in ran.out


def test_a_preset_is_written_and_said(monkeypatch, capsys, tmp_path):
    out = tmp_path / "w"
    ran = isolux(
        monkeypatch, capsys, "synthesize", "biased", "--out", out, "--layout", "coco",
        "--seed", 4, "--households", 6, "--no-pixels",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    world = read_world(out / "world.yaml")
    assert (world.seed, world.households) == (4, 6)
    assert " photos of " in ran.out
    assert " seconds" in ran.out
    assert f"how to audit it: {out / 'README.txt'}" in ran.out
    assert (out / "data" / "annotations" / "instances_val2017.json").is_file()


def test_a_world_of_ones_own(monkeypatch, capsys, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\nhouseholds: 5\nmodels:\n- {name: m, base_rate: 0.7}\nby: [skin_tone]\n"
    )
    ran = isolux(monkeypatch, capsys, "synthesize", file, "--out", tmp_path / "w", "--no-pixels")
    assert ran.code == 0, ran.err
    assert read_world(tmp_path / "w" / "world.yaml").name == "mine"


def test_an_existing_directory_is_refused_and_then_replaced(monkeypatch, capsys, tmp_path):
    words = ("synthesize", "fair", "--out", tmp_path / "w", "--households", 4, "--no-pixels")
    assert isolux(monkeypatch, capsys, *words).code == 0
    again = isolux(monkeypatch, capsys, *words)
    assert again.code == 2
    assert "this directory exists already" in again.err
    assert isolux(monkeypatch, capsys, *words, "--overwrite", "--seed", 3).code == 0
    assert read_world(tmp_path / "w" / "world.yaml").seed == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("biassed", "--out", "w"), "did you mean 'biased'"),
        (("biased",), "it is not said where to write expected: --out DIR"),
        (("biased", "--out", "w", "--layout", "voc"), "there is no layout named 'voc'"),
        (("none.yaml", "--out", "w"), "there is no such file where: none.yaml"),
    ],
)
def test_what_cannot_be_is_said(monkeypatch, capsys, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    ran = isolux(monkeypatch, capsys, "synthesize", *words)
    assert ran.code == 2
    assert message in ran.plain
    assert list(tmp_path.iterdir()) == []
