"""A published dataset's papers: data card, datasheet and CrowdWorkSheets, from its journal.

An answer of the project names the journal; one of the user names the file of facts. A question that
neither answers stays a blank. Nothing is invented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.cards import Card, Column, Facts, Part, Said, Table
from isolux.vocabulary import works
from isolux.vocabulary.info import Reference
from isolux_curate.verbs.release.asks import ALL, CARD, CROWD, CROWD_WORK_SHEETS, DATA_CARDS, SHEET
from isolux_curate.verbs.release.told import Told, settings_of

_PROJECT = "the project's journal and tables"
_STATEMENT = (
    "Written by isolux curate publish from the project in which the dataset was built. What the"
    " project does not know and its makers did not state is marked as not stated."
)


@dataclass(frozen=True, slots=True)
class Release:
    """What is published, in numbers and words.

    ``name``; ``terms`` in words; ``people, photos, subjects``; ``left``: photos that stand and are
    not published, by reason; ``splits``: people by split; ``attributes``: judgement by name;
    ``composition``; ``aggregate``: attributes published as counts alone; ``hidden``: groups that
    the composition does not tell; ``least``; ``tied``: of a scale, people of whom several values
    had the most marks; ``nameless``: people in photos of whom it is not known which subject they
    are.
    """

    name: str
    terms: str
    people: int
    photos: int
    subjects: int
    left: Mapping[str, int]
    splits: Mapping[str, int]
    attributes: Mapping[str, str]
    composition: pl.DataFrame
    aggregate: tuple[str, ...]
    hidden: int
    least: int
    redacted: int
    answers: int
    tied: Mapping[str, int] = field(default_factory=dict)
    nameless: int = 0


def datasheet(release: Release, told: Told, facts: Facts) -> Card:
    """Write a datasheet, after Gebru et al. (2021)."""
    known = _known(release, told)
    parts = [
        Part(title, _answers("datasheet_", asked, known, facts)) for title, asked in SHEET.items()
    ]
    parts.insert(2, Part("Where photos left", (_funnel(told),)))
    return _card("datasheet", "Datasheet", release, parts, (works.DATASHEETS,), facts)


def crowd_work_sheets(release: Release, told: Told, facts: Facts) -> Card:
    """Write CrowdWorkSheets, after Díaz et al. (2022)."""
    known = _known_of_annotators(release, told)
    parts = [Part(title, _answers("crowd_", asked, known, facts)) for title, asked in CROWD.items()]
    if told.stages.height:
        parts.append(Part("Stages of annotation", (_table("Stages", told.stages),)))
    if told.regions.height:
        parts.append(Part("Annotators by region", (_table("Regions", told.regions),)))
    return _card("crowdworksheets", "CrowdWorkSheets", release, parts, (CROWD_WORK_SHEETS,), facts)


def data_card(release: Release, told: Told, facts: Facts) -> Card:
    """Write a data card, with the fields of FACET's."""
    snapshot = (
        f"{release.photos:,} photos",
        f"annotations of {release.people:,} people in photos",
        f"{release.subjects:,} subjects",
        *(f"split {name}: {n:,} people in photos" for name, n in release.splits.items()),
        *([_nameless(release)] if release.nameless else []),
    )
    attributes = tuple(f"{name} ({how})" for name, how in release.attributes.items())
    given = (
        _said("licence and terms of use", (release.terms,)),
        _said("data snapshot", snapshot),
        _said("annotations", attributes),
        _said("published as counts alone", release.aggregate),
        _said(
            "annotation format",
            (
                (
                    "people.csv has one row per person in a photo; answers.csv has one row per "
                    "annotator's answer; objects.json has boxes and masks in COCO format."
                ),
            ),
        ),
    )
    parts = [
        Part("Overview", _answers("card_", CARD, {}, facts)),
        Part("Data", tuple(one for one in given if one.texts)),
        Part("Who is in it", (_composition(release),)),
        Part("Where photos left", (_funnel(told),)),
    ]
    return _card("data_card", "Data card", release, parts, (DATA_CARDS, works.FACET.at("B")), facts)


def _answers(
    prefix: str, asked: Sequence[tuple[str, str]], known: Mapping[str, Sequence[str]], facts: Facts
) -> tuple[Said, ...]:
    """Answer each question: what the makers state, what the project knows, or the blank."""
    found: list[Said] = []
    for key, label in asked:
        stated = facts.said(ALL[prefix + key])
        texts = tuple(known.get(key, ()))
        if stated.texts or not texts:
            found.append(stated)
        if texts:
            found.append(_said(label, texts))
    return tuple(found)


