"""Captions and gender: whether a caption's words for a person match the annotated gender.

Women also Snowboard (Hendricks et al. 2018) counts captions with the wrong gender, and those that
name none. With the objects of each image, bias amplification measures whether captions combine
genders and objects more often than the images do (Zhao et al. 2017; Wang & Russakovsky 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.stats.statistic import FloatArray, SumStatistic
from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._word_lists.lists import WordList, assign_word_groups, read_word_list
from isolux.tasks._word_lists.mentions import (
    NEUTRAL,
    NO_WORD,
    SEVERAL_GROUPS,
    caution_on_chance_agreement,
    classify_texts,
)
from isolux.tasks.caption_gender.objects import (
    add_named_objects,
    caution_on_objects,
    read_object_words,
    read_true_objects,
)


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
        ``no_person``, ``said_gender``, ``gender_ratio_change``, ``bias_amplification``.
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
    >>> from isolux.core.info import DatasetInfo
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
    metric_names = _select_metrics(metrics, objects)
    word_list = read_word_list(words)
    people = assign_word_groups(dataset, target, word_list, label_map, unknown_values)
    captions, word_notes = classify_texts(people, predictions, model, word_list, "caption")
    notes: list[str] = []
    if objects is not None:
        image_objects = read_true_objects(dataset, objects, unknown_values)
        captions = captions.join(image_objects, on="unit_id", how="left", maintain_order="left")
        words_by_object = read_object_words(object_words, image_objects)
        captions = add_named_objects(captions, words_by_object)
        # Object names matter only to bias amplification; other metrics do not read them.
        if set(metric_names) & set(AMPLIFICATION):
            notes += caution_on_objects(captions, words_by_object, word_list)
    reported_metrics = tuple(metric for metric in INFO.metrics if metric.name in metric_names)
    return Scores(
        units=stack_scores(
            [
                frame
                for name in metric_names
                for frame in _build_score_rows(name, captions, word_list)
            ]
        ),
        info=replace(INFO, metrics=reported_metrics),
        evidence={"captions": _build_evidence(captions, word_list)},
        notes=(*caution_on_chance_agreement(captions, word_list.groups), *word_notes, *notes),
        task_choices={"words": word_list.record()},
    )


def _select_metrics(metrics: Sequence[str], objects: str | None) -> tuple[str, ...]:
    """Select the metrics; those of bias amplification need objects."""
    object_metrics = () if objects is None else ("object_to_gender", "gender_to_object")
    names = read_metrics(INFO, metrics) or (*INFO.defaults, *object_metrics)
    amplification_names = [name for name in names if name in AMPLIFICATION]
    if amplification_names and objects is None:
        raise SpecError(
            f"{amplification_names[0]} is of genders and objects, and nothing says what is in the"
            " pictures",
            expected="objects, the attribute that lists it",
            found="none",
        )
    # These are statistics of a group, and have no value of a single person.
    if set(names) <= {
        *AMPLIFICATION,
        "gender_ratio_change",
    }:  # a run has scores of single people, too
        return ("wrong_gender", *names)
    return names


def _build_score_rows(name: str, captions: pl.DataFrame, words: WordList) -> list[pl.DataFrame]:
    """Build the score rows of one metric."""
    mention, reason = pl.col("said"), pl.col("reason")
    is_gendered, is_correct = mention.is_in(list(words.groups)), mention == pl.col("truth")
    # Hendricks et al.'s error rate is over captions that name one gender; neutral ones are
    # excluded.
    ungendered_reason = pl.coalesce(reason, pl.when(~is_gendered).then(pl.lit("no gender said")))
    values: dict[str, list[tuple[pl.Expr, pl.Expr, str | None]]] = {
        "said_gender": [(mention == group, reason, group) for group in words.groups],
        "wrong_when_gendered": [(~is_correct, ungendered_reason, None)],
        # Over all captions: a model that names no gender makes no such error.
        "wrong_gender": [(is_gendered & ~is_correct, reason, None)],
        "right_gender": [(is_correct, reason, None)],
        "neutral": [(mention == NEUTRAL, reason, None)],
        "both_genders": [(mention == SEVERAL_GROUPS, reason, None)],
        "no_person": [(mention == NO_WORD, reason, None)],
    }
    return [
        score_rows(captions, "caption_gender", name, score_expr, label=label, reason=reason_expr)
        for score_expr, reason_expr, label in values.get(name, [])
    ]


def _build_evidence(captions: pl.DataFrame, words: WordList) -> pl.DataFrame:
    """Build the evidence of each caption, for statistics over genders and objects."""
    rows = captions.with_columns(
        gender=pl.when(pl.col("said").is_in(list(words.groups))).then(pl.col("said"))
    )
    lists = [name for name in ("objects", "said_objects") if name in rows.columns]
    return rows.select(
        "model", "unit_id", "cluster_id", "truth", "said", "gender", *lists, "reason"
    )


# Statistics and metrics of captions and gender, with their papers.
#
# Each row adds nine numbers to every pair of a gender and an object. Their sums over captions are:
# 0 captions, 1 people of the gender, 2 images with the object, 3 both, 4 images with the object
# whose caption names the gender, 5 people of the gender whose caption names the object,
# 6 captions that name both, 7 captions that name the object, 8 captions over number of genders.

_N_CELLS = 9


def _cell_columns(evidence: pl.DataFrame) -> FloatArray:
    """Return each row's nine numbers for each gender and object; unscored rows add nothing."""
    rows = evidence.height
    if "objects" not in evidence.columns or not rows:
        return np.zeros((rows, _N_CELLS))
    # All genders of the evidence, not of a group, so that groups and replicates have equal columns.
    genders = evidence["truth"].drop_nulls().unique().sort().to_list()
    objects = evidence["objects"].explode().drop_nulls().unique().sort().to_list()
    is_scored = (evidence["reason"].is_null() & evidence["gender"].is_not_null()).to_numpy()
    in_image, in_caption = (
        _contains_objects(evidence[name], objects) for name in ("objects", "said_objects")
    )
    out = np.zeros((rows, len(genders), len(objects), _N_CELLS))
    for i, gender in enumerate(genders):
        true_gender, caption_gender = (
            (evidence[name] == gender).fill_null(value=False).to_numpy().astype(float)
            for name in ("truth", "gender")
        )
        # In order: images; of the gender; with the object; with both; captions that name the
        # gender, with the object in the image; captions that name the object, of the gender;
        # captions that name both; captions that name the object; and a constant, one over the
        # number of genders.
        cells = (
            np.ones_like(in_image),
            np.broadcast_to(true_gender[:, None], in_image.shape),
            in_image,
            in_image * true_gender[:, None],
            in_image * caption_gender[:, None],
            in_caption * true_gender[:, None],
            in_caption * caption_gender[:, None],
            in_caption,
            np.full_like(in_image, 1.0 / len(genders)),
        )
        out[:, i] = np.stack(cells, axis=-1)
    out[~is_scored] = 0.0
    return out.reshape(rows, -1) if out.size else np.zeros((rows, _N_CELLS))


