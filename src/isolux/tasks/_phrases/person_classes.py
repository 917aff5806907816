"""Each person once for each of their classes: what open-vocabulary detection and grounding judge.

A person of FACET has one class or two. A nurse who also is a student is looked for as a nurse, by
the boxes labelled so, and again as a student.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import polars as pl

from isolux.geometry.matching import Detections, ranks_in_image
from isolux.tasks._boxes.matching import Asked, Settings, measured
from isolux.tasks._boxes.scoring import ask_models, box_pairs
from isolux.tasks._boxes.table import NO_BOX, People, read_people
from isolux.tasks._phrases.class_recalls import class_recalls
from isolux.tasks._phrases.prompts import PhraseSettings, labels_to_classes
from isolux.tasks._truth import instances_with_truth
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.tables import BOX_PREDICTIONS, INSTANCES


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


def first_of_image(predictions: pl.DataFrame, limit: int | None) -> tuple[pl.DataFrame, int]:
    """Keep the highest-scoring predictions of each image, and count how many were left over."""
    if limit is None or not predictions.height:
        return predictions, 0
    keys = ["model", "image_id"]
    images = predictions.select(keys).unique().with_row_index("image")
    image = predictions.join(images, on=keys, how="left", maintain_order="left")["image"]
    detections = Detections(image.cast(pl.Int64).to_numpy(), predictions["score"].to_numpy())
    kept = predictions.filter(pl.Series(ranks_in_image(detections) < limit))
    return kept, predictions.height - kept.height


def score_phrases(
    task: str,
    info: TaskInfo,
    names: Sequence[str],
    predictions: pl.DataFrame,
    people: People,
    settings: Settings,
    templates: Sequence[str],
    phrases: PhraseSettings,
) -> tuple[Scores, list[Asked]]:
    """Match the boxes of each class with its people: scores of each class and person."""
    labelled = labels_to_classes(
        predictions,
        people.classes or (),
        templates=templates,
        prediction_map=phrases["prediction_map"],
    )
    settings = replace(settings, model=phrases["model"])
    pairs_of = box_pairs(settings, pixel_inclusive=False)
    asked, cautions, notes = ask_models(labelled.rows, BOX_PREDICTIONS, people, settings, pairs_of)
    units, evidence = class_recalls(task, asked, names)
    told = (*cautions, *labelled.notes, *notes)
    scores = Scores(units=units, info=measured(info, names), evidence=evidence, notes=told)
    return scores, asked


def notes_on_people(people: People) -> tuple[str, ...]:
    """Say how many have several classes, and who is not scored."""
    rows, total = people.rows, people.rows["unit_id"].n_unique()
    several = rows.group_by("unit_id").len().filter(pl.col("len") > 1).height
    note = f"{several:,} of {total:,} people have several classes and are judged for each."
    left = rows.drop_nulls("reason").group_by("reason").agg(n=pl.col("unit_id").n_unique())
    said = [
        f"{n:,} of {total:,} {'is' if n == 1 else 'are'} not scored: {why}."
        for why, n in left.sort("reason").iter_rows()
    ]
    return (*([note] if several else []), *said)
