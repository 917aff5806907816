"""Photos with more people than are named: those that were counted are held, and all are told."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.curation.annotation.answers import read_answers
from isolux.curation.project.bystanders import ANNOTATION, BYSTANDER, COUNTED, DRAWN_AGAIN
from isolux.curation.project.consent import read_consent
from isolux.curation.project.decisions import decide
from isolux.curation.project.folder import Project
from isolux.curation.project.reading import left_out, read_bystanders, read_instances, read_table
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.words import numbered

__all__ = ["hold_crowded_photos", "note_crowded_photos"]

_MAX_LISTED = 10


def hold_crowded_photos(project: Project) -> None:
    """Leave out photos in which more people were counted than are named, until someone decides.

    A photo of which it was decided is not asked again, whatever is counted later.
    """
    ledger = read_consent(project)
    if ledger is None or not ledger.has_grants("subject"):
        return
    people = read_instances(project, everything=True).filter(origin="submitted")
    named = people.group_by("image_id").agg(named=pl.col("subject_id").drop_nulls().n_unique())
    bystanders = read_bystanders(project).group_by("image_id").agg(bystanders=pl.len())
    expected = named.join(bystanders, on="image_id", how="left").fill_null(0)
    answers = read_answers(project, "count").filter(question="people").join(expected, on="image_id")
    counts = answers.with_columns(n=pl.col("label").cast(pl.Int64, strict=False))
    judged = read_table(project, "decisions").filter(step=ANNOTATION, rule=COUNTED)["unit_id"]
    crowded = counts.filter(
        pl.col("n") > pl.col("named") + pl.col("bystanders"), pl.col("named") > 0,
        ~pl.col("image_id").is_in(judged.drop_nulls().implode()),
    ).sort("image_id", "n").unique("image_id", keep="last", maintain_order=True)  # fmt: skip
    words = pl.format("{} people were counted in this photo and {} named.", "n", "named")
    if crowded.height:
        refused = crowded.select(unit_id="image_id", reason=words)
        decide(project, ANNOTATION, COUNTED, refused, looked_at=refused["unit_id"])


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
