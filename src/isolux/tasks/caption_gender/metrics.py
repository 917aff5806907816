"""The metrics of captions and gender, and the papers that they are from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, SumStatistic
from isolux.vocabulary.info import Metric, Reference, TaskInfo

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
