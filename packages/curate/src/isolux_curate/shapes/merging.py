"""One box, mask or pose of several drawings of an object, and how well each annotator draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import Masks
from isolux.geometry.rle import masks_from_edges
from isolux_curate.shapes.drawings import Drawings, Likeness
from isolux_curate.shapes.staple import staple

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
MaskRule = Literal["vote", "staple"]
_MOST = 62  # annotators of one mask: each is a bit
_AROUND = 4  # how many times the box around all drawings STAPLE looks at
_FAR = 1.345  # Huber's, in units of how finely people place a keypoint
_ROUNDS = 50


def median_box_xywh(boxes: FloatArray) -> FloatArray:
    """Take the median of each edge: ``[r, 4]`` to ``[4]``, left, top, width, height in pixels.

    Examples
    --------
    >>> median_box_xywh(np.array([[0.0, 0, 10, 10], [1, 0, 10, 10], [50, 0, 10, 10]])).tolist()
    [1.0, 0.0, 10.0, 10.0]
    """
    left_top = np.median(boxes[:, :2], axis=0)
    return np.concatenate([left_top, np.median(boxes[:, :2] + boxes[:, 2:], axis=0) - left_top])


def robust_pose(points: FloatArray, size_px: float, sigmas: FloatArray) -> FloatArray:
    """Merge ``[r, K, 3]`` keypoints to ``[K, 3]``: Huber's mean of those who labelled each.

    Shapes: ``points`` [r, K, 3], ``sigmas`` [K].

    Examples
    --------
    Two agree, a third took another person's nose:

    >>> drawn = np.array([[[10.0, 10, 2]], [[12.0, 10, 2]], [[90.0, 10, 2]]])
    >>> robust_pose(drawn, 100.0, np.array([0.026])).round(1).tolist()
    [[12.7, 10.0, 2.0]]
    """
    labelled = points[..., 2] > 0
    stands = labelled.sum(axis=0) * 2 > len(points)
    at = np.where(labelled[..., None], points[..., :2], np.nan)
    merged = np.zeros((points.shape[1], 3))
    if not stands.any():
        return merged
    at, near = at[:, stands], _FAR * sigmas[stands] * size_px
    centre = np.nanmedian(at, axis=0)
    for _ in range(_ROUNDS):
        away = np.linalg.norm(at - centre, axis=2)
        weight = np.where(np.isnan(away), 0.0, np.minimum(1.0, near / np.maximum(away, 1e-12)))
        last, centre = centre, _weighted(at, weight)
        if np.abs(centre - last).max() < 1e-9:
            break
    seen = (points[..., 2] > 1).sum(axis=0)[stands] * 2 > labelled.sum(axis=0)[stands]
    merged[stands] = np.column_stack([centre, np.where(seen, 2.0, 1.0)])
    return merged


def _weighted(at: FloatArray, weight: FloatArray) -> FloatArray:
    total = np.maximum(weight.sum(axis=0), 1e-12)
    return np.asarray((np.nan_to_num(at) * weight[..., None]).sum(axis=0) / total[:, None])


def merged_masks(masks: Masks, objects: Sequence[IntArray], rule: MaskRule) -> Masks:
    """Merge the masks of each object into one.

    Shapes: ``objects`` [r].

    Examples
    --------
    >>> from isolux.geometry.masks import masks_from_counts
    >>> side = np.full(3, 4)
    >>> three = masks_from_counts([[0, 6, 10], [0, 8, 8], [8, 8]], side, side)
    >>> merged_masks(three, [np.arange(3)], "vote").area_px.tolist()
    [6]
    """
    parts = [_merged(masks, rows, rule) for rows in objects]
    starts = np.append(0, np.cumsum([len(part) for part in parts]))
    edges = np.concatenate([*parts, np.empty(0, np.int32)]).astype(np.int32)
    first = np.array([rows[0] for rows in objects], dtype=np.int64)
    return masks_from_edges(edges, starts, masks.height[first], masks.width[first])


def _merged(masks: Masks, rows: IntArray, rule: MaskRule) -> npt.NDArray[np.int32]:
    """Walk the edges of all drawings at once: between two edges the same annotators drew."""
    drawn = [masks.edges[masks.starts[r] : masks.starts[r + 1]] for r in rows]
    at = np.concatenate(drawn)
    if not len(at):
        return np.empty(0, np.int32)
    bit = np.repeat(np.int64(1) << np.arange(len(rows), dtype=np.int64), [len(d) for d in drawn])
    order = np.argsort(at, kind="stable")
    at = at[order]
    pattern = np.bitwise_xor.accumulate(bit[order])[:-1]
    kept = _kept(masks, rows, pattern, np.diff(at), rule)
    turns = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    edges = at[turns]
    # Runs of no pixels, where two edges stand at one place, open and close there: they cancel.
    return _without_empty(edges)


def _kept(
    masks: Masks, rows: IntArray, pattern: IntArray, length: IntArray, rule: MaskRule
) -> npt.NDArray[np.bool_]:
    codes, which = np.unique(pattern, return_inverse=True)
    drew = (codes[:, None] >> np.arange(len(rows))) & 1 > 0
    if rule == "vote" or len(rows) > _MOST:
        return np.asarray((drew.sum(axis=1) * 2 > len(rows))[which])
    pixels = np.bincount(which, weights=length, minlength=len(codes))
    box = masks.box_xywh[rows][masks.area_px[rows] > 0]
    sides = (box[:, :2] + box[:, 2:]).max(axis=0) - box[:, :2].min(axis=0)
    someone = drew.any(axis=1)
    picture = float(masks.height[rows[0]] * masks.width[rows[0]])
    around = min(_AROUND * sides.prod(), picture) - pixels[someone].sum()
    none = np.zeros((1, len(rows)), dtype=np.bool_)
    counted = np.append(np.where(someone, pixels, 0.0), max(around, 0.0))
    chance = staple(np.concatenate([drew, none]), counted).chance[:-1]
    likely = someone & (chance > 0.5)
    return np.asarray(likely[which])


def _without_empty(edges: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Drop runs without pixels and join runs that touch."""
    kept = edges.reshape(-1, 2)
    kept = kept[kept[:, 0] < kept[:, 1]]
    if not len(kept):
        return np.empty(0, np.int32)
    opens = np.append(True, kept[1:, 0] > kept[:-1, 1])
    closes = np.append(opens[1:], True)
    return np.asarray(np.column_stack([kept[opens, 0], kept[closes, 1]]).ravel(), dtype=np.int32)


