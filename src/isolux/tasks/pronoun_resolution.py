"""Pronoun resolution: whether a model's pronoun is that of the person's gender, by occupation.

VisoGender (Hall et al. 2023): an image of a person at work, alone or with another person, and a
model's pronoun for that person. Resolution accuracy is the share of correct pronouns; resolution
bias is the difference between the genders' shares, which is a disparity between groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.formatting import AND_MORE, join_first
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.notes import Caution
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._truth import instances_with_truth
from isolux.tasks._word_lists.lists import WordList, assign_word_groups, read_word_list
from isolux.tasks._word_lists.mentions import (
    NEUTRAL,
    NO_WORD,
    SEVERAL_GROUPS,
    caution_on_chance_agreement,
    classify_texts,
)

HALL = Reference(
    "visogender",
    "Hall, S. M., Gonçalves Abrantes, F., Zhu, H., Sodunke, G., Shtedritski, A., & Kirk, H. R. "
    "(2023). VisoGender: A dataset for benchmarking gender bias in image-text pronoun resolution. "
    "In Advances in Neural Information Processing Systems 36, Datasets and Benchmarks.",
    "section 3: resolution bias",
    "https://arxiv.org/abs/2306.12424",
)

INFO = TaskInfo(
    title="Pronoun resolution",
    summary="Whether a model's pronoun matches the person's perceived gender presentation.",
    references=(HALL,),
    assumptions=(
        "Truth is what annotators perceived in a picture; people may call themselves otherwise.",
        "A neutral pronoun is not wrong of anyone; it counts as not right, unless left out.",
        "The text has one pronoun, of the person that is judged.",
    ),
    metrics=(
        Metric(
            name="resolution_accuracy",
            title="Resolution accuracy",
            definition="Share of people whose pronoun matches their perceived gender.",
            in_people="Of {people} the pronoun is right for {n}",
            direction="higher",
            reference=HALL,
        ),
        Metric(
            name="accuracy_by_occupation",
            title="Resolution accuracy",
            definition="The same, of people of one occupation.",
            direction="higher",
            reference=HALL,
        ),
        Metric(
            name="balanced_resolution_accuracy",
            title="Balanced resolution accuracy",
            definition="Mean over the genders of their resolution accuracy.",
            direction="higher",
            evidence="pronouns",
            # Accuracy also moves with how common each gender is in a group; this mean does not.
            statistic=BALANCED_ACCURACY,
            reference=HALL,
        ),
        Metric(
            name="pronoun_rate",
            title="Pronoun rate",
            definition="Share of people for whom the model uses a pronoun of that gender, "
            "whatever theirs is.",
            # A rate of pronouns has no better direction: it depends on who is in the images.
            direction="none",
            reference=HALL,
        ),
        Metric(
            name="neutral_rate",
            title="Neutral pronouns",
            definition="Share of people for whom the model uses they, them or their.",
            direction="none",
            reference=HALL,
        ),
    ),
    defaults=("resolution_accuracy", "balanced_resolution_accuracy", "neutral_rate"),
)
_CAUTION_UNCLEAR_SHARE = (
    0.05  # share of answers without one clear pronoun from which the note is a caution
)
_MIN_PEOPLE_PER_GENDER = 2  # with fewer of a gender an occupation's bias is one person's


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    occupation: str | None = None,
    words: str = "english_pronouns",
    neutral: Literal["wrong", "leave out"] = "wrong",
    label_map: Mapping[str, Sequence[str]] | None = None,
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Judge the pronoun that a model gave for each person.

    Parameters
    ----------
    dataset : Dataset
        Its instances are the people of the occupation; the other person of a picture of two stands
        in an attribute (``--by "gender*other_gender"``).
    predictions : frame
        ``model, instance_id, label`` and, of several answers, ``rank``: a pronoun, or a text that
        holds one. Of a model that scores captions, the pronoun of the highest.
    target : str, optional
        The attribute with the perceived gender; default: ``classes``.
    occupation : str, optional
        The attribute that names the occupation; with it each has a value (column ``label``) and,
        compared by gender, its resolution bias.
    words : str
        The list of pronouns: one of isolux's own, or a YAML file.
    neutral : {"wrong", "leave out"}
        How they, them and their count: as not right, as in VisoGender's code, or as null.
    label_map : mapping of str to sequence of str, optional
        Maps each gender to the dataset's values for it, if the list does not know them.
    unknown_values : sequence of str
        Truths that mean "not known", compared without case.
    metrics : sequence of str
        Default: ``resolution_accuracy``, ``balanced_resolution_accuracy``, ``neutral_rate``, with
        an occupation ``accuracy_by_occupation``; also ``pronoun_rate``.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: a row for each model, metric (and label) and person; 0 or 1; null with the reason
        "unknown truth", "no words for this value", "no prediction", "no text" or "neutral pronoun".
        ``evidence["pronouns"]``: what was said of whom.

    Raises
    ------
    SpecError
        A list or a truth that does not fit; not one pronoun among the answers.
    UnknownNameError, FileError, JoinError
        No such attribute or list; answers of others.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two doctors",
    ...     info=DatasetInfo(title="Two doctors", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"],
    ...                             "classes": [["feminine"], ["masculine"]]}),
    ... )
    >>> said = pl.DataFrame({"model": "m", "instance_id": ["a", "b"],
    ...                      "label": ["the doctor and his patient", "his"]})
    >>> score(people, said, metrics=["resolution_accuracy"]).units["value"].to_list()
    [0.0, 1.0]
    """
    metric_names = _select_metrics(metrics, occupation)
    word_list = read_word_list(words)
    # The truth is mapped to the groups of the word list, so that both sides use the same names.
    people = assign_word_groups(dataset, target, word_list, label_map, unknown_values)
    people = _join_occupation(people, dataset, occupation, unknown_values)
    outcomes, text_notes = classify_texts(
        people, predictions, model, word_list, "answer", empty="no text"
    )
    # VisoGender's code counts neutral pronouns as incorrect; the option makes them null instead.
    is_excluded = pl.lit(neutral == "leave out") & (pl.col("said") == NEUTRAL)
    # Neutral pronouns are excluded from accuracies alone; rates of pronouns still count them.
    outcomes = outcomes.with_columns(
        right=pl.col("said") == pl.col("truth"),
        accuracy_reason=pl.coalesce("reason", pl.when(is_excluded).then(pl.lit("neutral pronoun"))),
    )
    selected_metrics = tuple(metric for metric in INFO.metrics if metric.name in metric_names)
    return Scores(
        units=stack_scores(
            [table for name in metric_names for table in _metric_rows(name, outcomes, word_list)]
        ),
        info=replace(INFO, metrics=selected_metrics),
        evidence={"pronouns": _build_evidence(outcomes)},
        notes=(
            *_note_unclear_pronouns(outcomes),
            *caution_on_chance_agreement(outcomes, word_list.groups),
            *_note_small_occupations(outcomes, occupation),
            *text_notes,
        ),
        task_choices={"words": word_list.record()},
    )


