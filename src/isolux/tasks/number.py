"""A number of each unit: its mean, quantiles and rank correlation, by group.

A CLIP score, a distance, an error that another program measured: anything that is one number of a
person or image and has no truth to compare with. The user says which direction is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Direction, Metric, Reference, TaskInfo
from isolux.core.tables import to_polars
from isolux.stats.numeric_statistics import quantile_statistic, spearman_statistic
from isolux.tasks._numbers.errors import CORRELATIONS, PEARSON, pearson_metric
from isolux.tasks._numbers.numeric_predictions import (
    read_metric_name,
    read_numeric_attribute,
    read_unit_numbers,
)
from isolux.tasks._scores import read_metrics, restrict_task_info, score_rows, stack_scores

EVIDENCE = "numbers"
"""Name of the evidence table."""
HYNDMAN = Reference(
    "sample-quantiles",
    "Hyndman, R. J., & Fan, Y. (1996). Sample quantiles in statistical packages. The American "
    "Statistician, 50, 361–365.",
    "definition 7",
    "https://doi.org/10.1080/00031305.1996.10473566",
)
SPEARMAN = Reference(
    "rank-correlation",
    "Spearman, C. (1904). The proof and measurement of association between two things. American "
    "Journal of Psychology, 15, 72–101.",
    "",
    "https://doi.org/10.2307/1412159",
)


# No direction by itself: whether a high number is good is known only to the user.
_number_metric = partial(
    Metric,
    direction="none",
    low=None,
    high=None,
    unit="own unit",  # of each run: what --unit says, or none
    reference=HYNDMAN,
)
METRICS = (
    _number_metric(
        name="mean", title="Mean", definition="Mean of the number over the group's units."
    ),
    _number_metric(
        name="median",
        title="Median",
        definition="The number below which half of the group's units are.",
        # Definition 7 of Hyndman and Fan (1996), which is numpy's and R's default.
        evidence=EVIDENCE,
        statistic=quantile_statistic(0.5),
    ),
    *(
        _number_metric(
            name=f"percentile_{k}",
            title=f"{k}th percentile",
            definition=f"The number below which {k} of 100 of the group's units are, interpolated.",
            evidence=EVIDENCE,
            statistic=quantile_statistic(k / 100),
        )
        # Quartiles, and tails as they are usually reported (response times by their 95th
        # percentile).
        for k in (5, 10, 25, 75, 90, 95)
    ),
    _number_metric(
        name="spearman",
        title="Rank correlation",
        definition="Spearman's correlation of the number with a numeric attribute within the "
        "group.",
        low=-1.0,
        high=1.0,
        evidence=EVIDENCE,
        # Ranks: a number such as a response time is skewed, and a few outliers would decide a
        # linear correlation.
        statistic=spearman_statistic("value", "along"),
        reference=SPEARMAN,
    ),
    pearson_metric(
        "value",
        "along",
        "the number and a numeric attribute",
        direction="none",
        evidence=EVIDENCE,
    ),
)

INFO = TaskInfo(
    title="A number per unit",
    summary="The mean, the quantiles and the rank correlation of any number, by group.",
    references=(HYNDMAN, SPEARMAN, PEARSON),
    assumptions=(
        "What the number measures is as its column says: nothing here can check it.",
        "Which way is better is what --better says; without it, neither is.",
    ),
    metrics=METRICS,
    defaults=("mean", "median", "spearman"),
    predictions="numbers",
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    along: str | None = None,
    better: Direction = "none",
    unit: str = "",
    metrics: Sequence[str] = (),
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    model: str | None = None,
) -> Scores:
    """Take one number of each unit, of one or several models.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances.
    predictions : frame
        ``model, instance_id, value`` (or ``score``); or ``UNIT_VALUES`` of one ``metric``.
    along : str, optional
        A numeric attribute (income) with which ``spearman`` and ``pearson`` correlate the number in
        each group.
    better : {"higher", "lower", "none"}
        Which way is better.
    unit : str
        What the number is measured in (years), for sentences.
    metrics : sequence of str
        What to measure. None: ``mean``, ``median`` and, with ``along``, ``spearman``; also
        ``pearson``, ``percentile_5``, ``_10``, ``_25``, ``_75``, ``_90`` and ``_95``.
    unknown_values : sequence of str
        Values of ``along`` that mean "not known".
    model : str, optional
        What to call the model if there is no number to say so.

    Returns
    -------
    Scores
        ``units``: the metric ``mean``, whose values are the numbers; null with the reason "no
        number". ``evidence["numbers"]``: ``model, unit_id, cluster_id, value, along, reason``.

    Raises
    ------
    SpecError, UnknownNameError
        A metric that the input does not allow, several numbers, no such attribute.
    TableError, JoinError
        Numbers that cannot be read, or of no unit of the dataset.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two photos",
    ...     info=DatasetInfo(title="Two photos", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ... )
    >>> given = pl.DataFrame({"model": "clip", "instance_id": ["a", "b"], "value": [0.2, 0.3]})
    >>> score(people, given).units.select("unit_id", "metric", "value").rows()
    [('a', 'mean', 0.2), ('b', 'mean', 0.3)]
    """
    frame = to_polars(predictions)
    name = read_metric_name(frame)
    units, notes = read_unit_numbers(dataset, frame, model)
    requested = read_metrics(INFO, metrics)
    names = set(requested or INFO.defaults)
    if along is None and names & CORRELATIONS:
        # As a default it is dropped silently; requested by name, its absence must be explained.
        if requested:
            raise SpecError(
                f"the metric {min(names & CORRELATIONS)!r} cannot be measured",
                expected="along, the numeric attribute to correlate with (--along income)",
                where="metrics",
            )
        names -= CORRELATIONS
    evidence = units.with_columns(along=pl.lit(None, dtype=pl.Float64))
    if along is not None:
        # Unknown values of the attribute are excluded from the correlation alone.
        along_values = read_numeric_attribute(dataset, along, unknown_values).rename(
            {"number": "along"}
        )
        evidence = units.join(along_values, on="unit_id", how="left", maintain_order="left")
    evidence = evidence.with_columns(
        # A missing ``along`` is no reason: the mean and quantiles do not need it.
        reason=pl.when(pl.col("value").is_null()).then(pl.lit("no number"))
    )
    task_info = restrict_task_info(INFO, names, cites=True)
    measured_metrics = [
        # A correlation has no unit, and neither of its directions is better for all numbers.
        replace(m, unit="") if m.name in CORRELATIONS else replace(m, direction=better, unit=unit)
        for m in task_info.metrics
    ]
    models = units["model"].unique()
    name = name or (str(models[0]) if len(models) == 1 else None)
    rows = [score_rows(evidence, "number", "mean", pl.col("value"))] if "mean" in names else []
    return Scores(
        units=stack_scores(rows),
        info=replace(task_info, metrics=tuple(measured_metrics)),
        evidence={EVIDENCE: evidence},
        notes=tuple(notes),
        task="number",
        task_choices=_describe_metrics(name, along, names),
    )


def _describe_metrics(
    name: str | None, along: str | None, metrics: set[str]
) -> dict[str, dict[str, object]]:
    """Describe the number and the attribute that it is correlated with, for sentences."""
    descriptions: dict[str, dict[str, object]] = {}
    if name is not None:
        value_metrics = sorted(metrics - CORRELATIONS)
        descriptions["number"] = {"name": name, "metrics": value_metrics, "words": f"of {name}"}
    if correlations := sorted(metrics & CORRELATIONS):
        correlation_phrase = f"{f'of {name} ' if name else ''}with {along}"
        descriptions["along"] = {
            "name": along,
            "metrics": correlations,
            "words": correlation_phrase,
        }
    return descriptions
