"""The questions of a dataset's documents: datasheet, CrowdWorkSheets and FACET's data card.

Each question is a key of the file of facts. Some are answered from the project's journal; a
question without an answer is listed as not stated.
"""

from __future__ import annotations

from isolux.core.info import FactField, Reference

CROWD_WORK_SHEETS = Reference(
    "crowdworksheets",
    "Díaz, M., Kivlichan, I., Rosen, R., Baker, D., Amironesei, R., Prabhakaran, V., & Denton, E. "
    "(2022). CrowdWorkSheets: Accounting for individual and collective identities underlying "
    "crowdsourced dataset annotation. FAccT '22, 2342–2351.",
    url="https://doi.org/10.1145/3531146.3534647",
)
DATA_CARDS = Reference(
    "data-cards",
    "Pushkarna, M., Zaldivar, A., & Kjartansson, O. (2022). Data cards: purposeful and "
    "transparent dataset documentation for responsible AI. FAccT '22, 1776–1826.",
    url="https://doi.org/10.1145/3531146.3533231",
)

DATASHEET_QUESTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "Motivation": (
        ("purpose", "for what purpose it was made"),
        ("creators", "who made it, on whose behalf"),
        ("funding", "who paid for it"),
    ),
    "Composition": (
        ("instances", "what a row stands for"),
        ("count", "how many there are of each type"),
        ("population", "whether it is all there is, or a sample, and of what"),
        ("instance_data", "what data each row consists of"),
        ("labels", "which labels or targets there are"),
        ("missing", "what is missing of single rows, and why"),
        ("relations", "relations between rows"),
        ("splits", "recommended splits"),
        ("errors", "errors, noise and redundancies"),
        ("self_contained", "whether it rests on sources elsewhere"),
        ("confidential", "data that may be confidential"),
        ("offensive", "content that may offend or frighten"),
        ("subpopulations", "which groups of people it names, and how they are distributed"),
        ("identifiable", "whether people can be identified"),
        ("sensitive", "data that may be sensitive"),
    ),
    "Collection process": (
        ("acquired", "how the data were acquired"),
        ("mechanisms", "with what procedures, devices and programs"),
        ("sampling", "how it was sampled, if it is a sample"),
        ("collectors", "who collected it, and how they were paid"),
        ("timeframe", "over what time"),
        ("ethical_review", "ethical review"),
        ("source", "from the people themselves, or from others"),
        ("notified", "how people were told"),
        ("consented", "how people agreed"),
        ("revocation", "how people withdraw"),
        ("impact_analysis", "analyses of what it may do to the people in it"),
    ),
    "Preprocessing, cleaning and labelling": (
        ("processed", "what was cleaned, changed and labelled"),
        ("raw", "whether the raw data were kept"),
        ("software", "with what software"),
    ),
    "Uses": (
        ("used", "for what it was used"),
        ("repository", "where its uses are listed"),
        ("other_uses", "for what else it could be used"),
        ("risks", "what of its making may affect later uses"),
        ("not_for", "for what it should not be used"),
    ),
    "Distribution": (
        ("third_parties", "whether others receive it"),
        ("how", "how it is distributed"),
        ("when", "when it is distributed"),
        ("licence", "under which licence and terms"),
        ("restrictions", "restrictions of third parties"),
        ("export", "export controls and other regulation"),
    ),
    "Maintenance": (
        ("maintainer", "who maintains it"),
        ("contact", "how the maintainer is reached"),
        ("erratum", "errata"),
        ("updates", "whether and how it is updated"),
        ("retention", "limits on how long data about people are kept"),
        ("older", "what happens to older versions"),
        ("contribute", "how others can extend it"),
    ),
}
"""Gebru et al. (2021), in their order; keys have ``datasheet_`` before them."""

CROWDWORKSHEETS_QUESTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "Task formulation": (
        ("subjective", "what is subjective in the tasks"),
        ("assumptions", "what is assumed of annotators"),
        ("wording", "how the wording of instructions was chosen and checked"),
        ("instructions", "the instructions that annotators were given"),
    ),
    "Selecting annotators": (
        ("privileged", "perspectives that should be privileged"),
        ("harmful", "perspectives that would be harmful to include"),
        ("selection", "whether annotators were selected by who they are, or what they can"),
        ("pool", "who the annotators are, in aggregate"),
        ("communities", "whether those concerned are among the annotators"),
    ),
    "Platform and infrastructure": (
        ("platform", "the platform, and why it was chosen"),
        ("communication", "channels between annotators and curators"),
        ("pay", "what annotators were paid"),
    ),
    "Analysis and evaluation": (
        ("quality", "what quality is here, and how it was assessed"),
        ("disagreement", "analyses of disagreement"),
        ("responses", "how single answers relate to published labels"),
    ),
    "Release and maintenance": (
        ("change", "whether annotations may change"),
        ("conditions", "what could make the dataset less useful"),
        ("limits", "how its use is tracked or limited"),
        ("informed", "whether annotators know how the data are used"),
        ("withdrawal", "how annotators withdraw"),
    ),
}
"""Díaz et al. (2022), as FACET's appendix C answers them; keys have ``crowd_`` before them."""

DATA_CARD_QUESTIONS: tuple[tuple[str, str], ...] = (
    ("publisher", "the publisher"),
    ("authors", "the authors"),
    ("contact", "how to reach them"),
    ("funding", "funding, and its type"),
    ("purpose", "what it is for"),
    ("application", "key applications"),
    ("motivation", "primary motivations"),
    ("audience", "for whom it is meant"),
    ("suitable", "suitable uses"),
)
"""FACET's data card, appendix B; keys have ``card_`` before them."""


def _list_document_questions() -> dict[str, FactField]:
    questions = [
        *(
            ("datasheet_" + key, text)
            for section_questions in DATASHEET_QUESTIONS.values()
            for key, text in section_questions
        ),
        *(
            ("crowd_" + key, text)
            for section_questions in CROWDWORKSHEETS_QUESTIONS.values()
            for key, text in section_questions
        ),
        *(("card_" + key, text) for key, text in DATA_CARD_QUESTIONS),
    ]
    return {key: FactField(key, text) for key, text in questions}


QUESTIONS = _list_document_questions()
"""Every question, by its key in the file of facts."""
