"""A model's labels reopen the tasks on which it differs from annotators, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from isolux.core.errors import TableError, UnknownNameError
from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
)
from isolux_curate.project.folder import Project, read_journal, verify_journal_and_seals
from isolux_curate.quality.model_recheck import reopen_tasks_where_model_differs
from tests.curate.annotation._projects import annotated_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Four photos; two people counted one person in 0 and 1, and differ about 2; 3 is open."""
    made = annotated_project(tmp_path, 4)
    plan_and_write_open_tasks(made, "count", tmp_path / "w")
    for who, counts in (("ada", (1, 1, 1)), ("bo", (1, 1, 2))):
        rows = "".join(f"{photo},people,{n}\n" for photo, n in enumerate(counts))
        (tmp_path / "n.csv").write_text("image_id,question,answer\n" + rows)
        import_and_apply_sheet_answers(made, "count", tmp_path / "n.csv", default_annotator=who)
    return made


def _model(folder: Path, *labels: str) -> str:
    rows = "".join(f"{photo},{label}\n" for photo, label in enumerate(labels))
    (folder / "model.csv").write_text("image_id,label\n" + rows)
    return str(folder / "model.csv")


def test_where_a_model_differs_annotators_are_asked_again(project: Project, tmp_path: Path) -> None:
    """It agrees about 0 alone; of 2 no answer has more than half; 3 has no answer."""
    model = _model(tmp_path, "1", "2", "1", "1")
    done = reopen_tasks_where_model_differs(project, predictions=model, question="people")
    assert (done.n_compared, done.n_different, done.n_reopened) == (3, 2, 2)
    assert plan_and_write_open_tasks(project, "count", tmp_path / "w") == 3
    again = reopen_tasks_where_model_differs(project, predictions=model, question="people")
    assert (again.n_different, again.n_reopened) == (2, 0)
    assert read_journal(project)["step"].to_list().count("recheck") == 1
    verify_journal_and_seals(project)


@pytest.mark.parametrize(
    ("labels", "question", "error", "words"),
    [
        (("1",), "peopl", UnknownNameError, "did you mean 'people'"),
        (("7",), "people", UnknownNameError, "there is no answer named '7'"),
        (("",), "people", TableError, "several labels, or none"),
    ],
)
def test_what_no_annotator_could_answer_is_refused(
    project: Project, tmp_path: Path, labels: tuple[str], question: str,
    error: type[Exception], words: str,
) -> None:  # fmt: skip
    with pytest.raises(error, match=words):
        reopen_tasks_where_model_differs(
            project, predictions=_model(tmp_path, *labels), question=question
        )
