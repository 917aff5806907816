"""Training on golden tasks: who may annotate a stage, and pass rates by region.

FACET, appendix A.3.1: raters are trained separately for each stage, on tasks with known answers.
For counts, skin tone and attributes they need a minimum recall. For boxes the mean IoU with the
golden ones must be at least 0.85; then they get feedback, are checked by hand, and graduate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.core.errors import SpecError, UnknownNameError
from isolux.geometry.boxes import pairs_iou_xywh
from isolux.stats.proportions import wilson_interval
from isolux_curate.annotation.answer_format import Answer
from isolux_curate.annotation.sheets import group_answers_by_unit
from isolux_curate.annotation.stages import AnnotationStage
from isolux_curate.annotation.tasks import (
    BELOW_THRESHOLD,
    GRADUATED,
    NEEDS_SPOT_CHECK,
    build_task_row,
    find_stage,
    read_last_training_attempts,
)
from isolux_curate.project.database import insert_rows, open_write_transaction, update_rows_by_key
from isolux_curate.project.folder import Project, append_signed_journal_row
from isolux_curate.project.queries import find_photos_of_revoked_consent
from isolux_curate.project.queries import read_database_table as read_own
from isolux_curate.project.tables import (
    annotations_table,
    annotators,
    images,
    instances,
    passes,
    tasks,
)
from isolux_curate.user_tables import read_table_as_text

_SCORED_STATUSES = ("stands", "refused")


def create_or_update_golden_tasks(project: Project, stage: str, answer_sheet: str | Path) -> int:
    """Create golden tasks from units with known answers; the number of new tasks."""
    stage_spec = find_stage(stage)
    truth = group_answers_by_unit(read_table_as_text(answer_sheet), stage_spec, str(answer_sheet))
    revoked = find_photos_of_revoked_consent(project)
    with open_write_transaction(project.engine) as connection:
        image_by_unit = _read_image_id_by_unit(connection, stage_spec)
        for unit in truth:
            if unit not in image_by_unit:
                raise UnknownNameError(
                    stage_spec.unit_kind, unit, image_by_unit, where=str(answer_sheet)
                )
            if image_by_unit[unit] in revoked:
                raise SpecError(
                    "a golden photo shows someone who took their consent back",
                    found=repr(unit),
                    expected="photos that may be used",
                    where=str(answer_sheet),
                    hint="take its rows out of the sheet",
                )
        golden_units = set(
            connection.execute(
                sa.select(tasks.c.unit_id).where(tasks.c.stage == stage, tasks.c.golden.is_(True))
            ).scalars()
        )
        rows = [
            build_task_row(project, stage_spec, 1, unit, image_by_unit[unit], is_golden=True)
            | {"data": {"truth": answer}}
            for unit, answer in truth.items()
            if unit not in golden_units
        ]
        for unit in golden_units & set(truth):
            golden_filter = (
                tasks.c.stage == stage,
                tasks.c.unit_id == unit,
                tasks.c.golden.is_(True),
            )
            connection.execute(
                sa.update(tasks).where(*golden_filter).values(data={"truth": truth[unit]})
            )
        insert_rows(connection, tasks, rows)
        details = {"new": len(rows), "given": len(truth), "threshold": stage_spec.threshold}
        append_signed_journal_row(
            connection, project, step="golden", rule=stage, details=details, seals=()
        )
    return len(rows)


def _read_image_id_by_unit(connection: Connection, stage: AnnotationStage) -> dict[str, str]:
    if stage.unit_kind == "image":
        return {str(i): str(i) for i in connection.execute(sa.select(images.c.image_id)).scalars()}
    query = sa.select(instances.c.instance_id, instances.c.image_id)
    return {str(instance_id): str(image) for instance_id, image in connection.execute(query)}


def score_and_record_annotators(project: Project, stage: str) -> pl.DataFrame:
    """Score annotators who answered all golden tasks of a stage; a new score is a new attempt."""
    stage_spec = find_stage(stage)
    with open_write_transaction(project.engine) as connection:
        truth, answers_by_annotator = _read_golden_truth_and_answers(connection, stage)
        last_attempts = read_last_training_attempts(connection, stage)
        rows: list[dict[str, Any]] = []
        result_rows: list[tuple[str, int, int, float | None, str | None]] = []
        for annotator_id, answers in sorted(answers_by_annotator.items()):
            if len(answers) < len(truth):
                result_rows.append((annotator_id, len(answers), len(truth), None, None))
                continue
            score = _score_golden_answers(stage_spec, truth, answers)
            status = (
                BELOW_THRESHOLD
                if score < stage_spec.threshold
                else NEEDS_SPOT_CHECK
                if stage_spec.needs_manual_check
                else GRADUATED
            )
            attempt, old_score, old_status = last_attempts.get(annotator_id, (0, None, None))
            if old_score is None or abs(old_score - score) > 1e-9:
                rows.append(
                    {
                        "annotator_id": annotator_id,
                        "stage": stage,
                        "attempt": attempt + 1,
                        "units": len(truth),
                        "score": score,
                        "status": status,
                    }
                )
            else:
                status = str(old_status)
            result_rows.append((annotator_id, len(answers), len(truth), score, status))
        if rows:
            _record_training_attempts(connection, project, stage, rows)
    schema = {
        "annotator_id": pl.String,
        "units": pl.Int64,
        "of": pl.Int64,
        "score": pl.Float64,
        "status": pl.String,
    }
    return pl.DataFrame(result_rows, schema=schema, orient="row")


def _record_training_attempts(
    connection: Connection, project: Project, stage: str, attempt_rows: Sequence[Mapping[str, Any]]
) -> None:
    counts = {
        name: sum(row["status"] == name for row in attempt_rows)
        for name in (BELOW_THRESHOLD, NEEDS_SPOT_CHECK, GRADUATED)
    }
    n = append_signed_journal_row(
        connection, project, step="training", rule=stage, details=counts, seals=()
    )
    insert_rows(connection, passes, [{**row, "n": n} for row in attempt_rows])


def _read_golden_truth_and_answers(
    connection: Connection, stage: str
) -> tuple[dict[str, Answer], dict[str, dict[str, Answer]]]:
    query = sa.select(tasks.c.task_id, tasks.c.data)
    query = query.where(tasks.c.stage == stage, tasks.c.golden.is_(True))
    truth = {str(task): task_data["truth"] for task, task_data in connection.execute(query)}
    table = annotations_table.c
    answer_query = sa.select(table.annotator_id, table.task_id, table.answer)
    answer_query = answer_query.where(
        table.task_id.in_(list(truth)), table.status.in_(_SCORED_STATUSES)
    )
    answers_by_annotator: dict[str, dict[str, Answer]] = {}
    for annotator_id, task, answer in connection.execute(answer_query.order_by(table.n)):
        answers_by_annotator.setdefault(str(annotator_id), {})[str(task)] = answer
    return truth, answers_by_annotator


def _score_golden_answers(
    stage: AnnotationStage, truth: Mapping[str, Answer], annotator_answers: Mapping[str, Answer]
) -> float:
    if stage.shape_type == "boxes":
        ious = [
            iou
            for task, t in truth.items()
            for iou in _compute_matched_golden_ious(t, annotator_answers[task])
        ]
        return float(np.mean(ious)) if ious else 1.0
    n_correct = n_expected = 0
    for task, answer in truth.items():
        choices = annotator_answers[task].get("choices", {})
        for question, answers in answer["choices"].items():
            n_expected += len(answers)
            n_correct += len(set(answers) & set(choices.get(question, ())))
    return n_correct / n_expected if n_expected else 1.0


def _compute_matched_golden_ious(truth: Answer, answer: Answer) -> list[float]:
    """Compute each golden box's IoU with its match (optimal assignment); 0 without a match."""
    from scipy.optimize import linear_sum_assignment

    golden_boxes, drawn_boxes = truth.get("boxes", ()), answer.get("boxes", ())
    if not golden_boxes:
        return []
    if not drawn_boxes:
        return [0.0] * len(golden_boxes)
    box_arrays = [
        np.array([[box[s] for s in "xywh"] for box in boxes])
        for boxes in (golden_boxes, drawn_boxes)
    ]
    first, second = np.indices((len(golden_boxes), len(drawn_boxes))).reshape(2, -1)
    iou = pairs_iou_xywh(box_arrays[0][first], box_arrays[1][second]).reshape(
        len(golden_boxes), len(drawn_boxes)
    )
    rows, columns = linear_sum_assignment(iou, maximize=True)
    best = dict(zip(rows.tolist(), iou[rows, columns].tolist(), strict=True))
    return [best.get(i, 0.0) for i in range(len(golden_boxes))]


