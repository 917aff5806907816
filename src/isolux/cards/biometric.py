"""The tables of a biometric test: failures and errors by group, and how far the errors lie apart.

Failures to enrol and to acquire and both errors at the operational threshold are laid out as the
public scope of ISO/IEC 19795-10 describes them, differentials as NIST sums them up, with the errors
of everyone in each row: a summary alone is best where a model fails everyone alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from isolux.analyses.biometrics import DIFFERENTIALS, PERFORMANCE, explain
from isolux.cards._content import CardContent
from isolux.cards._document import Card, CardBlock, CardColumn, CardSection, CardTable, Paragraph
from isolux.cards._facts import CardFacts, build_fact_fields
from isolux.cards._run_source import RunSource
from isolux.core import registry
from isolux.core.info import CardInfo, Reference
from isolux.core.survey_sample import is_survey_sample
from isolux.disparity.biometrics import RATES, performance
from isolux.statements.numbers import format_paper_cell

INFO = CardInfo(
    title="Biometric performance by group",
    summary="Failures, both errors and their differentials by group, for biometric testers.",
    references=(
        Reference(
            "biometric-differentials",
            "ISO/IEC 19795-10:2024. Information technology: Biometric performance testing and "
            "reporting. Part 10: Quantifying biometric system performance variation across "
            "demographic groups.",
            "its scope: failure to enrol, failure to acquire, recognition errors",
            "https://www.iso.org/standard/81223.html",
        ),
        Reference(
            "frte-demographics",
            "National Institute of Standards and Technology. Face Recognition Technology "
            "Evaluation: demographic effects in face recognition.",
            "the largest rate over the geometric mean, and over the smallest; Gini",
            "https://pages.nist.gov/frvt/html/frvt_demographics.html",
        ),
    ),
    facts=build_fact_fields(
        system="the biometric system: provider, name and version",
        test_type="the kind of test (technology, scenario, operational), by whom",
        capture="how and where samples were captured",
        population="who the test subjects are, and whom they represent",
        demographic_determination="how the groups were determined (self-reported, from documents, "
        "by observers)",
        threshold_reason="why this is the operational threshold",
        responsible_persons="who answers for this, and signed when",
    ),
    tasks=tuple(RATES),
    statement=(
        "The text of ISO/IEC 19795-10 is not public: these tables follow its public scope and are "
        "not a statement of conformity. A summary of differences means nothing without the errors "
        "beside it: a system that fails everyone fails all groups equally."
    ),
)
_SUMMARY_NOTE = (
    "1 in both ratios and 0 in Gini mean that nothing differs. These are descriptions without an "
    "interval: the tests are among the findings."
)


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill the tables.

    Parameters
    ----------
    source : RunSource
        A finished run of ``face_verification`` or ``identification``.
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
    ('face_verification', 'identification')
    """
    content = CardContent("biometric", source, facts)
    stated_facts = content.stated_facts
    by_group, between = _build_biometric_tables(content, RATES[str(content.record["task"])])
    people = stated_facts("population", "demographic_determination")
    return content.build_card(
        *content.build_first_page_sections(),
        CardSection(
            "Failures and errors by group",
            (*by_group, *stated_facts("threshold_reason")),
            "After the public scope of ISO/IEC 19795-10, and NIST's demographic summary",
        ),
        CardSection("Between groups", tuple(between)),
        CardSection("The system and the test", stated_facts("system", "test_type", "capture")),
        CardSection("The people", (content.build_data_paragraph(), *people)),
        CardSection("What was found", (content.build_findings_block(),)),
        CardSection("Who answers for this", stated_facts("responsible_persons")),
    )


def _build_biometric_tables(
    content: CardContent, rates: Mapping[str, str]
) -> tuple[list[CardBlock], list[CardBlock]]:
    """Lay out the tables of the analysis ``biometrics``: of groups, and between two groups."""
    run, missing = content.source.run, ""
    if is_survey_sample(run.record):
        missing = (
            "Not measured: tables between two groups count every comparison once, and the people "
            "in this run represent a population through weights or strata."
        )
    elif content.summary.audited.publish_min:
        missing = (
            "Not shown: tables between groups rest on people whom a published run does not hold."
        )
    analysis = explain(replace(run, evidence={}) if missing else run)
    rates_table = performance(run)
    metric_of = registry.task_info(str(run.record.get("task"))).metric
    by_group: list[CardBlock] = [
        Paragraph(f"{metric_of(metric).title}: not measured (no metric {metric} in this run).")
        for column, metric in rates.items()
        if column in rates_table.columns and rates_table[column].is_null().all()
    ]
    between: list[CardBlock] = []
    for caption, table in analysis.tables.items():
        if caption in (PERFORMANCE, DIFFERENTIALS):
            notes = (_SUMMARY_NOTE,) if caption == DIFFERENTIALS else ()
            by_group.append(_build_card_table(caption, table, "group_metrics.parquet", notes))
        else:
            files = ", ".join(f"evidence/{name}.parquet" for name in sorted(run.evidence))
            between.append(_build_card_table(caption, table, files))
    reason = missing or " ".join(analysis.notes) or "Not shown: no attribute has few enough groups."
    return by_group, between or [Paragraph(reason)]


def _build_card_table(
    caption: str, table: pl.DataFrame, source_file: str, notes: tuple[str, ...] = ()
) -> CardTable:
    one_model = "model" in table.columns and table["model"].n_unique() == 1
    shown_table = table.drop("model") if one_model else table
    columns = tuple(
        CardColumn(name.replace("_", " "), number=shown_table.schema[name].is_numeric())
        for name in shown_table.columns
    )
    rows = tuple(tuple(format_paper_cell(cell) for cell in row) for row in shown_table.rows())
    return CardTable(
        caption, columns, rows, f"{source_file}, by isolux.disparity.biometrics", notes
    )
