"""Each person once for each of their classes, for open-vocabulary detection and grounding.

A person of FACET has one class or two. A nurse who also is a student is matched as a nurse, by the
boxes with that label, and again as a student.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.info import TaskInfo
from isolux.core.tables import BOX_PREDICTIONS, INSTANCES
from isolux.geometry.matching import Detections, ranks_in_image
from isolux.tasks._boxes.instance_tables import NO_BOX, AnnotatedInstances, read_people
from isolux.tasks._boxes.matching import MatchingSettings, ModelMatches, measured_task_info
from isolux.tasks._boxes.scoring import build_box_pairing, match_models
from isolux.tasks._boxes.shape_previews import build_previews
from isolux.tasks._prompts.class_recalls import score_class_recalls
from isolux.tasks._prompts.prompt_classes import PhraseSettings, labels_to_classes
from isolux.tasks._truth import instances_with_truth


def repeat_people_by_class(
    dataset: Dataset, target: str | None, unknown_values: Collection[str]
) -> AnnotatedInstances:
    """Repeat each person for each of their classes; people without a class have one row."""
    truth = instances_with_truth(dataset, target, {}, unknown_values)
    instances = INSTANCES.conform(dataset.instances).drop("classes")
    class_rows = instances.join(
        truth.select("truth", instance_id="unit_id"),
        on="instance_id",
        how="left",
        maintain_order="left",
    ).explode("truth")
    # Repeated people share an instance_id, so that clusters and weights stay those of the person.
    class_list = pl.when(pl.col("truth").is_not_null()).then(pl.concat_list("truth"))
    single_class_dataset = replace(
        dataset, instances=class_rows.with_columns(classes=class_list).drop("truth")
    )
    return read_people(
        single_class_dataset, person_class=None, by_class=True, missing_by_reason=NO_BOX
    )


def keep_top_per_image(predictions: pl.DataFrame, limit: int | None) -> tuple[pl.DataFrame, int]:
    """Keep the highest-scoring predictions of each image, and count the others."""
    if limit is None or not predictions.height:
        return predictions, 0
    # Per model: images of two models are different lists of predictions.
    keys = ["model", "image_id"]
    images = predictions.select(keys).unique().with_row_index("image")
    image = predictions.join(images, on=keys, how="left", maintain_order="left")["image"]
    detections = Detections(image.cast(pl.Int64).to_numpy(), predictions["score"].to_numpy())
    top_rows = predictions.filter(pl.Series(ranks_in_image(detections) < limit))
    return top_rows, predictions.height - top_rows.height


def score_phrases(
    task: str,
    task_info: TaskInfo,
    names: Sequence[str],
    predictions: pl.DataFrame,
    people: AnnotatedInstances,
    settings: MatchingSettings,
    templates: Sequence[str],
    phrase_settings: PhraseSettings,
) -> tuple[Scores, list[ModelMatches]]:
    """Match the boxes of each class with its people, and score each class and person."""
    labelled_predictions = labels_to_classes(
        predictions,
        people.classes or (),
        templates=templates,
        prediction_map=phrase_settings["prediction_map"],
    )
    settings = replace(settings, model=phrase_settings["model"])
    # Continuous coordinates, as in pycocotools, whose recall FACET reports (section 6.2).
    find_pairs = build_box_pairing(settings, pixel_inclusive=False)
    matches, cautions, notes = match_models(
        labelled_predictions.rows, BOX_PREDICTIONS, people, settings, find_pairs
    )
    units, evidence = score_class_recalls(task, matches, names)
    all_notes = (*cautions, *labelled_predictions.notes, *notes)
    scores = Scores(
        units=units,
        info=measured_task_info(task_info, names),
        evidence=evidence,
        notes=all_notes,
        previews=build_previews(labelled_predictions.rows, people, None),
    )
    return scores, matches


def describe_people(people: AnnotatedInstances) -> tuple[str, ...]:
    """Describe how many people have several classes, and who is not scored."""
    rows, total = people.rows, people.rows["unit_id"].n_unique()
    # Rows repeat people, so that people are counted by their ids.
    n_multi_class = rows.group_by("unit_id").len().filter(pl.col("len") > 1).height
    note = f"{n_multi_class:,} of {total:,} people have several classes and are judged for each."
    unscored = rows.drop_nulls("reason").group_by("reason").agg(n=pl.col("unit_id").n_unique())
    reason_notes = [
        f"{n:,} of {total:,} {'is' if n == 1 else 'are'} not scored: {reason}."
        for reason, n in unscored.sort("reason").iter_rows()
    ]
    return (*([note] if n_multi_class else []), *reason_notes)