def graduate_spot_checked_annotators(
    project: Project, stage: str, annotator_ids: Sequence[str]
) -> int:
    """Graduate raters whose boxes were checked by hand; the number of new graduates."""
    with open_write_transaction(project.engine) as connection:
        last_attempts = read_last_training_attempts(connection, stage)
        ineligible_ids = [
            annotator_id
            for annotator_id in annotator_ids
            if last_attempts.get(annotator_id, (0, 0.0, ""))[2] not in (NEEDS_SPOT_CHECK, GRADUATED)
        ]
        if ineligible_ids:
            raise SpecError(
                f"{ineligible_ids[0]!r} cannot graduate from the stage {stage}",
                expected=f"a score of {find_stage(stage).threshold:g} or more on its golden tasks",
                found=f"{last_attempts[ineligible_ids[0]][1]:.2f}"
                if ineligible_ids[0] in last_attempts
                else "not examined",
            )
        query = sa.select(passes.c.annotator_id, passes.c.units).where(passes.c.stage == stage)
        units = {
            str(annotator_id): int(number) for annotator_id, number in connection.execute(query)
        }
        rows = [
            {
                "annotator_id": annotator_id,
                "stage": stage,
                "attempt": last_attempts[annotator_id][0] + 1,
                "units": units[annotator_id],
                "score": last_attempts[annotator_id][1],
                "status": GRADUATED,
            }
            for annotator_id in dict.fromkeys(annotator_ids)
            if last_attempts[annotator_id][2] == NEEDS_SPOT_CHECK
        ]
        if rows:
            _record_training_attempts(connection, project, stage, rows)
    return len(rows)