def _said(label: str, texts: Sequence[str]) -> Said:
    return Said(label, tuple(texts), _PROJECT)


def _card(
    kind: str,
    title: str,
    release: Release,
    parts: Sequence[Part],
    follows: Sequence[Reference],
    facts: Facts,
) -> Card:
    sources = ["The project's journal, whose rows are chained and signed, and its tables."]
    if facts.origin:
        sources.append(f"Facts {facts.origin}: SHA-256 begins {facts.sha256[:12]}.")
    cited = tuple((" ".join(filter(None, (one.citation, one.place))), one.url) for one in follows)
    answer = f"{release.photos:,} photos of {release.subjects:,} subjects. {release.terms}"
    return Card(
        kind,
        f"{title}: {release.name}",
        _STATEMENT,
        answer,
        (),
        tuple(parts),
        cited,
        tuple(sources),
    )


def _known(release: Release, told: Told) -> dict[str, Sequence[str]]:
    """Answer a datasheet's questions as far as the project knows."""
    came = int(told.funnel["remain"][0])
    left = [
        (f"{n:,} photos that are kept are not published: {why}.") for why, n in release.left.items()
    ]
    rules = [
        f"{row['rule']}: {_settings(row['said'])}"
        for row in told.journal.filter(pl.col("step").is_in(_INTAKE)).iter_rows(named=True)
    ]
    days = [*told.journal["first"], *told.journal["last"]]
    consent = [
        f"{kind}, {scope}: granted by {_few(granted, release.least)}, revoked by"
        f" {_few(revoked, release.least)}"
        for kind, scope, granted, revoked in told.consent.iter_rows()
        if granted or revoked
    ]
    hidden = (
        [
            (
                f"{release.hidden:,} groups are not told: fewer than {release.least} people, or"
                " they would give such a group away."
            )
        ]
        if release.hidden
        else []
    )
    redacted = f"In {release.redacted:,} photos regions were filled in."
    return {
        "instances": ["A row of people.csv is a person in a photo."],
        "count": [
            f"{release.photos:,} photos",
            f"{release.people:,} people in photos",
            f"{release.subjects:,} subjects",
        ],
        "population": [f"{came:,} photos came in; {release.photos:,} are published.", *left],
        "instance_data": [
            "A photo without metadata; a box where one was drawn; attributes: "
            + (", ".join(release.attributes) or "none")
            + "."
        ],
        "labels": [f"{name}: {how}" for name, how in release.attributes.items()],
        "missing": [_nameless(release)] if release.nameless else [],
        "relations": [
            (
                "subject_id and image_id say which rows are of one person, and of one photo;"
                " rows of one cluster_id are of people who share photos. All are"
                " pseudonyms."
            )
        ],
        "splits": [f"{name}: {n:,} people in photos" for name, n in release.splits.items()]
        + ["No subject is in two splits, and nobody who shares a photo with one."],
        "subpopulations": [*_groups(release), *hidden],
        "sensitive": [f"Published as counts alone: {', '.join(release.aggregate)}."]
        if release.aggregate
        else [],
        "acquired": [f"Sent in by subjects, {came:,} photos."],
        "mechanisms": [f"Rule of intake {one}" for one in rules],
        "timeframe": [f"The journal runs from {min(days)} to {max(days)}."] if days else [],
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
            *([redacted] if release.redacted else []),
            *_reviews(told),
        ],
        "software": ["isolux"],
        "licence": [release.terms],
    }


_INTAKE = ("specifications", "people", "consent", "series")


def _known_of_annotators(release: Release, told: Told) -> dict[str, Sequence[str]]:
    from isolux_curate.annotation.stages import STAGES

    asked = [s for s in STAGES.values() if s.name in told.stages["stage"].to_list()]
    trained = [
        f"{stage}: {graduated:,} of {tried:,} annotators graduated from golden tasks"
        for stage, tried, graduated in told.passes.iter_rows()
    ]
    several = [s.name for s in asked if s.wanted > 1]
    known: dict[str, Sequence[str]] = {
        "instructions": [f"{s.title}: {s.instruction}" for s in asked],
        "selection": trained,
        "pool": [f"{told.annotators:,} annotators gave answers that stand."]
        if told.annotators
        else [],
        "quality": [*trained, *_reviews(told)],
        "responses": [
            "A published attribute is the answer of more than half of the annotators; every "
            f"single answer is in answers.csv ({release.answers:,} rows)"
            + (f"; several annotators were asked in {', '.join(several)}." if several else "."),
            *_tied(release),
        ]
        if release.answers
        else [],
        "limits": [release.terms],
        "withdrawal": [
            (
                "Annotators have their own rows in the consent ledger: the answers of "
                "those who revoke are left out."
            )
        ],
    }
    return known


