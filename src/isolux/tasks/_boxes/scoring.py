"""From tables to scores: what detection, face detection and segmentation share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.formatting import join_first
from isolux.core.info import TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import Table, to_polars
from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.matching import OverlapPairs
from isolux.tasks._boxes.box_formats import BoxFormat, check_predictions, to_xywh
from isolux.tasks._boxes.evidence import COCO_METRIC_NAMES, build_evidence_tables
from isolux.tasks._boxes.image_coverage import distinct_values
from isolux.tasks._boxes.instance_tables import (
    BOX,
    IS_CROWD,
    AnnotatedInstances,
    ModelDetections,
    box_columns,
    read_detections,
    read_people,
)
from isolux.tasks._boxes.matching import (
    MatchingSettings,
    ModelMatches,
    measured_task_info,
    score_rows,
    select_metrics,
)
from isolux.tasks._boxes.shape_previews import build_previews
from isolux.tasks._scores import stack_scores

_MATCHING_TEXTS = {
    "one-to-one": "one to one by falling score, as COCO does",
    "best-overlap": "by best overlap, detections used again and again, as FHIBE's tool does",
}
PairFinder = Callable[[ModelDetections, AnnotatedInstances], OverlapPairs]
"""Computes the pairs of detections and people that overlap."""


def score_shapes(
    task: tuple[str, TaskInfo, Table],
    dataset: Dataset,
    predictions: object,
    settings: MatchingSettings,
    find_pairs: PairFinder,
    *,
    metrics: Sequence[str],
    missing_by_reason: Mapping[str, pl.Expr],
    person_class: str | Sequence[str] | None = None,
    by_class: bool | None = False,
    box_format: BoxFormat = "xywh",
    crowd: pl.Expr = IS_CROWD,
) -> Scores:
    """Match the boxes or masks of each model and score all people; see ``detection.score``."""
    name, task_info, table = task
    frame, label = to_polars(predictions), settings.person_label
    named_predictions, person_label, class_notes = name_classes(frame, dataset.categories, label)
    class_matching = decide_class_matching(
        dataset,
        named_predictions,
        by_class=by_class,
        person_class=person_class,
        person_label=person_label,
    )
    # COCO's rule: means over classes, of at most 100 detections in an image and class.
    if not class_matching.has_class_scores:
        if settings.max_detections is None:
            settings = replace(settings, max_detections=COCO_MAX_DETECTIONS)
        if settings.matching == "one-to-one":
            # Best-overlap matching has no false positives, hence no AP: its defaults stay.
            task_info = replace(task_info, defaults=(*task_info.defaults[:1], *COCO_METRIC_NAMES))
    names = select_metrics(task_info, metrics, settings)
    people = read_people(
        dataset,
        person_class=person_class,
        by_class=class_matching.by_class,
        missing_by_reason=missing_by_reason,
        crowd=crowd,
    )
    # Matched by class, but reported without: COCO's AP and AR are means over classes.
    people = replace(people, has_class_scores=class_matching.has_class_scores)
    named_predictions = to_xywh_predictions(named_predictions, box_format, people)
    settings = replace(settings, person_label=person_label)
    models, cautions, notes = match_models(named_predictions, table, people, settings, find_pairs)
    if not class_matching.has_class_scores:
        notes = (
            *caution_on_few_classes(
                distinct_values(named_predictions, "label"), people.classes or ()
            ),
            *class_notes,
            *notes,
        )
    # What the task judges, as boxes of results that hold masks too.
    judged_columns = [name for name in named_predictions.columns if name in table.schema]
    frames = [rows for model_matches in models for rows in score_rows(name, model_matches, names)]
    return Scores(
        units=stack_scores(frames),
        info=measured_task_info(task_info, names),
        evidence=build_evidence_tables(models, names),
        task=name,
        notes=(*cautions, *notes, *build_matching_notes(people, settings, names)),
        previews=build_previews(
            named_predictions.select(judged_columns), people, settings.person_label
        ),
    )


def match_models(
    predictions: object,
    table: Table,
    people: AnnotatedInstances,
    settings: MatchingSettings,
    find_pairs: PairFinder,
) -> tuple[list[ModelMatches], list[str], tuple[str, ...]]:
    """Read each model's detections and pair them with people; with cautions and notes."""
    models, notes = read_detections(
        predictions, table, people, person_label=settings.person_label, model=settings.model
    )
    cautions = [
        note
        for model_predictions in models
        for note in check_predictions(model_predictions, people, find_pairs)
    ]
    matches = [
        ModelMatches(people, model_predictions, find_pairs(model_predictions, people), settings)
        for model_predictions in models
    ]
    return matches, cautions, notes


def to_xywh_predictions(
    predictions: object, box_format: BoxFormat, people: AnnotatedInstances
) -> pl.DataFrame:
    """Convert predicted boxes, if there are any, from their format."""
    frame = to_polars(predictions)
    return to_xywh(frame, box_format, people.images) if set(BOX) <= set(frame.columns) else frame


def build_box_pairing(settings: MatchingSettings, *, pixel_inclusive: bool) -> PairFinder:
    """Build the function that pairs boxes that overlap enough for any metric."""

    def find_pairs(predictions: ModelDetections, people: AnnotatedInstances) -> OverlapPairs:
        return box_pairs_xywh(
            predictions.detections,
            people.truths,
            box_columns(predictions.rows),
            box_columns(people.rows),
            # Pairs below every threshold are dropped at once: a crowded image has thousands of
            # them.
            lowest_iou=settings.min_iou,
            pixel_inclusive=pixel_inclusive,
        )

    return find_pairs


