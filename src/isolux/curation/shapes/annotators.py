"""How well each annotator draws, judged by the others alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.curation.shapes.drawings import Drawings, Likeness

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_REPLICATES, _LEVEL = 500, 0.95
_FEW = 5  # pictures below which an interval would promise too much
_SHARES = ("kept", "found", "alike")


def how_they_draw(
    drawn: Drawings, alike: Likeness, member: IntArray, least: int, seed: int
) -> pl.DataFrame:
    """Count for each annotator what others drew too, what they missed, and how alike they draw."""
    table = _cells(drawn, alike, member, least)
    who = drawn.rows["annotator"].unique().sort()
    rng = np.random.default_rng(seed)
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
