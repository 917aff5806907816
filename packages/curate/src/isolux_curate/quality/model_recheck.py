"""Ask annotators again where a model's labels differ from theirs.

Kärkkäinen & Joo (2021), section 3.3 (FairFace): a model was trained on the first labels, and people
looked again at the photos where it differed. Labels on which the model and annotators make the same
mistake are not looked at again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import sqlalchemy as sa

from isolux.core.errors import TableError, UnknownNameError
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.stages import STAGES, AnnotationStage
from isolux_curate.project.database import open_write_transaction
from isolux_curate.project.folder import Project, append_signed_journal_row
from isolux_curate.project.tables import journal, tasks
from isolux_curate.user_tables import read_table_as_text

_STEP = "recheck"


@dataclass(frozen=True, slots=True)
class Recheck:
    """Counts: labels that were compared, those that differ, tasks that are to be done again.

    Examples
    --------
    See ``reopen_tasks_where_model_differs``.
    """

    n_compared: int
    n_different: int
    n_reopened: int


def reopen_tasks_where_model_differs(
    project: Project, *, predictions: str, question: str
) -> Recheck:
    """Reopen tasks whose answers differ from a model's labels; the same file reopens them once.

    Parameters
    ----------
    project : Project
        An open project.
    predictions : str
        A table of the model's labels: instance_id (or image_id, for the stage count) and label.
    question : str
        The question that the labels answer, such as perceived age group.
    """
    stage = next((s for s in STAGES.values() if question in s.choices), None)
    if stage is None:
        questions = [name for s in STAGES.values() for name in s.choices]
        raise UnknownNameError("question", question, questions)
    labels = _read_predicted_labels(Path(predictions).expanduser(), stage, question)
    is_answered = pl.col("label").is_in(pl.col("answers"))
    compared = labels.join(_read_majority_answers(project, stage, question), on="unit_id")
    different_ids = compared.filter(~is_answered)["unit_id"].to_list()
    details = {
        "compared": compared.height,
        "different": len(different_ids),
        "sha256": hashlib.sha256(Path(predictions).expanduser().read_bytes()).hexdigest(),
    }
    with open_write_transaction(project.engine) as connection:
        query = sa.select(journal.c.said).where(journal.c.step == _STEP, journal.c.rule == question)
        earlier = {dict(row)["sha256"] for row in connection.execute(query).scalars()}
        if details["sha256"] in earlier:
            return Recheck(compared.height, len(different_ids), 0)
        is_done = (tasks.c.stage == stage.name) & (tasks.c.status == "done")
        is_different = tasks.c.unit_id.in_(different_ids) & tasks.c.golden.is_(False)
        update = sa.update(tasks).where(is_done, is_different).values(status="redo")
        n_reopened = int(connection.execute(update).rowcount)
        append_signed_journal_row(
            connection, project, step=_STEP, rule=question, details=details, seals=()
        )
    return Recheck(compared.height, len(different_ids), n_reopened)


def _read_predicted_labels(path: Path, stage: AnnotationStage, question: str) -> pl.DataFrame:
    id_column = f"{stage.unit_kind}_id"
    labels = read_table_as_text(path, id_column, "label").select("label", unit_id=id_column)
    if labels["unit_id"].is_duplicated().any() or labels.null_count().sum_horizontal()[0]:
        raise TableError(
            "a unit has several labels, or none",
            expected=f"one label for each {id_column}",
            where=str(path),
        )
    for label in labels["label"].unique():
        if label not in stage.choices[question]:
            raise UnknownNameError("answer", label, stage.choices[question], where=str(path))
    return labels


def _read_majority_answers(project: Project, stage: AnnotationStage, question: str) -> pl.DataFrame:
    """Read the answers of each unit that more than half of its annotators gave, as a list."""
    rows = read_answer_rows(project, stage.name).filter(question=question)
    n_annotators = pl.col("annotator").n_unique()
    annotator_counts = rows.group_by(unit_id="instance_id").agg(asked=n_annotators)
    votes = rows.group_by("label", unit_id="instance_id").agg(votes=n_annotators)
    answers = pl.col("label").filter(pl.col("votes") * 2 > pl.col("asked"))
    return votes.join(annotator_counts, on="unit_id").group_by("unit_id").agg(answers=answers)
