"""A published dataset's documents: data card, datasheet and CrowdWorkSheets.

An answer from the project cites the journal; one from the user cites the file of facts. A question
without an answer is shown as not stated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.cards import Card, CardColumn, CardFact, CardFacts, CardSection, CardTable
from isolux.core import citations
from isolux.core.info import Reference
from isolux_curate.api.release.project_facts import ProjectFacts, parse_journal_details
from isolux_curate.api.release.questions import (
    CROWD_WORK_SHEETS,
    CROWDWORKSHEETS_QUESTIONS,
    DATA_CARD_QUESTIONS,
    DATA_CARDS,
    DATASHEET_QUESTIONS,
    QUESTIONS,
)

_PROJECT_SOURCE = "the project's journal and tables"
_STATEMENT = (
    "Written by isolux curate publish from the project in which the dataset was built. What the"
    " project does not know and its makers did not state is marked as not stated."
)


@dataclass(frozen=True, slots=True)
class Release:
    """The numbers and texts of a release.

    In the order of the fields: the dataset's name and its terms as a sentence; numbers of people in
    photos, photos and subjects; unpublished photos by reason; people by split; the source of labels
    by attribute; the composition; attributes published as counts only; the number of suppressed
    groups; the smallest published count; numbers of redacted photos and of answers; people with
    several top values by scale; people in photos without a subject.
    """

    name: str
    terms: str
    n_people: int
    n_photos: int
    n_subjects: int
    excluded_counts: Mapping[str, int]
    splits: Mapping[str, int]
    attributes: Mapping[str, str]
    composition: pl.DataFrame
    aggregate: tuple[str, ...]
    n_hidden_groups: int
    min_people: int
    n_redacted: int
    n_answers: int
    tied: Mapping[str, int] = field(default_factory=dict)
    n_without_subject: int = 0


def build_datasheet(release: Release, project_facts: ProjectFacts, facts: CardFacts) -> Card:
    """Build a datasheet, after Gebru et al. (2021)."""
    known_answers = _answer_datasheet_from_project(release, project_facts)
    sections = [
        CardSection(
            title, _answer_from_user_and_project("datasheet_", questions, known_answers, facts)
        )
        for title, questions in DATASHEET_QUESTIONS.items()
    ]
    sections.insert(2, CardSection("Where photos left", (_build_funnel_table(project_facts),)))
    return _build_card_with_sources(
        "datasheet", "Datasheet", release, sections, (citations.DATASHEETS,), facts
    )


def build_crowdworksheets(release: Release, project_facts: ProjectFacts, facts: CardFacts) -> Card:
    """Build CrowdWorkSheets, after Díaz et al. (2022)."""
    known_answers = _answer_crowdworksheets_from_project(release, project_facts)
    sections = [
        CardSection(title, _answer_from_user_and_project("crowd_", questions, known_answers, facts))
        for title, questions in CROWDWORKSHEETS_QUESTIONS.items()
    ]
    if project_facts.stages.height:
        sections.append(
            CardSection(
                "Stages of annotation",
                (_convert_frame_to_card_table("Stages", project_facts.stages),),
            )
        )
    if project_facts.regions.height:
        sections.append(
            CardSection(
                "Annotators by region",
                (_convert_frame_to_card_table("Regions", project_facts.regions),),
            )
        )
    return _build_card_with_sources(
        "crowdworksheets", "CrowdWorkSheets", release, sections, (CROWD_WORK_SHEETS,), facts
    )


def build_data_card(release: Release, project_facts: ProjectFacts, facts: CardFacts) -> Card:
    """Build a data card with the fields of FACET's."""
    snapshot = (
        f"{release.n_photos:,} photos",
        f"annotations of {release.n_people:,} people in photos",
        f"{release.n_subjects:,} subjects",
        *(f"split {name}: {n:,} people in photos" for name, n in release.splits.items()),
        *([_describe_people_without_subject(release)] if release.n_without_subject else []),
    )
    attributes = tuple(
        f"{name} ({label_source})" for name, label_source in release.attributes.items()
    )
    entries = (
        _build_project_answer("licence and terms of use", (release.terms,)),
        _build_project_answer("data snapshot", snapshot),
        _build_project_answer("annotations", attributes),
        _build_project_answer("published as counts alone", release.aggregate),
        _build_project_answer(
            "annotation format",
            (
                (
                    "people.csv has one row per person in a photo; answers.csv has one row per "
                    "annotator's answer; objects.json has boxes and masks in COCO format."
                ),
            ),
        ),
    )
    sections = [
        CardSection(
            "Overview", _answer_from_user_and_project("card_", DATA_CARD_QUESTIONS, {}, facts)
        ),
        CardSection("Data", tuple(entry for entry in entries if entry.texts)),
        CardSection("Who is in it", (_build_composition_table(release),)),
        CardSection("Where photos left", (_build_funnel_table(project_facts),)),
    ]
    return _build_card_with_sources(
        "data_card",
        "Data card",
        release,
        sections,
        (DATA_CARDS, citations.FACET.with_location("B")),
        facts,
    )


