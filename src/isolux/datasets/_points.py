"""Keypoints: COCO's flat list x, y, v, x, y, v, … to a column for each of the three."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from isolux.io.cells import row_of
from isolux.vocabulary.errors import TableError

NO_POINTS = {
    "keypoints_x": pl.List(pl.Float64),
    "keypoints_y": pl.List(pl.Float64),
    "keypoints_v": pl.List(pl.Int64),
    "keypoint_names": pl.List(pl.String),
}


def points_of(rows: pl.DataFrame, names: pl.Series, where: str) -> pl.DataFrame:
    """Part flat keypoints into x, y and visibility; where nothing is labelled x and y are null."""
    flat = rows["keypoints"]
    if not (flat.list.len().fill_null(0) > 0).any():
        return pl.DataFrame()
    _refuse_other_counts(rows, names, where)
    labelled = pl.when(pl.col("flat").list.len() > 0)
    frame = pl.DataFrame({"flat": flat, "keypoint_names": names}).with_columns(
        labelled.then(pl.col("flat")), labelled.then(pl.col("keypoint_names"))
    )
    x, y, v = (pl.col("flat").list.gather_every(3, i) for i in range(3))
    parted = frame.select(keypoints_x=x, keypoints_y=y, keypoints_v=v).with_row_index("row")
    long = parted.explode("keypoints_x", "keypoints_y", "keypoints_v")
    known = v.list.eval(pl.element().is_in([0.0, 1.0, 2.0]) | pl.element().is_null()).list.all()
    _refuse(
        ~frame.select(known).to_series(),
        "a keypoint's visibility is not known",
        lambda _: "0 (not labelled), 1 (hidden) or 2 (visible)",
        lambda row: str(flat[row].to_list()),
        rows,
        where,
    )
    n_labelled = frame.select(v.list.eval(pl.element() > 0).list.sum()).to_series()
    said = rows["num_keypoints"]
    _refuse(
        said != n_labelled,
        "num_keypoints is not how many keypoints are labelled",
        lambda row: f"{n_labelled[row]}, as many as have a visibility above 0",
        lambda row: str(said[row]),
        rows,
        where,
        hint="correct num_keypoints, or leave it out of the file",
    )
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


def _refuse_other_counts(rows: pl.DataFrame, names: pl.Series, where: str) -> None:
    lengths = rows["keypoints"].list.len().fill_null(0)
    known = names.list.len()
    _refuse(
        (lengths % 3 != 0) | ((lengths > 0) & (lengths != 3 * known)),
        "a person has a wrong count of keypoint numbers",
        lambda row: (
            "x, y and visibility of each keypoint"
            + (f" of the category: {3 * known[row]} numbers" if known[row] is not None else "")
        ),
        lambda row: f"{lengths[row]} numbers",
        rows,
        where,
    )


def _refuse(
    wrong: pl.Series,
    problem: str,
    expected: Callable[[int], str],
    found: Callable[[int], str],
    rows: pl.DataFrame,
    where: str,
    hint: str | None = None,
) -> None:
    """Refuse the first wrong annotation by its id: categories may have been left out."""
    wrong = wrong.fill_null(value=False)
    if wrong.any():
        row = row_of(wrong)
        raise TableError(
            f"{problem} ({wrong.sum():,} in all)",
            expected=expected(row),
            found=found(row),
            where=f"{where}, annotation {rows['id'][row]}, column 'annotations.keypoints'",
            hint=hint,
        )
