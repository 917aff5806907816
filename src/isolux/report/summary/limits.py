"""What an audit cannot say, for each run in particular.

Wording follows fairlearn's guide for contributors: an audit measures disparities, it never
certifies their absence, and says whose labels it used.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux import derive
from isolux.report.document import AttributeSection, Audited
from isolux.report.wording import listed
from isolux.statements.numbers import count
from isolux.vocabulary.words import brief

MEASURES = (
    "It measures the disparities it was asked to look at, on these people, with these labels. "
    "Other people, other images and other uses of the model may differ."
)
NOT_FOUND = (
    "“No difference found” means that this much data did not show one. It is not evidence that "
    "there is none; the intervals say which differences cannot be ruled out."
)
WHOLE = (
    "The whole population was drawn, so its values are known and not estimated. They say nothing "
    "about other people, or about this population at another time."
)
NO_CAUSE = (
    "It describes where scores differ. It does not say why, whether the labels, the images, the "
    "model or the sampling is the cause, or what harm follows in use."
)
COARSE = "Group names are the dataset’s. They are coarse, and people within one group differ."
_JUDGED = {
    "perceived": "The groups are as perceived by annotators: how people look to others, which may "
    "differ from how they describe themselves.",
    "self-reported": "The groups are self-reported, from the choices that people were given.",
    "inferred": "The groups were inferred by a model, whose own errors may differ between groups "
    "and can both hide disparities and create apparent ones.",
}
_TITLE = 100  # characters of an attribute's title in a sentence


def limits_of(audited: Audited, sections: Sequence[AttributeSection]) -> tuple[str, ...]:
    """List what the audit cannot say, for this run in particular."""
    asked = listed([brief(s.title, _TITLE) for s in sections])
    looked = (
        "A model may work differently for people along lines that were not recorded."
        if not sections
        else f"It looked at these attributes and no others: {asked}. A model may work differently "
        "for people along lines that were not recorded."
    )
    none = WHOLE if audited.census else NOT_FOUND
    told = [MEASURES, looked, none, NO_CAUSE, _whose_labels(audited, sections), COARSE]
    small = sum(s.verdict.n_groups - s.verdict.n_judged for s in sections)
    if small:
        told.append(
            f"{count(small)} group{'s' if small > 1 else ''} had too little data to judge. These "
            "may be the people for whom the model does worst; their absence here is not good news."
        )
    if audited.cluster is None:
        told.append(f"Rows were taken as independent. {independence_text(audited)}")
    if audited.correction != "none" and sections:
        told.append(
            "P-values are adjusted for everything that this audit compared, and for the "
            "explanations that were requested with it. They do not cover a second audit of the "
            "same people (other attributes, another seed) or a comparison of two models."
        )
    if any(s.verdict.outcome == "differ" for s in sections):
        told.append(
            "The pairs that it names were chosen because they are farthest apart, so their gaps "
            "are probably overstated; another sample would probably show smaller ones."
        )
    told.append("It is a measurement with uncertainty, not a certificate of any kind.")
    return tuple(told)


def _whose_labels(audited: Audited, sections: Sequence[AttributeSection]) -> str:
    """Say who judged the groups; what is computed from boxes and pictures nobody judged."""
    judgement = audited.judgement.strip()
    text = _JUDGED.get(judgement)
    if text is None:
        return (
            f"Who assigned the groups: {judgement or 'not recorded'}. If others judged how people "
            "look, that may differ from how they describe themselves."
        )
    computed = [s.title for s in sections if s.title.replace(" ", "_") in derive.names()]
    if not computed:
        return text
    if len(computed) == len([s for s in sections if not s.is_intersection]):
        return f"Nobody judged the groups: {listed(computed)} was computed from boxes or pictures."
    return f"{text} Not so {listed(computed)}, computed from boxes or pictures."


def independence_text(audited: Audited) -> str:
    """Say why rows were taken as independent, and what would tell which belong together."""
    if audited.task == "counts":
        return (
            "Counts do not identify people: if cases share people or pictures, intervals are too "
            "narrow and p-values too small."
        )
    if audited.task == "face_verification":
        return (
            "Nothing says which pairs share a person; columns subject_a and subject_b, or ids of "
            "pictures, would. If pairs share people, intervals are too narrow and p-values too "
            "small."
        )
    return (
        "No cluster column was named. If several rows show one person or come from one photograph, "
        "name it with --cluster: intervals would then be wider."
    )