def _answer_from_user_and_project(
    prefix: str,
    questions: Sequence[tuple[str, str]],
    known_answers: Mapping[str, Sequence[str]],
    facts: CardFacts,
) -> tuple[CardFact, ...]:
    """Answer each question from the user's facts and the project; else it is a missing fact."""
    answers: list[CardFact] = []
    for key, label in questions:
        stated = facts.stated_fact(QUESTIONS[prefix + key])
        texts = tuple(known_answers.get(key, ()))
        if stated.texts or not texts:
            answers.append(stated)
        if texts:
            answers.append(_build_project_answer(label, texts))
    return tuple(answers)


def _build_project_answer(label: str, texts: Sequence[str]) -> CardFact:
    return CardFact(label, tuple(texts), _PROJECT_SOURCE)


def _build_card_with_sources(
    card_kind: str,
    title: str,
    release: Release,
    sections: Sequence[CardSection],
    references: Sequence[Reference],
    facts: CardFacts,
) -> Card:
    sources = ["The project's journal, whose rows are chained and signed, and its tables."]
    if facts.origin:
        sources.append(f"Facts {facts.origin}: SHA-256 begins {facts.sha256[:12]}.")
    cited = tuple(
        (" ".join(filter(None, (work.citation, work.location))), work.url) for work in references
    )
    answer = f"{release.n_photos:,} photos of {release.n_subjects:,} subjects. {release.terms}"
    return Card(
        card_kind,
        f"{title}: {release.name}",
        _STATEMENT,
        answer,
        (),
        tuple(sections),
        cited,
        tuple(sources),
    )


