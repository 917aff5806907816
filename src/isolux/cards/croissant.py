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

from isolux.cards._content import CardContent
from isolux.cards._croissant import (
    CONFORMS_TO,
    DATASET_FACTS,
    build_rai_properties,
    build_validated_croissant_json,
    guess_media_type,
    parse_date_or_none,
)
from isolux.cards._document import Bullets, Card, CardSection
from isolux.cards._facts import CardFacts
from isolux.cards._run_source import RunSource
from isolux.core.info import CardInfo, Reference

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
    facts=tuple(DATASET_FACTS.values()),
    statement=(
        "This metadata describes the people whom one audit judged. Properties that neither the "
        "run nor the user states are left out of the JSON and named here."
    ),
)

_MAX_FILES, _MAX_ROWS = 100, 2_000


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill the metadata.

    Parameters
    ----------
    source : RunSource
        A finished run.
    facts : CardFacts
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
    content = CardContent("croissant", source, facts)
    lists = (
        (
            "Values that are not known",
            "rai:dataCollectionMissingData",
            content.describe_unknown_values(),
        ),
        (
            "Attributes of people",
            "rai:personalSensitiveInformation",
            content.describe_sensitive_attributes(),
        ),
    )
    bullets = [(title, cites, Bullets(tuple(texts))) for title, cites, texts in lists]
    return content.build_card(
        CardSection(
            "Who is in the data",
            tuple(content.build_people_count_tables()),
            "record set people_judged",
        ),
        *(
            CardSection(title, (bullet_list,), cites)
            for title, cites, bullet_list in bullets
            if bullet_list.texts
        ),
        CardSection(
            "What was stated",
            content.stated_facts(*(key for key in DATASET_FACTS if key != "consent")),
        ),
        data=build_validated_croissant_json(lambda mlc: _build_croissant_metadata(content, mlc)),
        of_data=True,
    )


def _build_croissant_metadata(content: CardContent, mlc: Any) -> dict[str, Any]:
    facts, licence = content.facts, content.stated_licence
    creators = [
        maker(name=name)
        for maker, key in ((mlc.Person, "persons"), (mlc.Organization, "organisations"))
        for name in facts.texts.get(f"dataset_{key}", ())
    ]
    return {
        "name": content.data_name or "data",
        "description": facts.joined_text("dataset_description"),
        "url": facts.joined_text("dataset_url"),
        "license": [licence] if licence else None,
        "cite_as": facts.joined_text("dataset_citation"),
        "version": facts.joined_text("dataset_version"),
        "date_published": parse_date_or_none(facts.joined_text("dataset_published")),
        "creators": creators,
        "distribution": list(_build_file_objects(content, mlc)),
        "record_sets": [_build_count_record_set(content, mlc)] if content.summary.sections else [],
        "data_biases": [
            *facts.texts.get("dataset_biases", ()),
            *content.describe_representation(),
        ],
        "data_limitations": list(facts.texts.get("known_limitations", ())),
        "data_collection_missing_data": " ".join(content.describe_unknown_values()),
        "personal_sensitive_information": [
            *facts.texts.get("sensitive_information", ()),
            *content.describe_sensitive_attributes(),
        ],
        "conforms_to": CONFORMS_TO,
        **build_rai_properties(facts),
    }


def _build_file_objects(content: CardContent, mlc: Any) -> Iterator[Any]:
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
            encoding_formats=[guess_media_type(path.name)],
            sha256=input_file.sha256,
        )


def _build_count_record_set(content: CardContent, mlc: Any) -> Any:
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
