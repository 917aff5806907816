"""Each person once for each of their classes: what open-vocabulary detection and grounding judge.

A person of FACET has one class or two. A nurse who also is a student is looked for as a nurse, by
the boxes labelled so, and again as a student.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from isolux.geometry.matching import Detections, ranks_in_image
from isolux.tasks._boxes.matching import Asked, Settings
from isolux.tasks._boxes.scoring import ask_models, box_pairs
from isolux.tasks._boxes.table import NO_BOX, People, read_people
from isolux.tasks._phrases.prompts import labels_to_classes
from isolux.tasks._truth import instances_with_truth
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.tables import BOX_PREDICTIONS, INSTANCES


@dataclass(frozen=True, slots=True)
class First:
    """The highest-scoring predictions of each image, and how many were left over."""

    rows: pl.DataFrame
    n_beyond: int


def people_by_class(
    dataset: Dataset, target: str | None, unknown_values: Collection[str]
) -> People:
    """Give every person as many rows as they have classes, and one if they have none."""
    truth = instances_with_truth(dataset, target, {}, unknown_values)
    instances = INSTANCES.conform(dataset.instances).drop("classes")
    each = instances.join(
        truth.select("truth", instance_id="unit_id"),
        on="instance_id",
        how="left",
        maintain_order="left",
    ).explode("truth")
    one = pl.when(pl.col("truth").is_not_null()).then(pl.concat_list("truth"))
    single = replace(dataset, instances=each.with_columns(classes=one).drop("truth"))
    return read_people(single, person_class=None, by_class=True, lacking=NO_BOX)


def first_of_image(predictions: pl.DataFrame, limit: int | None) -> First:
    """Keep the first so many predictions of each model's image, whatever their labels.

    Examples
    --------
    >>> frame = pl.DataFrame({"model": "m", "image_id": "1", "score": [0.2, 0.9, 0.4]})
    >>> first_of_image(frame, 2).rows["score"].to_list()
    [0.9, 0.4]
    """
    if limit is None or not predictions.height:
        return First(predictions, 0)
    keys = ["model", "image_id"]
    images = predictions.select(keys).unique().with_row_index("image")
    image = predictions.join(images, on=keys, how="left", maintain_order="left")["image"]
    detections = Detections(image.cast(pl.Int64).to_numpy(), predictions["score"].to_numpy())
    kept = predictions.filter(pl.Series(ranks_in_image(detections) < limit))
    return First(kept, predictions.height - kept.height)


def asked_by_class(
    predictions: pl.DataFrame,
    people: People,
    settings: Settings,
    *,
    templates: Sequence[str],
    prediction_map: Mapping[str, str] | None,
    model: str | None,
) -> tuple[list[Asked], tuple[str, ...]]:
    """Read labels as classes and pair each model's boxes with the people of their class."""
    labelled = labels_to_classes(
        predictions, people.classes or (), templates=templates, prediction_map=prediction_map
    )
    settings = replace(settings, model=model)
    pairs_of = box_pairs(settings, pixel_inclusive=False)
    asked, cautions, notes = ask_models(labelled.rows, BOX_PREDICTIONS, people, settings, pairs_of)
    return asked, (*cautions, *labelled.notes, *notes)


def notes_on_people(people: People) -> tuple[str, ...]:
    """Say how many have several classes, and who is not scored."""
    rows = people.rows
    total = rows["unit_id"].n_unique()
    of_unit = rows.group_by("unit_id").agg(n=pl.len())
    several = of_unit.filter(pl.col("n") > 1).height
    notes = [f"{several:,} of {total:,} people have several classes and are judged for each."]
    left = (
        rows.drop_nulls("reason")
        .group_by("reason")
        .agg(n=pl.col("unit_id").n_unique())
        .sort("reason")
    )
    said = [
        f"{n:,} of {total:,} {'is' if n == 1 else 'are'} not scored: {why}."
        for why, n in left.iter_rows()
    ]
    return (*(notes if several else ()), *said)
