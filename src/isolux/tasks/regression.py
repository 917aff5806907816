"""Regression: how far a predicted number lies from the true one (an age, a height).

The error is the prediction less the truth, so a positive bias means too high. Shares within a
distance are the cumulative score of age estimation (Geng, Zhou & Smith-Miles 2007, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.stats.numbers import quantile, root_mean_square, spearman, spearman_of
from isolux.tasks._numbers.codes import BY_WORD, EMPTIED, codes_of_missing
from isolux.tasks._numbers.reading import measured_name, number_of, numbers_of_units
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import JoinError, SpecError
from isolux.vocabulary.info import Direction, Metric, Reference, TaskInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import UNKNOWN_VALUES
from isolux.vocabulary.tables import SCORES, to_polars

__all__ = ["INFO", "score"]

EVIDENCE = "errors"
"""Name of the evidence table."""
GENG = Reference(
    "age-estimation",
    "Geng, X., Zhou, Z.-H., & Smith-Miles, K. (2007). Automatic age estimation based on facial "
    "aging patterns. IEEE Transactions on Pattern Analysis and Machine Intelligence, 29, "
    "2234–2240.",
    "section 4, mean absolute error and cumulative score",
    "https://doi.org/10.1109/TPAMI.2007.70733",
)
_LEAST, _CHANCE, _SURE = 30, 3.0, 6.0
_FAR_OFF = 5.0  # the ratio of medians from which two units of measurement are suspected


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
        "Mean of the prediction less the truth; positive: too high on average.", "none",
    ),
    replace(
        _metric(
            "share_within", "Share of units predicted within",
            "Share of units whose prediction lies within this distance of the truth.", "higher",
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
        "The distance that half of the group's predictions lie within.", "lower",
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
    summary="How far a predicted number lies from the true one.",
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
    errors = _errors(units, truth)
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
        notes=(*_codes(units, truth, target), *_suspicious(errors), *notes),
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


def _errors(units: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    joined = units.join(truth, on="unit_id", how="left", maintain_order="left")
    error = pl.col("value") - pl.col("truth")
    return joined.select(
        "model", "unit_id", "cluster_id", "truth", prediction="value", error=error,
        absolute_error=error.abs(),
        reason=pl.when(pl.col("truth").is_null()).then(pl.lit("unknown truth"))
        .when(pl.col("value").is_null()).then(pl.lit("no prediction")),
    )  # fmt: skip


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


def _codes(units: pl.DataFrame, truth: pl.DataFrame, target: str) -> list[str]:
    """Caution where a code for a missing value stands in the truth or in the predictions."""
    true = truth["truth"].cast(pl.Float64).to_numpy()
    notes = [*codes_of_missing(true, what=f"the true {target!r}", cure=BY_WORD)]
    for (model,), own in units.group_by(["model"], maintain_order=True):
        notes += codes_of_missing(own["value"].to_numpy(), what=f"{model!r}", cure=EMPTIED)
    return [*notes]


def _suspicious(errors: pl.DataFrame) -> list[str]:
    """Caution where predictions do not go with the truth, or are in another unit.

    Raises
    ------
    JoinError
        They go with the truth of the row before or after.
    """
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


def _refuse_shifted(model: str, truth: object, said: object) -> None:
    first, second = np.asarray(truth), np.asarray(said)
    for shift in (1, -1):
        a, b = (first[:-1], second[1:]) if shift > 0 else (first[1:], second[:-1])
        if _beyond_chance(a, b) > _SURE:
            raise JoinError(
                f"the predictions of {model!r} belong to other rows",
                expected="each prediction in the row of the person that it is about",
                found="they go with the truth of the row"
                f" {'before' if shift > 0 else 'after'} theirs, and not with their own",
                hint="a row was lost or put in: join by an id (--id, --prediction-id)",
            )
