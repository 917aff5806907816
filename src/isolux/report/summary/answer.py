"""What the report says of each attribute, and the order in which attributes are read."""

from __future__ import annotations

from collections.abc import Sequence

from isolux.report.document import AttributeSection, Audited, Verdict
from isolux.statements.choice import Choice
from isolux.statements.numbers import count
from isolux.statements.text import describe_finding, describe_null


def reading_order(sections: Sequence[AttributeSection]) -> list[AttributeSection]:
    """Put the leading attribute first, then others that differ, as the answer names them."""
    return sorted(sections, key=lambda s: s.place)


def verdict_text(section: AttributeSection, choice: Choice, audited: Audited) -> str:
    """Say of one attribute what is established on the main line, or cannot be ruled out."""
    line, verdict = section.main.line, section.verdict
    leader = choice.leader_of(line, section.attribute)
    if leader is not None:
        return describe_finding(leader, choice.names)
    if verdict.outcome == "no difference found":
        return describe_null(line, [section.attribute], choice.comparisons, choice.names)
    if audited.withheld:
        return "Not told: what was tested is hidden with groups of few people."
    return f"Not judged: {_why_not(verdict)}."


def _why_not(verdict: Verdict) -> str:
    if verdict.spread.reason:
        return verdict.spread.reason
    if verdict.n_judged < 2:
        judged, n = count(verdict.n_judged), count(verdict.n_groups)
        return f"{judged} of {n} groups are large enough to judge"
    return "no test was made"