def _select_metrics(metrics: Sequence[str], occupation: str | None) -> tuple[str, ...]:
    occupation_metrics = () if occupation is None else ("accuracy_by_occupation",)
    metric_names = read_metrics(INFO, metrics) or (*INFO.defaults, *occupation_metrics)
    if "accuracy_by_occupation" in metric_names and occupation is None:
        raise SpecError(
            "nothing says which occupation each person is of",
            expected="occupation, the attribute that names it",
            found="none",
        )
    return metric_names


def _join_occupation(
    people: pl.DataFrame, dataset: Dataset, occupation: str | None, unknown: Sequence[str]
) -> pl.DataFrame:
    """Add each person's occupation, null where it is unknown or not asked for."""
    if occupation is None or not dataset.instances.height:
        return people.with_columns(occupation=pl.lit(None, dtype=pl.String))
    occupations = instances_with_truth(dataset, occupation, {}, unknown)
    return people.join(
        occupations.select("unit_id", occupation=pl.col("truth").list.first()),
        on="unit_id",
        how="left",
        maintain_order="left",
    )


def _metric_rows(name: str, outcomes: pl.DataFrame, words: WordList) -> list[pl.DataFrame]:
    """Build one metric's rows of the table scores."""
    pronoun, is_correct = pl.col("said"), pl.col("right")
    with_occupation = outcomes.drop_nulls("occupation")
    rows: dict[str, list[tuple[pl.DataFrame, pl.Expr, str, pl.Expr | str | None]]] = {
        "resolution_accuracy": [(outcomes, is_correct, "accuracy_reason", None)],
        # An unknown occupation is in none, so the person has no row here.
        "accuracy_by_occupation": [
            (with_occupation, is_correct, "accuracy_reason", pl.col("occupation"))
        ],
        "neutral_rate": [(outcomes, pronoun == NEUTRAL, "reason", None)],
        "pronoun_rate": [(outcomes, pronoun == group, "reason", group) for group in words.groups],
    }
    return [
        score_rows(units, "pronoun_resolution", name, expression, label=label, reason=reason)
        for units, expression, reason, label in rows.get(name, [])
    ]


