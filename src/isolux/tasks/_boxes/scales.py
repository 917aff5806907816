"""Boxes in pixels of pictures of another size, and boxes drawn larger than the dataset's.

A model that saw pictures at 640 pixels gives boxes of that size. Read as they are they still lie in
the picture and overlap some people a little. The truth tells: the size at which they overlap people
most is the one that they were drawn at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import BoxColumns, box_pairs_xywh
from isolux.tasks._boxes.looks import Look, overlapping, sides_of
from isolux.tasks._boxes.table import BOX, People, columns_of
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.notes import Caution

FloatArray = npt.NDArray[np.float64]
_ROOM, _CLEAR = 0.05, 0.3  # as for other readings
_POINTS_CLEAR = 0.5  # boxes around points vary more: a few points that are wrong stretch them
_MORE = 0.02  # by which a harder explanation must be the better one
_COARSE = 1.7 ** np.linspace(-1, 1, 45)
_FINE = 1.02 ** np.linspace(-1, 1, 9)
_MATCHED = 0.3  # overlap from which a box is taken to be drawn around that person
_FEWEST = 30  # such boxes, below which their sizes say nothing
_MARGIN = 0.1

_Scaled = Callable[[float], BoxColumns]


def refuse_other_scale(look: Look, people: People, plain: float, *, clear: float = _CLEAR) -> None:
    """Refuse boxes that overlap people far better when pictures are taken at another size."""
    few = _surest(look, people)
    overlap_of = overlapping(few, people)
    as_they_are = overlap_of(columns_of(few.found.rows))
    # A margin around people is no other size: smaller boxes of the same centres fit as well.
    centred, _ = _fitted(overlap_of, 1.0, _about_centres(few))
    best, scale, best_kind = plain, 1.0, ""
    for kind, first, scaled in _kinds(few, people):
        overlap, at = _fitted(overlap_of, first, scaled)
        if overlap > max(best, centred) + _MORE and overlap > as_they_are + _ROOM:
            best, scale, best_kind = overlap, at, kind
    if best_kind and best >= clear and best > plain + _ROOM:
        raise _other_scale(look, best_kind, scale, (best, plain))


def refuse_other_scale_of_points(look: Look, people: People) -> None:
    """Refuse keypoints of pictures of another size, by the boxes around them."""
    around = replace(people, rows=_around_points(people.rows))
    drawn = replace(look.found, rows=_around_points(look.found.rows))
    boxes = replace(look, found=drawn)
    plain = overlapping(boxes, around)(columns_of(drawn.rows))
    refuse_other_scale(boxes, around, plain, clear=_POINTS_CLEAR)


def _around_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Take the box around the keypoints that are there; one at (0, 0) was not found."""
    x, y = pl.col("keypoints_x"), pl.col("keypoints_y")
    points = rows.select(x, y).with_row_index("_row").explode("keypoints_x", "keypoints_y")
    there = points.filter(x.is_not_null() & y.is_not_null() & ((x != 0) | (y != 0)))
    boxes = there.group_by("_row").agg(
        box_x=x.min(), box_y=y.min(), box_w=x.max() - x.min(), box_h=y.max() - y.min()
    )
    plain = rows.drop(list(BOX), strict=False).with_row_index("_row")
    return plain.join(boxes, on="_row", how="left", maintain_order="left").drop("_row")


def _surest(look: Look, people: People) -> Look:
    """Keep twice as many detections a picture as there are people, those of the highest scores."""
    own = look.found.detections
    n_people = np.bincount(people.truths.image[look.people], minlength=int(own.image.max()) + 1)
    rank = pl.DataFrame({"image": own.image, "score": own.score}).select(
        pl.col("score").rank("ordinal", descending=True).over("image")
    )
    return look.only(rank.to_series().to_numpy() <= 2 * n_people[own.image])


def _kinds(look: Look, people: People) -> Iterator[tuple[str, float, _Scaled]]:
    """Give each way to scale, a first guess of its number, and the boxes at a number."""
    own = columns_of(look.found.rows)
    ratio_x, ratio_y = _ratios(look, people)
    if not np.isfinite([ratio_x, ratio_y]).all():
        return
    ratio = float(np.sqrt(ratio_x * ratio_y))

    def divided(x: FloatArray | float, y: FloatArray | float) -> _Scaled:
        return lambda at: BoxColumns(
            own.x * (x / at), own.y * (y / at), own.width * (x / at), own.height * (y / at)
        )

    yield "factor", ratio, divided(1, 1)
    sizes = sides_of(look.found.rows["image_id"], people.images)
    if sizes is None:
        return
    width, height = (np.nan_to_num(side, nan=float(np.nanmedian(side))) for side in sizes)
    longer, shorter = np.maximum(width, height), np.minimum(width, height)
    square = float(np.sqrt(ratio_x * np.median(width) * ratio_y * np.median(height)))
    yield "square", square, divided(width, height)
    yield "longer", ratio * float(np.median(longer)), divided(longer, longer)
    yield "shorter", ratio * float(np.median(shorter)), divided(shorter, shorter)