def insert_or_update_annotator_facts(project: Project, facts_sheet: str | Path) -> int:
    """Store raters' regions and other disclosed facts: columns ``annotator_id, region, …``."""
    frame = read_table_as_text(facts_sheet, "annotator_id")
    with open_write_transaction(project.engine) as connection:
        existing_ids = set(connection.execute(sa.select(annotators.c.annotator_id)).scalars())
        rows = {
            row.pop("annotator_id"): {
                "region": row.pop("region", None),
                "facts": {name: fact for name, fact in row.items() if fact is not None},
            }
            for row in frame.iter_rows(named=True)
        }
        new = [{"annotator_id": k} | values for k, values in rows.items() if k not in existing_ids]
        insert_rows(connection, annotators, new)
        update_rows_by_key(
            connection,
            annotators.c.annotator_id,
            {k: values for k, values in rows.items() if k in existing_ids},
        )
    return frame.height


def tabulate_graduation_rates(project: Project) -> pl.DataFrame:
    """Count scored and graduated raters by stage and region, with Wilson intervals."""
    last_attempts = (
        read_own(project, "passes")
        .sort("attempt")
        .unique(["annotator_id", "stage"], keep="last", maintain_order=True)
        .join(read_own(project, "annotators"), on="annotator_id")
    )
    counts = (
        last_attempts.group_by("stage", pl.col("region").fill_null("not told"))
        .agg(examined=pl.len(), graduated=(pl.col("status") == GRADUATED).sum())
        .sort("stage", "region")
    )
    interval = wilson_interval(counts["graduated"].to_numpy(), counts["examined"].to_numpy())
    return counts.with_columns(
        rate=pl.col("graduated") / pl.col("examined"),
        low=pl.Series(interval.low, dtype=pl.Float64),
        high=pl.Series(interval.high, dtype=pl.Float64),
    )
