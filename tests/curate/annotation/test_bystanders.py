"""More people in a photo than are named: the photo waits, and no one takes the subject's place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from PIL import Image

from isolux.io.consent import append_consent
from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
)
from isolux_curate.api.release import write_and_journal_release
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.project.database import open_write_transaction
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import (
    read_exclusions_with_reasons,
    read_images,
    read_people_in_photos,
    tabulate_project_funnel,
)
from isolux_curate.project.tables import instances
from isolux_curate.project.verdicts import record_changed_verdicts
from isolux_curate.quality.typed_answers import read_facts_by_unit_id
from tests.cli._run import isolux as command
from tests.curate.annotation._projects import annotated_project

BOTH = "1,nurse,10,20,100,200\n1,nurse,210,20,100,200\n"
PHOTO_STAGES = ("count", "boxes")
AGREED = ["s0", "s1", "s2"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Three photos of one person each, who agreed to all."""
    made = annotated_project(tmp_path, 3)
    append_consent(made.consent_path, "grant", "subject", AGREED, ["evaluation", "publication"])
    return made


def _drawn(project: Project, folder: Path, boxes: str, who: str = "ada") -> tuple[str, ...]:
    plan_and_write_open_tasks(project, "boxes", folder / "boxes")
    (folder / "boxes.csv").write_text("image_id,label,x,y,w,h\n" + boxes)
    return import_and_apply_sheet_answers(
        project, "boxes", folder / "boxes.csv", default_annotator=who
    ).notes


def _counted(project: Project, folder: Path, **people: int) -> tuple[str, ...]:
    plan_and_write_open_tasks(project, "count", folder / "count")
    rows = "".join(f"{photo[1:]},people,{n}\n" for photo, n in people.items())
    (folder / "count.csv").write_text("image_id,question,answer\n" + rows)
    return import_and_apply_sheet_answers(
        project, "count", folder / "count.csv", default_annotator="ada"
    ).notes


def _published(project: Project, folder: Path) -> tuple[Path, tuple[str, ...]]:
    done = write_and_journal_release(
        project, out=folder / "out", key=folder / "key", overwrite=True
    )
    return done.folder, done.notes


def test_two_boxes_in_a_photo_of_one_wait_until_someone_decides(
    project: Project, tmp_path: Path, monkeypatch, capsys
) -> None:
    notes = _drawn(project, tmp_path, "0,nurse,10,20,100,200\n" + BOTH)
    assert "1 photo waits for a decision, with more people drawn than named: 1-" in notes[0]
    assert read_images(project)["image_id"].to_list() == ["0", "2"]
    assert tabulate_project_funnel(project).row(-1) == ("annotation", "bystander", 1, 1, 2)
    people = read_people_in_photos(project, include_excluded=True).filter(origin="boxes")
    assert people["subject_id"].to_list() == ["s0", None, None]
    public, told = _published(project, tmp_path)
    assert len(list((public / "photos").iterdir())) == 2
    assert any("waits for a decision" in note for note in told)

    # The advised command, with the right-hand box as the bystander's.
    flags = re.search(r"`isolux (curate decide \S+) SHEET (--step .*?instance)`", notes[0])
    bystander = people.filter(pl.col("x") > 200)["instance_id"].item()
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(f"instance_id,verdict,reason\n{bystander},out,A passer-by.\n")
    assert flags is not None
    done = command(monkeypatch, capsys, *flags[1].split(), sheet, *flags[2].split())
    assert done.out == "1 new verdict\n"
    assert read_images(project).height == 3
    drawn = read_people_in_photos(project).filter(origin="boxes", image_id="1")
    assert drawn.select("subject_id", "x").rows() == [("s1", 10.0)]

    public, _ = _published(project, tmp_path)
    assert len(list((public / "photos").iterdir())) == 3
    table = pl.read_csv(public / "people.csv")
    assert table["subject_id"].null_count() == 0
    assert table["subject_id"].n_unique() == table.height == 3
    filled = []
    for file in (public / "photos").iterdir():
        pixels = np.asarray(Image.open(file).convert("L"))
        filled.append(bool((pixels[30:210, 220:300] == 0).all() and pixels[100, 50] > 0))
    assert sum(filled) == 1
    assert _drawn(project, tmp_path, "0,nurse,10,20,100,200\n" + BOTH) == ()


def test_a_photo_with_a_bystander_can_be_refused(project: Project, tmp_path: Path) -> None:
    _drawn(project, tmp_path, BOTH)
    refused = pl.DataFrame({"unit_id": ["1"], "reason": ["A passer-by."]})
    record_changed_verdicts(project, "review", "privacy", refused, examined_units=["1"])
    assert read_images(project)["image_id"].to_list() == ["0", "2"]


def test_whoever_is_drawn_once_more_alone_is_the_subject(project: Project, tmp_path: Path) -> None:
    _drawn(project, tmp_path, BOTH)
    assert _drawn(project, tmp_path, "1,nurse,12,22,100,200\n") == ()
    drawn = read_people_in_photos(project).filter(origin="boxes")
    assert drawn.select("image_id", "subject_id", "x").rows() == [("1", "s1", 12.0)]


