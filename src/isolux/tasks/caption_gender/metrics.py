"""The metrics of captions and gender, and the papers that they are from."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, SumStatistic
from isolux.vocabulary.info import Direction, Metric, Reference, TaskInfo

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
        true, said = ((evidence[name] == gender).fill_null(value=False).to_numpy().astype(float)
                      for name in ("truth", "gender"))  # fmt: skip
        cells = (
            np.ones_like(there), np.broadcast_to(true[:, None], there.shape), there,
            there * true[:, None], there * said[:, None], named * true[:, None],
            named * said[:, None], named, np.full_like(there, 1.0 / len(genders)),
        )  # fmt: skip
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


def _sign(cells: FloatArray) -> FloatArray:
    """1 where gender and object go together more than by chance, −1 less, 0 as often."""
    n, gender, thing, both = (cells[..., i] for i in range(4))
    found: FloatArray = np.sign(both * n - gender * thing)
    return found


def _object_to_gender(sums: FloatArray) -> FloatArray:
    """Wang & Russakovsky's T → A: the gender said, given the object that is there."""
    cells = _cells(sums)
    change = _divided(cells[..., 4] - cells[..., 3], cells[..., 2])
    return _mean(_sign(cells) * change)


def _gender_to_object(sums: FloatArray) -> FloatArray:
    """Wang & Russakovsky's A → T: the object said, given the gender that is true."""
    cells = _cells(sums)
    change = _divided(cells[..., 5] - cells[..., 3], cells[..., 1])
    return _mean(_sign(cells) * change)


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


OBJECT_TO_GENDER = SumStatistic(_columns, _object_to_gender)
GENDER_TO_OBJECT = SumStatistic(_columns, _gender_to_object)
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


def _share(name: str, title: str, definition: str, direction: Direction = "none") -> Metric:
    return Metric(
        name=name, title=title, definition=definition, direction=direction, reference=HENDRICKS
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
        _share(
            "wrong_gender", "Wrong gender",
            "Share of people whose caption names only the other gender.", "lower",
        ),
        _share(
            "wrong_when_gendered", "Wrong where a gender is said",
            "Share of captions that name one gender in which it is the wrong one (Hendricks et "
            "al.'s error rate).", "lower",
        ),
        _share("neutral", "Neutral", ("Share of people whose caption mentions a person, but no "
                                     "gender.")),
        _share("both_genders", "Both genders", "Share of people whose caption names both genders."),
        _share(
            "right_gender", "Right gender",
            "Share of people whose caption names only their perceived gender.", "higher",
        ),
        _share("no_person", "No person", "Share of people whose caption has no word for a person."),
        _share(
            "said_gender", "Gender said",
            "Share of people whose caption names only that gender, whatever theirs is."),
        Metric(
            name="object_to_gender",
            title="Bias amplification, object to gender",
            definition="How much more often captions name the gender that goes with an object, "
            "given that it is there, than pictures show it; 0: as often.",
            direction="none",
            low=-1.0,
            evidence="captions",
            statistic=OBJECT_TO_GENDER,
            reference=WANG,
        ),
        Metric(
            name="gender_to_object",
            title="Bias amplification, gender to object",
            definition="How much more often captions name the object that goes with a gender, "
            "given that gender, than pictures show it; 0: as often.",
            direction="none",
            low=-1.0,
            evidence="captions",
            statistic=GENDER_TO_OBJECT,
            reference=WANG,
        ),
        Metric(
            name="bias_amplification",
            title="Bias amplification",
            definition="For each object, the share of the gender with more than an equal share, "
            "in captions minus in pictures, mean over objects.",
            direction="none",
            low=-1.0,
            evidence="captions",
            statistic=BIAS_AMPLIFICATION,
            reference=ZHAO,
        ),
    ),
    defaults=("wrong_gender", "neutral", "both_genders", "wrong_when_gendered"),
)  # fmt: skip
