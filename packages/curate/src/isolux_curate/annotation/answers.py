"""One answer in the project's own form, whoever brought it; painted masks as COCO's.

{"choices": {question: [answer, …]},
     "boxes": [{"label", "secondary", "x", "y", "w", "h"}], "polygons": [{"label", "points"}],
     "masks": [{"label", "counts", "height", "width"}]}

Boxes, points and masks (COCO's compressed run lengths) are in pixels of the photo turned upright.

Label Studio packs the picture of a brush, four bytes a pixel, by the format ``rle-pack`` of
thi.ng/umbrella (run-length encoding of bits; https://thi.ng/rle-pack). What counts is the fourth
byte: how opaque the paint is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.geometry.masks import masks_from_counts, masks_to_coco
from isolux_curate.annotation.stages import SECONDARY, UNKNOWN, Stage
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import find_revoked_photos, read_table

_CHANNELS = 4
_MOST = 1 << 28  # pixels; more is no photo


def painted(rle: Sequence[int], shown: tuple[int, int], size: tuple[int, int]) -> dict[str, Any]:
    """Read a brush's mask.

    Examples
    --------
    A picture of 2 × 1 pixels whose right one is painted: 8 values of 8 bits in two runs of 4.

    >>> bits = f"{8:032b}" + f"{7:05b}" + f"{1:04b}" * 4
    >>> bits += "100" + "11" + f"{0:08b}" + "100" + "11" + f"{255:08b}"
    >>> bits += "0" * (-len(bits) % 8)
    >>> rle = [int(bits[k : k + 8], 2) for k in range(0, len(bits), 8)]
    >>> painted(rle, (2, 1), (2, 1))["counts"]
    '11'
    """
    from isolux_curate.annotation.brush_kernels import COUNT_BITS, unpack

    wide, high = shown
    number = wide * high * _CHANNELS
    try:
        data = np.array(rle, dtype=np.uint8)
    except (OverflowError, TypeError, ValueError):
        data = np.empty(0, dtype=np.uint8)
    head = COUNT_BITS // 8
    told = int.from_bytes(data[:head].tobytes(), "big")
    if data.ndim != 1 or len(data) <= head or told != number or not 0 < number < _MOST:
        return {"trouble": "what was painted is not a mask of this picture: please paint it again."}
    values = np.zeros(number, dtype=np.uint8)
    if not unpack(data, values):
        return {"trouble": "what was painted is cut off: please paint it again."}
    bits = values.reshape(high, wide, _CHANNELS)[..., _CHANNELS - 1] > 0
    return _as_coco(_stretched(bits, size))


def _stretched(bits: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Take for each pixel of the photo the one of the picture that lies at its centre."""
    high, wide = bits.shape
    rows, columns = (
        ((np.arange(now) + 0.5) * before / now).astype(np.int64)
        for now, before in ((size[1], high), (size[0], wide))
    )
    return np.asarray(bits[rows[:, None], columns[None, :]])


def _as_coco(bits: np.ndarray) -> dict[str, Any]:
    height, width = bits.shape
    flat = bits.ravel(order="F").astype(np.int8)
    turns = np.flatnonzero(np.diff(flat, prepend=np.int8(0)))
    counts = np.diff(np.concatenate([[0], turns, [flat.size]]))
    masks = masks_from_counts([counts.tolist()], np.array([height]), np.array([width]))
    return {"counts": masks_to_coco(masks)[0]["counts"].decode(), "height": height, "width": width}


Answer = dict[str, Any]
_ROUNDING = 0.005  # of a side, by which a box may leave the photo: a drawing tool's rounding


def from_label_studio(result: Sequence[Mapping[str, Any]], width: int, height: int) -> Answer:
    """Read the ``result`` of an annotation; its coordinates are per cent of the picture.

    Examples
    --------
    >>> box = {"x": 10, "y": 20, "width": 50, "height": 40, "rectanglelabels": ["nurse"]}
    >>> drawn = {"id": "r1", "type": "rectanglelabels", "from_name": "primary", "value": box}
    >>> from_label_studio([drawn], 400, 300)["boxes"][0]["x"]
    40.0
    """
    choices: dict[str, list[str]] = {}
    regions: dict[str, dict[str, Any]] = {}
    for row in result:
        value = row.get("value") or {}
        kind = str(row.get("type"))
        if kind == "choices" and row.get("from_name") == SECONDARY:
            region = regions.setdefault(str(row.get("id")), {})
            region[SECONDARY] = (value.get("choices") or [None])[0]
        elif kind == "choices":
            choices[str(row.get("from_name"))] = [str(one) for one in value.get("choices", [])]
        elif kind in ("rectanglelabels", "polygonlabels", "brushlabels"):
            region = regions.setdefault(str(row.get("id")), {})
            region |= {"label": (value.get(kind) or [None])[0]} | _drawn(row, value, width, height)
    answer: Answer = {"choices": choices} if choices else {}
    for kind, mark in _MARKS:
        found = [r for r in regions.values() if mark in r or (kind == "masks" and "trouble" in r)]
        if found:
            answer[kind] = found
    return answer


_MARKS = (("boxes", "w"), ("polygons", "points"), ("masks", "counts"))


def _drawn(
    row: Mapping[str, Any], value: Mapping[str, Any], width: int, height: int
) -> dict[str, Any]:
    across, down = width / 100, height / 100
    if row["type"] == "brushlabels":
        shown = (int(row.get("original_width") or 0), int(row.get("original_height") or 0))
        return painted(value.get("rle") or (), shown, (width, height))
    if "points" in value:
        return {"points": [[round(x * across, 2), round(y * down, 2)] for x, y in value["points"]]}
    return {
        "x": round(float(value["x"]) * across, 2),
        "y": round(float(value["y"]) * down, 2),
        "w": round(float(value["width"]) * across, 2),
        "h": round(float(value["height"]) * down, 2),
    }


