"""Which groups are at risk: those a user names, those that differ, the worst group judged."""

from __future__ import annotations

from collections.abc import Sequence

from isolux.cards._facts import Scenario
from isolux.report.document import AttributeSection, GroupRow, LineTable
from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.spec import crossed

__all__ = ["at_risk", "matched"]

_MOST = 10
"""Groups of one attribute that are named without being asked for, the worst first."""

Matched = tuple[AttributeSection, LineTable, GroupRow, Scenario]


def matched(scenarios: Sequence[Scenario], sections: Sequence[AttributeSection]) -> list[Matched]:
    """Find what each scenario is about."""
    return [(*_found(one, sections), one) for one in scenarios]


def _found(
    asked: Scenario, sections: Sequence[AttributeSection]
) -> tuple[AttributeSection, LineTable, GroupRow]:
    name = "*".join(crossed(asked.attribute))
    known = {section.attribute: section for section in sections}
    if name not in known:
        raise UnknownNameError("attribute of this run", asked.attribute, known, where="scenarios")
    section = known[name]
    tables = [table for block in section.blocks for table in block.tables]
    lines = {table.line.metric: table for table in reversed(tables)}
    if asked.metric and asked.metric not in lines:
        raise UnknownNameError("metric of this run", asked.metric, lines, where="scenarios")
    table = lines[asked.metric] if asked.metric else section.main
    rows = {_plain(row.group): row for row in table.rows}
    row = rows.get(_plain(asked.group))
    if row is None:
        names = [one.group for one in table.rows]
        raise UnknownNameError(f"group of {name}", asked.group, names, where="scenarios")
    return section, table, row


def _plain(group: str) -> str:
    """Let ``darker * dim`` name the group ``darker × dim``."""
    return "*".join(part.strip() for part in group.replace("×", "*").split("*"))


def at_risk(section: AttributeSection, alpha: float) -> list[GroupRow]:
    """Choose the groups of an attribute that differ to the worse, or else the worst judged."""
    table = section.main
    sign = {"higher": -1.0, "lower": 1.0}.get(table.line.direction)

    def worse(row: GroupRow) -> float:
        apart = row.difference or 0.0
        return abs(apart) if sign is None else sign * apart

    judged = [row for row in table.rows if row.estimate.judged and not row.is_unknown]
    sure = [row for row in judged if row.p_adjusted is not None and row.p_adjusted <= alpha]
    differ = [row for row in sure if worse(row) > 0]
    if differ:
        return sorted(differ, key=worse, reverse=True)[:_MOST]
    worst = section.verdict.worst
    return [worst] if worst is not None and sign is not None else []
