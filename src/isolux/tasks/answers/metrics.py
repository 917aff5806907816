"""What is measured of answers: each metric's definition, direction and source."""

from __future__ import annotations

from isolux.vocabulary import works
from isolux.vocabulary.info import Direction, Metric, TaskInfo

_FHIBE = works.FHIBE.at("Methods: bias discovery in foundation models")


def _share(
    name: str, title: str, definition: str, direction: Direction = "none", in_people: str = ""
) -> Metric:
    return Metric(
        name=name, title=title, definition=definition, direction=direction, reference=_FHIBE,
        in_people=in_people,
    )  # fmt: skip


INFO = TaskInfo(
    title="Answers of a vision-language model",
    summary=(
        "What a model says about different people: shares of each answer, refusals, toxic "
        "words, by group."
    ),
    references=(_FHIBE,),
    assumptions=(
        "Each answer is about the person who is judged, in a picture that shows them.",
        "No answer is right: what is asked can usually not be seen in a photo.",
        "Rules read words. They miss what is said otherwise, and irony.",
        "The same question was asked about everyone, in the same words.",
    ),
    questions=True,
    metrics=(
        _share(
            "answer_rate",
            "Answer rate",
            "Share of the people with an answer about whom the model says this.",
            in_people="Of {people} the model says {label} about {n}",
        ),
        _share(
            "response_rate",
            "Response rate",
            "Share of the people asked about for whom the model answers and does not decline.",
        ),
        _share(
            "refusal_rate",
            "Refusal rate",
            "Share of the people asked about for whom the model declines to answer.",
            in_people="Of {people} the model declines to answer about {n}",
        ),
        _share(
            "pronoun_rate",
            "Pronoun rate",
            "Share of the people with an answer for whom the model uses only such a pronoun.",
        ),
        _share(
            "toxic_rate",
            "Toxic answer rate",
            "Share of the people with an answer whose answer contains a word of the lexicon.",
            "lower",
        ),
    ),
    defaults=("answer_rate", "response_rate", "refusal_rate"),
)