_REPLICATES, _LEVEL = 500, 0.95
_FEW = 5  # pictures below which an interval would promise too much
_SHARES = ("kept", "found", "alike")


def how_they_draw(drawn: Drawings, alike: Likeness, member: IntArray, least: int) -> pl.DataFrame:
    """Count for each annotator what others drew too, what they missed, and how alike they draw."""
    table = _cells(drawn, alike, member, least)
    who = drawn.rows["annotator"].unique().sort()
    rng = np.random.default_rng(0)
    found = []
    for name in who:
        cells = table.filter(annotator=name).drop("annotator", "image")
        sums = cells.to_numpy().astype(np.float64)
        found.append({"annotator": name, "images": len(sums), **_shares(sums, cells.columns, rng)})
    drawings = drawn.rows.group_by("annotator").agg(drawn=pl.len())
    bounds = [f"{s}{end}" for s in _SHARES for end in ("", "_low", "_high")]
    schema = {"annotator": pl.String, "images": pl.Int64} | dict.fromkeys(bounds, pl.Float64)
    return (
        pl.DataFrame(found, schema=schema)
        .join(drawings, on="annotator", maintain_order="left")
        .select("annotator", "images", "drawn", *bounds)
    )


def _shares(
    sums: FloatArray, columns: list[str], rng: np.random.Generator
) -> dict[str, float | None]:
    """Divide sums over pictures, as they are and resampled."""
    n = len(sums)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=_REPLICATES).astype(np.float64)
    drawn, whole = weights @ sums, sums.sum(axis=0)
    tail = (1 - _LEVEL) / 2
    told: dict[str, float | None] = {}
    for share in _SHARES:
        top, bottom = columns.index(share), columns.index(f"{share}_of")
        value = whole[top] / whole[bottom] if whole[bottom] else None
        told[share] = value
        with np.errstate(invalid="ignore"):
            again = drawn[:, top] / drawn[:, bottom]
        enough = value is not None and n >= _FEW
        low, high = np.nanquantile(again, [tail, 1 - tail]) if enough else (None, None)
        told |= {f"{share}_low": low, f"{share}_high": high}
    return told


def _cells(drawn: Drawings, alike: Likeness, member: IntArray, least: int) -> pl.DataFrame:
    """Sum, for each annotator and picture, what the shares are made of."""
    rows = pl.DataFrame(
        {"annotator": drawn.rows["annotator"], "image": drawn.image, "object": member}
    )
    asked = (
        rows.select("annotator", "image")
        .unique(maintain_order=True)
        .with_columns(others=pl.len().cast(pl.Int64).over("image") - 1)
    )
    drew = rows.with_columns(by=pl.len().over("object"), drew=pl.lit(value=True))
    objects = drew.unique("object").select("image", "object", "by")
    each = asked.join(objects, on="image").join(
        drew.select("annotator", "object", "drew"), on=["annotator", "object"], how="left"
    )
    mine = pl.col("drew").fill_null(value=False)
    drew_too = pl.col("by") - mine.cast(pl.Int64)
    judged = pl.col("others") > 0
    joined = mine & judged & (drew_too >= pl.col("others").clip(upper_bound=max(1, least - 1)))
    stands = judged & (drew_too >= pl.col("others").clip(upper_bound=max(1, least)))
    counted = each.group_by("annotator", "image").agg(
        kept=joined.sum(),
        kept_of=(mine & judged).sum(),
        found=(mine & stands).sum(),
        found_of=stands.sum(),
    )
    near = _near(drawn, alike, member)
    return counted.join(near, on=["annotator", "image"], how="left").fill_null(0)


def _near(drawn: Drawings, alike: Likeness, member: IntArray) -> pl.DataFrame:
    inside = member[alike.first] == member[alike.second]
    sides = [
        pl.DataFrame(
            {
                "annotator": drawn.rows["annotator"].gather(side[inside]),
                "image": drawn.image[side[inside]],
                "alike": alike.alike[inside],
            }
        )
        for side in (alike.first, alike.second)
    ]
    return (
        pl.concat(sides)
        .group_by("annotator", "image")
        .agg(pl.col("alike").sum(), alike_of=pl.len())
    )
