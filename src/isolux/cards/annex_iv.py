"""Extracts for the technical documentation of the EU's AI Act: Annex IV, points 2(g) and 3.

What these two points ask for and an audit knows is filled in; the rest is the provider's to say.
The Regulation is public; the card quotes its paragraphs by number and claims nothing.
"""

from __future__ import annotations

from isolux.cards._content import CardContent
from isolux.cards._document import Card, CardFact, CardSection
from isolux.cards._facts import CardFacts, build_fact_fields
from isolux.cards._run_source import RunSource
from isolux.core.info import CardInfo, Reference

INFO = CardInfo(
    title="Annex IV extracts",
    summary="Extracts for the EU AI Act's technical documentation: Annex IV, points 2(g) and 3.",
    references=(
        Reference(
            "ai-act",
            "Regulation (EU) 2024/1689 of the European Parliament and of the Council of 13 June "
            "2024 laying down harmonised rules on artificial intelligence (Artificial Intelligence "
            "Act), OJ L, 2024/1689.",
            "Article 11 and Annex IV, points 2(g) and 3",
            "https://eur-lex.europa.eu/eli/reg/2024/1689/oj",
        ),
    ),
    facts=build_fact_fields(
        provider="who the provider is (point 1(a))",
        model_version="which version of the system was tested (point 1(a))",
        intended_use="the intended purpose (point 1(a))",
        test_procedure="how the system was validated and tested",
        testing_data_origin="where the test data come from, and how they were chosen",
        discriminatory_impacts="the provider's assessment of potentially discriminatory impacts",
        predetermined_changes="tests of changes that were determined in advance (point 2(f))",
        responsible_persons="who answers for this, and signed when",
        intended_groups="the persons or groups on which the system is intended to be used",
        expected_accuracy="the expected overall level of accuracy for the intended purpose",
        unintended_outcomes="foreseeable unintended outcomes, and sources of risk to health, "
        "safety and fundamental rights",
        human_oversight="measures of human oversight (Article 14)",
        input_specifications="specifications on input data",
    ),
    statement=(
        "These are extracts for two points of Annex IV, filled from one audit. They are not the "
        "technical documentation that Article 11 asks for, no conformity assessment and no claim "
        "that the Regulation is met."
    ),
)


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill the extracts.

    Parameters
    ----------
    source : RunSource
        A finished run.
    facts : CardFacts
        What the provider says.

    Returns
    -------
    Card

    Examples
    --------
    >>> INFO.references[0].location
    'Article 11 and Annex IV, points 2(g) and 3'
    """
    content = CardContent("annex_iv", source, facts)
    stated_facts, audited = content.stated_facts, content.summary.audited
    log_text = (
        f"isolux {audited.version or '(version not recorded)'}, "
        f"{audited.created or 'time not recorded'}; seed {audited.seed}; all settings and the "
        "hashes of inputs are in audit.json of the run."
    )
    test_fact = CardFact("the run of this test", (log_text,), "the run")
    tested_on = content.build_data_paragraph("Tested on ")
    return content.build_card(
        *content.build_first_page_sections(
            "Annex IV, point 3: degrees of accuracy for specific groups",
            "Annex IV, point 3: capabilities and limitations in performance",
        ),
        CardSection(
            "The system",
            stated_facts("provider", "model_version", "intended_use"),
            "Annex IV, point 1(a)",
        ),
        CardSection(
            "Validation and testing procedures",
            stated_facts("test_procedure"),
            "Annex IV, point 2(g), first part",
        ),
        CardSection(
            "Testing data and their main characteristics",
            (tested_on, *stated_facts("testing_data_origin"), *content.build_people_count_tables()),
            "Annex IV, point 2(g): validation and testing data used",
        ),
        CardSection(
            "Metrics used",
            (content.build_metric_definition_table(),),
            "Annex IV, point 2(g): metrics for accuracy, robustness and other requirements",
        ),
        CardSection(
            "Potentially discriminatory impacts",
            (content.build_findings_block(), *stated_facts("discriminatory_impacts")),
            "Annex IV, point 2(g): potentially discriminatory impacts",
        ),
        CardSection(
            "Test logs and reports",
            (test_fact, *stated_facts("responsible_persons", "predetermined_changes")),
            "Annex IV, point 2(g): test logs and all test reports dated and signed",
        ),
        CardSection(
            "Overall accuracy",
            (content.build_overall_table(), *stated_facts("expected_accuracy")),
            "Annex IV, point 3: the overall expected level of accuracy",
        ),
        CardSection(
            "Accuracy for persons and groups",
            (*stated_facts("intended_groups"), *content.build_group_tables()),
            "Annex IV, point 3: degrees of accuracy for specific persons or groups of persons",
        ),
        CardSection(
            "Risks, oversight and input data",
            stated_facts("unintended_outcomes", "human_oversight", "input_specifications"),
            "Annex IV, point 3: unintended outcomes, human oversight, input data",
        ),
    )