def _answer_datasheet_from_project(
    release: Release, project_facts: ProjectFacts
) -> dict[str, Sequence[str]]:
    """Answer a datasheet's questions from the project."""
    n_arrived = int(project_facts.funnel["remain"][0])
    exclusion_texts = [
        (f"{n:,} photos that are kept are not published: {reason}.")
        for reason, n in release.excluded_counts.items()
    ]
    rules = [
        f"{row['rule']}: {_format_rule_settings(row['said'])}"
        for row in project_facts.journal.filter(pl.col("step").is_in(_INTAKE_STEPS)).iter_rows(
            named=True
        )
    ]
    dates = [*project_facts.journal["first"], *project_facts.journal["last"]]
    consent = [
        f"{person_kind}, {scope}: granted by"
        f" {_format_count_hiding_small(granted, release.min_people)}, revoked by"
        f" {_format_count_hiding_small(revoked, release.min_people)}"
        for person_kind, scope, granted, revoked in project_facts.consent.iter_rows()
        if granted or revoked
    ]
    hidden = (
        [
            (
                f"{release.n_hidden_groups:,} groups are not told: fewer than {release.min_people}"
                " people, or they would give such a group away."
            )
        ]
        if release.n_hidden_groups
        else []
    )
    redacted = f"In {release.n_redacted:,} photos regions were filled in."
    return {
        "instances": ["A row of people.csv is a person in a photo."],
        "count": [
            f"{release.n_photos:,} photos",
            f"{release.n_people:,} people in photos",
            f"{release.n_subjects:,} subjects",
        ],
        "population": [
            f"{n_arrived:,} photos came in; {release.n_photos:,} are published.",
            *exclusion_texts,
        ],
        "instance_data": [
            "A photo without metadata; a box where one was drawn; attributes: "
            + (", ".join(release.attributes) or "none")
            + "."
        ],
        "labels": [f"{name}: {label_source}" for name, label_source in release.attributes.items()],
        "missing": [_describe_people_without_subject(release)] if release.n_without_subject else [],
        "relations": [
            (
                "subject_id and image_id say which rows are of one person, and of one photo;"
                " rows of one cluster_id are of people who share photos. All are"
                " pseudonyms."
            )
        ],
        "splits": [f"{name}: {n:,} people in photos" for name, n in release.splits.items()]
        + ["No subject is in two splits, and nobody who shares a photo with one."],
        "subpopulations": [*_format_group_counts_by_attribute(release), *hidden],
        "sensitive": [f"Published as counts alone: {', '.join(release.aggregate)}."]
        if release.aggregate
        else [],
        "acquired": [f"Sent in by subjects, {n_arrived:,} photos."],
        "mechanisms": [f"Rule of intake {rule_text}" for rule_text in rules],
        "timeframe": [f"The journal runs from {min(dates)} to {max(dates)}."] if dates else [],
        "consented": ["A signed ledger of consent; by kind of person and scope:", *consent]
        if consent
        else [],
        "revocation": [
            (
                "Revocations are rows of the ledger; `isolux withdraw` takes a person out"
                " of the dataset."
            )
        ],
        "processed": [
            "Exif and other metadata were cut out of every photo.",
            *([redacted] if release.n_redacted else []),
            *_describe_samples_estimates_and_agreement(project_facts),
        ],
        "software": ["isolux"],
        "licence": [release.terms],
    }


_INTAKE_STEPS = ("specifications", "people", "consent", "series")


def _answer_crowdworksheets_from_project(
    release: Release, project_facts: ProjectFacts
) -> dict[str, Sequence[str]]:
    from isolux_curate.annotation.stages import STAGES

    used_stages = [s for s in STAGES.values() if s.name in project_facts.stages["stage"].to_list()]
    trained = [
        f"{stage}: {n_graduated:,} of {n_tried:,} annotators graduated from golden tasks"
        for stage, n_tried, n_graduated in project_facts.passes.iter_rows()
    ]
    multi_annotator_stages = [s.name for s in used_stages if s.n_annotators > 1]
    known_answers: dict[str, Sequence[str]] = {
        "instructions": [f"{s.title}: {s.instruction}" for s in used_stages],
        "selection": trained,
        "pool": [f"{project_facts.annotators:,} annotators gave answers that stand."]
        if project_facts.annotators
        else [],
        "quality": [*trained, *_describe_samples_estimates_and_agreement(project_facts)],
        "responses": [
            "A published attribute is the answer of more than half of the annotators; every "
            f"single answer is in answers.csv ({release.n_answers:,} rows)"
            + (
                f"; several annotators were asked in {', '.join(multi_annotator_stages)}."
                if multi_annotator_stages
                else "."
            ),
            *_describe_tied_scales(release),
        ]
        if release.n_answers
        else [],
        "limits": [release.terms],
        "withdrawal": [
            (
                "Annotators have their own rows in the consent ledger: the answers of "
                "those who revoke are left out."
            )
        ],
    }
    return known_answers


def _describe_people_without_subject(release: Release) -> str:
    return (
        f"{release.n_without_subject:,} of {release.n_people:,} people in photos have no"
        " subject_id: several "
        "subjects are in their photo, and annotators were not asked which is which. The number of "
        "these people is not known, and no count of people includes them; intervals go by "
        "cluster_id."
    )


def _describe_tied_scales(release: Release) -> list[str]:
    """Describe how scales became one value, and for how many people the tie rule decided."""
    return [
        f"{name} is the value with the most marks of those that more than half gave; of"
        f" {_format_count_hiding_small(n, release.min_people)} people in photos several had as"
        " many: the middle one, of two"
        f" the lower. {name}_marks has every mark."
        for name, n in release.tied.items()
    ]


