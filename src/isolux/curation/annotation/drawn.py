"""What annotators drew as a COCO file, one annotation a drawing, with who drew it.

``isolux curate shapes coco:drawn.json`` takes it: one box or mask an object, of all drawings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.curation.annotation.pictures import upright
from isolux.curation.annotation.stages import Stage
from isolux.curation.project.folder import Project
from isolux.curation.project.reading import read_images
from isolux.geometry.masks import masks_from_coco
from isolux.io.atomic import write_text
from isolux.vocabulary.errors import SpecError

__all__ = ["write_drawn"]

_LEAST = 3  # corners of an outline


def write_drawn(project: Project, stage: Stage, answers: pl.DataFrame, file: Path) -> int:
    """Write the boxes, outlines and painted masks of a stage; how many there are."""
    if stage.draws is None:
        raise SpecError(
            "nothing is drawn in this stage", expected="boxes or masks, for a file of COCO's form",
            found=stage.name, where=str(file), hint="a CSV holds the answers to questions",
        )  # fmt: skip
    size = {row["image_id"]: _size(row) for row in read_images(project).iter_rows(named=True)}
    held = answers.filter(pl.col("image_id").is_in(list(size)))
    number = {name: k for k, name in enumerate(held["image_id"].unique(maintain_order=True), 1)}
    labels = stage.labels or project.classes
    category = {name: k for k, name in enumerate(labels, 1)}
    rows = [
        {"id": k, "image_id": number[row["image_id"]], "category_id": category[row["label"]],
         "iscrowd": 0, **_shape(row, size[row["image_id"]]),
         "attributes": {"annotator": row["annotator"], "unit": row["instance_id"]}}
        for k, row in enumerate(held.iter_rows(named=True), 1)
    ]  # fmt: skip
    coco = {
        "images": [
            {"id": k, "file_name": name, "width": size[name][0], "height": size[name][1]}
            for name, k in number.items()
        ],
        "categories": [{"id": k, "name": name} for name, k in category.items()],
        "annotations": rows,
    }
    write_text(file, json.dumps(coco))
    return len(rows)


def _size(row: Mapping[str, Any]) -> tuple[int, int]:
    return upright(row["width"] or 0, row["height"] or 0, row.get("orientation"))


def _shape(row: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    if row["points"] is None and row["mask"] is None:
        sides = [row[side] for side in "xywh"]
        return {"bbox": sides, "area": sides[2] * sides[3]}
    drawn: Any = json.loads(row["mask"]) if row["mask"] is not None else _corners(row["points"])
    width, height = size
    mask = masks_from_coco([drawn], np.array([height]), np.array([width]))
    return {
        "segmentation": drawn, "area": int(mask.area_px[0]), "bbox": mask.box_xywh[0].tolist(),
    }  # fmt: skip


def _corners(points: str) -> list[list[float]]:
    """Write an outline as COCO does; two corners or fewer hold no pixel."""
    corners = json.loads(points)
    corners += corners[-1:] * (_LEAST - len(corners))
    return [[side for corner in corners for side in corner]]
