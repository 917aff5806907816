"""Predictions of an estimator, checked: lengths, order of rows, classes and their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isolux.api.metric_frame.inputs import to_feature_frame
from isolux.core.errors import SpecError, TableError
from isolux.core.inputs import (
    as_array,
    infer_label_type,
    refuse_misaligned_pandas_indices,
    to_single_column,
)
from isolux.core.notes import Caution
from isolux.io.cell_parsing import as_labels

_SUM_TOLERANCE = 1e-3  # sums of a softmax in half precision


@dataclass(frozen=True, slots=True)
class Probabilities:
    """One score per row, with notes."""

    score: pl.Series
    notes: tuple[str, ...] = ()


def call_predict_proba(
    estimator: Any, rows: Any, answer: pl.Series, classes: EstimatorClasses, positive: str | None
) -> Probabilities:
    """Read the probability of the positive class, or else of the predicted class."""
    if not hasattr(estimator, "predict_proba"):
        raise SpecError(
            "the estimator gives no probabilities",
            expected="predict_proba",
            found=type(estimator).__name__,
            hint="scores='none', or 'decision' where it decides",
        )
    array = as_array(estimator.predict_proba(rows), "predict_proba(X)")
    n, k = len(answer), len(classes.labels)
    if array.shape != (n, k):
        raise TableError(
            "predict_proba(X) does not have one number per class",
            expected=(f"({n}, {k}): one row per person, one column for each of classes_"),
            found=str(array.shape),
        )
    _check_probabilities(array)
    table = array.astype(np.float64)
    code = {label: j for j, label in enumerate(classes.labels)}
    class_index = np.array([code.get(answer_label, -1) for answer_label in answer.to_list()])
    notes = _check_predictions_against_probabilities(table, class_index)
    if positive is not None:
        return Probabilities(pl.Series("score", table[:, code[positive]].clip(0.0, 1.0)), notes)
    class_probability = np.where(class_index >= 0, table[np.arange(n), class_index], np.nan)
    return Probabilities(pl.Series("score", class_probability.clip(0.0, 1.0)).fill_nan(None), notes)


def _check_probabilities(array: NDArray[Any]) -> None:
    sums = array.sum(axis=1, dtype=np.float64) if array.dtype.kind in "biuf" else np.array([np.nan])
    is_invalid = not (
        np.isfinite(sums).all() and array.min() >= -_SUM_TOLERANCE and array.max() <= 1.001
    )
    if is_invalid or np.abs(sums - 1.0).max() > _SUM_TOLERANCE:
        worst_row = int(np.argmax(np.where(np.isfinite(sums), np.abs(sums - 1.0), np.inf)))
        raise TableError(
            "predict_proba(X) gives no probabilities",
            expected="numbers from 0 to 1 that sum to 1 in every row",
            found=f"row {worst_row + 1}: {array[worst_row].tolist()[:5]}",
            hint="logits become probabilities by a softmax: scipy.special.softmax(logits, axis=1)",
        )


def _check_predictions_against_probabilities(
    table: NDArray[Any], class_index: NDArray[Any]
) -> tuple[str, ...]:
    """Caution on predictions that are not the most likely class; refuse contradicting columns."""
    is_known = class_index >= 0
    n_contradicting = n_compared = 0
    for c in np.unique(class_index[is_known]):
        is_class = class_index == c
        if (~is_class & is_known).any():
            n_compared += int(is_class.sum())
            is_lower = table[is_class, c].mean() < table[~is_class & is_known, c].mean()
            n_contradicting += int(is_class.sum()) if is_lower else 0
    if 2 * n_contradicting > n_compared:
        raise TableError(
            "predict and predict_proba contradict one another",
            expected="columns of predict_proba in the order of classes_",
            found=f"{n_contradicting:,} of {n_compared:,} answers are of classes whose column"
            " is lower where they "
            "are answered",
        )
    known_rows = np.flatnonzero(is_known)
    n_not_top = (
        int(
            (
                table[known_rows, class_index[known_rows]] < table[known_rows].max(axis=1) - 1e-9
            ).sum()
        )
        if len(known_rows)
        else 0
    )
    if not n_not_top:
        return ()
    message = (
        f"{n_not_top:,} of {len(known_rows):,} answers are not the class that"
        " predict_proba holds likeliest"
    )
    return (Caution(f"{message}: does it use its own threshold, or columns in another order?"),)


def call_decision_function(
    estimator: Any, rows: Any, n: int, classes: EstimatorClasses, positive: str | None
) -> tuple[pl.Series, str]:
    """Read ``decision_function`` of two classes; above 0 is the positive one."""
    if not hasattr(estimator, "decision_function"):
        raise SpecError(
            "the estimator has no decision_function",
            expected="scores='probability', or 'none'",
            found=type(estimator).__name__,
        )
    decision_values = as_array(estimator.decision_function(rows), "decision_function(X)")
    if len(classes.labels) != 2 or decision_values.shape != (n,):
        raise TableError(
            "decision_function(X) is not one number of two classes",
            expected=f"({n},)",
            found=f"{decision_values.shape} of {len(classes.labels)} classes",
            hint="scores='none' audits the answers alone",
        )
    if not np.isfinite(decision_values).all():
        raise TableError(
            "decision_function(X) holds numbers that are none",
            expected="finite ones",
            found=f"row {int(np.argmin(np.isfinite(decision_values))) + 1}",
        )
    second = classes.labels[1]
    is_reversed = positive is not None and positive != second
    return pl.Series(
        "score", -decision_values if is_reversed else decision_values
    ), positive or second


@dataclass(frozen=True, slots=True)
class EstimatorClasses:
    """Class labels as text, in the order of ``classes_``, and their original type."""

    labels: tuple[str, ...]
    value_type: str

    def encode_booleans(self, values: pl.Series) -> pl.Series:
        """Encode True and False as 1 and 0."""
        return values.cast(pl.Int8) if values.dtype == pl.Boolean else values

    def to_label(self, setting: Any) -> str | None:
        """Return the label of the class that a setting names; refuse unknown ones."""
        if setting is None:
            return None
        label = str(as_labels(self.encode_booleans(pl.Series([setting])))[0])
        if label not in self.labels:
            raise SpecError(
                "the positive class is not one of the estimator's",
                where="positive",
                expected=", ".join(map(repr, self.labels)),
                found=repr(setting),
            )
        return label


def read_classes(estimator: Any) -> EstimatorClasses:
    """Read ``classes_``."""
    fitted_classes = getattr(estimator, "classes_", None)
    if fitted_classes is None:
        raise SpecError(
            "nothing says which classes the estimator knows, and in which order",
            expected="classes_, as fitted classifiers of scikit-learn have it",
            found=f"{type(estimator).__name__} without classes_",
            hint="of another library: isolux.audit(table, target=…, prediction_column=…)",
        )
    if (
        isinstance(fitted_classes, list | tuple)
        and fitted_classes
        and hasattr(fitted_classes[0], "shape")
        and fitted_classes[0].shape
    ):
        raise SpecError(
            "the estimator answers several questions at once",
            expected="one class a row",
            found=f"{len(fitted_classes)} sets of classes_",
            hint="audit each: isolux.audit(table, target=…, prediction_column=…)",
        )
    cells = to_single_column(fitted_classes, "classes_")
    unlabelled = EstimatorClasses((), infer_label_type(cells))
    return EstimatorClasses(
        tuple(as_labels(unlabelled.encode_booleans(cells)).to_list()), unlabelled.value_type
    )


def check_label_type(values: pl.Series, classes: EstimatorClasses) -> None:
    """Refuse text where the estimator was fitted on numbers, and vice versa."""
    value_type = infer_label_type(values)
    if values.null_count() == len(values) or "text" not in {value_type, classes.value_type}:
        return
    if value_type != classes.value_type:
        raise SpecError(
            f"y holds {value_type}, and the estimator was fitted on {classes.value_type}",
            expected="one code: " + ", ".join(map(repr, classes.labels[:5])),
            found=", ".join(repr(label) for label in values.drop_nulls().unique().to_list()[:5]),
            hint="a LabelEncoder's inverse_transform, or classes_[answers], brings them into one",
        )


EstimatorScores = Literal["auto", "probability", "decision", "none"]
_RESERVED_COLUMNS = ("truth", "answer", "score", "cluster")
_MAX_LISTED_LABELS = 5


@dataclass(frozen=True, slots=True)
class EstimatorPredictions:
    """A table of predictions, with the audit settings to read it and notes."""

    frame: pl.DataFrame
    features: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def check_and_predict_with_estimator(
    estimator: Any,
    rows: Any,
    truth: Any,
    features: Any,
    cluster: Any,
    task: str | None,
    scores: EstimatorScores,
    positive: Any,
) -> EstimatorPredictions:
    """Predict each row; the arguments are those of ``audit_estimator``."""
    if scores not in get_args(EstimatorScores):
        raise SpecError(
            "there are no such scores",
            expected=", ".join(get_args(EstimatorScores)),
            found=repr(scores),
        )
    frame = _combine_columns(rows, truth, features, cluster)
    names = tuple(n for n in frame.columns if n not in _RESERVED_COLUMNS)
    if _detect_estimator_task(estimator, task) == "regression":
        if scores in ("probability", "decision") or positive is not None:
            raise SpecError("a number has no classes", expected="neither scores nor positive")
        answer = _predict_rows(estimator, rows, frame.height)
        audit_settings = {"task": "regression", "prediction_column": "answer"}
        return EstimatorPredictions(frame.with_columns(answer), names, audit_settings)
    classes = read_classes(estimator)
    frame, notes = _check_truth_classes(frame, classes)
    positive_label = classes.to_label(positive)
    if scores == "decision":
        score, positive_label = call_decision_function(
            estimator, rows, frame.height, classes, positive_label
        )
        audit_settings = {"score_column": "score", "threshold": "0", "positive": positive_label}
        return EstimatorPredictions(frame.with_columns(score), names, audit_settings, notes)
    answer = as_labels(classes.encode_booleans(_predict_rows(estimator, rows, frame.height))).alias(
        "answer"
    )
    _refuse_unknown_predictions(answer, classes)
    scored_class = positive_label or (classes.labels[1] if len(classes.labels) == 2 else None)
    audit_settings = {"prediction_column": "answer"} | (
        {"positive": scored_class} if scored_class else {}
    )
    frame = frame.with_columns(answer)
    if scores == "none" or (scores == "auto" and not hasattr(estimator, "predict_proba")):
        return EstimatorPredictions(
            frame, names, audit_settings, (*notes, *_note_missing_scores(estimator, scores))
        )
    probability_scores = call_predict_proba(estimator, rows, answer, classes, scored_class)
    audit_settings |= {
        "score_column": "score",
        "score_of": "positive" if scored_class else "answer",
    }
    return EstimatorPredictions(
        frame.with_columns(probability_scores.score),
        names,
        audit_settings,
        (*notes, *probability_scores.notes),
    )


def _combine_columns(rows: Any, truth: Any, features: Any, cluster: Any) -> pl.DataFrame:
    """Combine truth, features and clusters after checking that rows match."""
    frame = to_feature_frame(features, "sensitive_feature")
    reserved_names = [name for name in frame.columns if name in _RESERVED_COLUMNS]
    if reserved_names:
        raise SpecError(
            "a sensitive feature has a name that the table of answers needs",
            expected="other names than " + ", ".join(_RESERVED_COLUMNS),
            found=", ".join(reserved_names),
        )
    columns = [to_single_column(truth, "y").alias("truth")]
    if cluster is not None:
        columns.append(to_single_column(cluster, "cluster"))
    sizes = {"X": _count_rows(rows), "y": len(columns[0]), "sensitive_features": frame.height}
    if cluster is not None:
        sizes["cluster"] = len(columns[1])
    if len(set(sizes.values())) > 1:
        lengths_text = ", ".join(f"{name}: {n:,}" for name, n in sizes.items())
        raise TableError(
            "the inputs differ in length", expected="one row a person", found=lengths_text
        )
    if not frame.height:
        raise TableError("there is nobody to judge", expected="at least one row", found="none")
    inputs = {"X": rows, "y": truth, "sensitive_features": features, "cluster": cluster}
    refuse_misaligned_pandas_indices(inputs, stacklevel=6)
    return frame.with_columns(columns)


def _count_rows(rows: Any) -> int:
    shape = getattr(rows, "shape", None)
    return int(shape[0]) if shape else len(rows)


def _detect_estimator_task(estimator: Any, task: str | None) -> str:
    """Detect classification or regression from ``classes_`` or scikit-learn's tags."""
    if not callable(getattr(estimator, "predict", None)):
        raise SpecError(
            "this is not an estimator that predicts",
            expected="an object with predict(X)",
            found=type(estimator).__name__,
        )
    if task is not None:
        if task not in ("classification", "regression"):
            raise SpecError(
                "an estimator does not judge that",
                expected="classification or regression",
                found=repr(task),
                where="task",
            )
        return task
    if hasattr(estimator, "classes_"):
        return "classification"
    estimator_type = getattr(estimator, "_estimator_type", None)
    if estimator_type is None and hasattr(estimator, "__sklearn_tags__"):
        estimator_type = estimator.__sklearn_tags__().estimator_type
    if estimator_type == "regressor":
        return "regression"
    raise SpecError(
        "nothing says what this estimator answers, classes or numbers",
        expected="a fitted estimator with classes_, a regressor, or task='classification'",
        found=f"{type(estimator).__name__} without classes_"
        + (" (is it fitted?)" if estimator_type == "classifier" else ""),
    )


