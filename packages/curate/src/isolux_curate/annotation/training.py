"""Training on golden sets: who may annotate a stage, and how often people of each region pass.

FACET, appendix A.3.1: raters are trained for each stage apart, on tasks whose answers are known.
For counts, skin tone and attributes they pass from a recall on; of boxes the mean IoU with the
golden ones must be .85, below which no one looks further; from there on they get feedback, are
checked by hand, and graduate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.geometry.boxes import pairs_iou_xywh
from isolux.stats.proportions import wilson
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux_curate.annotation.answers import Answer
from isolux_curate.annotation.sheets import answers_by_unit
from isolux_curate.annotation.stages import Stage
from isolux_curate.annotation.tasks import (
    BELOW,
    CHECK,
    GRADUATED,
    last_passes,
    stage_of,
    task_row,
)
from isolux_curate.project.database import insert_rows, update_rows, writing
from isolux_curate.project.folder import Project, add_row
from isolux_curate.project.reading import find_revoked_photos
from isolux_curate.project.reading import read_table as read_own
from isolux_curate.project.tables import (
    annotations_table,
    annotators,
    images,
    instances,
    passes,
    tasks,
)
from isolux_curate.user_tables import read_text

_CURRENT = ("stands", "refused")


def golden(project: Project, stage: str, sheet: str | Path) -> int:
    """Make golden tasks of units whose right answers are known."""
    one = stage_of(stage)
    truth = answers_by_unit(read_text(sheet), one, str(sheet))
    revoked = find_revoked_photos(project)
    with writing(project.engine) as connection:
        image = _images(connection, one)
        for unit in truth:
            if unit not in image:
                raise UnknownNameError(one.unit_kind, unit, image, where=str(sheet))
            if image[unit] in revoked:
                raise SpecError(
                    "a golden photo shows someone who took their consent back",
                    found=repr(unit),
                    expected="photos that may be used",
                    where=str(sheet),
                    hint="take its rows out of the sheet",
                )
        held = set(
            connection.execute(
                sa.select(tasks.c.unit_id).where(tasks.c.stage == stage, tasks.c.golden.is_(True))
            ).scalars()
        )
        rows = [
            task_row(project, one, 1, unit, image[unit], golden=True) | {"data": {"truth": answer}}
            for unit, answer in truth.items()
            if unit not in held
        ]
        for unit in held & set(truth):
            where = (tasks.c.stage == stage, tasks.c.unit_id == unit, tasks.c.golden.is_(True))
            connection.execute(sa.update(tasks).where(*where).values(data={"truth": truth[unit]}))
        insert_rows(connection, tasks, rows)
        said = {"new": len(rows), "given": len(truth), "threshold": one.threshold}
        add_row(connection, project, step="golden", rule=stage, said=said, seals=())
    return len(rows)


def _images(connection: Connection, stage: Stage) -> dict[str, str]:
    if stage.unit_kind == "image":
        return {str(i): str(i) for i in connection.execute(sa.select(images.c.image_id)).scalars()}
    query = sa.select(instances.c.instance_id, instances.c.image_id)
    return {str(one): str(image) for one, image in connection.execute(query)}


def examine(project: Project, stage: str) -> pl.DataFrame:
    """Score everyone who answered all golden tasks of a stage; a new score is a new attempt."""
    one = stage_of(stage)
    with writing(project.engine) as connection:
        truth, given = _golden_answers(connection, stage)
        before = last_passes(connection, stage)
        rows: list[dict[str, Any]] = []
        shown: list[tuple[str, int, int, float | None, str | None]] = []
        for who, answers in sorted(given.items()):
            if len(answers) < len(truth):
                shown.append((who, len(answers), len(truth), None, None))
                continue
            score = _score(one, truth, answers)
            status = BELOW if score < one.threshold else CHECK if one.checked else GRADUATED
            attempt, old_score, old_status = before.get(who, (0, None, None))
            if old_score is None or abs(old_score - score) > 1e-9:
                rows.append(
                    {
                        "annotator_id": who,
                        "stage": stage,
                        "attempt": attempt + 1,
                        "units": len(truth),
                        "score": score,
                        "status": status,
                    }
                )
            else:
                status = str(old_status)
            shown.append((who, len(answers), len(truth), score, status))
        if rows:
            _add(connection, project, stage, rows)
    schema = {
        "annotator_id": pl.String,
        "units": pl.Int64,
        "of": pl.Int64,
        "score": pl.Float64,
        "status": pl.String,
    }
    return pl.DataFrame(shown, schema=schema, orient="row")


def _add(
    connection: Connection, project: Project, stage: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    counts = {
        name: sum(row["status"] == name for row in rows) for name in (BELOW, CHECK, GRADUATED)
    }
    n = add_row(connection, project, step="training", rule=stage, said=counts, seals=())
    insert_rows(connection, passes, [{**row, "n": n} for row in rows])


def _golden_answers(
    connection: Connection, stage: str
) -> tuple[dict[str, Answer], dict[str, dict[str, Answer]]]:
    query = sa.select(tasks.c.task_id, tasks.c.data)
    query = query.where(tasks.c.stage == stage, tasks.c.golden.is_(True))
    truth = {str(task): data["truth"] for task, data in connection.execute(query)}
    table = annotations_table.c
    asked = sa.select(table.annotator_id, table.task_id, table.answer)
    asked = asked.where(table.task_id.in_(list(truth)), table.status.in_(_CURRENT))
    given: dict[str, dict[str, Answer]] = {}
    for who, task, answer in connection.execute(asked.order_by(table.n)):
        given.setdefault(str(who), {})[str(task)] = answer
    return truth, given


def _score(stage: Stage, truth: Mapping[str, Answer], given: Mapping[str, Answer]) -> float:
    if stage.draws == "boxes":
        found = [v for task, t in truth.items() for v in _overlaps(t, given[task])]
        return float(np.mean(found)) if found else 1.0
    right = wanted = 0
    for task, answer in truth.items():
        said = given[task].get("choices", {})
        for question, answers in answer["choices"].items():
            wanted += len(answers)
            right += len(set(answers) & set(said.get(question, ())))
    return right / wanted if wanted else 1.0


def _overlaps(truth: Answer, given: Answer) -> list[float]:
    """Give each golden box the IoU of its own box, by the best assignment; 0: it has none."""
    from scipy.optimize import linear_sum_assignment

    want, drawn = truth.get("boxes", ()), given.get("boxes", ())
    if not want:
        return []
    if not drawn:
        return [0.0] * len(want)
    sides = [np.array([[box[s] for s in "xywh"] for box in boxes]) for boxes in (want, drawn)]
    first, second = np.indices((len(want), len(drawn))).reshape(2, -1)
    table = pairs_iou_xywh(sides[0][first], sides[1][second]).reshape(len(want), len(drawn))
    rows, columns = linear_sum_assignment(table, maximize=True)
    best = dict(zip(rows.tolist(), table[rows, columns].tolist(), strict=True))
    return [best.get(i, 0.0) for i in range(len(want))]


def graduate(project: Project, stage: str, who: Sequence[str]) -> int:
    """Let raters whose work was checked by hand graduate."""
    with writing(project.engine) as connection:
        last = last_passes(connection, stage)
        bad = [one for one in who if last.get(one, (0, 0.0, ""))[2] not in (CHECK, GRADUATED)]
        if bad:
            raise SpecError(
                f"{bad[0]!r} cannot graduate from the stage {stage}",
                expected=f"a score of {stage_of(stage).threshold:g} or more on its golden tasks",
                found=f"{last[bad[0]][1]:.2f}" if bad[0] in last else "not examined",
            )
        query = sa.select(passes.c.annotator_id, passes.c.units).where(passes.c.stage == stage)
        units = {str(one): int(number) for one, number in connection.execute(query)}
        rows = [
            {
                "annotator_id": one,
                "stage": stage,
                "attempt": last[one][0] + 1,
                "units": units[one],
                "score": last[one][1],
                "status": GRADUATED,
            }
            for one in dict.fromkeys(who)
            if last[one][2] == CHECK
        ]
        if rows:
            _add(connection, project, stage, rows)
    return len(rows)


def know_raters(project: Project, sheet: str | Path) -> int:
    """Note where raters are from, and what else they disclosed: ``annotator_id, region, …``."""
    frame = read_text(sheet, "annotator_id")
    with writing(project.engine) as connection:
        known = set(connection.execute(sa.select(annotators.c.annotator_id)).scalars())
        rows = {
            row.pop("annotator_id"): {
                "region": row.pop("region", None),
                "facts": {name: value for name, value in row.items() if value is not None},
            }
            for row in frame.iter_rows(named=True)
        }
        new = [{"annotator_id": k} | values for k, values in rows.items() if k not in known]
        insert_rows(connection, annotators, new)
        update_rows(
            connection,
            annotators.c.annotator_id,
            {k: values for k, values in rows.items() if k in known},
        )
    return frame.height


def raters(project: Project) -> pl.DataFrame:
    """Count who was examined and who graduated, by stage and region."""
    last = (
        read_own(project, "passes")
        .sort("attempt")
        .unique(["annotator_id", "stage"], keep="last", maintain_order=True)
        .join(read_own(project, "annotators"), on="annotator_id")
    )
    counted = (
        last.group_by("stage", pl.col("region").fill_null("not told"))
        .agg(examined=pl.len(), graduated=(pl.col("status") == GRADUATED).sum())
        .sort("stage", "region")
    )
    ends = wilson(counted["graduated"].to_numpy(), counted["examined"].to_numpy())
    return counted.with_columns(
        rate=pl.col("graduated") / pl.col("examined"),
        low=pl.Series(ends.low, dtype=pl.Float64),
        high=pl.Series(ends.high, dtype=pl.Float64),
    )
