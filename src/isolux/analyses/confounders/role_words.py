"""What sentences of the analysis ``confounders`` say of roles, of the graph, and of robustness.

A gap at an equal mix is one number with four readings (``roles``). These clauses follow the number,
so that no sentence can be read as more than its attribute's role allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.analyses.confounders.cases import Case
from isolux.statements.words import Words, level_of, lowered

__all__ = ["bearing_clause", "doubt_clause", "graph_clause", "lead_clause", "role_clause"]

_SHOWN = 3


def lead_clause(case: Case, s: int, words: Words) -> str:
    """Say of the attribute that ranks first what it is to the differences, as far as was told."""
    name, title = _names(case, s, words)
    role = case.standing[s].reading
    if role == "before":
        return f"{name} is a probable explanation of the differences"
    if role == "mediator":
        return (
            f"{name} is a probable part of how the differences come about (stated to lie between "
            f"{title} and the score)"
        )
    if role == "after":
        return (
            f"the differences are associated with {name}, which was stated to follow from the score"
        )
    return f"the differences are associated with {name}, {_why_unknown(case, s)}"


def role_clause(case: Case, s: int, words: Words, *, stands: bool, level: bool) -> str:
    """Say how the gap at an equal mix may be read."""
    name, title = _names(case, s, words)
    start = name[:1].upper() + name[1:]
    what = lowered(words.measure(case.row))
    role = case.standing[s].reading
    if role == "before":
        return f" {start} was said to come before {title} and {what}." if level else ""
    if role == "mediator":
        return (
            f" {start} was stated to lie between {title} and {what}: the gap without adjustment is "
            "the whole, and this is the part that takes another path."
        )
    if role == "after":
        return (
            f" {start} was stated to follow from {what}: among people who are alike in something "
            "that follows from it, groups can differ by selection alone. This is not a gap of the "
            "model."
        )
    return _unknown_clause(case, s, words, stands=stands) if level else ""


def _unknown_clause(case: Case, s: int, words: Words, *, stands: bool) -> str:
    name, title = _names(case, s, words)
    what = lowered(words.measure(case.row))
    if case.standing[s].rule_fails:
        return (
            f" This mix of {name} leaves paths open other than the groups' own effect, so this is "
            "only an association."
        )
    if not stands:
        return (
            f" If {name} came before {title} and {what}, it hides a gap; if it follows from both, "
            f"it creates one from nothing. The data cannot tell: {_ask(case, s)} would."
        )
    return (
        f" The role of {name} is not known, so this is only an association: {_ask(case, s)} would "
        "say more."
    )


def doubt_clause(case: Case, s: int, words: Words) -> str:
    """Begin a sentence on a gap that stands at an equal mix alone, of an unknown role."""
    name, _ = _names(case, s, words)
    why = (
        "by the graph the mix opens other ways"
        if case.standing[s].rule_fails
        else f"the role of {name} is not known"
    )
    return f"no finding of a gap, since none is shown without adjustment and {why}: "


def bearing_clause(case: Case, s: int, words: Words) -> str:
    """Say how strong what was not annotated would have to be to take the gap away."""
    found = case.bearing.get(s)
    if found is None or found.gap is None or case.standing[s].reading in ("unknown", "after"):
        return ""
    end = (
        ""
        if found.end is None
        else f", {_share(found.end)} to bring the {level_of(words)} interval to 0"
    )
    beside = (
        f"; {words.title(case.layout.strata[s].name)} explains {_share(found.score)} and "
        f"{_share(found.group)}"
        if found.score is not None and found.group is not None
        else ""
    )
    return (
        f" Something not annotated would have to explain {_share(found.gap)} of the remaining "
        f"variance of both the scores and the groups' composition to remove it{end}{beside}."
    )


def graph_clause(case: Case, s: int) -> str:
    """Say which ways between group and score an equal mix blocks, opens and leaves open."""
    found = case.standing[s].adjustment
    if found is None:
        return ""
    told = [
        f"{verb} {_listed(paths)}"
        for verb, paths in (
            ("blocks", found.blocks),
            ("opens", found.opens),
            ("leaves open", found.leaves),
            ("cuts, of the groups' own effect,", found.cuts),
        )
        if paths
    ]
    rule = (
        "the back-door rule holds"
        if found.holds
        else "the back-door rule does not hold"
        + (
            f" ({' and '.join(dict.fromkeys((*found.descendants, *found.after)))} "
            f"{'follow' if len(found.descendants) > 1 else 'follows'} from the groups or the score)"
            if found.descendants or found.after
            else ""
        )
    )
    return (
        f" According to the graph, this mix {'; '.join(told) or 'blocks and opens nothing'}; "
        f"{rule}."
    )


def _names(case: Case, s: int, words: Words) -> tuple[str, str]:
    return words.title(case.layout.strata[s].name), words.title(case.layout.sensitive.name)


def _why_unknown(case: Case, s: int) -> str:
    if case.standing[s].role == "unknown":
        return "whose role is not known"
    return "yet by the graph other ways are open"


def _ask(case: Case, s: int) -> str:
    named = " ".join(f"--role {part}=..." for part in case.layout.strata[s].parts)
    return f"{named} (before, mediator or after)"


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more


def _share(share: float) -> str:
    """Write a share in per cent; one digit where that is needed to see it."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
