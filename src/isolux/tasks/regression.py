"""Regression: how far a predicted number lies from the true one (an age, a height).

The error is the prediction less the truth, so a positive bias means too high. Shares within a
distance are the cumulative score of age estimation (Geng, Zhou & Smith-Miles 2007, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, TaskInfo
from isolux.stats.numeric_statistics import (
    quantile_statistic,
    root_mean_square_statistic,
    spearman_statistic,
)
from isolux.tasks._numbers.errors import (
    CORRELATIONS,
    EVIDENCE,
    GENG,
    PEARSON,
    caution_on_mismatch,
    error_rows,
    pearson_metric,
    read_errors,
)
from isolux.tasks._scores import read_metrics, restrict_task_info

_error_metric = partial(
    Metric,
    direction="lower",
    high=None,
    unit="own unit",  # of each run: what --unit says, or none
    reference=GENG,
)
METRICS = (
    _error_metric(
        name="mean_absolute_error",
        title="Mean absolute error",
        definition="Mean distance of the prediction from the truth.",
    ),
    _error_metric(
        name="bias",
        title="Bias",
        definition="Mean of the prediction minus the truth; positive: too high on average.",
        direction="none",
        low=None,
    ),
    Metric(
        name="share_within",
        title="Share of units predicted within",
        definition="Share of units whose prediction is within this distance of the truth.",
        direction="higher",
        reference=GENG,
        threshold_phrase="a distance of",
    ),
    _error_metric(
        name="root_mean_squared_error",
        title="Root mean squared error",
        definition="Root of the mean squared distance; large errors weigh more.",
        evidence=EVIDENCE,
        statistic=root_mean_square_statistic("error"),
    ),
    _error_metric(
        name="median_absolute_error",
        title="Median absolute error",
        definition="The distance within which half of the group's predictions are.",
        evidence=EVIDENCE,
        # A median is not moved by a few outliers, which dominate a root mean square.
        statistic=quantile_statistic(0.5, "absolute_error"),
    ),
    _error_metric(
        name="spearman",
        title="Rank correlation",
        definition="Spearman's correlation of prediction and truth within the group; it also moves "
        "with how far the group's truths are spread.",
        direction="higher",
        low=-1.0,
        high=1.0,
        evidence=EVIDENCE,
        statistic=spearman_statistic("prediction", "truth"),
    ),
    pearson_metric("prediction", "truth"),
)

INFO = TaskInfo(
    title="Regression",
    summary="How far predicted numbers are from the true ones.",
    references=(GENG, PEARSON),
    assumptions=(
        "Prediction and truth are in the same unit of measurement.",
        "Errors also move with how the truth is spread in a group: compare within its bins too.",
    ),
    metrics=METRICS,
    defaults=("mean_absolute_error", "bias"),
    predictions="numbers",
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    within: Sequence[float] = (),
    unit: str = "",
    metrics: Sequence[str] = (),
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    model: str | None = None,
) -> Scores:
    """Hold a predicted number of each unit against the true one.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances.
    predictions : frame
        ``model, instance_id, value`` (or ``score``); or ``UNIT_VALUES`` of one ``metric``.
    target : str
        The numeric attribute that is predicted.
    within : sequence of float
        Adds ``share_within`` for each distance (column ``threshold``), such as 5 years.
    unit : str
        What both are measured in (years), for sentences.
    metrics : sequence of str
        What to measure. None: ``mean_absolute_error`` and ``bias``. ``pearson`` and ``spearman``
        correlate prediction and truth within each group.
    unknown_values : sequence of str
        Truths that mean "not known".
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: metrics that are means, in the target's unit; null with the reason "unknown
        truth" or "no prediction". ``evidence["errors"]``: ``model, unit_id, cluster_id, truth,
        prediction, error, absolute_error, reason``.

    Raises
    ------
    SpecError, UnknownNameError
        No target, no such metric or attribute, a distance that is none.
    TableError, JoinError
        Numbers that cannot be read, of no unit of the dataset, or of the people of other rows.

    Examples
    --------
    >>> import polars as pl
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ...     attributes=pl.DataFrame({"unit_kind": "instance", "unit_id": ["a", "b"],
    ...         "attribute": "age", "value": ["20", "40"], "number": [20.0, 40.0]}),
    ... )
    >>> given = pl.DataFrame({"model": "m", "instance_id": ["a", "b"], "value": [23.0, 38.0]})
    >>> score(people, given, target="age").units.select("unit_id", "metric", "value").rows()
    [('a', 'mean_absolute_error', 3.0), ('b', 'mean_absolute_error', 2.0),
     ('a', 'bias', 3.0), ('b', 'bias', -2.0)]
    """
    if target is None:
        raise SpecError(
            "nothing says what the true number is",
            expected="--target ATTRIBUTE (target=…), a numeric attribute",
            found="no target",
        )
    names = _select_metrics(metrics, within)
    errors, notes = read_errors(dataset, predictions, target, unknown_values, model)
    task_info = restrict_task_info(INFO, names)
    # "own unit" is a placeholder of the declaration; each run fills in its unit.
    units = {"own unit": unit, "fraction": "fraction"}
    measured_metrics = [
        # A correlation has no unit; the other metrics have the target's.
        replace(m, unit="" if m.name in CORRELATIONS else units[m.unit])
        for m in task_info.metrics
    ]
    return Scores(
        units=error_rows(errors, "regression", names, within),
        info=replace(task_info, metrics=tuple(measured_metrics)),
        evidence={EVIDENCE: errors},
        notes=(*caution_on_mismatch(errors), *notes),
        task="regression",
        task_choices={
            "target": {"name": target, "metrics": sorted(names), "words": f"of {target}"}
        },
    )


def _select_metrics(metrics: Sequence[str], distances: Sequence[float]) -> set[str]:
    names = set(read_metrics(INFO, metrics) or INFO.defaults)
    # A distance of 0 is allowed: it measures exact predictions, of counts for example.
    invalid = [distance for distance in distances if not np.isfinite(distance) or distance < 0]
    if invalid or ("share_within" in names and not distances):
        raise SpecError(
            "share_within needs distances",
            expected="--within 5 (within=(5,)): finite numbers of at least 0",
            found=repr(invalid[0]) if invalid else "none",
        )
    # Distances ask for the metric by themselves.
    return names | ({"share_within"} if distances else set())
