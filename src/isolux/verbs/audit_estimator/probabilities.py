"""An estimator's scores: probabilities by class, held to be what they are called, or decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isolux.verbs.audit_estimator.classes import Classes
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.given import as_array
from isolux.vocabulary.notes import Caution

_ROUNDING = 1e-3  # sums of a softmax in half precision


@dataclass(frozen=True, slots=True)
class Probabilities:
    """One score a person, and what must be said of it."""

    score: pl.Series
    notes: tuple[str, ...] = ()


def probabilities(
    estimator: Any, rows: Any, answer: pl.Series, classes: Classes, positive: str | None
) -> Probabilities:
    """Take from ``predict_proba`` the positive class's probability, or else that of the answer."""
    if not hasattr(estimator, "predict_proba"):
        raise SpecError("the estimator gives no probabilities", expected="predict_proba",
                        found=type(estimator).__name__,
                        hint="scores='none', or 'decision' where it decides")  # fmt: skip
    given = as_array(estimator.predict_proba(rows), "predict_proba(X)")
    n, k = len(answer), len(classes.labels)
    if given.shape != (n, k):
        raise TableError("predict_proba(X) does not have one number per class",
                         expected=(f"({n}, {k}): one row per person, one column for each of "
                                  "classes_"),
                         found=str(given.shape))  # fmt: skip
    _refuse_no_probabilities(given)
    table = given.astype(np.float64)
    code = {label: j for j, label in enumerate(classes.labels)}
    own = np.array([code.get(one, -1) for one in answer.to_list()])
    notes = _on_other_answers(table, own)
    if positive is not None:
        return Probabilities(pl.Series("score", table[:, code[positive]].clip(0.0, 1.0)), notes)
    taken = np.where(own >= 0, table[np.arange(n), own], np.nan)
    return Probabilities(pl.Series("score", taken.clip(0.0, 1.0)).fill_nan(None), notes)


def _refuse_no_probabilities(given: NDArray[Any]) -> None:
    sums = given.sum(axis=1, dtype=np.float64) if given.dtype.kind in "biuf" else np.array([np.nan])
    outside = not (np.isfinite(sums).all() and given.min() >= -_ROUNDING and given.max() <= 1.001)
    if outside or np.abs(sums - 1.0).max() > _ROUNDING:
        worst = int(np.argmax(np.where(np.isfinite(sums), np.abs(sums - 1.0), np.inf)))
        raise TableError(
            "predict_proba(X) gives no probabilities",
            expected="numbers from 0 to 1 that sum to 1 in every row",
            found=f"row {worst + 1}: {given[worst].tolist()[:5]}",
            hint="logits become probabilities by a softmax: scipy.special.softmax(logits, axis=1)",
        )


def _on_other_answers(table: NDArray[Any], own: NDArray[Any]) -> tuple[str, ...]:
    """Say where the answer is not the likeliest class; refuse columns that run against answers."""
    known = own >= 0
    turned = told = 0
    for c in np.unique(own[known]):
        of_it = own == c
        if (~of_it & known).any():
            told += int(of_it.sum())
            less = table[of_it, c].mean() < table[~of_it & known, c].mean()
            turned += int(of_it.sum()) if less else 0
    if 2 * turned > told:
        raise TableError(
            "predict and predict_proba contradict one another",
            expected="columns of predict_proba in the order of classes_",
            found=f"{turned:,} of {told:,} answers are of classes whose column is lower where they "
            "are answered",
        )
    at = np.flatnonzero(known)
    other = int((table[at, own[at]] < table[at].max(axis=1) - 1e-9).sum()) if len(at) else 0
    if not other:
        return ()
    said = f"{other:,} of {len(at):,} answers are not the class that predict_proba holds likeliest"
    return (Caution(f"{said}: does it use its own threshold, or columns in another order?"),)


def decisions(
    estimator: Any, rows: Any, n: int, classes: Classes, positive: str | None
) -> tuple[pl.Series, str]:
    """Take ``decision_function`` of two classes; above 0 is the positive one."""
    if not hasattr(estimator, "decision_function"):
        raise SpecError("the estimator has no decision_function", expected="scores='probability', "
                        "or 'none'", found=type(estimator).__name__)  # fmt: skip
    given = as_array(estimator.decision_function(rows), "decision_function(X)")
    if len(classes.labels) != 2 or given.shape != (n,):
        raise TableError(
            "decision_function(X) is not one number of two classes",
            expected=f"({n},)",
            found=f"{given.shape} of {len(classes.labels)} classes",
            hint="scores='none' audits the answers alone",
        )
    if not np.isfinite(given).all():
        raise TableError("decision_function(X) holds numbers that are none", expected="finite ones",
                         found=f"row {int(np.argmin(np.isfinite(given))) + 1}")  # fmt: skip
    second = classes.labels[1]
    turned = positive is not None and positive != second
    return pl.Series("score", -given if turned else given), positive or second