def _nameless(release: Release) -> str:
    return (
        f"{release.nameless:,} of {release.people:,} people in photos have no subject_id: several "
        "subjects are in their photo, and annotators were not asked which is which. The number of "
        "these people is not known, and no count of people includes them; intervals go by "
        "cluster_id."
    )


def _tied(release: Release) -> list[str]:
    """Tell how scales became one value, and of how many it is a matter of the rule."""
    return [
        f"{name} is the value with the most marks of those that more than half gave; of"
        f" {_few(n, release.least)} people in photos several had as many: the middle one, of two"
        f" the lower. {name}_marks has every mark."
        for name, n in release.tied.items()
    ]


def _reviews(told: Told) -> list[str]:
    """Tell of samples, estimates and agreement that the journal has."""
    found: list[str] = []
    for row in told.journal.iter_rows(named=True):
        said = settings_of(row["said"])
        sample = said.get("sample")
        if row["rule"].startswith("sample of "):
            found.append(
                f"{row['rule']}: {said['drawn']:,} of {said['population']:,} were drawn for review"
            )
        elif row["rule"].endswith(": estimate") and isinstance(sample, Mapping):
            found.append(
                f"{row['rule'].removesuffix(': estimate')}: {sample['found']:,} of"
                f" {sample['reviewed']:,} reviewed, of {sample['population']:,};"
                f" {100 * sample['share']:.1f} % [{100 * sample['low']:.1f},"
                f" {100 * sample['high']:.1f}] ({sample['method']})"
            )
        elif row["rule"].startswith("agreement of "):
            found.append(f"{row['rule']} with specialists: {_interval(said)}")
    return found


def _interval(said: Mapping[str, Any]) -> str:
    numbers = [said.get(name) for name in ("value", "low", "high")]
    told = [f"{n:.3f}" if n is not None else "not judged" for n in numbers]
    return f"{said.get('metric')} {told[0]} [{told[1]}, {told[2]}], {said.get('units'):,} units"


def _few(n: int, least: int) -> str:
    """Count people; a few of them are not told."""
    return f"{n:,}" if n == 0 or n >= least else f"fewer than {least}"


def _settings(said: str) -> str:
    given = settings_of(said)
    rest = {k: v for k, v in given.items() if k not in ("looked_at", "out")}
    words = ", ".join(f"{k} {v}" for k, v in rest.items()) or "no settings"
    return f"{words}; {given.get('out', 0):,} of {given.get('looked_at', 0):,} photos refused"


def _groups(release: Release) -> list[str]:
    own = release.composition.filter(dataset=release.name)
    single = own.filter(~pl.col("attribute").str.contains("*", literal=True))
    return [
        f"{name}: "
        + ", ".join(f"{g} ({n:,})" for g, n in part.select("group", "people").iter_rows())
        for (name,), part in single.group_by("attribute", maintain_order=True)
    ]


def _composition(release: Release) -> Table:
    shown = release.composition.filter(~pl.col("attribute").str.contains("*", literal=True))
    cells = [
        (f"{d}: {a}", g, "" if n is None else f"{n:,}", "" if s is None else f"{100 * s:.1f}")
        for d, a, g, n, s in shown.iter_rows()
    ]
    columns = (
        Column("dataset: attribute"),
        Column("group"),
        Column("people", number=True),
        Column("share, %", number=True),
    )
    note = f"People with a subject_id, each once; no group of fewer than {release.least}."
    return Table("People by group", columns, tuple(cells), "composition.csv", (note,))


def _funnel(told: Told) -> Table:
    return _table("Photos", told.funnel)


def _table(caption: str, frame: pl.DataFrame) -> Table:
    columns = tuple(Column(c, number=kind.is_numeric()) for c, kind in frame.schema.items())
    rows = tuple(
        tuple(f"{v:,}" if isinstance(v, int) else str(v) for v in row) for row in frame.iter_rows()
    )
    return Table(caption, columns, rows, _PROJECT)
