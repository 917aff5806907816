"""Runs of which a card is made or refused; published ones; what is written, and where."""

from __future__ import annotations

import json

import polars as pl
import pytest

import isolux
from isolux.api.card import build_facts_template
from isolux.api.publish import publish
from isolux.core.errors import OutputError, RunError, SpecError, UnknownNameError
from isolux.io import run_directory
from tests.cards._cards import run_of_people, tables_of


@pytest.fixture
def saved(tmp_path):
    return run_directory.save_run(run_of_people(), tmp_path / "my run")


def test_a_run_as_it_was_written_is_taken_and_named(saved):
    made = isolux.card(saved, kind="annex-iv")
    assert made.provenance[0].startswith("Run my run, made by isolux ")
    assert "no table was changed" in made.provenance[0]
    assert str(saved) not in made.markdown() + made.html()


def test_a_run_whose_table_was_changed_is_refused(saved):
    table = pl.read_parquet(saved / "group_metrics.parquet")
    table.with_columns(value=pl.lit(1.0)).write_parquet(saved / "group_metrics.parquet")
    with pytest.raises(RunError, match=r"not as they were written(.|\n)*group_metrics.parquet"):
        isolux.card(saved, kind="annex-iv")


def test_a_run_without_hashes_is_refused_as_a_changed_one(saved):
    record = json.loads((saved / "audit.json").read_text())
    record.pop("files")
    (saved / "audit.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match=r"not as they were written(.|\n)*audit again"):
        isolux.card(saved, kind="annex-iv")


def test_a_comparison_and_what_is_no_run_are_refused(tmp_path):
    both = isolux.compare(run_of_people(), run_of_people()).run
    with pytest.raises(RunError, match="compares two models"):
        isolux.card(both, kind="annex-iv")
    with pytest.raises(RunError, match="no run directory"):
        isolux.card(tmp_path / "none", kind="annex-iv")
    with pytest.raises(RunError, match="no run to make a card from"):
        isolux.card(pl.DataFrame(), kind="annex-iv")


def test_an_unknown_kind_is_refused_with_near_names():
    with pytest.raises(UnknownNameError, match="model-card"):
        isolux.card(run_of_people(), kind="modelcard")


def test_a_published_card_shows_no_small_group_and_tells_no_size_of_one():
    made = isolux.card(run_of_people(), kind="bias_profile", publish_min=10)
    assert "dusk" not in made.markdown()
    shown = {row[0] for table in tables_of(made) for row in table.rows}
    assert "dusk" not in shown
    assert any("fewer than 10 people" in text for text in made.provenance)


def test_a_published_card_names_no_run_file_or_hash(saved):
    made = isolux.card(saved, kind="bias_profile", publish_min=10)
    told = " ".join(made.provenance)
    assert "my run" not in told
    assert "SHA-256" not in told
    assert "none of these groups" not in made.markdown()  # that would count who is hidden


def test_a_card_is_not_written_into_the_run(saved):
    with pytest.raises(OutputError, match="run's own folder"):
        isolux.card(saved, kind="annex_iv").write(saved)


def test_a_run_that_was_published_stays_protected():
    cut = publish(run_of_people(), 10)
    made = isolux.card(cut, kind="bias_profile")
    assert "dusk" not in made.markdown() + made.html()
    with pytest.raises(SpecError, match="cut for publishing already"):
        isolux.card(cut, kind="bias_profile", publish_min=5)


def test_files_are_written_and_never_replaced_unasked(tmp_path):
    made = isolux.card(run_of_people(), kind="annex_iv")
    files = made.write(tmp_path / "a" / "b")
    assert [file.name for file in files] == ["annex-iv.md", "annex-iv.html"]
    assert files[0].read_text(encoding="utf-8") == made.markdown()
    with pytest.raises(OutputError, match="card of this kind already"):
        made.write(tmp_path / "a" / "b")
    made.write(tmp_path / "a" / "b", overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be made"):
        made.write(tmp_path / "file")


def test_the_first_facts_are_a_file_that_is_read_back(tmp_path, saved):
    for kind in ("bias-profile", "annex-iv", "model-card"):
        path = tmp_path / f"{kind}.yaml"
        path.write_text(build_facts_template(saved, kind=kind), encoding="utf-8")
        made = isolux.card(saved, kind="bias-profile", facts=path)
        assert made.blanks
    assert 'group: "night"' in (tmp_path / "bias-profile.yaml").read_text()