def _contains_objects(lists: pl.Series, names: list[str]) -> FloatArray:
    """Return whether each list contains each name: ``[n, names]`` of 0 and 1."""
    contains = np.zeros((len(lists), len(names)))
    for j, name in enumerate(names):
        contains[:, j] = lists.list.contains(name).fill_null(value=False).to_numpy()
    return contains


def _split_cells(sums: FloatArray) -> FloatArray:
    """Reshape sums ``[..., k]`` to ``[..., pairs, 9]``; NaN where all people have one gender."""
    cells = sums.reshape(*sums.shape[:-1], -1, _N_CELLS)
    # With one gender, association between gender and object is undefined.
    is_single_gender = np.asarray((cells[..., 1] >= cells[..., 0]).any(axis=-1))
    masked_cells: FloatArray = np.where(is_single_gender[..., None, None], np.nan, cells)
    return masked_cells


def _safe_divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; NaN where the denominator is 0 or NaN."""
    ratio: FloatArray = np.divide(
        numerator,
        denominator,
        out=np.full_like(numerator, np.nan),
        where=np.nan_to_num(denominator) > 0,
    )
    return ratio


def _mean_over_pairs(values: FloatArray) -> FloatArray:
    """Average over pairs with a finite value; NaN where there is none."""
    is_finite = np.isfinite(values)
    n = is_finite.sum(axis=-1)
    total = np.where(is_finite, values, 0.0).sum(axis=-1)
    mean: FloatArray = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return mean


def _bias_amplification(sums: FloatArray) -> FloatArray:
    """Compute a gender's share of an object's captions minus that of its images (Zhao et al.)."""
    cells = _split_cells(sums)
    image_share = _safe_divide(cells[..., 3], cells[..., 2])
    caption_share = _safe_divide(cells[..., 6], cells[..., 7])
    # The last number sums captions over the number of genders: each gender's equal share.
    equal_share = _safe_divide(cells[..., 8], cells[..., 0])
    # Only the genders with more than an equal share of the object's images count.
    amplification = np.where(
        image_share > equal_share,
        caption_share - image_share,
        np.where(np.isnan(caption_share + image_share), np.nan, 0.0),
    )
    # Zhao et al. divide by the number of objects; a mean over pairs has n_genders pairs an object.
    n_genders = 1.0 / np.nan_to_num(equal_share, nan=1.0).max(axis=-1, initial=1e-12)
    scaled_mean: FloatArray = _mean_over_pairs(amplification) * n_genders
    return scaled_mean


def _build_directional_change(
    caption_cell: int, condition_cell: int
) -> Callable[[FloatArray], FloatArray]:
    """Build the mean change of a cell, captions minus images, given a condition's count.

    Wang and Russakovsky's directional amplification: the sign is that of the correlation of gender
    and object in the images.
    """

    def mean_change(sums: FloatArray) -> FloatArray:
        cells = _split_cells(sums)
        n, with_gender, with_object, with_both = (cells[..., i] for i in range(4))
        # +1 where the gender and the object occur together more often than if independent.
        sign = np.sign(with_both * n - with_gender * with_object)
        return _mean_over_pairs(
            sign * _safe_divide(cells[..., caption_cell] - with_both, cells[..., condition_cell])
        )

    return mean_change


def _gender_ratio_columns(evidence: pl.DataFrame) -> FloatArray:
    """Return, for each of two genders, whether the picture shows it and the caption names it."""
    genders = evidence["truth"].drop_nulls().unique().sort().to_list()
    if len(genders) != 2:
        return np.zeros((evidence.height, 4))
    is_scored = evidence["reason"].is_null()
    columns = [
        ((evidence[column] == gender).fill_null(value=False) & is_scored).to_numpy()
        for column in ("truth", "gender")
        for gender in genders
    ]
    return np.stack(columns, axis=1).astype(float)


def _gender_ratio_change(sums: FloatArray) -> FloatArray:
    """Compute the ratio of genders in captions minus that in pictures, from sums ``[..., 4]``."""
    return _safe_divide(sums[..., 2], sums[..., 3]) - _safe_divide(sums[..., 0], sums[..., 1])


# Wang and Russakovsky (2021), equations 2 to 4: P(caption gender | object in the image) and
# P(caption object | gender), each minus the same share in the images.
OBJECT_TO_GENDER = SumStatistic(_cell_columns, _build_directional_change(4, 2))
GENDER_TO_OBJECT = SumStatistic(_cell_columns, _build_directional_change(5, 1))
BIAS_AMPLIFICATION = SumStatistic(_cell_columns, _bias_amplification)

GENDER_RATIO_CHANGE = SumStatistic(_gender_ratio_columns, _gender_ratio_change)

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


_share_metric = partial(Metric, direction="none", reference=HENDRICKS)


_amplification_metric = partial(
    Metric, direction="none", low=-1.0, evidence="captions", reference=WANG
)

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
        _share_metric(
            name="wrong_gender",
            title="Wrong gender",
            definition="Share of people whose caption names only the other gender.",
            direction="lower",
        ),
        _share_metric(
            name="wrong_when_gendered",
            title="Wrong where a gender is said",
            definition="Share of captions that name one gender in which it is the wrong one "
            "(Hendricks et al.'s error rate).",
            direction="lower",
        ),
        _share_metric(
            name="neutral",
            title="Neutral",
            definition="Share of people whose caption mentions a person, but no gender.",
        ),
        _share_metric(
            name="both_genders",
            title="Both genders",
            definition="Share of people whose caption names both genders.",
        ),
        _share_metric(
            name="right_gender",
            title="Right gender",
            definition="Share of people whose caption names only their perceived gender.",
            direction="higher",
        ),
        _share_metric(
            name="no_person",
            title="No person",
            definition="Share of people whose caption has no word for a person.",
        ),
        _share_metric(
            name="said_gender",
            title="Gender said",
            definition="Share of people whose caption names only that gender, whatever theirs is.",
        ),
        Metric(
            name="gender_ratio_change",
            title="Change of the gender ratio",
            definition="Captions that name the feminine alone for each that names the masculine "
            "alone, minus the same ratio of pictures (two groups of another list: by the alphabet"
            "). Hendricks et al.'s delta ratio is its absolute value.",
            direction="none",
            low=None,
            high=None,
            unit="feminine per masculine",
            evidence="captions",
            statistic=GENDER_RATIO_CHANGE,
            reference=HENDRICKS,
            has_overall_among_groups=False,
            undefined="pictures or captions are of one gender alone",
        ),
        _amplification_metric(
            name="object_to_gender",
            title="Bias amplification, object to gender",
            definition="How much more often captions name the gender that goes with an object, "
            "given that it is there, than pictures show it; 0: as often.",
            statistic=OBJECT_TO_GENDER,
        ),
        _amplification_metric(
            name="gender_to_object",
            title="Bias amplification, gender to object",
            definition="How much more often captions name the object that goes with a gender, "
            "given that gender, than pictures show it; 0: as often.",
            statistic=GENDER_TO_OBJECT,
        ),
        _amplification_metric(
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
