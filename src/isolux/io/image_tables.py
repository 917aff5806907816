"""The tables of pictures that a model made, and of values that were computed from them elsewhere.

Also how a user's own table is recognised as one of them, by its columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core.info import Reference
from isolux.core.schema import Column, Table
from isolux.io.ids import ID_COLUMNS

ARCHIVE_SEPARATOR = "::"
"""Parts an archive's path from the name of a file in it."""

FHIBE_API = Reference(
    key="fhibe-api",
    citation="Sony AI. (2025). FHIBE fairness benchmark API [Computer software].",
    url="https://github.com/SonyResearch/fhibe_evaluation_api",
)
"""The code that FHIBE's authors released: which pictures and values it writes."""

VALUE_COLUMNS = {
    "lpips": "lpips",
    "lpips_vgg": "lpips",
    "psnr": "psnr",
    "psnr_db": "psnr",
    "ssim": "ssim",
    "identity_cosine": "identity_cosine",
    "curricular_face": "identity_cosine",
    "curricularface": "identity_cosine",
}
"""Names of columns, in small letters, and the metric that each holds."""

_PREDICTION_COLUMNS = {"label", "prediction", "predicted", "predicted_label", "answer"}
_STRING = pl.String()

IMAGE_FILES = Table(
    "predictions (images)",
    "one picture that a model made, as a file that is opened when it is needed",
    (
        Column("model", _STRING, "name of the model"),
        Column("instance_id", _STRING, "the unit, or its image, as the file is named"),
        Column(
            "uri",
            _STRING,
            f"path of the file; in an archive: the archive's path, {ARCHIVE_SEPARATOR}, and the"
            " name in it",
        ),
    ),
    key=("model", "instance_id"),
    open=True,
)

UNIT_VALUES = Table(
    "predictions (values)",
    "one metric of one unit, computed elsewhere",
    (
        Column("model", _STRING, "name of the model"),
        Column("instance_id", _STRING, "the unit, or its image"),
        Column("metric", _STRING, "the metric's name"),
        Column(
            "value",
            pl.Float64(),
            "the value, in the metric's unit; null: none; infinite PSNR: identical pictures",
            nullable=True,
            finite=False,
        ),
    ),
    key=("model", "instance_id", "metric"),
)


def has_image_columns(columns: Sequence[str]) -> bool:
    """Tell whether a table names pictures: an id and a path for each."""
    has_id = any(name in columns for name in ID_COLUMNS)
    return "uri" in columns and has_id and "part" not in columns  # part masks have paths too


def has_value_columns(columns: Sequence[str]) -> bool:
    """Tell whether a table holds values computed elsewhere, and no answers."""
    folded = {name.strip().lower() for name in columns}
    if folded & _PREDICTION_COLUMNS:
        return False
    return bool(folded & set(VALUE_COLUMNS)) or {"instance_id", "metric", "value"} <= folded
