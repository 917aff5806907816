"""Answers that are all right: most likely the truth was given as the answers."""

from __future__ import annotations

import polars as pl

from isolux.core.counts import TIMES
from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import SHAPE_TASKS, AuditInputs

_MIN_PEOPLE = 100
# A model that is right for 97 of 100 people, more than is usual where people are audited, is right
# for 100 of 100 in 5 audits of 100.
_MIN_PEOPLE_WITH_NUMBERS = 20
# A predicted number is exactly the true one for all of 20 people in no honest file.
_IS_RIGHT = {
    "classification": pl.col("correct").cast(pl.Float64) == 1.0,
    "errors": pl.col("absolute_error") == 0.0,
}
"""By name of evidence: whether an answer is exactly the truth; null: not judged."""
_ROUNDING = 1e-6  # of a similarity in single precision

INFO = PlausibilityInfo(
    title="Answers that are all right",
    summary="Whether truth and answers are one column, or every answer is exactly the truth, which "
    "has several values.",
    rule=f"Warns from {_MIN_PEOPLE} judged people on; where numbers or shapes are predicted, from "
    f"{_MIN_PEOPLE_WITH_NUMBERS}; of one column always.",
    tasks=("classification", "regression", "age_estimation", *SHAPE_TASKS),
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where a model's answers are the truth, person for person."""
    target = inputs.options.get("target")
    columns = (inputs.options.get("prediction_column"), inputs.options.get("score_column"))
    if target is not None and inputs.options.get("predictions") is None and target in columns:
        message = f"{target!r} is named as the truth and as the answers: no answer can be wrong."
        return [Caution(f"{message} --prediction-column names the model's own.")]
    cautions: list[Caution] = []
    for name, is_right in _IS_RIGHT.items():
        evidence = inputs.scores.evidence.get(name)
        if evidence is None:
            continue
        people = (
            inputs.add_people_counts(evidence)
            .lazy()
            .with_columns(is_right=is_right)
            .drop_nulls("is_right")
        )
        counts = people.group_by("model", maintain_order=True).agg(
            n=pl.col(TIMES).sum(),
            n_truths=pl.col("truth").n_unique(),
            is_perfect=pl.col("is_right").all(),
        )
        min_people = _MIN_PEOPLE if name == "classification" else _MIN_PEOPLE_WITH_NUMBERS
        perfect = counts.filter("is_perfect", pl.col("n") >= min_people, pl.col("n_truths") > 1)
        cautions += [
            Caution(
                f"Every answer of {model!r} is exactly the truth ({n:,} of {n:,} people). Are the"
                " answers a copy of the truth?"
            )
            for model, n in perfect.select("model", "n").collect().iter_rows()
        ]
    if inputs.task == "segmentation":  # previews hold boxes
        recalls = inputs.scores.units.filter(metric="average_recall").drop_nulls("value")
        for (model,), rows in recalls.group_by("model", maintain_order=True):
            if rows.height >= _MIN_PEOPLE_WITH_NUMBERS and rows["value"].min() == 1.0:
                cautions.append(_describe_copy(str(model), rows.height))
        return cautions
    for preview in inputs.scores.previews:
        similarity = preview.best_similarity(preview.predicted)
        if len(similarity) >= _MIN_PEOPLE_WITH_NUMBERS and similarity.min() >= 1.0 - _ROUNDING:
            cautions.append(_describe_copy(preview.model, len(similarity)))
    return cautions


def _describe_copy(model: str, n: int) -> Caution:
    return Caution(
        f"The predictions of {model!r} lie exactly on all of {n:,} annotations. Are they a copy of"
        " the truth?"
    )
