"""Keypoints: COCO's flat list x, y, v, x, y, v, … to a column for each of the three."""

from __future__ import annotations

import polars as pl

from isolux.io.refusals import refuse_cells

NO_POINTS = {
    "keypoints_x": pl.List(pl.Float64),
    "keypoints_y": pl.List(pl.Float64),
    "keypoints_v": pl.List(pl.Int64),
    "keypoint_names": pl.List(pl.String),
}


def points_of(flat: pl.Series, names: pl.Series, where: str, field: str) -> pl.DataFrame:
    """Part flat keypoints into x, y and visibility; where nothing is labelled x and y are null."""
    lengths = flat.list.len().fill_null(0)
    if not (lengths > 0).any():
        return pl.DataFrame()
    _refuse_other_counts(lengths, names, where, field)
    labelled = pl.when(pl.col("flat").list.len() > 0)
    frame = pl.DataFrame({"flat": flat, "keypoint_names": names}).with_columns(
        labelled.then(pl.col("flat")), labelled.then(pl.col("keypoint_names"))
    )
    x, y, v = (pl.col("flat").list.gather_every(3, i) for i in range(3))
    parted = frame.select(keypoints_x=x, keypoints_y=y, keypoints_v=v).with_row_index("row")
    long = parted.explode("keypoints_x", "keypoints_y", "keypoints_v")
    known = v.list.eval(pl.element().is_in([0.0, 1.0, 2.0]) | pl.element().is_null()).list.all()
    odd = ~frame.select(known).to_series()
    expected = "0 (not labelled), 1 (hidden) or 2 (visible)"
    refuse_cells(odd, flat, "a keypoint's visibility is not known", expected, where, column=field)
    labelled = pl.when(pl.col("keypoints_v") > 0)
    long = long.with_columns(
        labelled.then(pl.col("keypoints_x")),
        labelled.then(pl.col("keypoints_y")),
        pl.col("keypoints_v").cast(pl.Int64),
    )
    back = long.group_by("row", maintain_order=True).agg(pl.exclude("row"))
    nobody = pl.when(frame["flat"].is_not_null())
    return (
        back.drop("row")
        .hstack([frame["keypoint_names"]])
        .select(*(nobody.then(pl.col(name)).alias(name) for name in NO_POINTS))
    )


def _refuse_other_counts(lengths: pl.Series, names: pl.Series, where: str, field: str) -> None:
    wrong = (lengths % 3 != 0) | ((lengths > 0) & (lengths != 3 * names.list.len()))
    problem = "a person has a wrong count of keypoint numbers"
    expected = "x, y and visibility of each keypoint of the category"
    refuse_cells(wrong, lengths, problem, expected, where, column=field)
