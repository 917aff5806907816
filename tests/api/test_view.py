"""What ``isolux.view`` takes and writes, and what it refuses."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api.publish import publish
from isolux.api.view import compare_displayed_runs, load_runs_for_display
from isolux.cli import main
from isolux.core.errors import FileError, IsoluxError, RunError, SpecError, UnknownNameError
from isolux.io import run_directory
from isolux.io.run_changes import list_changed_files
from isolux.viewer import build_page_contents
from tests.report import _runs as runs
from tests.viewer._pages import table_of
from tests.viewer._runs import audited, people


def manifest(page):
    (said,) = re.findall(r'id="manifest">([^<]*)</script>', page.read_text(encoding="utf-8"))
    return json.loads(said)


def test_a_directory_and_a_run_in_memory_give_the_same_page(tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    made = [isolux.view(source, tmp_path / f"{i}.html")
            for i, source in enumerate((tmp_path / "run", audited()))]  # fmt: skip
    assert made[0].read_bytes() == made[1].read_bytes()


def test_no_id_of_a_person_is_in_the_page(tmp_path):
    page = isolux.view(audited(), tmp_path / "page.html")
    packed = re.findall(r'base64" id="[^"]*">([^<]*)<', page.read_text(encoding="utf-8"))
    held = b"".join(gzip.decompress(base64.b64decode(text)) for text in packed)
    assert b"dusk" in held
    assert not re.search(rb"p\d{3}\b", held)


def test_metrics_that_are_named_are_the_only_ones(tmp_path):
    page = isolux.view(runs.full_run(), tmp_path / "page.html", metric=["recall"])
    assert {line["metric"] for line in manifest(page)["lines"]} == {"recall"}
    with pytest.raises(UnknownNameError, match="did you mean 'recall'"):
        isolux.view(runs.full_run(), tmp_path / "other.html", metric=["recal"])


def test_a_published_page_hides_small_groups(tmp_path):
    page = isolux.view(audited(), tmp_path / "page.html", publish_min=40)
    assert manifest(page)["holds"]["publish_min"] == 40
    groups = table_of(page, "groups")
    assert groups["n_units"].min() >= 40
    assert "dawn" not in groups["group"].to_list()


RACES = ["Aleut"] * 4 + ["Basque"] * 30 + ["Corsican"] * 90 + ["Dutch"] * 176


def raced(name="first", least=0, races=RACES, person="p"):
    """Audit 300 people of four groups; less those before ``least``."""
    who = pl.DataFrame({"unit_id": [f"{person}{i}" for i in range(300)], "race": races,
                        "light": ["day", "night"] * 150, "model": [name] * 300,
                        "value": [float(i % 7 > 0) for i in range(300)]})  # fmt: skip
    return isolux.audit(who[least:], by=["race", "light", "race*light"], replicates=100,
                        min_units=1, min_clusters=1)  # fmt: skip


def everything(page):
    """Read all that a page holds: its words, and its tables unpacked."""
    packed = re.findall(r'base64" id="[^"]*">([^<]*)<', page.read_text(encoding="utf-8"))
    held = [gzip.decompress(base64.b64decode(text)) for text in packed]
    tables = [pl.read_parquet(io.BytesIO(one)) for one in held]
    return json.dumps(manifest(page)) + " ".join(table.write_json() for table in tables), tables


def test_a_published_page_names_no_small_group_and_counts_none(tmp_path):
    text, _ = everything(isolux.view(raced(), tmp_path / "whole.html"))
    assert "Aleut" in text
    text, tables = everything(isolux.view(raced(), tmp_path / "page.html", publish_min=10))
    assert "Corsican" in text
    assert "Aleut" not in text
    assert "Basque" not in text  # everyone less Corsican and Dutch less Basque is Aleut
    counts = [n for t in tables for c in t.columns if c.startswith("n_") or c == "n"
              for n in t[c].drop_nulls()]  # fmt: skip
    assert len(counts) > 15
    assert min(counts) >= 10


def test_what_is_hidden_of_one_run_is_hidden_of_the_one_beside_it(tmp_path):
    """Of the second run Basque gives no one away; of the first it would."""
    other = raced("second", races=["Basque"] * 34 + RACES[34:])  # no group is small by these labels
    alone, _ = everything(isolux.view(other, tmp_path / "one.html", publish_min=10))
    assert "Basque" in alone
    both = isolux.view([raced(), other], tmp_path / "two.html", publish_min=10)
    assert "Basque" not in everything(both)[0]


def test_one_model_on_nearly_the_same_people_is_not_published_twice(tmp_path):
    """Everyone in the first run less everyone in the second is the four of one group."""
    with pytest.raises(SpecError, match="these runs audit one model twice"):
        isolux.view([raced(), raced(least=4)], tmp_path / "two.html", publish_min=10)


def test_nor_are_two_models_on_nearly_the_same_people(tmp_path):
    """300 people less 296 are the four of one group, whichever model judged them."""
    with pytest.raises(SpecError, match=r"count nearly the same people(?s:.*)isolux compare"):
        isolux.view([raced(), raced("second", least=4)], tmp_path / "two.html", publish_min=10)
    others = raced("second", least=4, person="q")  # nobody was judged by both
    isolux.view([raced(), others], tmp_path / "two.html", publish_min=10)


def test_changed_files_are_named_in_the_page(tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    record = tmp_path / "run" / "audit.json"
    record.write_text(record.read_text().replace('"seed": 0', '"seed": 1'), encoding="utf-8")
    page = isolux.view(tmp_path / "run", tmp_path / "page.html")
    assert "not as they were written (audit.json)" in manifest(page)["runs"][0]["warnings"][0]


def test_a_record_that_was_changed_and_says_nothing_is_named(tmp_path, capsys, monkeypatch):
    run_directory.save_run(audited(), tmp_path / "run")
    record = tmp_path / "run" / "audit.json"
    said = json.loads(record.read_text()) | {"references": ["a book"]}
    record.write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(RunError, match=r"changed since it was written(.|\n)*changed: audit.json"):
        isolux.view(tmp_path / "run", tmp_path / "page.html")
    monkeypatch.setattr("sys.argv", ["isolux", "report", str(tmp_path / "run")])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "not as they were written" in capsys.readouterr().err


def test_half_a_sign_in_a_record_is_a_change(tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    record = tmp_path / "run" / "audit.json"
    record.write_text(record.read_text().replace('"seed": 0', '"seed": 0, "x": "\\ud800"'))
    assert list_changed_files(tmp_path / "run") == ["audit.json"]


def test_what_is_no_page_and_what_is_no_run_are_refused(tmp_path):
    with pytest.raises(SpecError, match=r"a page is an HTML file(.|\n)*audit.json"):
        isolux.view(audited(), tmp_path / "audit.json")
    with pytest.raises(FileError, match="no run directory"):
        isolux.view(tmp_path / "none", tmp_path / "page.html")
    with pytest.raises(SpecError, match="cannot take this for 'runs'"):
        isolux.view(3, tmp_path / "page.html")


def test_names_that_turn_the_writing_around_are_shown_as_in_the_report(tmp_path):
    """The override of direction would turn the rest of a line; pictures go by ids as they are."""
    who = pl.DataFrame({"unit_id": [f"p{i}\u202e" for i in range(300)],
                        "place": ["\u202eelbuort", "here", "there"] * 100,
                        "value": [float(i % 7 > 0) for i in range(300)]})  # fmt: skip
    page = isolux.view(isolux.audit(who, by="place", replicates=100), tmp_path / "p.html",
                       people=True)  # fmt: skip
    text, tables = everything(page)
    assert "\ufffdelbuort" in json.dumps(text, ensure_ascii=False)
    assert "\u202eelbuort" not in text
    (held,) = [table for table in tables if "unit_id" in table.columns]
    assert held["unit_id"][0] == "p0\u202e"


# Changes between two runs.


def audit_two_months():
    """Audit 2,000 people twice; in June half of those in dusk who were wrong are right."""
    draw = np.random.default_rng(5)
    may = people(2000)
    is_mended = (may["light"] == "dusk").to_numpy() & (draw.random(2000) < 0.5)
    june = may.with_columns(
        value=pl.when(pl.Series(is_mended)).then(1.0).otherwise(pl.col("value")),
    )
    return [
        isolux.audit(table.with_columns(model=pl.lit(name)), by=["light", "tone"], replicates=200)
        for name, table in (("may", may), ("june", june))
    ]


def test_changes_between_two_runs_are_those_that_compare_tests():
    may, june = audit_two_months()
    displayed = load_runs_for_display([may, june])
    comparisons, untested = compare_displayed_runs(displayed)
    contents = build_page_contents(displayed, comparisons=comparisons, untested=untested)
    changes = contents.tables["changes"]
    assert changes.select("run", "run_b").unique().rows() == [(0, 1)]
    expected = isolux.compare(may, june).run.disparities.filter(
        pl.col("kind") == "model_difference"
    )
    assert sorted(changes["value"].drop_nulls()) == sorted(expected["value"].drop_nulls())
    dusk = changes.filter(group="dusk").row(0, named=True)
    assert 0.1 < dusk["value"] < 0.2
    assert dusk["p_adjusted"] < 0.01
    assert contents.manifest["holds"]["untested"] == ""


def test_runs_of_other_people_are_shown_untested_with_the_reason():
    may, _ = audit_two_months()
    others = people(2000).with_columns(pl.format("other {}", "unit_id").alias("unit_id"))
    displayed = load_runs_for_display([may, isolux.audit(others, by="light", replicates=200)])
    comparisons, untested = compare_displayed_runs(displayed)
    assert comparisons == {}
    with pytest.raises(IsoluxError) as refused:
        isolux.compare(*[one.run for one in displayed])
    assert untested == str(refused.value).splitlines()[0]


def test_runs_that_are_reduced_for_publishing_are_not_tested():
    displayed = load_runs_for_display(audit_two_months())
    published = [replace(one, run=publish(one.run, 10)) for one in displayed]
    assert compare_displayed_runs(published) == ({}, "")
