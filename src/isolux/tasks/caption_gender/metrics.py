"""The metrics of captions and gender, and the papers that they are from."""

from __future__ import annotations

from isolux.tasks.caption_gender.amplification import (
    BIAS_AMPLIFICATION,
    GENDER_TO_OBJECT,
    OBJECT_TO_GENDER,
)
from isolux.vocabulary.info import Direction, Metric, Reference, TaskInfo

__all__ = ["AMPLIFICATION", "INFO"]

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