def _build_evidence(outcomes: pl.DataFrame) -> pl.DataFrame:
    return outcomes.select(
        "model",
        "unit_id",
        "cluster_id",
        # A list, as balanced accuracy reads the truth of units with several valid classes.
        truth=pl.when(pl.col("accuracy_reason").is_null()).then(pl.concat_list("truth")),
        correct=pl.when(pl.col("accuracy_reason").is_null()).then(pl.col("right")),
        said=pl.col("said"),
        reason=pl.col("accuracy_reason"),
    )


def _note_unclear_pronouns(outcomes: pl.DataFrame) -> list[str]:
    """Count answers without exactly one pronoun; a caution where they are many."""
    notes: list[str] = []
    answered_rows = outcomes.drop_nulls("said")
    for (model,), rows in answered_rows.group_by("model", maintain_order=True):
        # A text about two people has both pronouns, and nothing says which one is meant.
        n_both, n_none = (
            int((rows["said"] == category).sum()) for category in (SEVERAL_GROUPS, NO_WORD)
        )
        if not n_both + n_none:
            continue
        text = (
            f"{n_both:,} of {rows.height:,} answers of {model!r} name pronouns of two genders, and"
            f" {n_none:,} name none: they count as not right of anyone. Give the one pronoun of the"
            " person who is judged, not a text with several."
        )
        notes.append(
            Caution(text) if n_both + n_none >= _CAUTION_UNCLEAR_SHARE * rows.height else text
        )
    return notes


def _note_small_occupations(outcomes: pl.DataFrame, occupation: str | None) -> tuple[str, ...]:
    """List occupations with a single person of a gender, for which no bias can be estimated."""
    if occupation is None or outcomes.is_empty():
        return ()
    scored = outcomes.filter(
        pl.col("accuracy_reason").is_null(), pl.col("occupation").is_not_null()
    )
    # By model: models may lack predictions of different people.
    group_sizes = scored.group_by("model", "occupation", "truth").agg(
        n=pl.col("unit_id").n_unique()
    )
    small_occupations = (
        group_sizes.filter(pl.col("n") < _MIN_PEOPLE_PER_GENDER)["occupation"]
        .unique()
        .sort()
        .to_list()
    )
    if not small_occupations:
        return ()
    examples = join_first(map(str, small_occupations), 5, AND_MORE)
    text = (
        f"{len(small_occupations):,} occupation(s) have a single person of one gender ({examples})"
    )
    return (f"{text}: nothing can be said of the difference there.",)
