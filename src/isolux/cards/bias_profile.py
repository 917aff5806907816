"""A bias profile: whom a model may harm, what was measured of them, and what is done about it.

The profile is the living record that IEEE 7003-2024 asks for; its rows are scenarios, as drafts of
prEN 18283 have them: group at risk, harm, measure, threshold, mitigation, review trigger. The run
fills the measures; the rest is the user's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isolux.cards._document import Block, Card, Column, Paragraph, Part, Table
from isolux.cards._facts import Facts, Scenario
from isolux.cards._measured import (
    findings,
    first_page,
    group_tables,
    metric_table,
    overall_table,
    people_table,
)
from isolux.cards._scenarios import at_risk, matched
from isolux.cards._source import Source, card_of
from isolux.report.document import AttributeSection, GroupRow, LineTable
from isolux.statements.numbers import count, interval, p_equals, value_text, with_unit
from isolux.vocabulary.info import Ask, CardInfo, Reference

__all__ = ["INFO", "card"]

_NOT_STATED = "not stated"
_ASKS = {
    "intended_use": Ask("intended_use", "what the model is meant for"),
    "context_of_use": Ask("context_of_use", "where, by whom and on whom the model is used"),
    "stakeholders": Ask("stakeholders", "who decides, who uses the model, and who is affected"),
    "representation": Ask("representation", "whom the data should represent, and why these people"),
    "accepted_risk": Ask("accepted_risk", "which remaining risk is accepted, and by whom"),
    "monitoring": Ask("monitoring", "how drift in data or use is watched for"),
    "responsible_persons": Ask("responsible_persons", "who answers for this, and signed when"),
}

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
    asks=tuple(_ASKS.values()),
    statement=(
        "This profile follows what is publicly known about the standards that it names. It is not "
        "a statement of conformity with any of them. Measures come from the audit; harms, "
        "thresholds, mitigations and triggers are stated by the user, or blank."
    ),
)


def card(source: Source, facts: Facts) -> Card:
    """Fill a bias profile.

    Parameters
    ----------
    source : Source
        A finished run.
    facts : Facts
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
    >>> INFO.asks[0].key
    'intended_use'
    """
    said = facts.answers_to(_ASKS)
    parts = [
        *first_page(source),
        Part("Purpose and context", said("intended_use", "context_of_use")),
        Part("Stakeholders", said("stakeholders")),
        Part("Groups at risk", tuple(_scenario_blocks(source, facts))),
        Part("What was found", tuple(findings(source))),
        Part("Representation: who is in the data",
             (*said("representation"), *people_table(source))),
        Part("Measures, by group",
             (metric_table(source), overall_table(source), *group_tables(source))),
        Part("Remaining risk, drift and review",
             said("accepted_risk", "monitoring", "responsible_persons")),
    ]  # fmt: skip
    return card_of(INFO, "bias_profile", source, facts, parts)


def _scenario_blocks(source: Source, facts: Facts) -> Iterator[Block]:
    sections = source.summary.sections
    if not sections:
        yield Paragraph("No attribute was audited, so no group can be named here.")
        return
    given = matched(facts.scenarios, sections)
    alpha = source.summary.audited.alpha
    rows = [_row(*one, alpha=alpha) for one in given]
    told = {(section.attribute, table.line.metric, row.group) for section, table, row, _ in given}
    for section in sections:
        name = section.attribute, section.main.line.metric
        others = [row for row in at_risk(section, alpha) if (*name, row.group) not in told]
        rows += [_row(section, section.main, row, None, alpha=alpha) for row in others]
    notes = []
    if facts.scenarios:
        first = "first row is" if len(given) == 1 else f"first {len(given):,} rows are"
        notes.append(f"The {first} {facts.source('scenarios')}.")
    blank = sum(_NOT_STATED in row for row in rows)
    if blank:
        have = "1 row has" if blank == 1 else f"{blank:,} rows have"
        notes.append(f"{have} blanks: give harm, threshold, mitigation and "
                     "review_trigger under scenarios in --facts FILE.")  # fmt: skip
    yield Paragraph(
        "A group is listed here because the user named it, because its difference from everyone is "
        "beyond chance on the main metric, or because it is the worst group judged for its "
        "attribute. This card decides nothing: isolux gate checks a run against thresholds."
    )
    yield Table(
        "Scenarios",
        tuple(Column(title) for title in (
            "Group at risk", "Why here", "Harm", "Measure", "Minus everyone", "Threshold",
            "Mitigation", "Review trigger")),
        tuple(rows),
        "group_metrics.parquet: attribute, group and metric as each row names them; differences: "
        "disparities.parquet, kind difference_to_overall",
        tuple(notes),
    )  # fmt: skip
    yield from _not_judged(sections)


def _row(
    section: AttributeSection, table: LineTable, row: GroupRow, scenario: Scenario | None, *,
    alpha: float,
) -> tuple[str, ...]:  # fmt: skip
    line, found = table.line, row.estimate
    measure = f"{line.title}: {with_unit(found.value, line.unit)}"
    if found.low is not None:
        measure += f" ({interval(found.low, found.high, line.unit)})"
    measure += f", n = {count(found.n_units)}"
    apart = value_text(row.difference, line.unit, sign=True)
    if row.difference is not None:
        ends = interval(row.difference_low, row.difference_high, line.unit)
        unit = " points" if line.unit == "fraction" else f" {line.unit}".rstrip()
        apart += f"{unit} ({ends})"
        apart += f"; adjusted {p_equals(row.p_adjusted)}" if row.p_adjusted is not None else ""
    within = row.p_adjusted is None or row.p_adjusted > alpha
    why = "named by the user" if scenario else "worst group judged" if within else "differs"
    if within and row.difference is not None:
        why += "; no difference from everyone was found"
    if found.reason and found.value is None:
        measure += f"; {found.reason}"
    stated = scenario or Scenario("", "")
    return (
        f"{section.title}: {row.group}", why, stated.harm or _NOT_STATED, measure, apart,
        stated.threshold or _NOT_STATED, stated.mitigation or _NOT_STATED,
        stated.review_trigger or _NOT_STATED,
    )  # fmt: skip


def _not_judged(sections: Sequence[AttributeSection]) -> Iterator[Block]:
    rows = [
        (f"{section.title}: {row.group}", count(row.estimate.n_units), row.estimate.reason or "–")
        for section in sections for row in section.main.rows if not row.estimate.judged
    ]  # fmt: skip
    if not rows:
        return
    columns = (Column("Group"), Column("n", number=True), Column("Why"))
    notes = ["These may be the people for whom the model does worst."]
    if len(rows) > _MOST:
        notes.insert(0, f"{len(rows) - _MOST:,} more are in group_metrics.parquet.")
    yield Table(
        "Groups with too little data to judge", columns, tuple(rows[:_MOST]),
        "group_metrics.parquet: rows of the main metric without a value, columns n_units and "
        "reason", tuple(notes),
    )  # fmt: skip


_MOST = 60
