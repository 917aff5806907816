"""A task of another package: was there any box in a person's picture?"""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.tables import SCORES

INFO = TaskInfo(
    title="Presence",
    summary="Whether a model sees anyone in a person's picture.",
    references=(Reference(key="presence", citation="Made for a test of isolux."),),
    assumptions=("each picture shows one person",),
    metrics=(
        Metric(
            name="presence_rate",
            title="Presence",
            definition="The share of people in whose picture there is a box.",
            direction="higher",
        ),
    ),
    defaults=("presence_rate",),
    predictions="outputs",
)


def score(dataset: Dataset, predictions: pl.DataFrame, *, score_threshold: float = 0.5) -> Scores:
    """Score each person: 1 where their picture has a box of at least this score.

    Parameters
    ----------
    dataset : Dataset
    predictions : polars.DataFrame
        Boxes by ``image_id``.
    score_threshold : float
        The lowest score that counts.

    Returns
    -------
    Scores
        0 or 1 a person; null where the light is not known.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one", info=DatasetInfo(title="One", summary="One.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["p"], "image_id": ["i"]}),
    ... )
    >>> boxes = pl.DataFrame({"model": ["net"], "image_id": ["i"], "score": [0.9]})
    >>> score(one, boxes).units["value"].to_list()
    [1.0]
    """
    seen = predictions.filter(pl.col("score") >= score_threshold)["image_id"].unique()
    names = predictions["model"].unique().to_list() or ["model"]
    known = dataset.attributes.filter(pl.col("attribute") == "light").drop_nulls("value")
    people = dataset.instances
    if "cluster_id" not in people.columns:
        people = people.with_columns(cluster_id=pl.lit(None, pl.String))
    blind = ~pl.col("instance_id").is_in(known["unit_id"].implode()) & (known.height > 0)
    value = pl.col("image_id").is_in(seen.implode()).cast(pl.Float64)
    units = people.sort("instance_id").select(
        model=pl.lit(names[0]),
        task=pl.lit("presence"),
        metric=pl.lit("presence_rate"),
        label=pl.lit(None, pl.String),
        threshold=pl.lit(None, pl.Float64),
        unit_kind=pl.lit("instance"),
        unit_id="instance_id",
        cluster_id="cluster_id",
        value=pl.when(~blind).then(value),
        reason=pl.when(blind).then(pl.lit("the light is not known")),
    )
    return Scores(SCORES.conform(units), INFO)
