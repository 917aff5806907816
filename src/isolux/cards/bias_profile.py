"""A bias profile: whom a model may harm, what was measured of them, and what is done about it.

The profile is the living record that IEEE 7003-2024 asks for; its rows are scenarios, as drafts of
prEN 18283 have them: group at risk, harm, measure, threshold, mitigation, review trigger. The run
fills the measures; the rest is the user's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isolux.cards._content import (
    DIFFERENCES_SOURCE,
    GROUPS_SOURCE,
    MAX_ROWS,
    CardContent,
    number_column,
)
from isolux.cards._document import Card, CardBlock, CardColumn, CardSection, CardTable, Paragraph
from isolux.cards._facts import CardFacts, Scenario, build_fact_fields
from isolux.cards._run_source import RunSource, find_significantly_worse_groups, list_line_tables
from isolux.core.errors import UnknownNameError
from isolux.core.info import CardInfo, Reference
from isolux.core.spec import split_intersection
from isolux.report.document import AttributeSection, GroupRow, LineTable
from isolux.statements.numbers import (
    format_bare_value,
    format_count,
    format_interval,
    format_p_value_equation,
    format_with_unit,
)

INFO = CardInfo(
    title="Bias profile",
    summary="Groups at risk by harm, measure, threshold, mitigation and review trigger.",
    references=(
        Reference(
            "ieee-7003",
            "IEEE Std 7003-2024. IEEE Standard for Algorithmic Bias Considerations. After its "
            "public description: a bias profile, stakeholders, representation of the data, risk "
            "and impact, evaluation, drift.",
            "",
            "https://standards.ieee.org/ieee/7003/11357/",
        ),
        Reference(
            "pren-18283",
            "CEN-CENELEC JTC 21. prEN 18283, Artificial intelligence: concepts, measures and "
            "requirements for managing bias in AI systems. A draft that is not public; only the "
            "columns of its scenario rows are followed, as they are spoken of in public.",
            "",
            "https://www.cencenelec.eu/areas-of-work/cen-cenelec-topics/artificial-intelligence/",
        ),
    ),
    facts=build_fact_fields(
        intended_use="what the model is meant for",
        context_of_use="where, by whom and on whom the model is used",
        stakeholders="who decides, who uses the model, and who is affected",
        representation="whom the data should represent, and why these people",
        accepted_risk="which remaining risk is accepted, and by whom",
        monitoring="how drift in data or use is watched for",
        responsible_persons="who answers for this, and signed when",
    ),
    statement=(
        "This profile follows what is publicly known about the standards that it names. It is not "
        "a statement of conformity with any of them. Measures come from the audit; harms, "
        "thresholds, mitigations and triggers are stated by the user, or blank."
    ),
)


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill a bias profile.

    Parameters
    ----------
    source : RunSource
        A finished run.
    facts : CardFacts
        What the user says; ``scenarios`` names groups at risk, with harm, threshold, mitigation
        and review trigger.

    Returns
    -------
    Card

    Raises
    ------
    UnknownNameError
        A scenario names an attribute, group or metric that the run lacks.

    Examples
    --------
    >>> INFO.facts[0].key
    'intended_use'
    """
    content = CardContent("bias_profile", source, facts)
    stated_facts = content.stated_facts
    tables = (
        content.build_metric_definition_table(),
        content.build_overall_table(),
        *content.build_group_tables(),
    )
    return content.build_card(
        *content.build_first_page_sections(),
        CardSection("Purpose and context", stated_facts("intended_use", "context_of_use")),
        CardSection("Stakeholders", stated_facts("stakeholders")),
        CardSection("Groups at risk", tuple(_build_scenario_blocks(content))),
        CardSection("What was found", (content.build_findings_block(),)),
        CardSection(
            "Representation: who is in the data",
            (*stated_facts("representation"), *content.build_people_count_tables()),
        ),
        CardSection("Measures, by group", tables),
        CardSection(
            "Remaining risk, drift and review",
            stated_facts("accepted_risk", "monitoring", "responsible_persons"),
        ),
    )


