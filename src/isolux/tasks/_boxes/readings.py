"""How four numbers are a box, and whether predictions fit their pictures when they are read so.

Corners read as a width and height still overlap people, only less: the audit runs, and every number
is wrong. The truth tells: the reading under which predictions overlap people most is the right one.
The same question finds predictions that are about other pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import BoxColumns
from isolux.geometry.matching import Pairs
from isolux.tasks._boxes.looks import Look, look_at, on_repeats, overlap_of, overlapping, sides_of
from isolux.tasks._boxes.pictures import on_silent
from isolux.tasks._boxes.scales import (
    on_margins,
    refuse_other_scale,
    refuse_other_scale_of_points,
)
from isolux.tasks._boxes.table import BOX, Found, People, columns_of
from isolux.vocabulary.errors import IsoluxError, JoinError, SpecError, TableError
from isolux.vocabulary.notes import Caution

BoxFormat = Literal["xywh", "xyxy", "cxcywh", "yxhw", "yxyx", "xywhn", "xyxyn", "cxcywhn"]
"""Left, top, width, height; two corners; the centre and the sides; ``y`` before ``x``; with ``n``,
as shares of the picture's sides."""

FloatArray = npt.NDArray[np.float64]
_BLOCK = 1 << 14  # rows looked at together
_ROOM = 0.05  # more overlap, on average, than chance or another reading leaves open
_CLEAR = 0.3  # the average overlap from which a reading is believed
_OUTSIDE = 0.2
_TURNED = 0.02  # more boxes outside their pictures, on the side that is turned


_READINGS: Mapping[str, Callable[..., BoxColumns]] = {
    "xywh": BoxColumns,
    "xyxy": lambda a, b, c, d: BoxColumns(a, b, c - a, d - b),
    "cxcywh": lambda a, b, c, d: BoxColumns(a - c / 2, b - d / 2, c, d),
    "yxhw": lambda a, b, c, d: BoxColumns(b, a, d, c),
    "yxyx": lambda a, b, c, d: BoxColumns(b, a, d - b, c - a),
}


