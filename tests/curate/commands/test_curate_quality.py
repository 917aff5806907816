"""Quality under ``isolux curate``: samples, reviews, specialists, vendors, lists of hashes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from isolux.cli.table_output import print_table_in_column_blocks
from tests.cli._run import isolux
from tests.curate.intake._photos import photo, write


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = {f"{k}.jpg": photo((40, 30), shade=k) for k in range(60)}
    write(tmp_path / "in", files)
    rows = "".join(f"{k}.jpg,s{k},brown\n" for k in range(60))
    (tmp_path / "photos.csv").write_text("file,subject_id,hair\n" + rows)

    def call(*args: object):
        return isolux(monkeypatch, capsys, "curate", *args)

    call("init", "faces")
    return call


def test_from_a_sample_to_what_it_says_of_all(run, tmp_path: Path) -> None:
    run("add", "faces", "photos.csv", "--photos", "in")
    told = run("sample", "faces", "--type", "subject", "--size", "40", "--out", "s")
    assert "sheet: s/sample.csv" in told.out
    sheet = (tmp_path / "s/sample.csv").read_text().splitlines()
    filled = [sheet[0], *(f"{row[:-1]}out,Found online." if k == 0 else f"{row[:-1]}in,"
                          for k, row in enumerate(sheet[1:]))]  # fmt: skip
    (tmp_path / "filled.csv").write_text("\n".join(filled))
    said = run("review", "faces", "filled.csv", "--rule", "found online", "--sample", "s")
    assert "40 reviewed, 1 out; 1 photo left; 1 new verdict" in said.out
    assert (
        "of all 60: 2.5 % [1.7, 7.1] (Wilson, with finite population correction, 95 %" in said.out
    )
    assert "− 1 (suspicious) = 59" in run("status", "faces").out


def test_specialists_and_vendors(run, tmp_path: Path) -> None:
    run("add", "faces", "photos.csv", "--photos", "in")
    rows = "".join(f"{k}-1,q,hair,{'grey' if k < 30 else 'brown'}\n" for k in range(60))
    (tmp_path / "said.csv").write_text("unit,annotator,type,answer\n" + rows)
    told = run("quality", "faces", "said.csv", "--attributes", ".8",
               "--out", "q")  # fmt: skip
    assert "WARNING: hair: agreement (specialists) is below its threshold" in told.out
    assert (tmp_path / "q/types.csv").is_file()
    before = run("show", "journal", "faces").out
    again = run("quality", "faces", "said.csv", "--attributes", ".5", "--out", "q")
    assert "--overwrite" in again.plain
    # Nothing was measured, nothing written down.
    assert run("show", "journal", "faces").out == before
    rows = "".join(f"{k},{w},{w[0]},hair,red\n" for k in range(60) for w in ("v1", "v2", "w1"))
    (tmp_path / "sets.csv").write_text("unit,annotator,vendor,type,answer\n" + rows)
    told = run("consistency", "sets.csv")
    assert "inter-vendor" in told.out
    assert not told.code


def test_evidence(run, tmp_path: Path) -> None:
    run("add", "faces", "photos.csv", "--photos", "in")
    (tmp_path / "e.csv").write_text("image_id,kind,says\n3,web match,https://example.org\n")
    told = run("suspects", "faces", "--evidence", "e.csv", "--out", "sheet.csv")
    assert "1 to review" in told.out
    assert (tmp_path / "sheet.csv").read_text().splitlines()[1].startswith("subject,s3,web match")


def test_known_material_is_told_by_id_and_stops_everything(run, tmp_path: Path) -> None:
    digest = hashlib.sha256((tmp_path / "in/7.jpg").read_bytes()).hexdigest()
    (tmp_path / "list.txt").write_text(digest + "\n")
    told = run("add", "faces", "photos.csv", "--photos", "in", "--hash-list", "list.txt")
    assert "WARNING: photos match a list of known illegal material: 7." in told.out
    assert digest not in told.out
    stopped = run("tasks", "faces", "--stage", "count", "--out", "work")
    assert stopped.code == 2
    assert "1 photo matches a list of known illegal material" in stopped.plain
    assert not (tmp_path / "work").exists()
    again = run("show", "hashes", "faces", "--list", "list.txt", "--json")
    assert json.loads(again.out)["text"] == ["59 photos looked at; 0 new matches, 1 undecided"]
    (tmp_path / "d.csv").write_text("image_id,verdict,reason\n7,out,Reported.\n")
    assert "1 match decided" in run("show", "hashes", "faces", "--decided", "d.csv").out
    assert not run("tasks", "faces", "--stage", "count", "--out", "work").code


def test_neither_a_list_nor_decisions(run) -> None:
    done = run("show", "hashes", "faces")
    assert done.code == 2
    assert "--list FILE, or --decided FILE" in done.plain


def test_a_dataset_is_published_and_read_back(run, tmp_path: Path) -> None:
    run("add", "faces", "photos.csv", "--photos", "in")
    (tmp_path / "who.txt").write_text("".join(f"s{k}\n" for k in range(55)))
    refused = run("publish", "faces", "--out", "public", "--key", "names.key")
    assert refused.code == 2
    assert "the project has no ledger of consent" in refused.plain
    run("grant", "faces/consent.jsonl", "--list", "who.txt", "--scope", "evaluation,publication")
    with (tmp_path / "faces/project.yaml").open("a") as told:
        told.write("publish: {split: 'val=0.2,test=0.8'}\n")
    done = run("publish", "faces", "--out", "public", "--key", "names.key", "--attribute", "hair")
    assert "55 photos, 55 people in photos, 55 subjects. For evaluation only" in done.out
    assert "5 photos are kept but not published" in done.out
    from isolux.datasets import load

    assert load("curated", tmp_path / "public", split="val").instances.height == 11


def test_a_small_p_is_printed_as_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    print_table_in_column_blocks(
        "Groups", pl.DataFrame({"group": ["a", "b"], "p_adjusted": [0.00004, None]})
    )
    told = capsys.readouterr().out.replace("\xa0", " ").split("\n")
    assert [row.split(maxsplit=1) for row in told[3:5]] == [
        ["a", "< 0.001   "],
        ["b", "–         "],
    ]