def _build_scenario_blocks(content: CardContent) -> Iterator[CardBlock]:
    sections, facts = content.summary.sections, content.facts
    if not sections:
        yield Paragraph("No attribute was audited, so no group can be named here.")
        return
    alpha = content.summary.audited.alpha
    stated = [(*_find_scenario_group(scenario, sections), scenario) for scenario in facts.scenarios]
    rows = [_format_scenario_cells(*scenario, alpha=alpha) for scenario in stated]
    named_groups = {
        (section.attribute, table.line.metric, row.group) for section, table, row, _ in stated
    }
    for section in sections:
        key = section.attribute, section.main.line.metric
        rows += [
            _format_scenario_cells(section, section.main, row, None, alpha=alpha)
            for row in find_significantly_worse_groups(section, alpha)
            if (*key, row.group) not in named_groups
        ]
    notes = []
    if facts.scenarios:
        rows_phrase = "first row is" if len(stated) == 1 else f"first {len(stated):,} rows are"
        notes.append(f"The {rows_phrase} {facts.describe_source('scenarios')}.")
    n_blank = sum("not stated" in row for row in rows)
    if n_blank:
        rows_text = "1 row has" if n_blank == 1 else f"{n_blank:,} rows have"
        notes.append(
            f"{rows_text} blanks: give harm, threshold, mitigation and "
            "review_trigger under scenarios in --facts FILE."
        )
    yield Paragraph(
        "A group is listed here because the user named it, because its difference from overall is "
        "beyond chance on the main metric, or because it is the worst group judged for its "
        "attribute. This card decides nothing: isolux gate checks a run against thresholds."
    )
    yield CardTable(
        "Scenarios",
        tuple(
            map(
                CardColumn,
                (
                    "Group at risk",
                    "Why here",
                    "Harm",
                    "Measure",
                    "Minus overall",
                    "Threshold",
                    "Mitigation",
                    "Review trigger",
                ),
            )
        ),
        tuple(rows),
        f"{GROUPS_SOURCE}: attribute, group and metric as each row names them;"
        f" {DIFFERENCES_SOURCE}",
        tuple(notes),
    )
    yield from _build_too_small_groups_block(sections)


def _find_scenario_group(
    scenario: Scenario, sections: Sequence[AttributeSection]
) -> tuple[AttributeSection, LineTable, GroupRow]:
    """Find what a scenario is about; ``darker * dim`` names the group ``darker × dim``."""
    name = "*".join(split_intersection(scenario.attribute))
    sections_by_attribute = {section.attribute: section for section in sections}
    if name not in sections_by_attribute:
        raise UnknownNameError(
            "attribute of this run", scenario.attribute, sections_by_attribute, where="scenarios"
        )
    section = sections_by_attribute[name]
    lines = {table.line.metric: table for table in reversed(list_line_tables(section))}
    if scenario.metric and scenario.metric not in lines:
        raise UnknownNameError("metric of this run", scenario.metric, lines, where="scenarios")
    table = lines[scenario.metric] if scenario.metric else section.main
    rows = {_unify_crossing_signs(row.group): row for row in table.rows}
    if _unify_crossing_signs(scenario.group) not in rows:
        names = [row.group for row in table.rows]
        raise UnknownNameError(f"group of {name}", scenario.group, names, where="scenarios")
    return section, table, rows[_unify_crossing_signs(scenario.group)]


def _unify_crossing_signs(group: str) -> str:
    return "*".join(component.strip() for component in group.replace("×", "*").split("*"))


def _format_scenario_cells(
    section: AttributeSection,
    table: LineTable,
    row: GroupRow,
    scenario: Scenario | None,
    *,
    alpha: float,
) -> tuple[str, ...]:
    line, estimate = table.line, row.estimate
    measure = f"{line.title}: {format_with_unit(estimate.value, line.unit)}"
    if estimate.low is not None:
        measure += f" ({format_interval(estimate.low, estimate.high, line.unit)})"
    measure += f", n = {format_count(estimate.n_units)}"
    difference = format_bare_value(row.difference, line.unit, with_sign=True)
    if row.difference is not None:
        interval_text = format_interval(row.difference_low, row.difference_high, line.unit)
        unit = " points" if line.unit == "fraction" else f" {line.unit}".rstrip()
        difference += f"{unit} ({interval_text})"
        if row.p_adjusted is not None:
            difference += f"; adjusted {format_p_value_equation(row.p_adjusted)}"
    is_not_significant = row.p_adjusted is None or row.p_adjusted > alpha
    reason = (
        "named by the user"
        if scenario
        else "worst group judged"
        if is_not_significant
        else "differs"
    )
    if is_not_significant and row.difference is not None:
        reason += "; no difference from the overall value was found"
    if estimate.reason and estimate.value is None:
        measure += f"; {estimate.reason}"
    stated = scenario or Scenario("", "")
    harm, *other_texts = (
        text or "not stated"
        for text in (stated.harm, stated.threshold, stated.mitigation, stated.review_trigger)
    )
    return f"{section.title}: {row.group}", reason, harm, measure, difference, *other_texts


def _build_too_small_groups_block(sections: Sequence[AttributeSection]) -> Iterator[CardBlock]:
    rows = [
        (
            f"{section.title}: {row.group}",
            format_count(row.estimate.n_units),
            row.estimate.reason or "–",
        )
        for section in sections
        for row in section.main.rows
        if not row.estimate.is_comparable
    ]
    if not rows:
        return
    n_remaining = len(rows) - MAX_ROWS
    notes = [f"{n_remaining:,} more are in {GROUPS_SOURCE}."] if n_remaining > 0 else []
    yield CardTable(
        "Groups with too little data to judge",
        (CardColumn("Group"), number_column("n"), CardColumn("Why")),
        tuple(rows[:MAX_ROWS]),
        f"{GROUPS_SOURCE}: rows of the main metric without a value, columns n_units and reason",
        (*notes, "These may be the people for whom the model does worst."),
    )
