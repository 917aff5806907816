"""One answer for everyone: a column that was filled down, a model that failed."""

from __future__ import annotations

import polars as pl

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._model_numbers import read_numbers

_MIN_PEOPLE = 20
_SHAPES = {"box_x", "mask_counts", "keypoints_x", "part"}

INFO = PlausibilityInfo(
    title="One answer for everyone",
    summary="Whether a model's labels, numbers or vectors are all the same.",
    rule=f"Warns from {_MIN_PEOPLE} answers on (classification has a caution of its own).",
    needs_predictions=True,
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where all answers of a model are one."""
    rows = inputs.predictions
    if rows is None or inputs.task == "classification" or _SHAPES & set(rows.columns):
        return []
    answers = [(numbers.model, pl.Series(numbers.values)) for numbers in read_numbers(inputs)]
    if not answers:
        column = "label" if "label" in rows.columns else "embedding"
        if column not in rows.columns:
            return []
        name = pl.col("model") if "model" in rows.columns else pl.lit("the file")
        by_model = rows.drop_nulls(column).group_by(name.alias("model"), maintain_order=True)
        answers = [(str(model), rows[column]) for (model,), rows in by_model]
    return [
        Caution(
            f"All {len(values):,} answers of {model!r} are {_format(values[0])}: nothing that is"
            " measured of them differs between people. Is that what the model answers?"
        )
        for model, values in answers
        if len(values) >= _MIN_PEOPLE and values.n_unique() == 1
    ]


def _format(answer: object) -> str:
    return "one vector" if isinstance(answer, pl.Series) else repr(answer)
