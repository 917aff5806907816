"""Age estimation by group: errors in years, and who passes a check of age, in NIST's form.

The mean of the mean absolute errors of sexes and single years, the bias, the share within some
years, and the false positives of Challenge-T: people below the legal age who are taken for T or
older.
"""

from __future__ import annotations

from collections.abc import Iterator

from isolux.cards._content import CardContent
from isolux.cards._document import Card, CardBlock, CardSection, Paragraph
from isolux.cards._facts import CardFacts, build_fact_fields
from isolux.cards._run_source import RunSource
from isolux.core.info import CardInfo, Reference

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
    facts=build_fact_fields(
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


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill the tables.

    Parameters
    ----------
    source : RunSource
        A finished run of ``age_estimation``.
    facts : CardFacts
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
    content = CardContent("age_estimation", source, facts)
    people = content.stated_facts("population", "true_age", "demographic_determination")
    return content.build_card(
        *content.build_first_page_sections(),
        CardSection("The system", content.stated_facts("system", "intended_use")),
        CardSection("The people", (content.build_data_paragraph(), *people)),
        CardSection(
            "What is measured",
            (content.build_metric_definition_table(), *_explain_missing_metrics(content)),
        ),
        CardSection("Everyone", (content.build_overall_table(),)),
        CardSection("By group", tuple(content.build_group_tables())),
        CardSection("What was found", (content.build_findings_block(),)),
        CardSection("Who answers for this", content.stated_facts("responsible_persons")),
    )


def _explain_missing_metrics(content: CardContent) -> Iterator[CardBlock]:
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
