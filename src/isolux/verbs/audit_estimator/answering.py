"""What an estimator answers, checked: lengths, order of rows, classes and their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import polars as pl

from isolux.io.cells import as_labels
from isolux.verbs.audit_estimator.classes import Classes, classes_of, same_kind
from isolux.verbs.audit_estimator.probabilities import decisions, probabilities
from isolux.verbs.metric_frame.features import features_of
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.given import as_column, refuse_other_rows
from isolux.vocabulary.notes import Caution

Scores = Literal["auto", "probability", "decision", "none"]
_OURS = ("truth", "answer", "score", "cluster")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Answered:
    """A table of answers, how an audit is to read it, and what must be said of it."""

    frame: pl.DataFrame
    features: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def answered(
    estimator: Any,
    rows: Any,
    truth: Any,
    features: Any,
    cluster: Any,
    task: str | None,
    scores: Scores,
    positive: Any,
) -> Answered:
    """Let the estimator answer each row; the arguments are those of ``audit_estimator``."""
    if scores not in get_args(Scores):
        raise SpecError("there are no such scores", expected=", ".join(get_args(Scores)),
                        found=repr(scores))  # fmt: skip
    frame = _people(rows, truth, features, cluster)
    names = tuple(n for n in frame.columns if n not in _OURS)
    if _task(estimator, task) == "regression":
        if scores in ("probability", "decision") or positive is not None:
            raise SpecError("a number has no classes", expected="neither scores nor positive")
        answer = _answers(estimator, rows, frame.height)
        said = {"task": "regression", "prediction_column": "answer"}
        return Answered(frame.with_columns(answer), names, said)
    classes = classes_of(estimator)
    frame, notes = _in_classes(frame, classes)
    chosen = classes.label_of(positive)
    if scores == "decision":
        score, chosen = decisions(estimator, rows, frame.height, classes, chosen)
        said = {"score_column": "score", "threshold": "0", "positive": chosen}
        return Answered(frame.with_columns(score), names, said, notes)
    answer = as_labels(classes.alike(_answers(estimator, rows, frame.height))).alias("answer")
    _refuse_other_answers(answer, classes)
    two = chosen or (classes.labels[1] if len(classes.labels) == 2 else None)
    said = {"prediction_column": "answer"} | ({"positive": two} if two else {})
    frame = frame.with_columns(answer)
    if scores == "none" or (scores == "auto" and not hasattr(estimator, "predict_proba")):
        return Answered(frame, names, said, (*notes, *_without_scores(estimator, scores)))
    found = probabilities(estimator, rows, answer, classes, two)
    said |= {"score_column": "score", "score_of": "positive" if two else "answer"}
    return Answered(frame.with_columns(found.score), names, said, (*notes, *found.notes))


def _people(rows: Any, truth: Any, features: Any, cluster: Any) -> pl.DataFrame:
    """Set truth, features and clusters side by side, once they are known to be of the same rows."""
    frame = features_of(features, "sensitive_feature")
    taken = [name for name in frame.columns if name in _OURS]
    if taken:
        raise SpecError(
            "a sensitive feature has a name that the table of answers needs",
            expected="other names than " + ", ".join(_OURS), found=", ".join(taken),
        )  # fmt: skip
    columns = [as_column(truth, "y").alias("truth")]
    if cluster is not None:
        columns.append(as_column(cluster, "cluster"))
    sizes = {"X": _length(rows), "y": len(columns[0]), "sensitive_features": frame.height}
    if cluster is not None:
        sizes["cluster"] = len(columns[1])
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name}: {n:,}" for name, n in sizes.items())
        raise TableError("the inputs differ in length", expected="one row a person", found=found)
    if not frame.height:
        raise TableError("there is nobody to judge", expected="at least one row", found="none")
    given = {"X": rows, "y": truth, "sensitive_features": features, "cluster": cluster}
    refuse_other_rows(given, stacklevel=6)
    return frame.with_columns(columns)


def _length(rows: Any) -> int:
    shape = getattr(rows, "shape", None)
    return int(shape[0]) if shape else len(rows)


def _task(estimator: Any, task: str | None) -> str:
    """Say what kind of estimator it is: by its classes, or by what scikit-learn's tags say."""
    if not callable(getattr(estimator, "predict", None)):
        raise SpecError("this is not an estimator that predicts",
        expected="an object with predict(X)",
                        found=type(estimator).__name__)  # fmt: skip
    if task is not None:
        if task not in ("classification", "regression"):
            raise SpecError("an estimator does not judge that", expected="classification or "
                            "regression", found=repr(task), where="task")  # fmt: skip
        return task
    if hasattr(estimator, "classes_"):
        return "classification"
    said = getattr(estimator, "_estimator_type", None)
    if said is None and hasattr(estimator, "__sklearn_tags__"):
        said = estimator.__sklearn_tags__().estimator_type
    if said == "regressor":
        return "regression"
    raise SpecError(
        "nothing says what this estimator answers, classes or numbers",
        expected="a fitted estimator with classes_, a regressor, or task='classification'",
        found=f"{type(estimator).__name__} without classes_"
        + (" (is it fitted?)" if said == "classifier" else ""),
    )


def _answers(estimator: Any, rows: Any, n: int) -> pl.Series:
    answer = as_column(estimator.predict(rows), "predict(X)").alias("answer")
    if len(answer) != n:
        raise TableError("the estimator gives another number of answers",
                         expected=f"{n:,}, one a row of X", found=f"{len(answer):,}")  # fmt: skip
    return answer


def _in_classes(frame: pl.DataFrame, classes: Classes) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Hold the truth against the classes that the estimator was fitted on."""
    same_kind(frame["truth"], classes, "y")
    truth = as_labels(classes.alike(frame["truth"])).alias("truth")
    known = truth.drop_nulls()
    others = known.filter(~known.is_in(classes.labels))
    if len(known) and len(others) == len(known):
        raise SpecError(
            "the estimator was fitted on other classes than those that are true here",
            expected="classes of y: " + _some(classes.labels),
            found="y: " + _some(others.unique(maintain_order=True).to_list()),
        )
    notes: tuple[str, ...] = ()
    if len(others):
        notes = (
            Caution(
                f"{len(others):,} of {len(known):,} people are of classes that the estimator was "
                f"not fitted on ({_some(others.unique(maintain_order=True).to_list())}): it cannot "
                "be right about them."
            ),
        )
    return frame.with_columns(truth), notes


def _refuse_other_answers(answer: pl.Series, classes: Classes) -> None:
    odd = answer.filter(~answer.is_in(classes.labels) & answer.is_not_null())
    if len(odd):
        raise TableError(
            "the estimator gives answers that are none of its classes",
            expected="classes_: " + _some(classes.labels),
            found=f"{len(odd):,} others: {_some(odd.unique(maintain_order=True).to_list())}",
        )


def _without_scores(estimator: Any, scores: str) -> tuple[str, ...]:
    if scores == "none":
        return ()
    more = (
        "; its decision_function is not a probability: scores='decision' audits its own scale"
        if hasattr(estimator, "decision_function")
        else ""
    )
    return (f"The estimator gives no probabilities, so nothing was measured of them{more}.",)


def _some(labels: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, labels[:_SHOWN]))
    return shown + (f" and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else "")
