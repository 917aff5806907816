"""What a lab's own specialists give: right answers for training, and what they see in photos.

Reviewers look at photos that stand and may overlook a fault or see one that is not there, both
with set error rates. What they found is written as `isolux curate decide` reads it; bystanders as
regions that `isolux curate publish --redact` fills in. Of logos and places they fill the sheets of
`isolux curate suspects`, as `isolux curate review` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.rehearsal.annotation_tasks import AnnotationTask
from isolux_worlds.rehearsal.annotator_answers import build_answer_sheet_rows, correct_answer
from isolux_worlds.rehearsal.fault_assignment import FAULTS

__all__ = [
    "REVIEWED",
    "build_golden_sheet",
    "fill_suspects_sheet",
    "mark_bystanders",
    "read_photo_faults",
    "simulate_logo_detections",
    "simulate_photo_review",
]

REVIEWED = tuple(f.name for f in FAULTS if f.finder == "review" and f.step != "suspicious")
"""Faults that only people can see, without a sheet of suspects."""
_OF_UNIT = {"image": "logo", "subject": "contradictory place"}
_MARKED_WRONGLY = 0.03
_OVERLOOKED, _SEEN_WRONGLY = 0.1, 0.005
_WORDS: Mapping[str, str] = {
    "hidden filter": "The colours of the photo were changed. Please send it without a filter.",
    "saved anew": "The photo was sent before, in a smaller copy. Please send each photo once.",
    "logo": "The photo shows a maker's sign that we may not publish.",
    "contradictory place": "The photo cannot have been taken in the country that you named.",
}
_MARGIN = 2.0  # pixels around a bystander


def read_photo_faults(inbox: str | Path) -> pl.DataFrame:
    """Read what is wrong with the photos of an inbox: ``truth/photos.csv``."""
    return pl.read_csv(Path(inbox).expanduser() / "truth" / "photos.csv", infer_schema=False)


def simulate_photo_review(
    photos: pl.DataFrame, accepted_ids: Sequence[str], fault: str, *, seed: int
) -> pl.DataFrame:
    """Look at photos for one kind of fault."""
    accepted = photos.filter(pl.col("image_id").is_in(list(accepted_ids))).sort("image_id")
    # Each photo has a chance of its own, whoever else is looked at.
    chance = [
        float(build_named_rng(seed, "review", fault, name).random())
        for name in accepted["image_id"]
    ]
    is_there = pl.col("fault").eq_missing(fault)
    limit = pl.when(is_there).then(1 - _OVERLOOKED).otherwise(_SEEN_WRONGLY)
    rejected = accepted.filter(pl.Series(chance, dtype=pl.Float64) < limit)
    reason = pl.lit(_WORDS.get(fault, f"{fault}."))
    return rejected.select("image_id", verdict=pl.lit("out"), reason=reason)


def simulate_logo_detections(
    photos: pl.DataFrame, accepted_ids: Sequence[str], *, seed: int
) -> pl.DataFrame:
    """Mark logos as a detector does: rows for `isolux curate suspects --evidence`."""
    rows = []
    accepted = photos.filter(pl.col("image_id").is_in(list(accepted_ids))).sort("image_id")
    for image, fault in accepted.select("image_id", "fault").iter_rows():
        chance, height = build_named_rng(seed, "logo", image).random(2)
        if fault == "logo":
            rows.append((image, "logo", round(0.55 + 0.45 * float(height), 3)))
        elif chance < _MARKED_WRONGLY:
            rows.append((image, "logo", round(0.3 + 0.5 * float(height), 3)))
    schema = {"image_id": pl.String, "kind": pl.String, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def fill_suspects_sheet(sheet: pl.DataFrame, inbox: str | Path, *, seed: int) -> pl.DataFrame:
    """Fill a sheet of suspects: whether a photo has a logo, whether a person lied."""
    truth = Path(inbox).expanduser() / "truth"
    fault_by_unit = {}
    for unit_kind, file in (("image", "photos"), ("subject", "subjects")):
        table = pl.read_csv(truth / f"{file}.csv", infer_schema=False)
        fault_by_unit[unit_kind] = dict(table.select(f"{unit_kind}_id", "fault").iter_rows())
    verdicts, reasons = [], []
    for unit_kind, unit in sheet.select("unit_kind", "unit_id").iter_rows():
        fault = _OF_UNIT[unit_kind]
        has_fault = fault_by_unit[unit_kind].get(unit) == fault
        chance = float(build_named_rng(seed, "look", fault, unit).random())
        is_rejected = chance < (1 - _OVERLOOKED if has_fault else _SEEN_WRONGLY)
        verdicts.append("out" if is_rejected else "in")
        reasons.append(_WORDS[fault] if is_rejected else None)
    return sheet.with_columns(
        verdict=pl.Series(verdicts, dtype=pl.String), reason=pl.Series(reasons, dtype=pl.String)
    )


def mark_bystanders(
    people: pl.DataFrame, photos: pl.DataFrame, image_ids: Sequence[str]
) -> pl.DataFrame:
    """Mark the bystanders of photos in which a reviewer saw one."""
    bystanders = people.filter(
        pl.col("image_id").is_in(list(image_ids)),
        pl.col("person_id").is_not_null(),
        ~pl.col("stands"),
    )
    existing_bystanders = bystanders.filter(pl.col("image_id").is_in(photos["image_id"].implode()))
    return existing_bystanders.select(
        "image_id",
        x=pl.col("box_x") - _MARGIN,
        y=pl.col("box_y") - _MARGIN,
        w=pl.col("box_w") + 2 * _MARGIN,
        h=pl.col("box_h") + 2 * _MARGIN,
    )


def build_golden_sheet(tasks: Sequence[AnnotationTask], stage: str) -> pl.DataFrame:
    """Write the right answers of units, for `isolux curate golden`."""
    rows: list[dict[str, Any]] = []
    for task in tasks:
        answer = correct_answer(task, stage)
        head = {"image_id": task.image_id} if task.box is None else {"instance_id": task.unit_id}
        rows += build_answer_sheet_rows(head, answer)
    return pl.DataFrame(rows, infer_schema_length=None)