def _about_centres(look: Look) -> _Scaled:
    own = columns_of(look.found.rows)
    x, y = own.x + own.width / 2, own.y + own.height / 2
    return lambda at: BoxColumns(
        x - own.width / at / 2, y - own.height / at / 2, own.width / at, own.height / at
    )


def _ratios(look: Look, people: People) -> tuple[float, float]:
    """Guess how much farther from the picture's corner boxes lie than people do, in the middle."""
    centres = []
    for image, rows in (
        (look.found.detections.image, look.found.rows),
        (people.truths.image[look.people], people.rows.filter(pl.Series(look.people))),
    ):
        box = columns_of(rows)
        middle = {"image": image, "x": box.x + box.width / 2, "y": box.y + box.height / 2}
        centres.append(pl.DataFrame(middle).group_by("image").agg(pl.col("x", "y").mean()))
    both = centres[0].join(centres[1], on="image", suffix="_truth")
    found = both.select(
        (pl.col(c) / pl.col(f"{c}_truth")).filter(pl.col(f"{c}_truth") > 0).median().alias(c)
        for c in ("x", "y")
    ).row(0)
    ratio_x, ratio_y = (float(r) if r is not None and r > 0 else np.nan for r in found)
    return ratio_x, ratio_y


def _fitted(
    overlap_of: Callable[[BoxColumns], float], first: float, scaled: _Scaled
) -> tuple[float, float]:
    """Give the best average overlap around a first guess, and its number."""
    best, at = -1.0, first
    for steps in (_COARSE, _FINE):
        best, at = max((overlap_of(scaled(at * s)), at * s) for s in steps)
    return best, at


def _other_scale(look: Look, kind: str, at: float, overlaps: tuple[float, float]) -> TableError:
    row = [round(float(v), 1) for v in look.found.rows.select(BOX).row(0)]
    of_points = "keypoints_x" in look.found.rows.columns
    what, numbers = ("keypoints", "x and y") if of_points else ("boxes", "four numbers")
    side = f"{kind} side"
    said, factor = {
        "factor": (f"{at:.2f} times as large as in the dataset", f"about {1 / at:.3g}"),
        "square": (
            f"of pictures of {at:,.0f} × {at:,.0f} pixels",
            f"the picture's width / {at:.0f}, y and height by its height / {at:.0f}",
        ),
    }.get(
        kind,
        (f"of pictures whose {side} is {at:,.0f} pixels", f"the picture's {side} / {at:.0f}"),
    )
    which = "x and width" if kind == "square" else f"the {numbers}"
    return TableError(
        f"the {what} of {look.found.model!r} are {said}",
        expected="pixels of the pictures that the dataset describes",
        found=f"{row}; taken so, boxes overlap people by {overlaps[0]:.2f} on average, as they are"
        f" by {overlaps[1]:.2f}",
        hint=f"multiply {which} by {factor}; if the dataset's boxes or sizes are those of resized"
        " pictures, mend them there",
    )


def on_margins(look: Look, people: People) -> list[Caution]:
    """Caution where nearly all boxes are larger, or smaller, than the people whom they find."""
    drawn, truth = columns_of(look.found.rows), columns_of(people.rows)
    pairs = box_pairs_xywh(look.found.detections, people.truths, drawn, truth, lowest_iou=_MATCHED)
    kept = look.people[pairs.truth]
    rows = pl.DataFrame(
        {"truth": pairs.truth[kept], "detection": pairs.detection[kept], "iou": pairs.iou[kept]}
    )
    rows = rows.sort("iou", descending=True).unique("truth", keep="first", maintain_order=True)
    if rows.height < _FEWEST:
        return []
    one, other = rows["detection"].to_numpy(), rows["truth"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        area = (drawn.width[one] * drawn.height[one]) / (truth.width[other] * truth.height[other])
    ratio = np.sqrt(area[np.isfinite(area) & (area > 0)])
    low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9]) if len(ratio) else (1.0, 1.0, 1.0)
    if not (middle > 1 + _MARGIN and low > 1) and not (middle < 1 / (1 + _MARGIN) and high < 1):
        return []
    return [
        Caution(
            f"Boxes of {look.found.model!r} have {middle:.2f} times the side of the people whom"
            f" they find (middle of {len(ratio):,}; nine in ten are"
            f" {'larger' if middle > 1 else 'smaller'}): overlaps tell how boxes are drawn as much"
            " as who is found. Are they in pixels of these pictures?"
        )
    ]