def build_matching_notes(
    people: AnnotatedInstances, settings: MatchingSettings, names: Sequence[str] = ()
) -> tuple[str, ...]:
    """Describe how people were matched, and who is not scored."""
    limit, common = settings.max_detections, settings.common_count
    limit_text = (
        "All detections take part" if limit is None else f"{limit:,} detections an image at most"
    )
    class_text = ", class by class" if people.classes is not None else ""
    class_text += (
        ""
        if people.has_class_scores
        else "; averages are over classes; --by-class gives each class"
    )
    mean = "is the mean count of people over the groups of an attribute that hold anyone (of the"
    common_count_text = (
        f"{mean} class), on each replicate its own"
        if common is None
        else (f"is {common:,g} everywhere")
    )
    classes = (
        "Of groups that are whole classes or COCO's sizes, every false alarm of that class or size"
        " counts, as in COCO's own figures for them."
    )
    texts = (
        (True, f"{limit_text}, matched {_MATCHING_TEXTS[settings.matching]}{class_text}."),
        (not people.has_class_scores, classes),
        (settings.score_threshold, f"Found at a score: at an overlap of {settings.score_iou:g}."),
        (
            "normalised_average_precision" in names,
            f"Normalised average precision: N {common_count_text}.",
        ),
    )
    return (*(text for is_shown, text in texts if is_shown), *count_unscored(people))


def count_unscored(people: AnnotatedInstances) -> list[str]:
    """Count the people who are not scored, for each reason."""
    counts = people.rows["reason"].drop_nulls().value_counts().sort("reason")
    total = people.rows.height
    return [
        f"{n:,} of {total:,} {'is' if n == 1 else 'are'} not scored: {reason}."
        for reason, n in counts.iter_rows()
    ]


# Classes: names for a detector's category numbers, and whether matching is class by class.

COCO_MAX_DETECTIONS = 100
"""Detections of an image and class that COCO's AP and AR count at most."""
# A model that knows a smaller share of the dataset's classes gets a caution if scored on all.
_MIN_CLASS_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class ClassMatching:
    """Whether a detection matches only people of its class, and whether each class is reported."""

    by_class: bool
    has_class_scores: bool = True


def name_classes(
    frame: pl.DataFrame, numbers: Mapping[str, str], person_label: str | Sequence[str] | None
) -> tuple[pl.DataFrame, str | Sequence[str] | None, tuple[str, ...]]:
    """Replace the dataset's category numbers in predictions by the names of classes.

    Examples
    --------
    >>> rows = pl.DataFrame({"label": ["1", "1", "44"]})
    >>> frame, label, _ = name_classes(rows, {"1": "person", "2": "bicycle"}, "1")
    >>> frame["label"].to_list(), label
    (['person', 'person', '44'], 'person')
    """
    labels = distinct_values(frame, "label") if numbers and "label" in frame.columns else []
    names = set(numbers.values())
    # If any label already is a class name, the digits among the others are names too.
    if not set(labels) & set(numbers) or set(labels) & names:
        return frame, person_label, ()
    if isinstance(person_label, str):
        # The user may name the class by either its name or its number.
        person_label = numbers.get(person_label, person_label)
    elif person_label is not None:
        person_label = [numbers.get(name, name) for name in person_label]
    frame = frame.with_columns(pl.col("label").replace(dict(numbers)))
    note = "Classes are named by the dataset: the predictions have the numbers of its categories."
    return frame, person_label, (note,)


def decide_class_matching(
    dataset: Dataset,
    frame: pl.DataFrame,
    *,
    by_class: bool | None,
    person_class: str | Sequence[str] | None,
    person_label: str | Sequence[str] | None,
) -> ClassMatching:
    """Decide whether to match class by class; by default where both files share classes."""
    # With person_label, detection of people is one class by the user's own choice.
    if by_class is not None or person_label is not None or "label" not in frame.columns:
        return ClassMatching(bool(by_class))
    classes, labels = _dataset_classes(dataset, person_class), set(distinct_values(frame, "label"))
    has_shared_classes = (
        # With one class on both sides the two kinds of matching are the same.
        classes is not None and classes & labels and max(len(classes), len(labels)) > 1
    )
    return ClassMatching(by_class=bool(has_shared_classes), has_class_scores=not has_shared_classes)


def _dataset_classes(
    dataset: Dataset, person_class: str | Sequence[str] | None
) -> frozenset[str] | None:
    """List the classes of the people who are scored; None where anyone has several."""
    lists = dataset.instances["classes"] if "classes" in dataset.instances.columns else None
    if lists is None or (lists.list.len() > 1).any():
        return None
    # A person with several classes cannot be matched class by class; see open_vocabulary.
    all_classes = frozenset(lists.explode().drop_nulls().unique().to_list())
    if person_class is None:
        return all_classes
    requested = (person_class,) if isinstance(person_class, str) else person_class
    return all_classes & frozenset(requested)


def caution_on_few_classes(labels: Sequence[str], classes: Sequence[str]) -> tuple[str, ...]:
    """Caution where a model that knows few of the classes is scored on all of them."""
    shared_classes = sorted(set(labels) & set(classes))
    class_list = join_first(map(repr, shared_classes), 3)
    text = (
        f"The predictions are of {len(shared_classes):,} of the dataset's {len(classes):,} classes"
        f" ({class_list}); what is of the others counts as missed, and means over classes hold them"
        " too. --person-class names the classes to judge."
    )
    return (
        (Caution(text),)
        if classes and len(shared_classes) < _MIN_CLASS_SHARE * len(classes)
        else ()
    )
