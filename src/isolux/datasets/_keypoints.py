"""Keypoints: COCO's flat list x, y, v, x, y, v, … to a column for each of the three."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from isolux.core.errors import TableError
from isolux.io.cell_parsing import first_true_row

KEYPOINT_SCHEMA = {
    "keypoints_x": pl.List(pl.Float64),
    "keypoints_y": pl.List(pl.Float64),
    "keypoints_v": pl.List(pl.Int64),
    "keypoint_names": pl.List(pl.String),
}


def split_coco_keypoints(
    rows: pl.DataFrame, keypoint_names: pl.Series, source: str
) -> pl.DataFrame:
    """Split flat keypoints into x, y and visibility; unlabelled x and y are null."""
    flat = rows["keypoints"]
    if not (flat.list.len().fill_null(0) > 0).any():
        return pl.DataFrame()
    _check_keypoint_counts(rows, keypoint_names, source)
    labelled = pl.when(pl.col("flat").list.len() > 0)
    frame = pl.DataFrame({"flat": flat, "keypoint_names": keypoint_names}).with_columns(
        labelled.then(pl.col("flat")), labelled.then(pl.col("keypoint_names"))
    )
    x, y, v = (pl.col("flat").list.gather_every(3, i) for i in range(3))
    by_coordinate = frame.select(keypoints_x=x, keypoints_y=y, keypoints_v=v).with_row_index("row")
    long = by_coordinate.explode("keypoints_x", "keypoints_y", "keypoints_v")
    is_known_visibility = v.list.eval(
        pl.element().is_in([0.0, 1.0, 2.0]) | pl.element().is_null()
    ).list.all()
    _raise_for_first_wrong_keypoints(
        ~frame.select(is_known_visibility).to_series(),
        "a keypoint's visibility is not known",
        lambda _: "0 (not labelled), 1 (hidden) or 2 (visible)",
        lambda row: str(flat[row].to_list()),
        rows,
        source,
    )
    n_labelled = frame.select(v.list.eval(pl.element() > 0).list.sum()).to_series()
    declared_counts = rows["num_keypoints"]
    _raise_for_first_wrong_keypoints(
        declared_counts != n_labelled,
        "num_keypoints is not how many keypoints are labelled",
        lambda row: f"{n_labelled[row]}, as many as have a visibility above 0",
        lambda row: str(declared_counts[row]),
        rows,
        source,
        hint="correct num_keypoints, or leave it out of the file",
    )
    labelled = pl.when(pl.col("keypoints_v") > 0)
    long = long.with_columns(
        labelled.then(pl.col("keypoints_x")),
        labelled.then(pl.col("keypoints_y")),
        pl.col("keypoints_v").cast(pl.Int64),
    )
    lists = long.group_by("row", maintain_order=True).agg(pl.exclude("row"))
    when_annotated = pl.when(frame["flat"].is_not_null())
    return (
        lists.drop("row")
        .hstack([frame["keypoint_names"]])
        .select(*(when_annotated.then(pl.col(name)).alias(name) for name in KEYPOINT_SCHEMA))
    )


def _check_keypoint_counts(rows: pl.DataFrame, keypoint_names: pl.Series, source: str) -> None:
    lengths = rows["keypoints"].list.len().fill_null(0)
    n_keypoints = keypoint_names.list.len()
    _raise_for_first_wrong_keypoints(
        (lengths % 3 != 0) | ((lengths > 0) & (lengths != 3 * n_keypoints)),
        "a person has a wrong count of keypoint numbers",
        lambda row: (
            "x, y and visibility of each keypoint"
            + (
                f" of the category: {3 * n_keypoints[row]} numbers"
                if n_keypoints[row] is not None
                else ""
            )
        ),
        lambda row: f"{lengths[row]} numbers",
        rows,
        source,
    )


def _raise_for_first_wrong_keypoints(
    is_wrong: pl.Series,
    problem: str,
    format_expected: Callable[[int], str],
    format_found: Callable[[int], str],
    rows: pl.DataFrame,
    source: str,
    hint: str | None = None,
) -> None:
    """Refuse the first wrong annotation by its id: categories may have been left out."""
    is_wrong = is_wrong.fill_null(value=False)
    if is_wrong.any():
        row = first_true_row(is_wrong)
        raise TableError(
            f"{problem} ({is_wrong.sum():,} in all)",
            expected=format_expected(row),
            found=format_found(row),
            where=f"{source}, annotation {rows['id'][row]}, column 'annotations.keypoints'",
            hint=hint,
        )
