"""Captions and gender: whether a caption's words for a person are those of what annotators saw.

Women also Snowboard (Hendricks et al. 2018) counts captions with the wrong gender, and those that
name none. With the objects of each picture, bias amplification says whether captions join genders
and objects more often than the pictures do (Zhao et al. 2017; Wang & Russakovsky 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, SumStatistic
from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._words.lists import WordList, people_by_group, read_word_list
from isolux.tasks._words.mentions import BOTH, NEUTRAL, NO_WORD, judge_texts, told_of_chance
from isolux.tasks.caption_gender.objects import (
    doubts,
    read_object_words,
    true_objects,
    with_said_objects,
)
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import UNKNOWN_VALUES
from isolux.vocabulary.info import Metric, Reference, TaskInfo


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


# The metrics of captions and gender, and the papers that they are from.

_CELLS = 9


def _columns(evidence: pl.DataFrame) -> FloatArray:
    """Nine numbers a gender and object for each row; rows that are not judged add nothing."""
    rows = evidence.height
    if "objects" not in evidence.columns or not rows:
        return np.zeros((rows, _CELLS))
    genders = evidence["truth"].drop_nulls().unique().sort().to_list()
    objects = evidence["objects"].explode().drop_nulls().unique().sort().to_list()
    used = (evidence["reason"].is_null() & evidence["gender"].is_not_null()).to_numpy()
    there, named = (_held(evidence[name], objects) for name in ("objects", "said_objects"))
    out = np.zeros((rows, len(genders), len(objects), _CELLS))
    for i, gender in enumerate(genders):
        true, said = (
            (evidence[name] == gender).fill_null(value=False).to_numpy().astype(float)
            for name in ("truth", "gender")
        )
        cells = (
            np.ones_like(there),
            np.broadcast_to(true[:, None], there.shape),
            there,
            there * true[:, None],
            there * said[:, None],
            named * true[:, None],
            named * said[:, None],
            named,
            np.full_like(there, 1.0 / len(genders)),
        )
        out[:, i] = np.stack(cells, axis=-1)
    out[~used] = 0.0
    return out.reshape(rows, -1) if out.size else np.zeros((rows, _CELLS))


def _held(lists: pl.Series, names: list[str]) -> FloatArray:
    found = np.zeros((len(lists), len(names)))
    for j, name in enumerate(names):
        found[:, j] = lists.list.contains(name).fill_null(value=False).to_numpy()
    return found


def _cells(sums: FloatArray) -> FloatArray:
    """Part sums ``[..., k]`` into ``[..., pairs, 9]``; all NaN where captions are of one gender."""
    cells = sums.reshape(*sums.shape[:-1], -1, _CELLS)
    one = np.asarray((cells[..., 1] >= cells[..., 0]).any(axis=-1))
    found: FloatArray = np.where(one[..., None, None], np.nan, cells)
    return found


def _divided(top: FloatArray, bottom: FloatArray) -> FloatArray:
    found: FloatArray = np.divide(
        top, bottom, out=np.full_like(top, np.nan), where=np.nan_to_num(bottom) > 0
    )
    return found


def _mean(values: FloatArray) -> FloatArray:
    """Average over pairs that are known; NaN where none is."""
    known = np.isfinite(values)
    n = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    found: FloatArray = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return found


def _bias_amplification(sums: FloatArray) -> FloatArray:
    """Zhao et al.: a gender's share of an object's captions, less that of its pictures."""
    cells = _cells(sums)
    there = _divided(cells[..., 3], cells[..., 2])
    said = _divided(cells[..., 6], cells[..., 7])
    equal = _divided(cells[..., 8], cells[..., 0])
    gained = np.where(there > equal, said - there, np.where(np.isnan(said + there), np.nan, 0.0))
    genders = 1.0 / np.nan_to_num(equal, nan=1.0).max(axis=-1, initial=1e-12)
    found: FloatArray = _mean(gained) * genders
    return found


def _directional(said: int, given: int) -> Callable[[FloatArray], FloatArray]:
    """Make the mean change of a cell, said minus there, over those of the condition."""

    def change(sums: FloatArray) -> FloatArray:
        cells = _cells(sums)
        n, gender, thing, both = (cells[..., i] for i in range(4))
        sign = np.sign(both * n - gender * thing)
        return _mean(sign * _divided(cells[..., said] - both, cells[..., given]))

    return change


OBJECT_TO_GENDER = SumStatistic(_columns, _directional(4, 2))
GENDER_TO_OBJECT = SumStatistic(_columns, _directional(5, 1))
BIAS_AMPLIFICATION = SumStatistic(_columns, _bias_amplification)

AMPLIFICATION = ("object_to_gender", "gender_to_object", "bias_amplification")
HENDRICKS = Reference(
    "hendricks-2018",
    "Hendricks, L. A., Burns, K., Saenko, K., Darrell, T., & Rohrbach, A. (2018). Women also "
    "snowboard: Overcoming bias in captioning models. In Proceedings of the European Conference on "
    "Computer Vision (ECCV).",
    "section 4: error rate, gender ratio",
    "https://arxiv.org/abs/1803.09797",
)
ZHAO = Reference(
    "zhao-2017",
    "Zhao, J., Wang, T., Yatskar, M., Ordonez, V., & Chang, K.-W. (2017). Men also like shopping: "
    "Reducing gender bias amplification using corpus-level constraints. In Proceedings of EMNLP "
    "2017.",
    "section 3: mean bias amplification",
    "https://arxiv.org/abs/1707.09457",
)
WANG = Reference(
    "wang-2021-directional",
    "Wang, A., & Russakovsky, O. (2021). Directional bias amplification. In Proceedings of the "
    "38th International Conference on Machine Learning (ICML).",
    "section 4, equations 2 to 4",
    "https://arxiv.org/abs/2102.12594",
)


_share = partial(Metric, direction="none", reference=HENDRICKS)


_amplified = partial(Metric, direction="none", low=-1.0, evidence="captions", reference=WANG)

INFO = TaskInfo(
    title="Captions and gender",
    summary="Whether a caption's words for a person match what annotators perceived.",
    references=(HENDRICKS, ZHAO, WANG),
    assumptions=(
        "Truth is what annotators perceived in a picture; people may call themselves otherwise.",
        "A caption is about the person of the picture: one about two people may name both genders.",
        "The word list is for the captions' language; it says where it is from.",
    ),
    metrics=(
        _share(
            name="wrong_gender",
            title="Wrong gender",
            definition="Share of people whose caption names only the other gender.",
            direction="lower",
        ),
        _share(
            name="wrong_when_gendered",
            title="Wrong where a gender is said",
            definition="Share of captions that name one gender in which it is the wrong one "
            "(Hendricks et al.'s error rate).",
            direction="lower",
        ),
        _share(
            name="neutral",
            title="Neutral",
            definition="Share of people whose caption mentions a person, but no gender.",
        ),
        _share(
            name="both_genders",
            title="Both genders",
            definition="Share of people whose caption names both genders.",
        ),
        _share(
            name="right_gender",
            title="Right gender",
            definition="Share of people whose caption names only their perceived gender.",
            direction="higher",
        ),
        _share(
            name="no_person",
            title="No person",
            definition="Share of people whose caption has no word for a person.",
        ),
        _share(
            name="said_gender",
            title="Gender said",
            definition="Share of people whose caption names only that gender, whatever theirs is.",
        ),
        _amplified(
            name="object_to_gender",
            title="Bias amplification, object to gender",
            definition="How much more often captions name the gender that goes with an object, "
            "given that it is there, than pictures show it; 0: as often.",
            statistic=OBJECT_TO_GENDER,
        ),
        _amplified(
            name="gender_to_object",
            title="Bias amplification, gender to object",
            definition="How much more often captions name the object that goes with a gender, "
            "given that gender, than pictures show it; 0: as often.",
            statistic=GENDER_TO_OBJECT,
        ),
        _amplified(
            name="bias_amplification",
            title="Bias amplification",
            definition="For each object, the share of the gender with more than an equal share, "
            "in captions minus in pictures, mean over objects.",
            statistic=BIAS_AMPLIFICATION,
            reference=ZHAO,
        ),
    ),
    defaults=("wrong_gender", "neutral", "both_genders", "wrong_when_gendered"),
)