def test_two_annotators_draw_one_person(project: Project, tmp_path: Path) -> None:
    _drawn(project, tmp_path, "1,nurse,10,20,100,200\n")
    assert _drawn(project, tmp_path, "1,nurse,14,22,100,200\n", who="bo") == ()
    drawn = read_people_in_photos(project).filter(origin="boxes")
    assert drawn["subject_id"].to_list() == ["s1"]


@pytest.mark.parametrize("has_one_file", [True, False])
def test_two_annotators_draw_different_people(
    project: Project, tmp_path: Path, has_one_file: bool
) -> None:
    if has_one_file:
        plan_and_write_open_tasks(project, "boxes", tmp_path / "boxes")
        (tmp_path / "b.csv").write_text(
            "image_id,annotator,label,x,y,w,h\n0,ada,nurse,100,50,120,200\n"
            "1,ada,nurse,100,50,120,200\n0,bo,nurse,104,55,120,200\n1,bo,nurse,250,50,120,200\n"
        )
        notes = import_and_apply_sheet_answers(project, "boxes", tmp_path / "b.csv").notes
    else:
        _drawn(project, tmp_path, "0,nurse,100,50,120,200\n1,nurse,100,50,120,200\n")
        more = "0,nurse,104,55,120,200\n1,nurse,250,50,120,200\n"
        notes = _drawn(project, tmp_path, more, who="bo")
    assert "1 photo waits for a decision, with more people drawn than named: 1-" in notes[0]
    assert read_images(project)["image_id"].to_list() == ["0", "2"]
    public, _ = _published(project, tmp_path)
    assert len(list((public / "photos").iterdir())) == 2
    boxes = read_people_in_photos(project, include_excluded=True).filter(
        origin="boxes", image_id="1"
    )
    bystander = boxes.filter(x=250)["instance_id"].item()
    refused = pl.DataFrame({"unit_id": [bystander], "reason": ["A passer-by."]})
    record_changed_verdicts(
        project,
        "annotation",
        "bystander",
        refused,
        examined_units=[bystander],
        unit_kind="instance",
    )
    drawn = read_people_in_photos(project).filter(origin="boxes", image_id="1")
    assert drawn.select("subject_id", "x").rows() == [("s1", 100.0)]


def test_facts_of_a_subject_in_a_photo_hold_for_their_box(project: Project, tmp_path: Path) -> None:
    (tmp_path / "hair.csv").write_text("file,subject_id,hair\n0.jpg,s0,red\n1.jpg,s1,grey\n")
    ingest_sheet_photos(project, tmp_path / "hair.csv", photo_folder=tmp_path / "in")
    _drawn(project, tmp_path, "0,nurse,10,20,100,200\n" + BOTH)
    facts = read_facts_by_unit_id(project, ["hair"])
    boxes = read_people_in_photos(project, include_excluded=True).filter(origin="boxes")
    ids = boxes.select(unit_id="instance_id")
    hair = ids.join(facts, on="unit_id", maintain_order="left")
    assert hair["hair"].to_list() == ["red", None, None]  # of two boxes nobody knows which is s1's


def test_a_refused_answer_that_draws_more_people_than_are_named_holds_the_photo(
    project: Project, tmp_path: Path
) -> None:
    refused = "1,nurse,100,50,120,200\n1,bystander,250,50,100,200\n"
    notes = _drawn(project, tmp_path, "0,passer,10,20,100,200\n" + refused)
    assert "1 photo waits for a decision, with more people counted than named: 1." in notes[0]
    public, _ = _published(project, tmp_path)
    assert len(list((public / "photos").iterdir())) == 2


def test_a_refused_box_beside_the_one_that_stands_holds_the_photo(
    project: Project, tmp_path: Path
) -> None:
    _drawn(project, tmp_path, "0,nurse,10,20,100,200\n1,nurse,10,20,100,200\n")
    notes = _drawn(project, tmp_path, "0,x,12,20,100,200\n1,x,210,20,100,200\n", who="bo")
    assert "with more people counted than named: 1." in notes[0]
    assert read_images(project)["image_id"].to_list() == ["0", "2"]


def test_a_loose_box_is_still_someone(project: Project, tmp_path: Path) -> None:
    """A box that a rater found wrong goes back to be drawn again; that it was there stays."""
    _drawn(project, tmp_path, BOTH)
    boxes = read_people_in_photos(project, include_excluded=True).filter(origin="boxes")[
        "instance_id"
    ]
    refused = pl.DataFrame({"unit_id": [boxes[0]], "reason": ["no"]})
    record_changed_verdicts(
        project, "annotation", "box or class", refused, examined_units=boxes, unit_kind="instance"
    )
    assert read_images(project)["image_id"].to_list() == ["0", "2"]


