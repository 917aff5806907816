"""How far predicted numbers lie from true ones, person by person, and what looks wrong there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import polars as pl

from isolux.stats.numbers import spearman_of
from isolux.stats.statistic import FloatArray
from isolux.tasks._numbers.reading import (
    BY_WORD,
    codes_of_missing,
    codes_of_models,
    measured_name,
    number_of,
    numbers_of_units,
)
from isolux.tasks._scores import score_rows, stack_scores
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.info import Reference
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import to_polars

GENG = Reference(
    "age-estimation",
    "Geng, X., Zhou, Z.-H., & Smith-Miles, K. (2007). Automatic age estimation based on facial "
    "aging patterns. IEEE Transactions on Pattern Analysis and Machine Intelligence, 29, "
    "2234–2240.",
    "section 4, mean absolute error and cumulative score",
    "https://doi.org/10.1109/TPAMI.2007.70733",
)
EVIDENCE = "errors"
"""Name of the evidence table."""
_ROUNDING = 1e-15
"""Of the larger number, what the last digit of a floating-point number is: no error."""
_LEAST, _CHANCE, _SURE = 30, 3.0, 6.0
_FAR_OFF = 5.0  # the ratio of medians from which two units of measurement are suspected


def errors_of(units: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Hold each model's number against the truth."""
    joined = units.join(truth, on="unit_id", how="left", maintain_order="left")
    apart = pl.col("value") - pl.col("truth")
    size = pl.max_horizontal(pl.col("value").abs(), pl.col("truth").abs())
    error = pl.when(apart.abs() > _ROUNDING * size).then(apart).otherwise(apart * 0.0)
    return joined.select(
        "model",
        "unit_id",
        "cluster_id",
        "truth",
        prediction="value",
        error=error,
        absolute_error=error.abs(),
        reason=pl.when(pl.col("truth").is_null())
        .then(pl.lit("unknown truth"))
        .when(pl.col("value").is_null())
        .then(pl.lit("no prediction")),
    )


def read_errors(
    dataset: Dataset,
    predictions: object,
    target: str,
    unknown_values: Collection[str],
    model: str | None,
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """Hold each unit's number against the true one; with cautions about codes, and other notes."""
    frame = to_polars(predictions)
    measured_name(frame)
    units, notes = numbers_of_units(dataset, frame, model)
    truth = pl.DataFrame(schema={"unit_id": pl.String, "truth": pl.Float64})
    if dataset.instances.height:
        truth = number_of(dataset, target, unknown_values).rename({"number": "truth"})
    errors = errors_of(units, truth)
    unknown = int(errors.unique("unit_id")["truth"].null_count())
    if unknown:
        notes.append(f"{unknown:,} people have no known {target!r} and count in no metric.")
    true = truth["truth"].cast(pl.Float64).to_numpy()
    codes = codes_of_missing(true, what=f"the true {target!r}", cure=BY_WORD)
    return errors, [*codes, *codes_of_models(units)], notes


def error_rows(
    errors: pl.DataFrame,
    task: str,
    names: Collection[str],
    within: Sequence[float],
    others: Mapping[tuple[str, float | None], tuple[pl.Expr, pl.Expr]] = MappingProxyType({}),
) -> pl.DataFrame:
    """Write the errors of ``names``; ``others`` are more values by metric and threshold."""
    none, size = pl.lit(None, dtype=pl.String), pl.col("absolute_error")
    values: dict[tuple[str, float | None], tuple[pl.Expr, pl.Expr]] = {
        ("mean_absolute_error", None): (size, none),
        ("bias", None): (pl.col("error"), none),
        **{("share_within", float(d)): (size <= d, none) for d in within},
        **others,
    }
    return stack_scores(
        [
            score_rows(
                errors, task, name, value, threshold=at, reason=pl.coalesce(pl.col("reason"), other)
            )
            for (name, at), (value, other) in values.items()
            if name in names
        ]
    )


def suspicious(errors: pl.DataFrame) -> list[str]:
    """Caution where predictions do not go with the truth, or are in another unit."""
    notes: list[str] = []
    for (model,), own in errors.group_by(["model"], maintain_order=True):
        known = own.filter(pl.col("reason").is_null())
        if known.height < _LEAST or known["truth"].n_unique() == 1:
            continue
        truth, said = known["truth"].to_numpy(), known["prediction"].to_numpy()
        if known["prediction"].n_unique() == 1:
            notes.append(Caution(f"Every prediction of {model!r} is {said[0]:g}."))
            continue
        z = _beyond_chance(truth, said)
        if z < _CHANCE:
            _refuse_shifted(str(model), truth, said)
            rho, how = z / np.sqrt(len(truth) - 1), "go with the truth no better than chance"
            text = (
                f"The predictions of {model!r} {'fall with the truth' if z < -_CHANCE else how}"
                f" (rank correlation {rho:.2f}). Are they about these people, and this question?"
            )
            notes.append(Caution(text))
        middle = np.median(np.abs(said)) / max(float(np.median(np.abs(truth))), 1e-300)
        text = (
            f"The median prediction of {model!r} is {np.median(said):g} and the median truth"
            f" {np.median(truth):g}: are both in the same unit of measurement?"
        )
        notes += [] if 1 / _FAR_OFF <= middle <= _FAR_OFF else [Caution(text)]
    return notes


def _beyond_chance(truth: FloatArray, said: FloatArray) -> float:
    rho = float(spearman_of(truth, said, np.ones(len(truth))))
    return (0.0 if np.isnan(rho) else rho) * float(np.sqrt(len(truth) - 1))


def _beyond_own(other: FloatArray, said: FloatArray, own: FloatArray) -> float:
    """Return the partial rank correlation with another row's truth, own given, over its noise."""
    ones = np.ones(len(own))
    rho, of_truths, of_own = (
        float(spearman_of(a, b, ones)) for a, b in ((other, said), (other, own), (said, own))
    )
    left = (1.0 - of_truths**2) * (1.0 - of_own**2)
    return (rho - of_truths * of_own) / left**0.5 * len(own) ** 0.5 if left > 1e-9 else 0.0


def _refuse_shifted(model: str, truth: FloatArray, said: FloatArray) -> None:
    for shift in (1, -1):
        before, after = slice(None, -1), slice(1, None)
        a, b = (before, after) if shift > 0 else (after, before)
        other, moved, own = truth[a], said[b], truth[b]
        if _beyond_chance(other, moved) > _SURE and _beyond_own(other, moved, own) > _SURE:
            raise JoinError(
                f"the predictions of {model!r} belong to other rows",
                expected="each prediction in the row of the person that it is about",
                found="they go with the truth of the row"
                f" {'before' if shift > 0 else 'after'} theirs, and not with their own",
                hint="a row was lost or put in: join by an id (--id, --prediction-id)",
            )
