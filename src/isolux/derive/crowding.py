"""How many stand in a picture: counted from the annotations, judged or not."""

from __future__ import annotations

import polars as pl

from isolux.containers import Dataset
from isolux.info import DerivedInfo, Reference
from isolux.tables import ATTRIBUTES, INSTANCES

__all__ = ["INFO", "derive"]

INFO = DerivedInfo(
    title="Crowding",
    summary="How many annotated people an image holds.",
    references=(
        Reference(
            "facet",
            "Gustafson, Rolland, Ravi, Duval, Adcock, Fu, Hall & Ross (2023). FACET:"
            " Fairness in Computer Vision Evaluation Benchmark. ICCV.",
            "section 5.1: classification on images of one person",
        ),
    ),
    assumptions=("Whoever is not annotated is not counted; a crowd box is not counted either.",),
    attributes=(("people_in_image", "how many annotated people, crowds aside, the image holds."),),
)


def derive(dataset: Dataset) -> pl.DataFrame:
    """Count the people of each image.

    Parameters
    ----------
    dataset : Dataset
        ``is_crowd`` instances are not counted, and get their image's count.

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``people_in_image`` of each instance, as text and ``number``.

    Examples
    --------
    >>> from isolux.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "1"]}),
    ... )
    >>> derive(two)["number"].to_list()
    [2.0, 2.0]
    """
    people = INSTANCES.conform(dataset.instances)
    crowd = pl.col("is_crowd").fill_null(value=False) if "is_crowd" in people.columns else None
    one = pl.lit(value=True) if crowd is None else ~crowd
    counted = people.with_columns(one=one).select(
        "instance_id", n=pl.col("one").sum().over("image_id").cast(pl.Int64)
    )
    return ATTRIBUTES.conform(
        counted.select(
            unit_kind=pl.lit("instance"),
            unit_id="instance_id",
            attribute=pl.lit("people_in_image"),
            value=pl.col("n").cast(pl.String),
            number=pl.col("n").cast(pl.Float64),
        )
    )
