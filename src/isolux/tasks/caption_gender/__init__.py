"""Captions and gender: whether a caption's words for a person are those of what annotators saw.

Women also Snowboard (Hendricks et al. 2018) counts captions with the wrong gender, and those that
name none. With the objects of each picture, bias amplification says whether captions join genders
and objects more often than the pictures do (Zhao et al. 2017; Wang & Russakovsky 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._words.lists import WordList, people_by_group, read_word_list
from isolux.tasks._words.mentions import BOTH, NEUTRAL, NO_WORD, judge_texts, told_of_chance
from isolux.tasks.caption_gender.metrics import AMPLIFICATION, INFO
from isolux.tasks.caption_gender.objects import (
    doubts,
    read_object_words,
    true_objects,
    with_said_objects,
)
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import UNKNOWN_VALUES

__all__ = ["INFO", "score"]


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    words: str = "english_people",
    objects: str | None = None,
    object_words: str | None = None,
    label_map: Mapping[str, Sequence[str]] | None = None,
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Read each caption's words for people, and hold them against what annotators perceived.

    Parameters
    ----------
    dataset : Dataset
        Its instances are the people whom the captions are about, one a picture as a rule.
    predictions : frame
        ``model, instance_id, label`` and, of several captions, ``rank``: the first is read.
    target : str, optional
        The attribute with the perceived gender; default: ``classes``.
    words : str
        The list of words: ``english_people``, ``hendricks_2018``, or a YAML file of your own.
    objects : str, optional
        The attribute that lists what is in each picture; bias amplification needs it.
    object_words : str, optional
        A YAML file, object to its words; default: the object's own name, and that with an s.
    label_map : mapping of str to sequence of str, optional
        Maps each gender to the dataset's values for it, if the list does not know them.
    unknown_values : sequence of str
        Truths that mean "not known", compared without case.
    metrics : sequence of str
        Default: ``wrong_gender``, ``neutral``, ``both_genders``, ``wrong_when_gendered``; with
        ``objects`` ``object_to_gender`` and ``gender_to_object``; also ``right_gender``,
        ``no_person``, ``said_gender``, ``bias_amplification``.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: a row for each model, metric and person; 0 or 1; null with the reason "unknown
        truth", "no words for this value", "no prediction", "no caption" or "no gender said".
        ``evidence["captions"]``: what each caption says, beside what is true.

    Raises
    ------
    SpecError
        A list or a truth that does not fit; captions without one word of the list; an amplification
        without objects.
    UnknownNameError, FileError, JoinError
        No such attribute or list; captions of others.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> people = Dataset(
    ...     name="three pictures",
    ...     info=DatasetInfo(title="Three pictures", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b", "c"], "image_id": ["a", "b", "c"],
    ...                             "classes": [["woman"], ["woman"], ["man"]]}),
    ... )
    >>> said = pl.DataFrame({"model": "m", "instance_id": ["a", "b", "c"],
    ...     "label": ["a man on a snowboard", "a person on skis", "a man on skis"]})
    >>> found = score(people, said, metrics=["wrong_gender", "neutral"]).units
    >>> found.filter(metric="wrong_gender")["value"].to_list()
    [1.0, 0.0, 0.0]
    >>> found.filter(metric="neutral")["value"].to_list()
    [0.0, 1.0, 0.0]
    """
    named = _named(metrics, objects)
    listed = read_word_list(words)
    people = people_by_group(dataset, target, listed, label_map, unknown_values)
    judged, told = judge_texts(people, predictions, model, listed, "caption")
    notes: list[str] = []
    if objects is not None:
        there = true_objects(dataset, objects, unknown_values)
        judged = judged.join(there, on="unit_id", how="left", maintain_order="left")
        named_by = read_object_words(object_words, there)
        judged = with_said_objects(judged, named_by)
        if set(named) & set(AMPLIFICATION):
            notes += doubts(judged, named_by, listed)
    kept = tuple(metric for metric in INFO.metrics if metric.name in named)
    return Scores(
        units=stack_scores([part for name in named for part in _rows(name, judged, listed)]),
        info=replace(INFO, metrics=kept),
        evidence={"captions": _evidence(judged, listed)},
        notes=(*told_of_chance(judged, listed.groups), *told, *notes),
        chosen={"words": listed.record()},
    )


def _named(metrics: Sequence[str], objects: str | None) -> tuple[str, ...]:
    more = () if objects is None else ("object_to_gender", "gender_to_object")
    named = read_metrics(INFO, metrics) or (*INFO.defaults, *more)
    needing = [name for name in named if name in AMPLIFICATION]
    if needing and objects is None:
        raise SpecError(
            f"{needing[0]} is of genders and objects, and nothing says what is in the pictures",
            expected="objects, the attribute that lists it",
            found="none",
        )
    if set(named) <= set(AMPLIFICATION):  # a run has scores of single people, too
        return ("wrong_gender", *named)
    return named


def _rows(name: str, judged: pl.DataFrame, words: WordList) -> list[pl.DataFrame]:
    """Lay one metric out as scores."""
    said, reason = pl.col("said"), pl.col("reason")
    gendered, right = said.is_in(list(words.groups)), said == pl.col("truth")
    unsaid = pl.coalesce(reason, pl.when(~gendered).then(pl.lit("no gender said")))
    values: dict[str, list[tuple[pl.Expr, pl.Expr, str | None]]] = {
        "said_gender": [(said == group, reason, group) for group in words.groups],
        "wrong_when_gendered": [(~right, unsaid, None)],
        "wrong_gender": [(gendered & ~right, reason, None)],
        "right_gender": [(right, reason, None)],
        "neutral": [(said == NEUTRAL, reason, None)],
        "both_genders": [(said == BOTH, reason, None)],
        "no_person": [(said == NO_WORD, reason, None)],
    }
    return [
        score_rows(judged, "caption_gender", name, value, label=label, reason=why)
        for value, why, label in values.get(name, [])
    ]


def _evidence(judged: pl.DataFrame, words: WordList) -> pl.DataFrame:
    """Keep what each caption says, for statistics over genders and objects."""
    held = judged.with_columns(
        gender=pl.when(pl.col("said").is_in(list(words.groups))).then(pl.col("said"))
    )
    lists = [name for name in ("objects", "said_objects") if name in held.columns]
    return held.select(
        "model", "unit_id", "cluster_id", "truth", "said", "gender", *lists, "reason"
    )
