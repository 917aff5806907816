"""The sentences that answer: the one at the top, one for each attribute, and what stays unsaid.

Wording follows fairlearn's guide for contributors: an audit measures disparities, it never
certifies their absence, and says whose labels it used.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.report.document import AttributeSection, Audited, Line, PairRow, Verdict
from isolux.report.wording import brief, count, interval, listed, p_equals, points, share, with_unit

__all__ = ["answer_of", "detectable_text", "limits_of", "pair_sentence", "verdict_text"]

MEASURES = (
    "It measures the disparities it was asked to look at, on these people, with these labels. "
    "Other people, other images and other uses of the model may differ."
)
NOT_FOUND = (
    "“No difference found” means that this much data did not show one. It is not evidence that "
    "there is none; the smallest detectable difference says how much could be missed."
)
NO_CAUSE = (
    "It describes where scores differ. It does not say why, nor whether the labels, the images, "
    "the model or the sampling is the cause, nor what harm follows in use."
)
COARSE = "Group names are the dataset’s. They are coarse, and people within one group differ."
_TITLE = 100  # characters of an attribute's title in a sentence
NO_ABSENCE = "That is not evidence that there is none."


def answer_of(sections: Sequence[AttributeSection], audited: Audited) -> str:
    """Answer in one or two sentences: on which attributes the groups differ, and how far."""
    if not sections:
        return (
            "No attribute was named, so no groups were compared: "
            "this report gives the figures for everyone only."
        )
    differ = [s for s in sections if s.verdict.outcome == "differ"]
    same = [s for s in sections if s.verdict.outcome == "no difference found"]
    elsewhere = [s for s in same if s.verdict.also]
    nowhere = [s for s in same if not s.verdict.also]
    unjudged = [s for s in sections if s.verdict.outcome == "not judged"]
    metric = sections[0].verdict.line.phrase
    told = []
    if differ:
        told.append(f"{_upper(metric)} differs between groups of {_titles(differ)}.")
        told += _widest(differ, audited)
    told += [
        f"Groups of {brief(s.title)} differ in {listed(s.verdict.also, most=2)}; "
        f"in {metric} no difference was found."
        for s in elsewhere[:2]
    ]
    if nowhere:
        found = "No difference was found" if differ else f"No difference in {metric} was found"
        told.append(
            f"{found} between groups of {_titles(nowhere)}; "
            "that is not evidence that there is none."
        )
    if unjudged:
        told.append(f"There is too little data to judge {_titles(unjudged)}.")
    return " ".join(told)


def _titles(sections: Sequence[AttributeSection]) -> str:
    return listed([brief(s.title, _TITLE) for s in sections], most=4)


def _widest(differ: Sequence[AttributeSection], audited: Audited) -> list[str]:
    named = [(s.widest, s) for s in differ if s.widest is not None]
    sound = named or [
        (pair, section)
        for section in differ
        for pair in section.blocks[0].pairs
        if pair.value is not None
        and pair.label == section.main.line.label
        and pair.status == "ok"
        and pair.p_adjusted is not None
        and pair.p_adjusted <= audited.alpha
    ]
    if not sound:
        return []
    pair, section = max(sound, key=lambda item: abs(item[0].value or 0.0))
    # A group called "none" says little without its attribute.
    of = f", by {brief(section.title, _TITLE)}" if len(differ) > 1 else ""
    told = pair_sentence(pair, section.main.line, audited)
    return [f"Widest gap beyond chance{of}: {told}."]


def pair_sentence(pair: PairRow, line: Line, audited: Audited) -> str:
    """Say one pair's difference, effect first: size, interval, p."""
    value = pair.value or 0.0
    way = "lower" if value < 0 else "higher"
    ends = interval(pair.low, pair.high, line.unit, flip=value < 0)
    span = f"{audited.percent} interval {ends}; " if pair.low is not None else ""
    return (
        f"{brief(pair.group_a)} is {points(value, line.unit)} {way} than {brief(pair.group_b)} "
        f"({span}{audited.adjusted} {p_equals(pair.p_adjusted)})"
    )


