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

from isolux.cards._croissant import CONFORMS, croissant_json, day_of, rai_of, type_of
from isolux.cards._data import (
    ASKS,
    data_name,
    licence_text,
    representation,
    sensitive,
    unknown_values,
)
from isolux.cards._document import Bullets, Card, Part
from isolux.cards._facts import Facts
from isolux.cards._measured import people_table
from isolux.cards._source import Source, card_of
from isolux.vocabulary.info import CardInfo, Reference

__all__ = ["INFO", "card"]

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

_MOST_FILES, _MOST_ROWS = 100, 2_000


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
    said = facts.answers_to(ASKS)
    data = croissant_json(lambda mlc: _described(source, facts, mlc))
    stated = [key for key in ASKS if key != "consent"]
    lists = [
        Part(title, (Bullets(texts),), cites)
        for title, texts, cites in (
            ("Values that are not known", tuple(unknown_values(source)),
             "rai:dataCollectionMissingData"),
            ("Attributes of people", tuple(sensitive(source)),
             "rai:personalSensitiveInformation"),
        ) if texts
    ]  # fmt: skip
    parts = [
        Part("Who is in the data", tuple(people_table(source)), "record set people_judged"),
        *lists,
        Part("What was stated", said(*stated)),
    ]
    return card_of(INFO, "croissant", source, facts, parts, data=data,
                   data_set=data_name(source, facts) or "unnamed")  # fmt: skip


def _described(source: Source, facts: Facts, mlc: Any) -> dict[str, Any]:
    licence = licence_text(source, facts)
    biases = [*facts.texts.get("dataset_biases", ()), *representation(source)]
    sensitive_texts = [*facts.texts.get("sensitive_information", ()), *sensitive(source)]
    unknown = " ".join(unknown_values(source))
    files = list(_files(source, mlc))
    given: dict[str, Any] = {
        "name": data_name(source, facts) or "data",
        "description": facts.text("dataset_description"),
        "url": facts.text("dataset_url"),
        "license": [licence] if licence else None,
        "cite_as": facts.text("dataset_citation"),
        "version": facts.text("dataset_version"),
        "date_published": day_of(facts.text("dataset_published")),
        "creators": [*(mlc.Person(name=name) for name in facts.texts.get("dataset_persons", ())),
                     *(mlc.Organization(name=name)
                       for name in facts.texts.get("dataset_organisations", ()))],
        "distribution": files,
        "record_sets": [_counts(source, mlc)] if source.summary.sections else [],
        "data_biases": biases,
        "data_limitations": list(facts.texts.get("known_limitations", ())),
        "data_collection_missing_data": unknown,
        "personal_sensitive_information": sensitive_texts,
        "conforms_to": CONFORMS,
        **rai_of(facts),
    }  # fmt: skip
    return {key: value for key, value in given.items() if value}


def _files(source: Source, mlc: Any) -> Iterator[Any]:
    """Name the files that were read, by the last part of their paths, with their hashes."""
    seen: set[str] = set()
    for one in source.summary.inputs[:_MOST_FILES]:
        path = PurePath(one.path)
        name = path.name
        while name in seen:
            name = f"{len(seen)}-{path.name}"
        seen.add(name)
        kind = type_of(path.name)
        yield mlc.FileObject(
            id=re.sub(r"[^\w.-]+", "_", name), name=name, content_url=path.name,
            encoding_formats=[kind], sha256=one.sha256,
        )  # fmt: skip


def _counts(source: Source, mlc: Any) -> Any:
    types = {"attribute": mlc.DataType.TEXT, "group": mlc.DataType.TEXT,
             "n_units": mlc.DataType.INTEGER, "n_clusters": mlc.DataType.INTEGER}  # fmt: skip
    rows = [
        {"people_judged/attribute": section.attribute, "people_judged/group": row.group,
         "people_judged/n_units": row.estimate.n_units,
         "people_judged/n_clusters": row.estimate.n_clusters}
        for section in source.summary.sections for row in section.main.rows
    ]  # fmt: skip
    fields = [mlc.Field(id=f"people_judged/{name}", name=name, data_types=kind)
              for name, kind in types.items()]  # fmt: skip
    return mlc.RecordSet(
        id="people_judged", name="people_judged",
        description="How many people of each group one audit judged.",
        fields=fields, data=rows[:_MOST_ROWS],
    )  # fmt: skip
