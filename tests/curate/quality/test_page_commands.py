"""The commands of the page on quality run as they are printed, one after another."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
)
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.project.folder import open_project
from isolux_curate.project.queries import read_people_in_photos
from tests.cli._run import isolux
from tests.curate.annotation._projects import annotated_project

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/methods/quality.md").read_text("utf-8")
CURATION = (ROOT / "docs/methods/curation.md").read_text("utf-8")


def _commands(page: str) -> list[str]:
    lines = [line.strip() for line in page.splitlines() if line.startswith("    isolux curate ")]
    return [line.split(" #")[0].removeprefix("isolux ") for line in lines]


COMMANDS = _commands(PAGE)
N = 60
ATTRIBUTES = {
    "perceived gender presentation": "non-binary", "perceived age group": "older",
    "hair colour": "black", "hair type": "wavy", "additional items": "none",
    "lighting": "well lit", "visibility": "face",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of 60 photos with a box and attributes each, and what the page's commands read."""
    monkeypatch.chdir(tmp_path)
    annotated_project(tmp_path, N)
    (tmp_path / "p").rename(tmp_path / "faces")
    (tmp_path / "in").rename(tmp_path / "inbox")
    project = open_project(tmp_path / "faces", curator="ada")
    facts = "".join(
        f"s{k},{'old' if k % 2 else 'young'},{'Peru' if k else 'Chile'},Peru\n" for k in range(N)
    )
    Path("who.csv").write_text("subject_id,age_group,country,landmark_country\n" + facts)
    rows = "".join(f"{k}.jpg,s{k},indoors\n" for k in range(N))
    Path("photos.csv").write_text("file,subject_id,scene\n" + rows)
    ingest_sheet_photos(project, "photos.csv", photo_folder="inbox", subject_sheet="who.csv")
    boxes = "".join(f"{k},nurse,10,20,100,200\n" for k in range(N))
    plan_and_write_open_tasks(project, "boxes", "work")
    Path("boxes.csv").write_text("image_id,label,x,y,w,h\n" + boxes)
    import_and_apply_sheet_answers(project, "boxes", "boxes.csv", default_annotator="ada")
    people = read_people_in_photos(project).filter(origin="boxes")["instance_id"]
    plan_and_write_open_tasks(project, "attributes", "work")
    rows = "".join(f'{p},"{q}",{a}\n' for p in people for q, a in ATTRIBUTES.items())
    Path("attributes.csv").write_text("instance_id,question,answer\n" + rows)
    import_and_apply_sheet_answers(project, "attributes", "attributes.csv", default_annotator="bo")
    rows = "".join(f"{k},{w},{w[0]},tone,3,{k % 2}\n" for k in range(N) for w in ("v1", "v2", "w1"))
    Path("sets.csv").write_text("unit,annotator,vendor,type,answer,ancestry\n" + rows)
    Path("rows.csv").write_text("unit_id,kind\na,web\nb,logo\nc,web\n")
    Path("web.csv").write_text("image_id,kind,says\n3,web match,A page.\n")
    rows = "".join(f"{p},{'older' if k else 'middle'}\n" for k, p in enumerate(people))
    Path("model.csv").write_text("instance_id,label\n" + rows)
    Path("list.txt").write_text(hashlib.sha256(Path("inbox/5.jpg").read_bytes()).hexdigest())
    Path("decided.csv").write_text("image_id,verdict,reason\n5,in,Another photo.\n")
    return tmp_path


def _answer_as_specialists() -> None:
    """Three specialists answer about what was drawn: boxes 1 % wider, one hair type of ten."""
    drawn = pl.read_csv("review/sample.csv", schema_overrides={"unit_id": pl.String})
    boxes = drawn.filter(type="boxes")["unit_id"]
    attributes = drawn.filter(type="attributes")["unit_id"]
    rows = [f"{u},{w},boxes,,10,20,101,200" for u in boxes for w in "qrs"]
    rows += [f"{u},{w},hair type,{'bald' if k % 10 == 0 else 'wavy'},,,,"
             for k, u in enumerate(attributes) for w in "qrs"]  # fmt: skip
    Path("specialists.csv").write_text("\n".join(["unit,annotator,type,answer,x,y,w,h", *rows]))


def _fill(sheet: str) -> None:
    rows = pl.read_csv(sheet, infer_schema=False)
    rows.with_columns(verdict=pl.lit("in")).write_csv(sheet)


PREPARE: dict[str, Callable[[], object]] = {
    "curate quality faces": _answer_as_specialists,
    "curate review faces sheet.csv": lambda: _fill("sheet.csv"),
    "curate review faces web/sample.csv": lambda: _fill("web/sample.csv"),
    "curate sample faces --type subject": lambda: shutil.rmtree("web", ignore_errors=True),
}


def test_the_pages_commands_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {}
    for line in COMMANDS:
        for prefix, prepare in PREPARE.items():
            if line.startswith(prefix):
                prepare()
        done = isolux(monkeypatch, capsys, *shlex.split(line))
        assert done.code == 0, (line, done.plain)
        told[line.split()[1]] = done.out
    assert len(COMMANDS) == 12
    assert "60 labels compared, 1 different; 1 task to be done again" in told["recheck"]
    assert "drawn" not in told["quality"]  # every unit that was drawn has its answers
    types = pl.read_csv("quality/types.csv")
    # 26 of the 30 of each age group. A hundredth wider: IoU 100/101; 6 of 52 hair types differ.
    assert types.select("type", "units", pl.col("value").round(3)).rows() == [
        ("boxes", 52, 0.99), ("hair type", 52, 0.885),
    ]  # fmt: skip


def test_a_sample_of_people_draws_boxes_and_named_people_where_nobody_was_drawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy("inbox/0.jpg", "inbox/60.jpg")
    Path("more.csv").write_text("file,subject_id\n60.jpg,s60\n")
    project = open_project("faces", curator="ada")
    ingest_sheet_photos(project, "more.csv", photo_folder="inbox")
    boxed = read_people_in_photos(project).drop_nulls("x")["instance_id"].to_list()
    for unit_type, units in (("boxes", boxed), ("instance", [*boxed, "60-1"])):
        flags = ("--type", unit_type, "--size", 100, "--out", unit_type)
        assert isolux(monkeypatch, capsys, "curate", "sample", "faces", *flags).code == 0
        drawn = pl.read_csv(f"{unit_type}/sample.csv", infer_schema=False)["unit_id"]
        assert sorted(drawn) == sorted(units)


def test_the_consensus_of_the_page_on_curation_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every question of the stage, several types of hair by one annotator among them."""
    project = open_project("faces", curator="ada")
    person = read_people_in_photos(project).drop_nulls("x")["instance_id"][0]
    rows = "".join(
        f'{person},"{q}",{a}\n' for q, a in [*ATTRIBUTES.items(), ("hair type", "curly")]
    )
    for name in ("cy", "di"):
        Path("more.csv").write_text("instance_id,question,answer\n" + rows)
        import_and_apply_sheet_answers(project, "attributes", "more.csv", default_annotator=name)
    lines = [c for c in _commands(CURATION) if "--stage attributes --out" in c or "consensus" in c]
    assert len(lines) == 2
    for line in lines:
        done = isolux(monkeypatch, capsys, *shlex.split(line))
        assert done.code == 0, (line, done.plain)
    labels = pl.read_csv("labels/labels.csv")
    assert labels.filter(instance_id=person).select("label", "status").rows() == [
        ("older", "agreed")
    ]
