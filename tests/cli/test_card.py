"""``isolux card``: each kind from the demonstration's run, as a user makes it."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest

from tests.cards._cards import NO_CROISSANT, NO_HUB
from tests.cli._run import isolux

KINDS = ["annex-iv", "bias-profile", "croissant", "dataset-card", "model-card"]
NEEDS = {"model-card": ("huggingface_hub", NO_HUB), "dataset-card": ("huggingface_hub", NO_HUB),
         "croissant": ("mlcroissant", NO_CROISSANT)}  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    from isolux import cli

    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["isolux", "demo"])
        with suppress(SystemExit):
            cli.main()
    assert (folder / "demo" / "audit.json").exists()
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_made_from_the_demonstration(demo, monkeypatch, capsys, tmp_path, kind):
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind][0], reason=NEEDS[kind][1])
    monkeypatch.chdir(demo)
    said = isolux(monkeypatch, capsys, "card", "demo", "--kind", kind, "--out", tmp_path / "c")
    assert said.code == 0, said.err
    assert said.out.startswith("warning: These people are synthetic.")
    assert "facts are not stated" in said.out
    for end in ("md", "html"):
        text = (tmp_path / "c" / f"{kind}.{end}").read_text(encoding="utf-8")
        assert str(demo) not in text
        assert "darker × dim" in text
    again = isolux(monkeypatch, capsys, "card", "demo", "--kind", kind, "--out", tmp_path / "c")
    assert again.code == 2
    assert "--overwrite" in again.plain


def test_facts_fill_the_blanks(demo, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(demo)
    first = isolux(monkeypatch, capsys, "card", "demo", "--kind", "annex-iv", "--init")
    facts = tmp_path / "facts.yaml"
    facts.write_text(first.out.replace("provider:", "provider: Example Lab"), encoding="utf-8")
    said = isolux(monkeypatch, capsys, "card", "demo", "--kind", "annex-iv", "--facts", facts)
    assert said.code == 0, said.err
    assert "Example Lab *(stated by the user in facts.yaml)*" in said.out
    assert "(`provider`)" not in said.out
    assert "(`human_oversight`)" in said.out


def test_the_kinds_are_listed_with_what_they_ask(monkeypatch, capsys):
    listed = isolux(monkeypatch, capsys, "list", "cards")
    assert all(kind.replace("-", "_") in listed.out for kind in KINDS)
    one = isolux(monkeypatch, capsys, "list", "cards", "annex_iv")
    assert "human_oversight" in one.out


def test_local_law_144_from_the_demonstrations_table(demo, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(demo)
    audit = [
        "audit", "table:demo/people.csv", "--id", "photo", "--prediction-column",
        "prediction_aurora", "--positive", "teacher", "--metric", "selection_rate", "--cluster",
        "subject", "--by", "perceived_gender_presentation", "--by", "region", "--out",
        tmp_path / "run",
    ]  # fmt: skip
    audited = isolux(monkeypatch, capsys, *audit)
    assert audited.code == 0
    assert "truth" not in audited.out + audited.err  # none is named, and none is needed
    (tmp_path / "facts.yaml").write_text("facts: 1\nrace_attribute: region\n")
    said = isolux(monkeypatch, capsys, "card", tmp_path / "run", "--kind", "ll144", "--facts",
                  tmp_path / "facts.yaml")  # fmt: skip
    assert said.code == 0, said.err
    # Of 1,499 feminine 271 and of 1,569 masculine 313 are called teachers: .1808 / .1995 = .906.
    assert "| feminine | 1,499 | 46.3 % | 271 |" in said.out
    assert "| 0.906 (" in said.out
    assert "3,235 rows are of 600 clusters (subject)" in said.out


def test_no_such_kind_or_run_is_told(demo, monkeypatch, capsys):
    monkeypatch.chdir(demo)
    said = isolux(monkeypatch, capsys, "card", "demo", "--kind", "model_crad")
    assert said.code == 2
    assert "model-card" in said.plain
    said = isolux(monkeypatch, capsys, "card", "nothing", "--kind", "annex-iv")
    assert said.code == 2
    assert "there is no run directory here" in said.plain