def verdict_text(verdict: Verdict, audited: Audited) -> str:
    """Say what the test says of one attribute, and what it could have seen if it says nothing."""
    spread = verdict.spread
    p = f"{audited.adjusted} {p_equals(spread.p_adjusted)}"
    if verdict.outcome == "differ":
        return f"The test says that these groups differ in {verdict.line.phrase} ({p})."
    if verdict.outcome == "no difference found":
        seen = detectable_text(verdict)
        return (
            f"No difference in {verdict.line.phrase} was found ({p}). {NO_ABSENCE} {seen}".strip()
        )
    why = spread.reason or (
        f"{count(verdict.n_judged)} of {count(verdict.n_groups)} groups are large enough to judge"
        if verdict.n_judged < 2
        else "no test was made"
    )
    return f"Not judged: {why}."


def detectable_text(verdict: Verdict) -> str:
    """Say the smallest difference between two groups that this audit could have seen."""
    low, high, unit = verdict.detectable_low, verdict.detectable_high, verdict.line.unit
    if low is None or high is None:
        return ""
    if points(low, unit) == points(high, unit):
        return f"This audit could have seen a difference of {points(high, unit)} (power 0.8)."
    return (
        f"Between its two best-measured groups this audit could have seen a difference of "
        f"{points(low, unit)}, between its worst-measured {points(high, unit)} (power 0.8)."
    )


def limits_of(audited: Audited, sections: Sequence[AttributeSection]) -> tuple[str, ...]:
    """List what the audit cannot say, for this run in particular."""
    asked = listed([brief(s.title, _TITLE) for s in sections])
    looked = (
        "A model may serve people differently along lines that nobody recorded."
        if not sections
        else f"It looked at these attributes and no others: {asked}. A model may serve people "
        "differently along lines that nobody recorded."
    )
    told = [MEASURES, looked, NOT_FOUND, NO_CAUSE, _whose_labels(audited), COARSE]
    small = sum(s.verdict.n_groups - s.verdict.n_judged for s in sections)
    if small:
        told.append(
            f"{count(small)} group{'s' if small > 1 else ''} had too little data to judge. These "
            "may be the people for whom the model does worst; their absence here is no good news."
        )
    if audited.cluster is None:
        told.append(
            "Rows were taken as independent, for no cluster column was named. If several rows "
            "show one person, the intervals are too narrow and the p-values too small."
        )
    if any(s.verdict.outcome == "differ" for s in sections):
        told.append(
            "The pairs that it names were picked because they lie farthest apart, so their gaps "
            "run large; another sample would likely show smaller ones."
        )
    told.append("It is a measurement with its uncertainty, and no certificate of any kind.")
    return tuple(told)


def _whose_labels(audited: Audited) -> str:
    judgement = audited.judgement.strip()
    if judgement == "perceived":
        return (
            "The groups are as perceived by annotators: how people look to others, which need "
            "not be how they describe themselves."
        )
    if judgement == "self-reported":
        return "The groups are as people reported themselves, with the choices they were given."
    if judgement == "inferred":
        return (
            "The groups were inferred by a model, whose own errors may differ between groups "
            "and can both hide and feign disparities."
        )
    return (
        f"Whose judgement the groups are: {judgement or 'not recorded'}. Where others judged how "
        "people look, that need not be how they describe themselves."
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def worst_text(verdict: Verdict) -> str:
    """Say the worst group and how firmly the bootstrap holds it to be that."""
    if verdict.worst is None:
        return ""
    value = with_unit(verdict.worst.estimate.value, verdict.line.unit)
    same = verdict.spread.worst == verdict.worst.group
    firm = verdict.spread.worst_share if same else None
    extreme = "lowest" if verdict.line.direction == "none" else "worst"
    held = f", the {extreme} in {share(firm)} of replicates" if firm is not None else ""
    return f"{verdict.worst.group} ({value}{held})"