def as_xywh(frame: pl.DataFrame, box_format: BoxFormat, images: pl.DataFrame) -> pl.DataFrame:
    """Read the four columns of boxes as ``box_format`` says, and write them as left, top, sides.

    Examples
    --------
    >>> corners = pl.DataFrame({"image_id": ["1"], "box_x": [10.0], "box_y": [20.0],
    ...     "box_w": [30.0], "box_h": [60.0]})
    >>> as_xywh(corners, "xyxy", pl.DataFrame()).row(0)
    ('1', 10.0, 20.0, 20.0, 40.0)
    """
    if box_format == "xywh" or not frame.height:
        return frame
    four = [frame[name].cast(pl.Float64).to_numpy() for name in BOX]
    if box_format.endswith("n"):
        sizes = sides_of(frame["image_id"], images)
        if sizes is None:
            raise SpecError(
                f"box_format={box_format} needs the sizes of the pictures",
                expected="a dataset whose images have width and height",
                found="none",
            )
        four = [values * side for values, side in zip(four, (*sizes, *sizes), strict=True)]
    box = _READINGS[box_format.removesuffix("n")](*four)
    wrong = (box.width < 0) | (box.height < 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise TableError(
            f"{int(wrong.sum()):,} box(es) have a negative side when read as {box_format}",
            expected=f"four numbers that are {box_format}",
            found=str([frame[name][row] for name in BOX]),
            where=f"predictions, row {row + 1}",
        )
    sides = zip(BOX, (box.x, box.y, box.width, box.height), strict=True)
    return frame.with_columns(pl.Series(name, values).fill_nan(None) for name, values in sides)


def examined(found: Found, people: People, pairs_of: Callable[[Found, People], Pairs]) -> list[str]:
    """Ask whether predictions fit the pictures and the way in which they were read."""
    repeats = on_repeats(found)
    peopled = np.unique(people.truths.image[people.scored.to_numpy()])
    silent = on_silent(peopled, np.asarray(found.detections.image), found.model)
    notes = [*repeats, *_on_scores(found), *_on_edges(found, people), *silent]
    look = look_at(found, people)
    if look is None:
        return notes
    boxes = set(BOX) <= set(found.rows.columns) and not found.rows["box_x"].is_null().any()
    if boxes and people.rows["box_x"].is_not_null().any():
        _refuse_other_reading(look, people)
        notes += on_margins(look, people)
    if {"keypoints_x"} <= set(found.rows.columns) & set(people.rows.columns):
        refuse_other_scale_of_points(look, people)
    own = overlap_of(pairs_of(look.found, people), look)
    return notes + _on_pictures(look, people, pairs_of, own)


def _refuse_other_reading(look: Look, people: People) -> None:
    own = columns_of(look.found.rows)
    given = (own.x, own.y, own.width, own.height)
    overlap = overlapping(look, people)
    plain = overlap(own)
    others = {name: overlap(read(*given)) for name, read in _READINGS.items() if name != "xywh"}
    sizes = sides_of(look.found.rows["image_id"], people.images)
    if sizes is not None and all(np.nanmax(np.abs(c), initial=0) <= 2 for c in given):
        scaled = [c * side for c, side in zip(given, (*sizes, *sizes), strict=True)]
        others |= {f"{n}n": overlap(_READINGS[n](*scaled)) for n in ("xywh", "xyxy", "cxcywh")}
    best = max(others, key=lambda name: others[name])
    if others[best] >= _CLEAR and others[best] > plain + _ROOM:
        raise _other_reading(look, people, best, (others[best], plain))
    refuse_other_scale(look, people, plain)


def _other_reading(
    look: Look, people: People, best: str, overlaps: tuple[float, float]
) -> TableError:
    own, model = columns_of(look.found.rows), look.found.model
    row = [round(float(c[0]), 2) for c in (own.x, own.y, own.width, own.height)]
    expected = "left, top, width, height in pixels"
    found = (
        f"{row}; read as {best} they overlap people by {overlaps[0]:.2f} on average, read as xywh"
        f" by {overlaps[1]:.2f}"
    )
    hint = f"--option box_format={best} (box_format={best!r})"
    problem = f"the boxes of {model!r} are {best}, and were read as xywh"
    if best == "yxhw":  # then the dataset's boxes, read so, overlap the predictions as well
        drawn = _leaving(own, look.found.rows["image_id"], people)
        judged = _leaving(columns_of(people.rows), people.rows["image_id"], people)
        turn = "and width and height) in the annotations"
        if judged > drawn + _TURNED:
            problem = "the boxes of the dataset have x and y exchanged"
            expected = f"boxes inside their pictures, as those of {model!r} are"
            found = (
                f"{100 * judged:.0f} % of the dataset's boxes leave their pictures, of the"
                f" predictions {100 * drawn:.0f} %"
            )
            hint = f"exchange x and y ({turn}"
        elif abs(judged - drawn) <= _TURNED:
            problem = f"the boxes of {model!r} have x and y exchanged, or those of the dataset have"
            hint = (
                f"if it is the predictions: {hint}; if it is the dataset, exchange x and y in the"
                " annotations"
            )
    return TableError(problem, expected=expected, found=found, hint=hint)


def _leaving(box: BoxColumns, image_ids: pl.Series, people: People) -> float:
    """Give the share of boxes that leave their pictures by more than a pixel or two."""
    sizes = sides_of(image_ids, people.images)
    if sizes is None:
        return 0.0
    out = (box.x + box.width > 1.01 * sizes[0] + 1) | (box.y + box.height > 1.01 * sizes[1] + 1)
    return float(out.mean())


def _on_pictures(
    look: Look, people: People, pairs_of: Callable[[Found, People], Pairs], own: float
) -> list[Caution]:
    n = len(look.pictures)
    if n < 10:
        return []

    def overlap_moved(by: int) -> float:
        try:
            return overlap_of(pairs_of(look.moved(by), people), look)
        except IsoluxError:
            return 0.0  # masks of pictures of unequal sizes cannot be exchanged

    for by, which in ((1, "next"), (-1, "last")):
        moved = overlap_moved(by)
        if moved >= _CLEAR and moved > own + 4 * _ROOM:
            raise JoinError(
                f"the predictions of {look.found.model!r} belong to other pictures",
                expected="each prediction under the picture that it is about",
                found=f"overlap of {own:.2f} with people in their own picture, and of {moved:.2f}"
                f" with those of the {which} one",
                hint="a row was lost or put in where picture ids were written",
            )
    far = max(overlap_moved(n // 2), overlap_moved(n // 3))
    if own > far + _ROOM:
        return []
    return [
        Caution(
            f"The predictions of {look.found.model!r} overlap the people of their pictures no"
            f" better than those of other pictures ({own:.2f} and {far:.2f} on average). Are they"
            " of these pictures, and in pixels of them at this size?"
        )
    ]


def _on_scores(found: Found) -> list[Caution]:
    score = found.detections.score
    if not len(score) or (score.min() >= 0 and score.max() <= 1 + 1e-6):
        return []
    text = f"Scores of {found.model!r} run from {score.min():g} to {score.max():g}, not from 0 to 1"
    return [
        Caution(f"{text}: their order is used unchanged, and a score threshold is on that scale.")
    ]


def _on_edges(found: Found, people: People) -> list[Caution]:
    """Caution where many boxes leave their picture by more than a tenth of its side."""
    images, n = people.images.sort("image"), found.rows.height
    sizes = sides_of(images["image_id"], images)
    if not set(BOX) <= set(found.rows.columns) or not n or sizes is None:
        return []
    box, beyond = columns_of(found.rows), 0
    for start in range(0, n, _BLOCK):  # all at once would go through memory a dozen times
        part = slice(start, start + _BLOCK)
        width, height = (side[found.detections.image[part]] for side in sizes)
        x, y = box.x[part], box.y[part]
        right, lower = x + box.width[part], y + box.height[part]
        out = (x < -0.1 * width) | (y < -0.1 * height)
        beyond += int((out | (right > 1.1 * width) | (lower > 1.1 * height)).sum())
    if beyond <= _OUTSIDE * n:
        return []
    return [
        Caution(
            f"{beyond:,} of {n:,} boxes of {found.model!r} leave their pictures by a"
            " tenth of a side or more. Are they left, top, width, height in pixels? --option"
            " box_format names other orders."
        )
    ]
