"""Age estimation by group: errors in years, and who passes a check of age, in NIST's form.

The mean of the mean absolute errors of sexes and single years, the bias, the share within some
years, and the false positives of Challenge-T: people below the legal age who are taken for T or
older.
"""

from __future__ import annotations

from collections.abc import Iterator

from isolux.cards._content import Content
from isolux.cards._document import Block, Card, Paragraph, Part
from isolux.cards._facts import Facts, asks_of
from isolux.cards._source import Source
from isolux.vocabulary.info import CardInfo, Reference

INFO = CardInfo(
    title="Age estimation by group",
    summary="Errors in years, and who passes an age check, by group, in NIST's form.",
    references=(
        Reference(
            "frte-age",
            "National Institute of Standards and Technology. Face Analysis Technology Evaluation: "
            "age estimation and verification.",
            "mean of the mean absolute errors by sex and age; Challenge-25 and Challenge-T",
            "https://pages.nist.gov/frvt/html/frvt_age_estimation.html",
        ),
    ),
    asks=asks_of(
        system="the system: provider, name and version",
        intended_use="what the estimate is used for, and at which limit",
        population="who the people are, and whom they represent",
        true_age="how the true ages are known",
        demographic_determination="how the groups were determined (self-reported, from documents, "
        "by observers)",
        responsible_persons="who answers for this, and signed when",
    ),
    tasks=("age_estimation",),
    statement=(
        "These numbers follow the form of NIST's tables, on other people than NIST's: they are not "
        "comparable with its results, and no statement that a law on age checks is met."
    ),
)
_STANDARDISED_ERROR, _UNDERAGE_RATE = "standardised_absolute_error", "challenge_false_positive_rate"


def card(source: Source, facts: Facts) -> Card:
    """Fill the tables.

    Parameters
    ----------
    source : Source
        A finished run of ``age_estimation``.
    facts : Facts
        What the user says.

    Returns
    -------
    Card

    Raises
    ------
    SpecError
        A run of another task.

    Examples
    --------
    >>> INFO.tasks
    ('age_estimation',)
    """
    content = Content("age_estimation", source, facts)
    people = content.said("population", "true_age", "demographic_determination")
    return content.card(
        *content.first_page(),
        Part("The system", content.said("system", "intended_use")),
        Part("The people", (content.data_text(), *people)),
        Part("What is measured", (content.metric_table(), *_missing(content))),
        Part("Everyone", (content.overall_table(),)),
        Part("By group", tuple(content.group_tables())),
        Part("What was found", (content.findings(),)),
        Part("Who answers for this", content.said("responsible_persons")),
    )


def _missing(content: Content) -> Iterator[Block]:
    measured_metrics = {line.metric for line, _ in content.summary.overall}
    spec = dict(content.record.get("spec") or {})
    age_composition, sex = spec.get("age_mix"), spec.get("sex")
    if _STANDARDISED_ERROR not in measured_metrics:
        yield Paragraph(
            "The mean of sex × age mean absolute errors is not measured: audit again with "
            "--age-mix 18-30 --sex ATTRIBUTE."
        )
    else:
        ages = (
            ", ".join(age_composition)
            if isinstance(age_composition, list | tuple)
            else str(age_composition)
        )
        sex_text = f" and over the values of {sex}" if sex else ", over ages alone"
        yield Paragraph(f"The standardised error is a mean over ages ({ages}){sex_text}.")
    if _UNDERAGE_RATE not in measured_metrics:
        yield Paragraph(
            "False positives of a challenge are not measured: nobody in the data is under the "
            "legal age, or the metric was not requested."
        )
