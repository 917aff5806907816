"""How alike groups are shown to be, in one sentence of the answer.

"No difference was found" is no evidence that there is none; this is what may be said instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.report.document import AttributeSection, Audited
from isolux.report.wording import listed, points
from isolux.vocabulary.words import brief

__all__ = ["sameness_text"]

_TITLE = 100


def sameness_text(sections: Sequence[AttributeSection], audited: Audited) -> str:
    """Say for which attributes it is shown that groups are within the margin that was asked about.

    Without a margin: how far apart any two groups are at most, where nothing was found. The largest
    of the attributes' bounds holds as surely as each does, so it needs no correction.
    """
    judged = [s for s in sections if s.verdict.outcome != "not judged"]
    if audited.margin is not None:
        return _margin_text(judged, audited) if judged else ""
    bounds = [s.verdict.spread.at_most for s in judged]
    known = [bound for bound in bounds if bound is not None]
    differ = any(s.verdict.outcome == "differ" for s in judged)
    if audited.census or differ or not known or len(known) < len(bounds):
        return ""
    line = judged[0].verdict.line
    return (
        f"What the values seen do show: no two groups judged are more than "
        f"{points(max(known), line.unit)} apart in {line.phrase} ({audited.percent} upper bound)."
    )


def _margin_text(judged: Sequence[AttributeSection], audited: Audited) -> str:
    line, margin = judged[0].verdict.line, f"{audited.margin:g}"
    if line.unit != "fraction":
        return f"A margin in points does not apply to {line.phrase}, which is not a share."
    far = f"{margin} {'point' if margin == '1' else 'points'}"
    shown = [s for s in judged if audited.within(s.verdict.spread.within_p)]
    others = [s for s in judged if s not in shown]
    claim = f"that no two groups judged differ by more than {far} in {line.phrase}"
    if not shown:
        return f"It is not shown {claim}{_by(others)}."
    told = f"It is shown {claim}{_by(shown)} (adjusted for all such claims)"
    return f"{told}; not shown{_by(others)}." if others else f"{told}."


def _by(sections: Sequence[AttributeSection]) -> str:
    return f" by {listed([brief(s.title, _TITLE) for s in sections], most=4)}"
