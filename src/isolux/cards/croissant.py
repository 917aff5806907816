"""Croissant metadata of the audited data, with the vocabulary for responsible AI.

The JSON-LD is made by ``mlcroissant``, read back and validated by it: Croissant 1.0 with Croissant
RAI 1.0. Who is in the data stands there as a record set of counts by group; the files are named
with their hashes, their contents are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from isolux.cards._content import Content
from isolux.cards._croissant import ASKS, CONFORMS, croissant_json, day_of, rai_of, type_of
from isolux.cards._document import Bullets, Card, Part
from isolux.cards._facts import Facts
from isolux.cards._source import Source
from isolux.vocabulary.info import CardInfo, Reference

INFO = CardInfo(
    title="Croissant metadata",
    summary="Croissant metadata of the audited data, with counts by group and the RAI vocabulary.",
    references=(
        Reference(
            "croissant",
            "MLCommons (2024). Croissant Format Specification, version 1.0.",
            "",
            "https://docs.mlcommons.org/croissant/docs/croissant-spec.html",
        ),
        Reference(
            "croissant-rai",
            "MLCommons (2024). Croissant RAI Specification, version 1.0.",
            "",
            "https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html",
        ),
    ),
    asks=tuple(ASKS.values()),
    statement=(
        "This metadata describes the people whom one audit judged. Properties that neither the "
        "run nor the user states are left out of the JSON and named here."
    ),
)

_MAX_FILES, _MAX_ROWS = 100, 2_000


def card(source: Source, facts: Facts) -> Card:
    """Fill the metadata.

    Parameters
    ----------
    source : Source
        A finished run.
    facts : Facts
        What the user says.

    Returns
    -------
    Card
        ``.json()`` is the JSON-LD, as ``mlcroissant`` validated it.

    Raises
    ------
    SpecError
        ``mlcroissant`` is not installed, or refuses what was stated (a day, a name).

    Examples
    --------
    >>> INFO.references[0].key
    'croissant'
    """
    content = Content("croissant", source, facts)
    lists = (
        ("Values that are not known", "rai:dataCollectionMissingData", content.unknown_values()),
        ("Attributes of people", "rai:personalSensitiveInformation", content.sensitive()),
    )
    bullets = [(title, cites, Bullets(tuple(texts))) for title, cites, texts in lists]
    return content.card(
        Part("Who is in the data", tuple(content.people_tables()), "record set people_judged"),
        *(
            Part(title, (bullet_list,), cites)
            for title, cites, bullet_list in bullets
            if bullet_list.texts
        ),
        Part("What was stated", content.said(*(key for key in ASKS if key != "consent"))),
        data=croissant_json(lambda mlc: _describe(content, mlc)),
        of_data=True,
    )


def _describe(content: Content, mlc: Any) -> dict[str, Any]:
    facts, licence = content.facts, content.stated_licence
    creators = [
        maker(name=name)
        for maker, key in ((mlc.Person, "persons"), (mlc.Organization, "organisations"))
        for name in facts.texts.get(f"dataset_{key}", ())
    ]
    return {
        "name": content.data_name or "data",
        "description": facts.text("dataset_description"),
        "url": facts.text("dataset_url"),
        "license": [licence] if licence else None,
        "cite_as": facts.text("dataset_citation"),
        "version": facts.text("dataset_version"),
        "date_published": day_of(facts.text("dataset_published")),
        "creators": creators,
        "distribution": list(_files(content, mlc)),
        "record_sets": [_counts(content, mlc)] if content.summary.sections else [],
        "data_biases": [*facts.texts.get("dataset_biases", ()), *content.representation()],
        "data_limitations": list(facts.texts.get("known_limitations", ())),
        "data_collection_missing_data": " ".join(content.unknown_values()),
        "personal_sensitive_information": [
            *facts.texts.get("sensitive_information", ()),
            *content.sensitive(),
        ],
        "conforms_to": CONFORMS,
        **rai_of(facts),
    }


def _files(content: Content, mlc: Any) -> Iterator[Any]:
    """Name the files that were read, by the last part of their paths, with their hashes."""
    used_names: set[str] = set()
    for input_file in content.summary.inputs[:_MAX_FILES]:
        path = PurePath(input_file.path)
        name = path.name
        while name in used_names:
            name = f"{len(used_names)}-{path.name}"
        used_names.add(name)
        yield mlc.FileObject(
            id=re.sub(r"[^\w.-]+", "_", name),
            name=name,
            content_url=path.name,
            encoding_formats=[type_of(path.name)],
            sha256=input_file.sha256,
        )


def _counts(content: Content, mlc: Any) -> Any:
    text_type, integer_type = mlc.DataType.TEXT, mlc.DataType.INTEGER
    types = {
        "attribute": text_type,
        "group": text_type,
        "n_units": integer_type,
        "n_clusters": integer_type,
    }
    rows = [
        dict(
            zip(
                (f"people_judged/{name}" for name in types),
                (section.attribute, row.group, row.estimate.n_units, row.estimate.n_clusters),
                strict=True,
            )
        )
        for section in content.summary.sections
        for row in section.main.rows
    ]
    fields = [
        mlc.Field(id=f"people_judged/{name}", name=name, data_types=data_type)
        for name, data_type in types.items()
    ]
    return mlc.RecordSet(
        id="people_judged",
        name="people_judged",
        description="How many people of each group one audit judged.",
        fields=fields,
        data=rows[:_MAX_ROWS],
    )
