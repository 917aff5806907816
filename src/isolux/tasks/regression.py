"""Regression: how far a predicted number lies from the true one (an age, a height).

The error is the prediction less the truth, so a positive bias means too high. Shares within a
distance are the cumulative score of age estimation (Geng, Zhou & Smith-Miles 2007, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.stats.numbers import quantile, root_mean_square, spearman
from isolux.tasks._numbers.errors import EVIDENCE, codes, errors_of, suspicious
from isolux.tasks._numbers.reading import measured_name, number_of, numbers_of_units
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import UNKNOWN_VALUES
from isolux.vocabulary.info import Direction, Metric, Reference, TaskInfo
from isolux.vocabulary.tables import SCORES, to_polars

__all__ = ["INFO", "score"]

GENG = Reference(
    "age-estimation",
    "Geng, X., Zhou, Z.-H., & Smith-Miles, K. (2007). Automatic age estimation based on facial "
    "aging patterns. IEEE Transactions on Pattern Analysis and Machine Intelligence, 29, "
    "2234–2240.",
    "section 4, mean absolute error and cumulative score",
    "https://doi.org/10.1109/TPAMI.2007.70733",
)


def _metric(
    name: str, title: str, definition: str, direction: Direction = "lower", statistic: object = None
) -> Metric:
    return Metric(
        name=name,
        title=title,
        definition=definition,
        direction=direction,
        low=None if direction == "none" else 0.0,
        high=None,
        unit="own unit",  # of each run: what --unit says, or none
        reference=GENG,
        evidence=None if statistic is None else EVIDENCE,
        statistic=statistic,  # type: ignore[arg-type]
    )


METRICS = (
    _metric(
        "mean_absolute_error", "Mean absolute error",
        "Mean distance of the prediction from the truth.",
    ),
    _metric(
        "bias", "Bias",
        "Mean of the prediction minus the truth; positive: too high on average.", "none",
    ),
    replace(
        _metric(
            "share_within", "Share of units predicted within",
            "Share of units whose prediction is within this distance of the truth.", "higher",
        ),
        high=1.0, unit="fraction", at="a distance of",
    ),
    _metric(
        "root_mean_squared_error", "Root mean squared error",
        "Root of the mean squared distance; large errors weigh more.", "lower",
        root_mean_square("error"),
    ),
    _metric(
        "median_absolute_error", "Median absolute error",
        "The distance within which half of the group's predictions are.", "lower",
        quantile(0.5, "absolute_error"),
    ),
    replace(
        _metric(
            "spearman", "Rank correlation",
            "Spearman's correlation of prediction and truth within the group; it also moves with "
            "how far the group's truths are spread.", "higher", spearman("prediction", "truth"),
        ),
        low=-1.0, high=1.0,
    ),
)  # fmt: skip
_OF_UNITS = ("mean_absolute_error", "bias", "share_within")

INFO = TaskInfo(
    title="Regression",
    summary="How far predicted numbers are from the true ones.",
    references=(GENG,),
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
        What to measure. None: ``mean_absolute_error`` and ``bias``.
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
    >>> from isolux.vocabulary.info import DatasetInfo
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
    names = _names(metrics, within)
    frame = to_polars(predictions)
    measured_name(frame)
    units, notes = numbers_of_units(dataset, frame, model)
    truth = pl.DataFrame(schema={"unit_id": pl.String, "truth": pl.Float64})
    if dataset.instances.height:
        truth = number_of(dataset, target, unknown_values).rename({"number": "truth"})
    errors = errors_of(units, truth)
    measured = tuple(
        replace(m, unit="" if m.name == "spearman" else unit) if m.unit != "fraction" else m
        for m in INFO.metrics if m.name in names
    )  # fmt: skip
    unknown = int(errors.unique("unit_id")["truth"].null_count())
    if unknown:
        notes.append(f"{unknown:,} people have no known {target!r} and count in no metric.")
    return Scores(
        units=_rows(errors, names, within),
        info=replace(INFO, metrics=measured, defaults=tuple(m.name for m in measured)),
        evidence={EVIDENCE: errors},
        notes=(*codes(units, truth, target), *suspicious(errors), *notes),
        task="regression",
        chosen={"target": {"name": target, "metrics": sorted(names), "words": f"of {target}"}},
    )


def _names(metrics: Sequence[str], within: Sequence[float]) -> set[str]:
    asked = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    names = {INFO.metric(name).name for name in asked or INFO.defaults}
    wrong = [d for d in within if not np.isfinite(d) or d < 0]
    if wrong or ("share_within" in names and not within):
        raise SpecError(
            "share_within needs distances",
            expected="--within 5 (within=(5,)): finite numbers of at least 0",
            found=repr(wrong[0]) if wrong else "none",
        )
    return names | ({"share_within"} if within else set())


def _rows(errors: pl.DataFrame, names: set[str], within: Sequence[float]) -> pl.DataFrame:
    values: dict[tuple[str, float | None], pl.Expr] = {
        ("mean_absolute_error", None): pl.col("absolute_error"),
        ("bias", None): pl.col("error"),
    }
    values |= {("share_within", float(d)): pl.col("absolute_error") <= d for d in within}
    parts = [
        errors.select(
            "model", "unit_id", "cluster_id", "reason", value=value.cast(pl.Float64),
            task=pl.lit("regression"), metric=pl.lit(name), unit_kind=pl.lit("instance"),
            threshold=pl.lit(distance, dtype=pl.Float64),
        )
        for (name, distance), value in values.items() if name in names
    ]  # fmt: skip
    return SCORES.conform(pl.concat(parts)) if parts else SCORES.empty()