@pytest.mark.parametrize(
    ("boxes", "stands"), [(BOTH, True), (BOTH + "1,nurse,330,20,60,200\n", False)]
)
def test_a_photo_of_two_holds_two(
    project: Project, tmp_path: Path, boxes: str, stands: bool
) -> None:
    (tmp_path / "more.csv").write_text("file,subject_id\n1.jpg,s2\n")
    ingest_sheet_photos(project, tmp_path / "more.csv", photo_folder=tmp_path / "in")
    _drawn(project, tmp_path, boxes)
    assert ("1" in read_images(project)["image_id"]) is stands
    people = read_people_in_photos(project, include_excluded=True).filter(origin="boxes")
    assert people["subject_id"].null_count() == people.height  # no one was asked whose box it is


def test_a_sheet_that_adds_a_person_to_an_annotated_photo_asks_again(
    project: Project, tmp_path: Path
) -> None:
    """Photo 1 had one person, who was drawn and counted; a later sheet names another one."""
    _counted(project, tmp_path, _0=1, _1=1)
    _drawn(project, tmp_path, "0,nurse,10,20,100,200\n1,nurse,10,20,100,200\n")
    for stage in PHOTO_STAGES:
        assert plan_and_write_open_tasks(project, stage, tmp_path / "w") == 1
    (tmp_path / "more.csv").write_text("file,subject_id\n1.jpg,s1\n1.jpg,s2\n")
    ingest_sheet_photos(project, tmp_path / "more.csv", photo_folder=tmp_path / "in")
    drawn = read_people_in_photos(project).filter(origin="boxes")
    assert drawn.select("image_id", "subject_id").rows() == [("0", "s0"), ("1", None)]
    for stage in PHOTO_STAGES:
        plan_and_write_open_tasks(project, stage, tmp_path / "w")
        tasks = pl.read_csv(tmp_path / "w/tasks.csv", schema_overrides={"image_id": pl.String})
        assert sorted(tasks.select("image_id", "round").rows()) == [("1", 2), ("2", 1)]
    ingest_sheet_photos(project, tmp_path / "more.csv", photo_folder=tmp_path / "in")
    assert _drawn(project, tmp_path, BOTH) == ()
    drawn = read_people_in_photos(project).filter(origin="boxes", image_id="1")
    assert drawn.select("subject_id", "x").rows() == [(None, 10.0), (None, 210.0)]


def test_who_is_counted_and_not_named_is_decided_once(project: Project, tmp_path: Path) -> None:
    notes = _counted(project, tmp_path, _0=1, _1=2, _2=3)
    assert "2 photos wait for a decision, with more people counted than named: 1, 2." in notes[0]
    assert read_images(project)["image_id"].to_list() == ["0"]
    assert read_exclusions_with_reasons(project)["reason"].to_list() == [
        "2 people were counted in this photo and 1 named.",
        "3 people were counted in this photo and 1 named.",
    ]
    none = pl.DataFrame(schema={"unit_id": pl.String, "reason": pl.String})
    record_changed_verdicts(
        project, "annotation", "more counted than named", none, examined_units=["1"]
    )
    _counted(project, tmp_path, _0=1)
    assert read_images(project)["image_id"].to_list() == ["0", "1"]


def test_a_count_from_before_the_ledger_holds_at_publication(tmp_path: Path) -> None:
    project = annotated_project(tmp_path, 2)
    assert _counted(project, tmp_path, _0=2, _1=1) == ()
    append_consent(project.consent_path, "grant", "subject", AGREED, ["evaluation", "publication"])
    public, notes = _published(project, tmp_path)
    assert len(list((public / "photos").iterdir())) == 1
    assert any("with more people counted than named: 0." in note for note in notes)


def test_a_photo_whose_bystander_is_decided_is_not_held_for_its_count(tmp_path: Path) -> None:
    project = annotated_project(tmp_path, 2)
    _counted(project, tmp_path, _0=1, _1=2)
    append_consent(project.consent_path, "grant", "subject", AGREED, ["evaluation", "publication"])
    _drawn(project, tmp_path, BOTH)
    boxes = read_people_in_photos(project, include_excluded=True).filter(origin="boxes")[
        "instance_id"
    ]
    refused = pl.DataFrame({"unit_id": [boxes[1]], "reason": ["A passer-by."]})
    record_changed_verdicts(
        project, "review", "bystander", refused, examined_units=[boxes[1]], unit_kind="instance"
    )
    public, _ = _published(project, tmp_path)
    assert len(list((public / "photos").iterdir())) == 2


def test_a_project_that_gave_both_boxes_the_subject_before(
    project: Project, tmp_path: Path
) -> None:
    _drawn(project, tmp_path, BOTH)
    with open_write_transaction(project.engine) as connection:
        drawn = instances.c.origin == "boxes"
        connection.execute(sa.update(instances).where(drawn).values(subject_id="s1"))
    people = read_people_in_photos(project, include_excluded=True).filter(origin="boxes")
    assert people["subject_id"].null_count() == 2
