"""What an estimator answers, checked: lengths, order of rows, classes and their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isolux.io.cells import as_labels
from isolux.verbs.metric_frame.inputs import features_of
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.given import as_array, as_column, kind_of, refuse_other_rows
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
        raise SpecError(
            "the estimator gives no probabilities",
            expected="predict_proba",
            found=type(estimator).__name__,
            hint="scores='none', or 'decision' where it decides",
        )
    given = as_array(estimator.predict_proba(rows), "predict_proba(X)")
    n, k = len(answer), len(classes.labels)
    if given.shape != (n, k):
        raise TableError(
            "predict_proba(X) does not have one number per class",
            expected=(f"({n}, {k}): one row per person, one column for each of classes_"),
            found=str(given.shape),
        )
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
        raise SpecError(
            "the estimator has no decision_function",
            expected="scores='probability', or 'none'",
            found=type(estimator).__name__,
        )
    given = as_array(estimator.decision_function(rows), "decision_function(X)")
    if len(classes.labels) != 2 or given.shape != (n,):
        raise TableError(
            "decision_function(X) is not one number of two classes",
            expected=f"({n},)",
            found=f"{given.shape} of {len(classes.labels)} classes",
            hint="scores='none' audits the answers alone",
        )
    if not np.isfinite(given).all():
        raise TableError(
            "decision_function(X) holds numbers that are none",
            expected="finite ones",
            found=f"row {int(np.argmin(np.isfinite(given))) + 1}",
        )
    second = classes.labels[1]
    turned = positive is not None and positive != second
    return pl.Series("score", -given if turned else given), positive or second


@dataclass(frozen=True, slots=True)
class Classes:
    """The names of classes, as text, in the order of ``classes_``; and what they were before."""

    labels: tuple[str, ...]
    kind: str

    def alike(self, values: pl.Series) -> pl.Series:
        """Write True and False as 1 and 0, whichever of the two the classes hold."""
        return values.cast(pl.Int8) if values.dtype == pl.Boolean else values

    def label_of(self, given: Any) -> str | None:
        """Return a class that a setting names as text, or say that there is none of that name."""
        if given is None:
            return None
        label = str(as_labels(self.alike(pl.Series([given])))[0])
        if label not in self.labels:
            raise SpecError(
                "the positive class is not one of the estimator's",
                where="positive",
                expected=", ".join(map(repr, self.labels)),
                found=repr(given),
            )
        return label


def classes_of(estimator: Any) -> Classes:
    """Read ``classes_``."""
    given = getattr(estimator, "classes_", None)
    if given is None:
        raise SpecError(
            "nothing says which classes the estimator knows, and in which order",
            expected="classes_, as fitted classifiers of scikit-learn have it",
            found=f"{type(estimator).__name__} without classes_",
            hint="of another library: isolux.audit(table, target=…, prediction_column=…)",
        )
    if isinstance(given, list | tuple) and given and hasattr(given[0], "shape") and given[0].shape:
        raise SpecError(
            "the estimator answers several questions at once",
            expected="one class a row",
            found=f"{len(given)} sets of classes_",
            hint="audit each: isolux.audit(table, target=…, prediction_column=…)",
        )
    cells = as_column(given, "classes_")
    known = Classes((), kind_of(cells))
    return Classes(tuple(as_labels(known.alike(cells)).to_list()), known.kind)


def same_kind(values: pl.Series, classes: Classes) -> None:
    """Refuse text where the estimator was fitted on numbers, and the other way round."""
    kind = kind_of(values)
    if values.null_count() == len(values) or "text" not in {kind, classes.kind}:
        return
    if kind != classes.kind:
        raise SpecError(
            f"y holds {kind}, and the estimator was fitted on {classes.kind}",
            expected="one code: " + ", ".join(map(repr, classes.labels[:5])),
            found=", ".join(repr(one) for one in values.drop_nulls().unique().to_list()[:5]),
            hint="a LabelEncoder's inverse_transform, or classes_[answers], brings them into one",
        )


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
        raise SpecError(
            "there are no such scores", expected=", ".join(get_args(Scores)), found=repr(scores)
        )
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
            expected="other names than " + ", ".join(_OURS),
            found=", ".join(taken),
        )
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
        raise TableError(
            "the estimator gives another number of answers",
            expected=f"{n:,}, one a row of X",
            found=f"{len(answer):,}",
        )
    return answer


def _in_classes(frame: pl.DataFrame, classes: Classes) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Hold the truth against the classes that the estimator was fitted on."""
    same_kind(frame["truth"], classes)
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
