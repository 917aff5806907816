"""How far predicted numbers lie from true ones, person by person, and what looks wrong there."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.stats.numbers import spearman_of
from isolux.stats.statistic import FloatArray
from isolux.tasks._numbers.codes import BY_WORD, EMPTIED, codes_of_missing
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution

__all__ = ["EVIDENCE", "codes", "errors_of", "suspicious"]

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
        "model", "unit_id", "cluster_id", "truth", prediction="value", error=error,
        absolute_error=error.abs(),
        reason=pl.when(pl.col("truth").is_null()).then(pl.lit("unknown truth"))
        .when(pl.col("value").is_null()).then(pl.lit("no prediction")),
    )  # fmt: skip


def codes(units: pl.DataFrame, truth: pl.DataFrame, target: str) -> list[str]:
    """Caution where a code for a missing value stands in the truth or in the predictions."""
    true = truth["truth"].cast(pl.Float64).to_numpy()
    notes = [*codes_of_missing(true, what=f"the true {target!r}", cure=BY_WORD)]
    for (model,), own in units.group_by(["model"], maintain_order=True):
        notes += codes_of_missing(own["value"].to_numpy(), what=f"{model!r}", cure=EMPTIED)
    return [*notes]


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
            rho = z / np.sqrt(len(truth) - 1)
            how = (
                "fall with the truth" if z < -_CHANCE else "go with the truth no better than chance"
            )
            notes.append(
                Caution(
                    f"The predictions of {model!r} {how} (rank correlation {rho:.2f}). Are they"
                    " about these people, and this question?"
                )
            )
        middle = np.median(np.abs(said)) / max(float(np.median(np.abs(truth))), 1e-300)
        if not 1 / _FAR_OFF <= middle <= _FAR_OFF:
            notes.append(
                Caution(
                    f"The median prediction of {model!r} is {np.median(said):g} and the median"
                    f" truth {np.median(truth):g}: are both in the same unit of measurement?"
                )
            )
    return notes


def _beyond_chance(truth: object, said: object) -> float:
    first, second = np.asarray(truth, dtype=np.float64), np.asarray(said, dtype=np.float64)
    rho = float(spearman_of(first, second, np.ones(len(first))))
    return (0.0 if np.isnan(rho) else rho) * float(np.sqrt(len(first) - 1))


def _beyond_own(other: FloatArray, said: FloatArray, own: FloatArray) -> float:
    """Return the partial rank correlation with another row's truth, own given, over its noise."""
    ones = np.ones(len(own))
    rho, of_truths, of_own = (
        float(spearman_of(a, b, ones)) for a, b in ((other, said), (other, own), (said, own))
    )
    left = (1.0 - of_truths**2) * (1.0 - of_own**2)
    return (rho - of_truths * of_own) / left**0.5 * len(own) ** 0.5 if left > 1e-9 else 0.0


def _refuse_shifted(model: str, truth: object, said: object) -> None:
    first, second = (np.asarray(a, dtype=np.float64) for a in (truth, said))
    for shift in (1, -1):
        a, b = (first[:-1], second[1:]) if shift > 0 else (first[1:], second[:-1])
        own = first[1:] if shift > 0 else first[:-1]
        if _beyond_chance(a, b) > _SURE and _beyond_own(a, b, own) > _SURE:
            raise JoinError(
                f"the predictions of {model!r} belong to other rows",
                expected="each prediction in the row of the person that it is about",
                found="they go with the truth of the row"
                f" {'before' if shift > 0 else 'after'} theirs, and not with their own",
                hint="a row was lost or put in: join by an id (--id, --prediction-id)",
            )
