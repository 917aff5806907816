"""One tone a person, and people as COCO's instances, for audits of worlds without pixels."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from isolux_curate.publication.people import combine_answers_by_person
from isolux_worlds.rehearsal import CLASSES

__all__ = ["DARKER", "LIGHTER", "SIDES", "coco_of", "one_tone"]

LIGHTER, DARKER, TONE = "1–6", "6–11", "perceived skin tone"
SIDES = ("tone=edges:1,6,11",)
_ASKED = {
    "perceived age group": "perceived_age", "perceived gender presentation": "perceived_gender",
}  # fmt: skip


def one_tone(marks: pl.DataFrame) -> pl.DataFrame:
    """Give each person one tone, as `isolux curate publish` does: ``instance_id, tone``.

    From ``instance_id, annotator, label`` (a row a mark).
    """
    said = marks.select("instance_id", "annotator", "label", question=pl.lit(TONE))
    return combine_answers_by_person(said).table.select("instance_id", tone="perceived_skin_tone")


def coco_of(people: pl.DataFrame, file: Path) -> None:
    """Write ``file, primary, x, y, w, h, tone`` and attributes as COCO's instances."""
    names = people["file"].unique(maintain_order=True).to_list()
    told = ["tone", *_ASKED.values(), "subject_id"]
    coco = {
        "images": [
            {"id": k, "file_name": name, "width": 320, "height": 240}
            for k, name in enumerate(names, 1)
        ],
        "categories": [{"id": k, "name": name} for k, name in enumerate(CLASSES, 1)],
        "annotations": [
            {"id": k, "image_id": names.index(row["file"]) + 1, "iscrowd": 0,
             "category_id": CLASSES.index(row["primary"]) + 1,
             "bbox": [float(row[side]) for side in "xywh"],
             "area": float(row["w"]) * float(row["h"]),
             "attributes": {name: row[name] for name in told if row.get(name) is not None}}
            for k, row in enumerate(people.iter_rows(named=True), 1)
        ],
    }  # fmt: skip
    file.write_text(json.dumps(coco))
