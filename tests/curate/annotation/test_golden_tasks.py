"""Golden tasks: who passes, who is checked, who graduates, and whose answers count."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.exchange import import_and_apply_server_answers, plan_and_upload_tasks
from isolux_curate.annotation.golden_tasks import (
    create_or_update_golden_tasks,
    graduate_spot_checked_annotators,
    insert_or_update_annotator_facts,
    score_and_record_annotators,
    tabulate_graduation_rates,
)
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.sheets import import_and_apply_sheet_answers
from isolux_curate.project.folder import Project, verify_journal_and_seals
from isolux_curate.project.queries import read_database_table
from tests.curate.annotation._fake import Fake
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._projects import annotated_project, box, chosen


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return annotated_project(tmp_path, 6)


def test_raters_of_boxes_pass_at_85_are_checked_and_then_graduate(
    project: Project, fake: Fake, tmp_path: Path
) -> None:
    """Truth 120 × 120 px; 114 wide is an IoU of .95, 96 wide .8, none drawn 0."""
    (tmp_path / "golden.csv").write_text(
        "image_id,label,x,y,w,h\n0,nurse,40,60,120,120\n1,nurse,40,60,120,120\n"
    )
    assert create_or_update_golden_tasks(project, "boxes", tmp_path / "golden.csv") == 2
    assert create_or_update_golden_tasks(project, "boxes", tmp_path / "golden.csv") == 0
    server = LabelStudioServer.from_url_with_environment_token(fake.url)
    number = plan_and_upload_tasks(project, "boxes", server, training=True).server_project
    assert fake.projects[number]["maximum_annotations"] > 100
    assert all("truth" not in str(task) for task in fake.tasks.values())
    for task in list(fake.tasks):
        fake.annotate(task, box("nurse", 10, 20, 28.5, 40), user=1)
        fake.annotate(task, box("nurse", 10, 20, 24, 40), user=2)
    fake.annotate(1, box("nurse", 10, 20, 30, 40), user=3)
    assert import_and_apply_server_answers(project, "boxes", server, training=True).n_new == 5
    found = score_and_record_annotators(project, "boxes")
    assert found.select("annotator_id", "units", "status").rows() == [
        ("user-1", 2, "spot check"), ("user-2", 2, "below"), ("user-3", 1, None),
    ]  # fmt: skip
    assert found["score"].round(3).to_list() == [0.95, 0.8, None]
    with pytest.raises(SpecError, match="'user-2' cannot graduate"):
        graduate_spot_checked_annotators(project, "boxes", ["user-2"])
    assert graduate_spot_checked_annotators(project, "boxes", ["user-1"]) == 1
    assert graduate_spot_checked_annotators(project, "boxes", ["user-1"]) == 0
    assert score_and_record_annotators(project, "boxes")["status"].to_list()[0] == "graduated"
    assert read_database_table(project, "passes").height == 3
    verify_journal_and_seals(project)


def test_answers_of_those_who_did_not_graduate_do_not_count(
    project: Project, fake: Fake, tmp_path: Path
) -> None:
    (tmp_path / "golden.csv").write_text("image_id,question,answer\n0,people,2\n1,people,0\n")
    create_or_update_golden_tasks(project, "count", tmp_path / "golden.csv")
    server = LabelStudioServer.from_url_with_environment_token(fake.url)
    plan_and_upload_tasks(project, "count", server, training=True)
    for user, said in ((1, ("2", "0")), (2, ("2", "1"))):
        for task, answer in enumerate(said, 1):
            unit = read_database_table(project, "tasks").filter(pl.col("server_task") == task)[
                "unit_id"
            ][0]
            truth = {"0": "2", "1": "0"}[unit]
            right = answer == {1: "2", 2: "0"}[task]
            fake.annotate(task, chosen(people=[truth if right else "5"]), user)
    import_and_apply_server_answers(project, "count", server, training=True)
    scores = score_and_record_annotators(project, "count").select("annotator_id", "score")
    assert dict(scores.iter_rows()) == {
        "user-1": 1.0, "user-2": 0.5,
    }  # fmt: skip
    plan_and_upload_tasks(project, "count", server)
    for task in [n for n, t in fake.tasks.items() if t["project"] == 2]:
        fake.annotate(task, chosen(people=["1"]), user=1 if task % 2 else 2)
    done = import_and_apply_server_answers(project, "count", server)
    assert (done.n_new, done.n_refused) == (6, 3)
    assert set(read_answer_rows(project, "count")["annotator"]) == {"user-1"}
    assert plan_and_upload_tasks(project, "count", server).n_planned == 3


def test_pass_rates_by_region(project: Project, tmp_path: Path) -> None:
    (tmp_path / "golden.csv").write_text("image_id,question,answer\n0,people,2\n")
    create_or_update_golden_tasks(project, "count", tmp_path / "golden.csv")
    who = {"a": "Kenya", "b": "Kenya", "c": "Peru"}
    (tmp_path / "raters.csv").write_text(
        "annotator_id,region,language\n" + "".join(f"{k},{v},es\n" for k, v in who.items())
    )
    assert insert_or_update_annotator_facts(project, tmp_path / "raters.csv") == 3
    table = read_database_table(project, "tasks").filter(pl.col("golden"))
    (tmp_path / "given.csv").write_text(
        "task_id,annotator,question,answer\n"
        + "".join(f"{table['task_id'][0]},{k},people,{2 if k != 'b' else 1}\n" for k in who)
    )
    import_and_apply_sheet_answers(project, "count", tmp_path / "given.csv")
    score_and_record_annotators(project, "count")
    found = tabulate_graduation_rates(project)
    assert found.select("region", "examined", "graduated", "rate").rows() == [
        ("Kenya", 2, 1, 0.5), ("Peru", 1, 1, 1.0),
    ]  # fmt: skip
    assert found["low"][0] < 0.5 < found["high"][0]


def test_a_golden_unit_that_there_is_not_is_named(project: Project, tmp_path: Path) -> None:
    (tmp_path / "golden.csv").write_text("image_id,question,answer\n99,people,2\n")
    with pytest.raises(UnknownNameError, match="there is no image named '99'"):
        create_or_update_golden_tasks(project, "count", tmp_path / "golden.csv")
