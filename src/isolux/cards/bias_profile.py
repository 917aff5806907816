"""A bias profile: whom a model may harm, what was measured of them, and what is done about it.

The profile is the living record that IEEE 7003-2024 asks for; its rows are scenarios, as drafts of
prEN 18283 have them: group at risk, harm, measure, threshold, mitigation, review trigger. The run
fills the measures; the rest is the user's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isolux.cards._content import DIFFERENCES, GROUPS, MAX_ROWS, Content, number
from isolux.cards._document import Block, Card, Column, Paragraph, Part, Table
from isolux.cards._facts import Facts, Scenario, asks_of
from isolux.cards._source import Source, at_risk, tables_of
from isolux.report.document import AttributeSection, GroupRow, LineTable
from isolux.statements.numbers import count, interval, p_equals, value_text, with_unit
from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.info import CardInfo, Reference
from isolux.vocabulary.spec import crossed

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
    asks=asks_of(
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
    content = Content("bias_profile", source, facts)
    said = content.said
    tables = content.metric_table(), content.overall_table(), *content.group_tables()
    return content.card(
        *content.first_page(),
        Part("Purpose and context", said("intended_use", "context_of_use")),
        Part("Stakeholders", said("stakeholders")),
        Part("Groups at risk", tuple(_scenario_blocks(content))),
        Part("What was found", (content.findings(),)),
        Part(
            "Representation: who is in the data",
            (*said("representation"), *content.people_tables()),
        ),
        Part("Measures, by group", tables),
        Part(
            "Remaining risk, drift and review",
            said("accepted_risk", "monitoring", "responsible_persons"),
        ),
    )


def _scenario_blocks(content: Content) -> Iterator[Block]:
    sections, facts = content.summary.sections, content.facts
    if not sections:
        yield Paragraph("No attribute was audited, so no group can be named here.")
        return
    alpha = content.summary.audited.alpha
    stated = [(*_find_group(one, sections), one) for one in facts.scenarios]
    rows = [_cells(*one, alpha=alpha) for one in stated]
    named = {(section.attribute, table.line.metric, row.group) for section, table, row, _ in stated}
    for section in sections:
        key = section.attribute, section.main.line.metric
        rows += [
            _cells(section, section.main, row, None, alpha=alpha)
            for row in at_risk(section, alpha)
            if (*key, row.group) not in named
        ]
    notes = []
    if facts.scenarios:
        first = "first row is" if len(stated) == 1 else f"first {len(stated):,} rows are"
        notes.append(f"The {first} {facts.source('scenarios')}.")
    blank = sum("not stated" in row for row in rows)
    if blank:
        have = "1 row has" if blank == 1 else f"{blank:,} rows have"
        notes.append(
            f"{have} blanks: give harm, threshold, mitigation and "
            "review_trigger under scenarios in --facts FILE."
        )
    yield Paragraph(
        "A group is listed here because the user named it, because its difference from everyone is "
        "beyond chance on the main metric, or because it is the worst group judged for its "
        "attribute. This card decides nothing: isolux gate checks a run against thresholds."
    )
    yield Table(
        "Scenarios",
        tuple(
            map(
                Column,
                (
                    "Group at risk",
                    "Why here",
                    "Harm",
                    "Measure",
                    "Minus everyone",
                    "Threshold",
                    "Mitigation",
                    "Review trigger",
                ),
            )
        ),
        tuple(rows),
        f"{GROUPS}: attribute, group and metric as each row names them; {DIFFERENCES}",
        tuple(notes),
    )
    yield from _not_judged(sections)


def _find_group(
    scenario: Scenario, sections: Sequence[AttributeSection]
) -> tuple[AttributeSection, LineTable, GroupRow]:
    """Find what a scenario is about; ``darker * dim`` names the group ``darker × dim``."""
    name = "*".join(crossed(scenario.attribute))
    known = {section.attribute: section for section in sections}
    if name not in known:
        raise UnknownNameError(
            "attribute of this run", scenario.attribute, known, where="scenarios"
        )
    section = known[name]
    lines = {table.line.metric: table for table in reversed(tables_of(section))}
    if scenario.metric and scenario.metric not in lines:
        raise UnknownNameError("metric of this run", scenario.metric, lines, where="scenarios")
    table = lines[scenario.metric] if scenario.metric else section.main
    rows = {_plain(row.group): row for row in table.rows}
    if _plain(scenario.group) not in rows:
        names = [row.group for row in table.rows]
        raise UnknownNameError(f"group of {name}", scenario.group, names, where="scenarios")
    return section, table, rows[_plain(scenario.group)]


def _plain(group: str) -> str:
    return "*".join(part.strip() for part in group.replace("×", "*").split("*"))


def _cells(
    section: AttributeSection,
    table: LineTable,
    row: GroupRow,
    scenario: Scenario | None,
    *,
    alpha: float,
) -> tuple[str, ...]:
    line, found = table.line, row.estimate
    measure = f"{line.title}: {with_unit(found.value, line.unit)}"
    if found.low is not None:
        measure += f" ({interval(found.low, found.high, line.unit)})"
    measure += f", n = {count(found.n_units)}"
    difference = value_text(row.difference, line.unit, sign=True)
    if row.difference is not None:
        ends = interval(row.difference_low, row.difference_high, line.unit)
        unit = " points" if line.unit == "fraction" else f" {line.unit}".rstrip()
        difference += f"{unit} ({ends})"
        if row.p_adjusted is not None:
            difference += f"; adjusted {p_equals(row.p_adjusted)}"
    within = row.p_adjusted is None or row.p_adjusted > alpha
    why = "named by the user" if scenario else "worst group judged" if within else "differs"
    if within and row.difference is not None:
        why += "; no difference from everyone was found"
    if found.reason and found.value is None:
        measure += f"; {found.reason}"
    own = scenario or Scenario("", "")
    harm, *others = (
        text or "not stated"
        for text in (own.harm, own.threshold, own.mitigation, own.review_trigger)
    )
    return f"{section.title}: {row.group}", why, harm, measure, difference, *others


def _not_judged(sections: Sequence[AttributeSection]) -> Iterator[Block]:
    rows = [
        (f"{section.title}: {row.group}", count(row.estimate.n_units), row.estimate.reason or "–")
        for section in sections
        for row in section.main.rows
        if not row.estimate.judged
    ]
    if not rows:
        return
    left = len(rows) - MAX_ROWS
    notes = [f"{left:,} more are in {GROUPS}."] if left > 0 else []
    yield Table(
        "Groups with too little data to judge",
        (Column("Group"), number("n"), Column("Why")),
        tuple(rows[:MAX_ROWS]),
        f"{GROUPS}: rows of the main metric without a value, columns n_units and reason",
        (*notes, "These may be the people for whom the model does worst."),
    )
