"""Audit of a fitted estimator: its predictions are compared with the truth.

``estimator_predictions`` makes the table, a row a person; ``audit_estimator`` audits it in one
call. Whatever has scikit-learn's methods is an estimator (``predict``, ``predict_proba``,
``classes_``), its own pipelines and those of other libraries alike; scikit-learn is not imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import polars as pl

from isolux.api.audit import Audit, audit_in_memory_table
from isolux.api.audit.inputs import InMemoryTable
from isolux.api.audit_estimator.prediction_table import (
    EstimatorPredictions,
    EstimatorScores,
    check_and_predict_with_estimator,
)
from isolux.core.errors import SpecError

Task = Literal["classification", "regression"]


def estimator_predictions(
    estimator: Any,
    X: Any,  # noqa: N803  (what scikit-learn calls it)
    y: Any,
    sensitive_features: Any,
    *,
    cluster: Any = None,
    task: Task | None = None,
    scores: EstimatorScores = "auto",
    positive: Any = None,
) -> pl.DataFrame:
    """Let an estimator answer, and set its answers beside the truth and the groups.

    Parameters
    ----------
    estimator, X, y, sensitive_features, cluster, task, scores, positive
        As in ``audit_estimator``.

    Returns
    -------
    polars.DataFrame
        A row for each row of ``X``, in their order: the features, ``cluster`` (where given),
        ``truth``, ``answer`` and ``score`` (where there is one).

    Raises
    ------
    SpecError, TableError
        As in ``audit_estimator``.

    Examples
    --------
    >>> class Dark:
    ...     classes_ = ["cat", "dog"]
    ...     def predict(self, X):
    ...         return ["dog" if x > 0.5 else "cat" for x in X]
    >>> light = {"light": ["day", "night"]}
    >>> table = estimator_predictions(Dark(), [0.2, 0.9], ["cat", "cat"], light)
    >>> table.rows()
    [('day', 'cat', 'cat'), ('night', 'cat', 'dog')]
    """
    predictions = check_and_predict_with_estimator(
        estimator, X, y, sensitive_features, cluster, task, scores, positive
    )
    return predictions.frame


def audit_estimator(
    estimator: Any,
    X: Any,  # noqa: N803  (what scikit-learn calls it)
    y: Any,
    sensitive_features: Any,
    by: str | Sequence[str] = (),
    *,
    cluster: Any = None,
    task: Task | None = None,
    scores: EstimatorScores = "auto",
    positive: Any = None,
    **settings: Any,
) -> Audit:
    """Audit a fitted estimator on data that it was not fitted on.

    Parameters
    ----------
    estimator : object
        Fitted; with ``predict``, and of a classifier ``classes_``.
    X : array or frame [n, …]
        Given to it as it is.
    y : array_like [n]
        The truth: classes as it was fitted on them, or numbers. Missing ones are not judged.
    sensitive_features : frame, mapping, array or list of n rows
        As in ``metric_frame``. Rows of everything are taken by position, as in scikit-learn;
        indices of pandas that name other rows are refused.
    by : str or sequence of str
        Attributes and intersections; default: each sensitive feature.
    cluster : array_like [n], optional
        What was sampled independently (the subject); default: every row.
    task : {"classification", "regression"}, optional
        Default: what the estimator says that it is.
    scores : {"auto", "probability", "decision", "none"}
        ``"probability"``: ``predict_proba``, of two classes that of the positive one, else that of
        the answer. ``"decision"``: ``decision_function`` of two classes, on its own scale and never
        as a probability; answers are then its side of 0. ``"auto"``: probabilities where there
        are any. A class's column is found by ``classes_``.
    positive : optional
        The class that rates are about; default: of two, the second of ``classes_``.
    **settings
        Of the audit and its task, by the flags' names: ``metric``, ``min_units``, ``seed``, ….

    Returns
    -------
    Audit
        As of ``isolux.audit``; rows are known by their number.

    Raises
    ------
    TableError
        Rows of unequal number or of other people; answers or probabilities that are none.
    SpecError
        An estimator without the method that is needed, or fitted on other classes than ``y`` holds.

    Examples
    --------
    >>> class Dark:
    ...     classes_ = ["cat", "dog"]
    ...     def predict(self, X):
    ...         return ["dog" if x > 0.5 else "cat" for x in X]
    >>> found = audit_estimator(Dark(), [0.2, 0.9] * 100, ["cat", "dog"] * 100,
    ...                         {"light": (["day"] * 2 + ["night"] * 2) * 50}, replicates=200)
    >>> found.group_metrics.filter(metric="accuracy").select("group", "value").rows()
    [('overall', 1.0), ('day', 1.0), ('night', 1.0)]
    """
    for name in ("target", "prediction_column", "score_column", "data"):
        if settings.get(name) is not None:
            raise SpecError(
                f"{name} is about a table's columns, and an estimator answers itself",
                expected=f"audit_estimator without {name}",
                hint="isolux.audit(table, …) audits answers that are there",
            )
    predictions = check_and_predict_with_estimator(
        estimator, X, y, sensitive_features, cluster, task, scores, positive
    )
    return audit_in_memory_table(
        InMemoryTable(predictions.frame, predictions.notes),
        _build_settings(predictions, estimator, by, settings),
    )


def _build_settings(
    predictions: EstimatorPredictions,
    estimator: Any,
    by: str | Sequence[str],
    settings: dict[str, Any],
) -> dict[str, Any]:
    audit_settings: dict[str, Any] = {
        "by": by or list(predictions.features),
        "model_name": _name_estimator(estimator),
        "target": "truth",
        **predictions.settings,
        **settings,
    }
    if "cluster" in predictions.frame.columns:
        audit_settings["cluster"] = "cluster"
    return audit_settings


def _name_estimator(estimator: Any) -> str:
    """Name an estimator by its type; a pipeline by its last step."""
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if isinstance(steps, list) and steps else estimator).__name__