def _describe_samples_estimates_and_agreement(project_facts: ProjectFacts) -> list[str]:
    """Describe the samples, estimates and agreement recorded in the journal."""
    sentences: list[str] = []
    for row in project_facts.journal.iter_rows(named=True):
        details = parse_journal_details(row["said"])
        sample = details.get("sample")
        if row["rule"].startswith("sample of "):
            sentences.append(
                f"{row['rule']}: {details['drawn']:,} of {details['population']:,} were drawn for"
                " review"
            )
        elif row["rule"].endswith(": estimate") and isinstance(sample, Mapping):
            sentences.append(
                f"{row['rule'].removesuffix(': estimate')}: {sample['found']:,} of"
                f" {sample['reviewed']:,} reviewed, of {sample['population']:,};"
                f" {100 * sample['share']:.1f} % [{100 * sample['low']:.1f},"
                f" {100 * sample['high']:.1f}] ({sample['method']})"
            )
        elif row["rule"].startswith("agreement of "):
            sentences.append(
                f"{row['rule']} with specialists: {_format_metric_with_interval(details)}"
            )
    return sentences


def _format_metric_with_interval(journal_details: Mapping[str, Any]) -> str:
    numbers = [journal_details.get(name) for name in ("value", "low", "high")]
    texts = [f"{n:.3f}" if n is not None else "not judged" for n in numbers]
    interval = f"{journal_details.get('metric')} {texts[0]} [{texts[1]}, {texts[2]}]"
    return f"{interval}, {journal_details.get('units'):,} units"


def _format_count_hiding_small(n_people: int, min_people: int) -> str:
    """Format a count of people; small counts are suppressed."""
    return (
        f"{n_people:,}" if n_people == 0 or n_people >= min_people else f"fewer than {min_people}"
    )


def _format_rule_settings(journal_details_json: str) -> str:
    """Format a rule's settings; its counts in the journal still count who withdrew since."""
    details = parse_journal_details(journal_details_json)
    setting_values = {k: v for k, v in details.items() if k not in ("looked_at", "out")}
    return ", ".join(f"{k} {v}" for k, v in setting_values.items()) or "no settings"


def _format_group_counts_by_attribute(release: Release) -> list[str]:
    own_rows = release.composition.filter(dataset=release.name)
    single = own_rows.filter(~pl.col("attribute").str.contains("*", literal=True))
    return [
        f"{name}: "
        + ", ".join(f"{g} ({n:,})" for g, n in attribute_rows.select("group", "people").iter_rows())
        for (name,), attribute_rows in single.group_by("attribute", maintain_order=True)
    ]


def _build_composition_table(release: Release) -> CardTable:
    single_attributes = release.composition.filter(
        ~pl.col("attribute").str.contains("*", literal=True)
    )
    cells = [
        (f"{d}: {a}", g, "" if n is None else f"{n:,}", "" if s is None else f"{100 * s:.1f}")
        for d, a, g, n, s in single_attributes.iter_rows()
    ]
    columns = (
        CardColumn("dataset: attribute"),
        CardColumn("group"),
        CardColumn("people", number=True),
        CardColumn("share, %", number=True),
    )
    note = f"People with a subject_id, each once; no group of fewer than {release.min_people}."
    return CardTable("People by group", columns, tuple(cells), "composition.csv", (note,))


def _build_funnel_table(project_facts: ProjectFacts) -> CardTable:
    return _convert_frame_to_card_table("Photos", project_facts.funnel)


def _convert_frame_to_card_table(caption: str, frame: pl.DataFrame) -> CardTable:
    columns = tuple(CardColumn(c, number=dtype.is_numeric()) for c, dtype in frame.schema.items())
    rows = tuple(
        tuple(f"{v:,}" if isinstance(v, int) else str(v) for v in row) for row in frame.iter_rows()
    )
    return CardTable(caption, columns, rows, _PROJECT_SOURCE)
