"""How alike groups are shown to be, in one sentence of the answer.

"No difference was found" is no evidence that there is none; this is what may be said instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.report.document import AttributeSection, Audited
from isolux.report.wording import listed
from isolux.statements.numbers import points
from isolux.vocabulary.words import brief

__all__ = ["sameness_text"]

_ONE_SIDE = (
    "It has one side, and no pair was chosen for it; the interval of the widest gap has two sides "
    "and allows for that choice, so it can reach further."
)

_TITLE = 100


def sameness_text(sections: Sequence[AttributeSection], audited: Audited) -> str:
    """Say for which attributes it is shown that groups are within the margin that was asked about.

    Without a margin: how far apart any two groups are at most, where nothing was found. The largest
    of the attributes' bounds holds as surely as each does, so it needs no correction. Where groups
    are held against a reference nothing is known of two others, and the sentence is of it alone.
    """
    judged = [s for s in sections if s.verdict.outcome != "not judged"]
    parts = [[s for s in judged if s.oriented is of_all] for of_all in (True, False)]
    if audited.margin is not None:
        return " ".join(_margin_text(part, audited) for part in parts if part)
    bounds = [s.verdict.spread.at_most for s in judged]
    known = [bound for bound in bounds if bound is not None]
    differ = any(s.verdict.outcome == "differ" for s in judged)
    if audited.census or differ or not known or len(known) < len(bounds):
        return ""
    line = judged[0].verdict.line
    told = [_bound_text(part) for part in parts if part]
    return (
        f"What the values seen do show: {' and '.join(told)} in {line.phrase} "
        f"({audited.percent} upper bound). {_ONE_SIDE}"
    )


def _bound_text(sections: Sequence[AttributeSection]) -> str:
    most = max(s.verdict.spread.at_most or 0.0 for s in sections)
    far = points(most, sections[0].verdict.line.unit)
    if sections[0].oriented:
        return f"no two groups judged are more than {far} apart"
    return f"no group judged is more than {far} from its reference"


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
