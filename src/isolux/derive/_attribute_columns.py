"""What every family of computed attributes shares: the columns that it reads, the rows it gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.io.cell_parsing import drop_sign_of_zero

BOX = ("box_x", "box_y", "box_w", "box_h")


def select_people_with_columns(
    dataset: Dataset, columns: Sequence[str], attribute: str
) -> pl.DataFrame:
    """Return the instances, or refuse a dataset that lacks what an attribute is computed from."""
    people = INSTANCES.conform(dataset.instances)
    missing = [c for c in columns if c not in people.columns or people[c].is_null().all()]
    if missing and people.height:
        raise SpecError(
            f"{attribute} cannot be computed",
            expected="instances with " + ", ".join(columns),
            found="nothing in " + ", ".join(missing),
            where=dataset.name,
        )
    return people.with_columns(pl.lit(None, dtype=pl.Float64).alias(c) for c in missing)


def add_image_size_px_or_null(
    people: pl.DataFrame, dataset: Dataset, attribute: str
) -> pl.DataFrame:
    """Add ``width`` and ``height`` of each one's image, in pixels; null where not known."""
    images = dataset.images
    has_sizes = {"width", "height"} <= set(images.columns) and images["width"].is_not_null().any()
    if people.height and not has_sizes:
        raise SpecError(
            f"{attribute} cannot be computed",
            expected="images with width and height",
            found="no size of any image",
            where=dataset.name,
        )
    if not has_sizes:
        return people.with_columns(
            width=pl.lit(None, dtype=pl.Int64), height=pl.lit(None, dtype=pl.Int64)
        )
    sizes = images.select("image_id", "width", "height")
    return people.drop("width", "height", strict=False).join(
        sizes, on="image_id", how="left", maintain_order="left"
    )


def build_attribute_rows(
    people: pl.DataFrame, attribute: str, *, text: pl.Expr | None = None, number: pl.Expr | None
) -> pl.DataFrame:
    """Give each person one row of the table ``attributes``."""
    number_column = pl.lit(None, dtype=pl.Float64) if number is None else number.cast(pl.Float64)
    rows = people.select("instance_id", number=number_column.fill_nan(None), word=text)
    if text is None:
        rows = rows.with_columns(
            word=drop_sign_of_zero(pl.col("number").round_sig_figs(4)).cast(pl.String)
        )
        rows = rows.with_columns(word=pl.col("word").str.strip_suffix(".0"))
    return ATTRIBUTES.conform(
        rows.select(
            unit_kind=pl.lit("instance"),
            unit_id="instance_id",
            attribute=pl.lit(attribute),
            value="word",
            number="number",
        )
    )


def _build_attribute_rows_with_reason(
    people: pl.DataFrame,
    attribute: str,
    numbers: npt.NDArray[np.float64],
    reason: npt.NDArray[np.object_],
    *,
    text: pl.Expr | None = None,
    is_text_only: bool = False,
) -> pl.DataFrame:
    """Give each person one row; ``reason`` says why there is no number, null where there is one.

    Shapes: ``numbers`` [n], ``reason`` [n].
    """
    with_numbers = people.select("instance_id").with_columns(
        pl.Series("_number", numbers, dtype=pl.Float64).fill_nan(None)
    )
    number = None if is_text_only else pl.col("_number")
    rows = build_attribute_rows(with_numbers, attribute, text=text, number=number)
    reasons = pl.Series("reason", reason.tolist(), dtype=pl.String)
    return rows.with_columns(reasons).with_columns(
        reason=pl.when(pl.col("value").is_null()).then("reason")
    )


def build_attribute_rows_of_columns(
    people: pl.DataFrame,
    numbers: npt.NDArray[np.float64],
    columns: Iterable[tuple[str, int, pl.Expr | None, npt.NDArray[np.object_]]],
) -> pl.DataFrame:
    """Give each person one row of every attribute.

    Shapes: ``numbers`` [n, k].
    """
    return pl.concat(
        _build_attribute_rows_with_reason(
            people, name, numbers[:, column], reason, text=word, is_text_only=word is not None
        )
        for name, column, word, reason in columns
    )


def read_person_boxes_xyxy(
    people: pl.DataFrame, xywh_columns: tuple[str, ...] = BOX
) -> npt.NDArray[np.float64]:
    """Give each one's box as left, upper, right, lower in annotated pixels: ``[n, 4]``; NaN: none.

    Boxes without width or height hold no pixel.
    """
    if not set(xywh_columns) <= set(people.columns):
        return np.full((people.height, 4), np.nan)
    x, y, w, h = (
        people[column].cast(pl.Float64).fill_null(np.nan).to_numpy().astype(float)
        for column in xywh_columns
    )
    boxes = np.column_stack([x, y, x + w, y + h])
    boxes[~np.isfinite(boxes).all(axis=1)] = np.nan
    return boxes
