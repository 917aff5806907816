"""Photos with more people than are named: those that were counted are held, and all are told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.curation.annotation.answers import read_answers
from isolux.curation.annotation.recording import REFUSED
from isolux.curation.project.bystanders import ANNOTATION, BYSTANDER, COUNTED, DRAWN_AGAIN
from isolux.curation.project.consent import read_consent
from isolux.curation.project.decisions import decide
from isolux.curation.project.folder import Project
from isolux.curation.project.reading import (
    find_revoked_photos,
    left_out,
    read_bystanders,
    read_instances,
    read_table,
)  # fmt: skip
from isolux.geometry.boxes import pairs_iou_xywh
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.words import numbered

__all__ = ["hold_crowded_photos", "merge_drawings", "note_crowded_photos"]

_MAX_LISTED = 10
_MIN_IOU = 0.5  # of two boxes of one person


def hold_crowded_photos(project: Project) -> None:
    """Leave out photos in which more people were counted than are named, until someone decides."""
    ledger = read_consent(project)
    if ledger is None or not ledger.has_grants("subject"):
        return
    people = read_instances(project, everything=True).filter(origin="submitted")
    named = people.group_by("image_id").agg(named=pl.col("subject_id").drop_nulls().n_unique())
    bystanders = read_bystanders(project).group_by("image_id").agg(bystanders=pl.len())
    expected = named.join(bystanders, on="image_id", how="left").fill_null(0)
    answers = read_answers(project, "count").filter(question="people")
    answered = answers.select("image_id", n=pl.col("label").cast(pl.Int64, strict=False))
    counts = pl.concat([answered, _count_refused(project)]).join(expected, on="image_id")
    judged = read_table(project, "decisions").filter(step=ANNOTATION, rule=COUNTED)["unit_id"]
    waiting = left_out(project).filter(step=ANNOTATION, rule=BYSTANDER, unit_kind="image")
    crowded = counts.filter(
        pl.col("n") > pl.col("named") + pl.col("bystanders"), pl.col("named") > 0,
        ~pl.col("image_id").is_in(judged.drop_nulls().implode()),
        ~pl.col("image_id").is_in(waiting["image_id"].implode()),
    ).sort("image_id", "n").unique("image_id", keep="last", maintain_order=True)  # fmt: skip
    words = pl.format("{} people were counted in this photo and {} named.", "n", "named")
    if crowded.height:
        refused = crowded.select(unit_id="image_id", reason=words)
        decide(project, ANNOTATION, COUNTED, refused, looked_at=refused["unit_id"])


def _count_refused(project: Project) -> pl.DataFrame:
    """Count who is drawn in photos with refused boxes, those that stand included."""
    tasks = read_table(project, "tasks").filter(~pl.col("golden"), stage="boxes").filter(
        ~pl.col("image_id").is_in(list(find_revoked_photos(project)))
    )  # fmt: skip
    answers = read_table(project, "annotations").filter(status=REFUSED)
    rows = answers.join(tasks.select("task_id", "image_id"), on="task_id").sort("n")
    drawings: dict[str, list[Any]] = {}
    for image, answer in rows.select("image_id", "answer").iter_rows():
        drawings.setdefault(image, []).append(json.loads(answer).get("boxes", ()))
    old = left_out(project).filter(rule=DRAWN_AGAIN)["unit_id"] if drawings else pl.Series([""])
    people = read_instances(project, everything=True).drop_nulls("x")
    people = people.filter(~pl.col("instance_id").is_in(old.implode()))
    counts = {
        image: len(merge_drawings([people.filter(image_id=image).to_dicts(), *boxes]))
        for image, boxes in drawings.items()
    }
    schema = {"image_id": pl.String, "n": pl.Int64}
    return pl.DataFrame(list(counts.items()), schema=schema, orient="row")


def merge_drawings(
    drawings: Iterable[Sequence[Mapping[str, Any]]],
) -> list[Mapping[str, Any]]:
    """Gather the people in drawings of one photo, each by the first box that shows them."""
    people: list[Mapping[str, Any]] = []
    for drawing in drawings:
        first, second = (
            np.array([[box[side] for side in "xywh"] for box in boxes], float).reshape(-1, 4)
            for boxes in (people, drawing)
        )
        iou = pairs_iou_xywh(
            np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))
        ).reshape(len(first), len(second))
        matched: set[int] = set()
        while iou.size and iou.max() >= _MIN_IOU:
            row, column = np.unravel_index(iou.argmax(), iou.shape)
            matched.add(int(column))
            iou[row], iou[:, column] = -1, -1
        people += [box for k, box in enumerate(drawing) if k not in matched]
    return people


def note_crowded_photos(project: Project) -> tuple[str, ...]:
    """Say which photos wait for a decision about bystanders, and how it is given."""
    out = left_out(project)
    photos = out.filter(step=ANNOTATION, unit_kind="image")
    drawn_ids, counted_ids = (photos.filter(rule=r)["image_id"] for r in (BYSTANDER, COUNTED))
    old_ids = out.filter(rule=DRAWN_AGAIN)["unit_id"]
    people = read_instances(project, everything=True) if len(drawn_ids) else pl.DataFrame(_BOX)
    boxes = people.drop_nulls("x").filter(
        pl.col("image_id").is_in(drawn_ids.implode()),
        ~pl.col("instance_id").is_in(old_ids.implode()),
    )
    box = pl.format("{} (x {}, y {}, {} by {})", "instance_id", "x", "y", "w", "h")
    command = f"`isolux curate decide {project.folder} SHEET --step {ANNOTATION} --rule"
    of_boxes = (
        f"{command} {BYSTANDER} --unit instance` takes a sheet of the bystanders' boxes"
        " (instance_id, verdict out, reason); they are filled in where the photo is published."
    )
    of_photos = f"{command} '{COUNTED}'` takes a sheet (image_id, verdict in or out, reason)."
    return (
        *_note("drawn", len(drawn_ids), boxes.select(box).to_series().to_list(), of_boxes),
        *_note("counted", len(counted_ids), counted_ids.to_list(), of_photos),
    )


_BOX: dict[str, list[str]] = {name: [] for name in ("instance_id", "image_id", *"xywh")}


def _note(verb: str, n: int, units: Sequence[str], advice: str) -> list[str]:
    if not n:
        return []
    listed = ", ".join(units[:_MAX_LISTED]) + (" …" if len(units) > _MAX_LISTED else "")
    waiting = f"{numbered(n, 'photo waits', 'photos wait')} for a decision"
    return [Caution(f"{waiting}, with more people {verb} than named: {listed}. {advice}")]
