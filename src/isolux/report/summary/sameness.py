"""Whether groups are shown to be within the margin that was asked about, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from isolux.report.document import AttributeSection, Audited
from isolux.report.wording import listed
from isolux.vocabulary.words import brief

__all__ = ["sameness_text"]

_TITLE = 100


def sameness_text(sections: Sequence[AttributeSection], audited: Audited) -> str:
    """Say for which attributes it is shown that groups are within the margin; without one, nothing.

    Where groups are held against a reference nothing is known of two others, and the sentence is
    of it alone.
    """
    if audited.margin is None:
        return ""
    judged = [s for s in sections if s.verdict.outcome != "not judged"]
    parts = [[s for s in judged if s.oriented is of_all] for of_all in (True, False)]
    return " ".join(_margin_text(part, audited) for part in parts if part)


def _margin_text(judged: Sequence[AttributeSection], audited: Audited) -> str:
    line, margin = judged[0].verdict.line, f"{audited.margin:g}"
    if line.unit != "fraction":
        return f"A margin in points does not apply to {line.phrase}, which is not a share."
    far = f"{margin} {'point' if margin == '1' else 'points'}"
    shown = [s for s in judged if audited.within(s.verdict.spread.within_p)]
    others = [s for s in judged if s not in shown]
    who = "no two groups judged differ"
    if not judged[0].oriented:
        who = "no group judged differs from its reference"
    claim = f"that {who} by more than {far} in {line.phrase}"
    if not shown:
        return f"It is not shown {claim}{_by(others)}."
    told = f"It is shown {claim}{_by(shown)} (adjusted for all such claims)"
    return f"{told}; not shown{_by(others)}." if others else f"{told}."


def _by(sections: Sequence[AttributeSection]) -> str:
    return f" by {listed([brief(s.title, _TITLE) for s in sections], most=4)}"
