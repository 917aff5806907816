"""Age estimation by group: errors in years, and who passes a check of age, in NIST's form.

The mean of the mean absolute errors of sexes and single years, the bias, the share within some
years, and the false positives of Challenge-T: people below the legal age who are taken for T or
older.
"""

from __future__ import annotations

from collections.abc import Iterator

from isolux.cards._document import Block, Card, Paragraph, Part
from isolux.cards._facts import Facts
from isolux.cards._measured import (
    data_text,
    findings,
    first_page,
    group_tables,
    metric_table,
    overall_table,
)
from isolux.cards._source import Source, card_of
from isolux.vocabulary.info import Ask, CardInfo, Reference

__all__ = ["INFO", "card"]

_ASKS = {
    "system": Ask("system", "the system: provider, name and version"),
    "intended_use": Ask("intended_use", "what the estimate is used for, and at which limit"),
    "population": Ask("population", "who the people are, and whom they represent"),
    "true_age": Ask("true_age", "how the true ages are known"),
    "demographic_determination": Ask("demographic_determination", "how the groups were determined "
                                     "(self-reported, from documents, by observers)"),
    "responsible_persons": Ask("responsible_persons", "who answers for this, and signed when"),
}  # fmt: skip

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
    asks=tuple(_ASKS.values()),
    tasks=("age_estimation",),
    statement=(
        "These numbers follow the form of NIST's tables, on other people than NIST's: they are not "
        "comparable with its results, and no statement that a law on age checks is met."
    ),
)
_MIXED = "standardised_absolute_error"
_UNDERAGE = "challenge_false_positive_rate"


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
    said = facts.answers_to(_ASKS)
    parts = [
        *first_page(source),
        Part("The system", said("system", "intended_use")),
        Part("The people", (Paragraph(data_text(source)),
                            *said("population", "true_age", "demographic_determination"))),
        Part("What is measured", (metric_table(source), *_missing(source))),
        Part("Everyone", (overall_table(source),)),
        Part("By group", tuple(group_tables(source))),
        Part("What was found", tuple(findings(source))),
        Part("Who answers for this", said("responsible_persons")),
    ]  # fmt: skip
    return card_of(INFO, "age_estimation", source, facts, parts)


def _missing(source: Source) -> Iterator[Block]:
    there = {line.metric for line, _ in source.summary.overall}
    spec = dict(source.run.record.get("spec") or {})
    mix, sex = spec.get("age_mix"), spec.get("sex")
    if _MIXED not in there:
        yield Paragraph(
            "The mean of sex × age mean absolute errors is not measured: audit again with "
            "--age-mix 18-30 --sex ATTRIBUTE."
        )
    else:
        ages = ", ".join(mix) if isinstance(mix, list | tuple) else str(mix)
        over = f" and over the values of {sex}" if sex else ", over ages alone"
        yield Paragraph(f"The standardised error is a mean over ages ({ages}){over}.")
    if _UNDERAGE not in there:
        yield Paragraph(
            "False positives of a challenge are not measured: nobody in the data is under the "
            "legal age, or the metric was not requested."
        )