def fault(
    stage: Stage, answer: Answer, size: tuple[int, int], classes: Sequence[str]
) -> str | None:
    """Say why an answer does not count, in words for the person who gave it; None: it counts.

    Examples
    --------
    >>> from isolux_curate.annotation.stages import STAGES
    >>> yes = {"is the box tight?": ["yes"], "is the class right?": ["yes"]}
    >>> one = {"choices": {"perceived skin tone": ["3"], **yes}}
    >>> fault(STAGES["skin_tone"], one, (40, 30), ())
    'perceived skin tone: mark at least 2 values next to one another, not 3.'
    >>> two = {"choices": {"perceived skin tone": ["3", "4"], **yes}}
    >>> fault(STAGES["skin_tone"], two, (40, 30), ()) is None
    True
    """
    said = answer.get("choices", {})
    for question, answers in stage.choices.items():
        given = said.get(question, [])
        strange = [one for one in given if one not in answers]
        if strange:
            return f"{question}: {strange[0]!r} is not one of the answers."
        if not given:
            return f"{question}: no answer."
        if question in stage.consecutive and (why := _apart(given, answers, stage)):
            return f"{question}: {why}"
    known = stage.labels or classes
    drawn = [shape for kind, _ in _MARKS for shape in answer.get(kind, ())]
    if stage.draws and (unknown := [d for d in drawn if d.get("label") not in known]):
        return f"{unknown[0].get('label')!r} is not one of the classes."
    return next((why for d in drawn if (why := _outside(d, size))), None)


def _apart(given: Sequence[str], answers: Sequence[str], stage: Stage) -> str | None:
    places = sorted(answers.index(one) for one in given if one != UNKNOWN)
    if not places and UNKNOWN in given:
        return None
    run = places and places[-1] - places[0] == len(places) - 1
    if run and (len(places) >= stage.least_consecutive or UNKNOWN in given):
        return None
    told = ", ".join(answers[place] for place in places)
    return f"mark at least {stage.least_consecutive} values next to one another, not {told}."


def _outside(drawn: Mapping[str, Any], size: tuple[int, int]) -> str | None:
    if "trouble" in drawn:
        return str(drawn["trouble"])
    if "counts" in drawn:  # stretched to the photo: no pixel of it lies outside
        pixels = drawn["width"] * drawn["height"]
        return "a mask has no area." if drawn["counts"] == _empty(pixels) else None
    points = drawn.get("points") or [
        (drawn["x"], drawn["y"]),
        (drawn["x"] + drawn["w"], drawn["y"] + drawn["h"]),
    ]
    if "w" in drawn and min(drawn["w"], drawn["h"]) <= 0:
        return "a box has no area."
    for at, side in enumerate(size):
        slack = _ROUNDING * side
        if any(not -slack <= point[at] <= side + slack for point in points):
            return "what was drawn leaves the photo."
    return None


def _empty(pixels: int) -> str:
    """Write a mask of no pixels, as COCO's run lengths do: one run."""
    masks = masks_from_counts([[pixels]], np.array([pixels]), np.array([1]))
    found: bytes = masks_to_coco(masks)[0]["counts"]
    return found.decode()


def read_answers(project: Project, stage: str, *, everything: bool = False) -> pl.DataFrame:
    """Read the answers that count, one row an answer to a question, or a drawn shape."""
    given = read_table(project, "annotations")
    asked = read_table(project, "tasks").filter(stage=stage)
    joined = given.join(
        asked.select("task_id", "unit_id", "image_id", "round", "golden"), on="task_id"
    ).filter(~pl.col("image_id").is_in(list(find_revoked_photos(project))))
    if not everything:
        joined = joined.filter(~pl.col("golden"), pl.col("status") == "stands")
        last = pl.col("round").max().over("unit_id", "annotator_id")
        joined = joined.filter(pl.col("round") == last)  # who was asked again answers once
    rows: list[dict[str, Any]] = []
    for row in joined.iter_rows(named=True):
        head = {
            "instance_id": row["unit_id"],
            "image_id": row["image_id"],
            "annotator": row["annotator_id"],
            "round": row["round"],
            "annotation_id": row["annotation_id"],
            "status": row["status"],
        }
        answer = json.loads(row["answer"])
        rows += [
            head | {"question": question, "label": one}
            for question, answers in answer.get("choices", {}).items()
            for one in answers
        ]
        rows += [head | _shape(one) for kind, _ in _MARKS for one in answer.get(kind, ())]
    return pl.DataFrame(rows, schema=_ANSWERS)


def _shape(one: Mapping[str, Any]) -> dict[str, Any]:
    """Write a drawn shape as a row."""
    told: dict[str, Any] = {"question": "box" if "w" in one else "mask", "label": one["label"]}
    if "points" in one:
        told["points"] = json.dumps(one["points"])
    elif "counts" in one:
        size = [one["height"], one["width"]]
        told["mask"] = json.dumps({"size": size, "counts": one["counts"]})
    return told | {side: one.get(side) for side in "xywh"}


_ANSWERS = {
    "instance_id": pl.String,
    "image_id": pl.String,
    "annotator": pl.String,
    "question": pl.String,
    "label": pl.String,
    "x": pl.Float64,
    "y": pl.Float64,
    "w": pl.Float64,
    "h": pl.Float64,
    "points": pl.String,
    "mask": pl.String,
    "round": pl.Int64,
    "annotation_id": pl.String,
    "status": pl.String,
}
