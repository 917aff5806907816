"""Tasks and answers without a server: tables and COCO files, in and out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux.io.consent import append_consent
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
    write_consented_answers,
)
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_database_table, read_people_in_photos
from tests.curate.annotation._projects import annotated_project, brought


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return annotated_project(tmp_path, 4)


def test_tasks_go_out_and_coco_comes_in(project: Project, tmp_path: Path) -> None:
    assert plan_and_write_open_tasks(project, "boxes", tmp_path / "out") == 4
    listed = pl.read_csv(tmp_path / "out/tasks.csv")
    assert listed.columns == ["task_id", "image_id", "round", "wanted"]
    assert len(list((tmp_path / "out/pictures").iterdir())) == 4
    coco = {
        "images": [{"id": k, "file_name": f"{k}.jpg"} for k in range(3)],
        "categories": [{"id": 7, "name": "nurse"}],
        "annotations": [
            {"id": 1, "image_id": 0, "category_id": 7, "bbox": [10, 20, 30, 40]},
            {"id": 2, "image_id": 0, "category_id": 7, "bbox": [100, 20, 30, 40]},
            {"id": 3, "image_id": 1, "category_id": 7, "bbox": [390, 20, 30, 40]},
        ],
    }
    (tmp_path / "given.json").write_text(json.dumps(coco))
    assert brought(project, "boxes", tmp_path / "given.json", default_annotator="ada") == (3, 1, 0)
    assert brought(project, "boxes", tmp_path / "given.json", default_annotator="ada") == (0, 0, 0)
    drawn = read_people_in_photos(project).filter(origin="boxes").sort("x")
    assert drawn.select("image_id", "x", "w").rows() == [("0", 10.0, 30.0), ("0", 100.0, 30.0)]
    status = dict(read_database_table(project, "tasks").select("unit_id", "status").iter_rows())
    assert status == {"0": "done", "1": "redo", "2": "done", "3": "open"}
    assert plan_and_write_open_tasks(project, "boxes", tmp_path / "out") == 2
    out = json.loads((tmp_path / "out/coco.json").read_text())
    assert [one["bbox"] for one in out["annotations"]] == [[10, 20, 30, 40], [100, 20, 30, 40]]
    assert out["images"][0]["width"] == 400
    assert plan_and_write_open_tasks(project, "skin_tone", tmp_path / "tones") == 2


def test_what_goes_out_comes_in(project: Project, tmp_path: Path) -> None:
    plan_and_write_open_tasks(project, "count", tmp_path / "out")
    (tmp_path / "given.csv").write_text(
        "image_id,annotator,question,answer\n0,ada,people,2\n1,ada,people,1\n2,bo,people,3\n"
    )
    assert brought(project, "count", tmp_path / "given.csv") == (3, 0, 0)
    assert write_consented_answers(project, "count", tmp_path / "answers.csv").n_rows == 3
    held = pl.read_csv(tmp_path / "answers.csv", infer_schema=False)
    assert held.select("instance_id", "annotator", "label").sort("instance_id").rows() == [
        ("0", "ada", "2"), ("1", "ada", "1"), ("2", "bo", "3"),
    ]  # fmt: skip


def test_a_changed_answer_is_a_new_version(project: Project, tmp_path: Path) -> None:
    plan_and_write_open_tasks(project, "count", tmp_path / "out")
    for said in ("2", "3"):
        (tmp_path / "given.csv").write_text(f"image_id,question,answer\n0,people,{said}\n")
        assert (
            import_and_apply_sheet_answers(
                project, "count", tmp_path / "given.csv", default_annotator="ada"
            ).n_new
            == 1
        )
    versions = read_database_table(project, "annotations").sort("version")
    assert versions.select("version", "status").rows() == [(1, "superseded"), (2, "stands")]


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("a.csv", "image_id,question,answer\n9,people,2\n", UnknownNameError, "no task named '9'"),
        ("a.csv", "image_id,answer\n0,2\n", UnknownNameError, "no column named 'question'"),
        ("a.csv", "photo,question,answer\n0,people,2\n", UnknownNameError, "named 'image_id'"),
        ("a.csv", "image_id,question,answer\n,people,2\n", TableError, "a row names no unit"),
        ("a.json", "{}", SpecError, "a COCO file holds boxes"),
    ],
)
def test_answers_that_do_not_fit_are_refused_whole(
    project: Project, tmp_path: Path, name: str, text: str, error: type[Exception], said: str
) -> None:
    plan_and_write_open_tasks(project, "count", tmp_path / "out")
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=said):
        import_and_apply_sheet_answers(project, "count", tmp_path / name, default_annotator="ada")
    assert read_database_table(project, "annotations").is_empty()


def test_who_answered_must_be_said(project: Project, tmp_path: Path) -> None:
    plan_and_write_open_tasks(project, "count", tmp_path / "out")
    (tmp_path / "a.csv").write_text("image_id,question,answer\n0,people,2\n")
    with pytest.raises(UnknownNameError, match="there is no column named 'annotator'"):
        import_and_apply_sheet_answers(project, "count", tmp_path / "a.csv")


def test_a_json_that_is_no_coco_file_is_refused(project: Project, tmp_path: Path) -> None:
    plan_and_write_open_tasks(project, "boxes", tmp_path / "out")
    (tmp_path / "a.json").write_text('{"images": []}')
    with pytest.raises(FileError, match="this is not a COCO file of boxes"):
        import_and_apply_sheet_answers(
            project, "boxes", tmp_path / "a.json", default_annotator="ada"
        )


def test_answers_of_annotators_who_withdrew_stay_out(project: Project, tmp_path: Path) -> None:
    head, given = "image_id,annotator,question,answer\n", tmp_path / "given.csv"
    plan_and_write_open_tasks(project, "count", tmp_path / "out")
    given.write_text(head + "0,ada,people,2\n1,bo,people,1\n")
    import_and_apply_sheet_answers(project, "count", given)
    append_consent(project.consent_path, "grant", "annotator", ["ada", "bo"], ["evaluation"])
    append_consent(project.consent_path, "revoke", "annotator", ["ada"], ["evaluation"])
    given.write_text(head + "2,ada,people,2\n3,bo,people,1\n3,cy,people,1\n")
    done = import_and_apply_sheet_answers(project, "count", given)
    assert done.n_new == 2
    assert done.notes == ("1 answer left out: the annotators withdrew.",)
    wrote = write_consented_answers(project, "count", tmp_path / "answers.csv")
    assert (wrote.n_rows, wrote.n_withdrawn) == (3, 1)
    assert set(pl.read_csv(tmp_path / "answers.csv")["annotator"]) == {"bo", "cy"}


def test_of_who_is_asked_again_the_last_answer_stands(project: Project, tmp_path: Path) -> None:
    sheet = tmp_path / "given.csv"
    plan_and_write_open_tasks(project, "boxes", tmp_path / "out")
    sheet.write_text("image_id,annotator,label,x,y,w,h\n0,ada,nurse,10,20,30,40\n")
    import_and_apply_sheet_answers(project, "boxes", sheet)
    (person,) = read_people_in_photos(project).filter(origin="boxes")["instance_id"]

    def rated(**tones: str) -> None:
        plan_and_write_open_tasks(project, "skin_tone", tmp_path / "out")
        rows = [f"{person},{who},perceived skin tone,{t}" for who, two in tones.items()
                for t in two.split()]  # fmt: skip
        rows += [f"{person},{who},{question},yes" for who in tones
                 for question in ("is the box tight?", "is the class right?")]  # fmt: skip
        sheet.write_text("instance_id,annotator,question,answer\n" + "\n".join(rows) + "\n")
        import_and_apply_sheet_answers(project, "skin_tone", sheet)

    rated(ada="3 4", bo="1 9", cy="3 4")  # tones that are no neighbours: all three again
    rated(ada="5 6", bo="4 5", di="4 5")
    said = read_answer_rows(project, "skin_tone").filter(question="perceived skin tone")
    tones = said.group_by("annotator").agg(pl.col("label").sort()).sort("annotator")
    assert tones.rows() == [
        ("ada", ["5", "6"]), ("bo", ["4", "5"]), ("cy", ["3", "4"]), ("di", ["4", "5"]),
    ]  # fmt: skip
    assert (
        read_answer_rows(project, "skin_tone", include_uncounted=True)["round"].unique().len() == 2
    )