def _predict_rows(estimator: Any, rows: Any, n: int) -> pl.Series:
    answer = to_single_column(estimator.predict(rows), "predict(X)").alias("answer")
    if len(answer) != n:
        raise TableError(
            "the estimator gives another number of answers",
            expected=f"{n:,}, one a row of X",
            found=f"{len(answer):,}",
        )
    return answer


def _check_truth_classes(
    frame: pl.DataFrame, classes: EstimatorClasses
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Check the true classes against those the estimator was fitted on."""
    check_label_type(frame["truth"], classes)
    truth = as_labels(classes.encode_booleans(frame["truth"])).alias("truth")
    labelled = truth.drop_nulls()
    unseen = labelled.filter(~labelled.is_in(classes.labels))
    if len(labelled) and len(unseen) == len(labelled):
        raise SpecError(
            "the estimator was fitted on other classes than those that are true here",
            expected="classes of y: " + _format_labels(classes.labels),
            found="y: " + _format_labels(unseen.unique(maintain_order=True).to_list()),
        )
    notes: tuple[str, ...] = ()
    if len(unseen):
        classes_text = _format_labels(unseen.unique(maintain_order=True).to_list())
        notes = (
            Caution(
                f"{len(unseen):,} of {len(labelled):,} people are of classes that the estimator"
                f" was not fitted on ({classes_text}): it cannot be right about them."
            ),
        )
    return frame.with_columns(truth), notes


def _refuse_unknown_predictions(answer: pl.Series, classes: EstimatorClasses) -> None:
    unknown = answer.filter(~answer.is_in(classes.labels) & answer.is_not_null())
    if len(unknown):
        raise TableError(
            "the estimator gives answers that are none of its classes",
            expected="classes_: " + _format_labels(classes.labels),
            found=f"{len(unknown):,} others:"
            f" {_format_labels(unknown.unique(maintain_order=True).to_list())}",
        )


def _note_missing_scores(estimator: Any, scores: str) -> tuple[str, ...]:
    if scores == "none":
        return ()
    hint = (
        "; its decision_function is not a probability: scores='decision' audits its own scale"
        if hasattr(estimator, "decision_function")
        else ""
    )
    return (f"The estimator gives no probabilities, so nothing was measured of them{hint}.",)


def _format_labels(labels: list[str] | tuple[str, ...]) -> str:
    examples = ", ".join(map(repr, labels[:_MAX_LISTED_LABELS]))
    return examples + (
        f" and {len(labels) - _MAX_LISTED_LABELS:,} more"
        if len(labels) > _MAX_LISTED_LABELS
        else ""
    )
