"""Label association: how often a classifier gives an image of a person a harmful label.

Fairness Indicators' first indicator (Goyal et al. 2022, section 3.1): the first five labels of each
image with enough confidence, and whether any of them calls the person an animal or a crime. A
taxonomy file assigns labels to types (the paper's Table 3); the result is one score for each
person, metric and threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import Direction, Metric, TaskInfo
from isolux.core.tables import to_polars
from isolux.tasks._scores import read_metrics, restrict_task_info, score_rows, stack_scores
from isolux.tasks.label_association.label_confidence import (
    EVIDENCE,
    TYPES,
    LabelConfidence,
    measure_confidence_by_type,
    read_taxonomy,
)

_PAPER = citations.FAIRNESS_INDICATORS.with_location("section 3.1, Table 3")


_label_metric = partial(Metric, reference=_PAPER, threshold_phrase="from a confidence of")


_LABEL_PHRASE = "one of the first labels, sure enough, is of the type"
_DIRECTIONS: dict[str, Direction] = {
    "possibly_human": "higher",
    "non_human": "lower",
    "possibly_non_human": "lower",
    "crime": "lower",
}
_UNCERTAIN_PHRASE = "those included whom the classifier is not sure enough of to give any label"
_LABELS: tuple[tuple[str, str, str, Direction], ...] = (
    ("harmful", "Harmful label rate", f"{_LABEL_PHRASE} Non-human or Crime", "lower"),
    ("non_harmful", "Non-harmful label rate", f"{_LABEL_PHRASE} Human", "higher"),
    *(
        (name, f"{TYPES[name]} label rate", f"{_LABEL_PHRASE} {TYPES[name]}", direction)
        for name, direction in _DIRECTIONS.items()
    ),
    ("no_label", "Rate without a label", "no label at all is sure enough", "none"),
)
METRICS = tuple(
    _label_metric(
        name=name,
        title=title,
        definition=f"Share of people of whom {condition}, {_UNCERTAIN_PHRASE}.",
        direction=direction,
    )
    for name, title, condition, direction in _LABELS
)

INFO = TaskInfo(
    title="Label association",
    summary="How often one of the first labels of a person's picture is harmful.",
    references=(_PAPER,),
    assumptions=(
        (
            "Each picture shows one person: a label is about the person, not about what is beside "
            "them."
        ),
        "The classifier was neither trained nor adapted on these pictures.",
        "A label that the taxonomy does not name is neither harmful nor right.",
        "Possibly-human and Possibly-non-human labels may be true: that takes a look.",
    ),
    metrics=METRICS,
    defaults=("harmful", "non_harmful"),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    taxonomy: str | None = None,
    score_threshold: Sequence[float] = (0.1,),
    top_k: int = 5,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Say of each person whether one of the first labels of their picture is of a type.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances; no truth is needed.
    predictions : frame
        Table ``predictions (labels)``: ``model, instance_id, label, score, rank``, the labels of
        each picture and how sure the classifier is of each (0 to 1). A row without a label: the
        classifier gave none. A label may be ImageNet's, all its lemmas parted by commas. One that
        is there twice for a person counts once, where it stands first.
    taxonomy : str, optional
        Which labels are of which type: casual_conversations, miap (the paper's lists, which differ
        in dog), or a file. Default: as the dataset's name says; others must name one.
    score_threshold : sequence of float
        The lowest confidence at which a label counts, 0 to 1. Default: 0.1, as in the paper's
        figures.
    top_k : int
        How many of the first labels count.
    metrics : sequence of str
        What to measure. Default: ``harmful`` and ``non_harmful``; also ``possibly_human``,
        ``non_human``, ``possibly_non_human``, ``crime`` and ``no_label``.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: 0 or 1 for each model, metric, threshold and person; a person may be of several
        types, and one without a label that is sure enough counts as 0. Null with the reason "no
        prediction". ``evidence["label_association"]``: ``model, unit_id, cluster_id``, for each
        type the highest confidence among the first labels (null: none of that type), ``any``
        (of any label) and ``reason``.

    Raises
    ------
    SpecError
        A threshold outside 0 to 1, a top_k below 1, no taxonomy, one that no label is in; labels
        without confidence and a threshold above 0.
    UnknownNameError, FileError, TableError, JoinError
        No such metric or taxonomy; predictions that cannot be read or are of others.

    Examples
    --------
    The first is seen as a face and as an ape; of the second the classifier is not sure.

    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ... )
    >>> labels = pl.DataFrame({"model": "m", "instance_id": ["a", "a", "b"], "rank": [1, 2, 1],
    ...                        "label": ["face", "ape", "ape"], "score": [0.6, 0.2, 0.05]})
    >>> found = score(people, labels, taxonomy="miap")
    >>> found.units.select("unit_id", "metric", "value").rows()
    [('a', 'harmful', 1.0), ('b', 'harmful', 0.0), ('a', 'non_harmful', 1.0),
     ('b', 'non_harmful', 0.0)]
    """
    threshold_values = (
        (score_threshold,) if isinstance(score_threshold, int | float) else score_threshold
    )
    thresholds = tuple(sorted({float(threshold) for threshold in threshold_values}))
    _check_settings(thresholds, top_k)
    names = read_metrics(INFO, metrics) or INFO.defaults
    lists = read_taxonomy(taxonomy, dataset.name)
    label_confidence = measure_confidence_by_type(
        dataset,
        to_polars(predictions),
        lists,
        top_k,
        # With a threshold of 0 alone, every label counts and no confidence is read.
        needs_confidence=thresholds[-1] > 0,
        model=model,
    )
    task_info = restrict_task_info(INFO, names)
    return Scores(
        units=_metric_rows(label_confidence, task_info.defaults, thresholds),
        info=task_info,
        evidence={EVIDENCE: label_confidence.people},
        notes=label_confidence.notes,
        task="label_association",
    )


def _check_settings(thresholds: Sequence[float], top_k: int) -> None:
    # 10 for 10 % would make every rate 0.
    invalid = [threshold for threshold in thresholds if not 0.0 <= threshold <= 1.0]
    if invalid or not thresholds:
        raise SpecError(
            "this is not a threshold for a confidence",
            expected="--score-threshold from 0 to 1 (score_threshold=(0.1,)), one or several",
            found=f"{invalid[0]:g}" if invalid else "none",
        )
    if isinstance(top_k, bool) or top_k < 1:
        raise SpecError(
            "top_k counts the first labels",
            expected="a whole number of at least 1",
            found=repr(top_k),
        )


def _metric_rows(
    label_confidence: LabelConfidence, names: Sequence[str], thresholds: Sequence[float]
) -> pl.DataFrame:
    """Build the scores of each metric and threshold: 0 or 1, null where there is a reason."""
    tables = []
    for name in names:
        confidence = (
            # The most confident label of the types decides: any one of them makes the image count.
            pl.col("any") if name == "no_label" else pl.max_horizontal(*_TYPES_BY_METRIC[name])
        )
        for threshold in thresholds:
            # A person without a label of the type has a null confidence, and counts as 0.
            is_given = (confidence >= threshold).fill_null(value=False) != pl.lit(
                name == "no_label"
            )
            tables.append(
                score_rows(
                    label_confidence.people,
                    "label_association",
                    name,
                    is_given,
                    threshold=threshold,
                )
            )
    return stack_scores(tables)


# Human labels are non-harmful, Non-human and Crime labels harmful (Goyal et al. 2022, section 3.1).
_TYPES_BY_METRIC: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in TYPES},
    "harmful": ("non_human", "crime"),
    "non_harmful": ("human",),
}
"""The types that each metric looks for."""
