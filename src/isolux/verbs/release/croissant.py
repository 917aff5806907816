"""Croissant metadata of a published dataset: tables as record sets, terms, RAI vocabulary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux.cards import CONFORMS, Facts, croissant_json, day_of, rai_of, type_of
from isolux.io.hashing import sha256_file
from isolux.verbs.release.papers import Release


def croissant_text(
    folder: Path,
    tables: Mapping[str, pl.DataFrame],
    others: Sequence[str],
    release: Release,
    facts: Facts,
    licence: str,
) -> str:
    """Write the JSON-LD, as ``mlcroissant`` validated it."""

    def described(mlc: Any) -> dict[str, Any]:
        files = [
            mlc.FileObject(
                id=name, name=name, content_url=name, encoding_formats=[type_of(name)],
                sha256=sha256_file(folder / name),
            )
            for name in (*tables, *others)
        ]  # fmt: skip
        sensitive = [f"{name} ({how})" for name, how in release.attributes.items()]
        return {
            "name": release.name,
            "description": facts.text("dataset_description"),
            "url": facts.text("dataset_url"),
            "license": [licence] if licence else None,
            "cite_as": facts.text("dataset_citation"),
            "version": facts.text("dataset_version"),
            "date_published": day_of(facts.text("dataset_published")),
            "creators": _creators(facts, mlc),
            "distribution": files,
            "record_sets": [_records(name, table, mlc) for name, table in tables.items()],
            "data_biases": [*facts.texts.get("dataset_biases", ())],
            "data_limitations": list(facts.texts.get("known_limitations", ())),
            "personal_sensitive_information": [
                *facts.texts.get("sensitive_information", ()), *sensitive,
            ],
            "conforms_to": CONFORMS,
            **rai_of(facts),
            "data_use_cases": [*facts.texts.get("dataset_uses", ()), release.terms],
        }  # fmt: skip

    found = croissant_json(described)
    return json.dumps(found, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _creators(facts: Facts, mlc: Any) -> list[Any]:
    people = facts.texts.get("dataset_persons", ())
    groups = facts.texts.get("dataset_organisations", ())
    return [*(mlc.Person(name=n) for n in people), *(mlc.Organization(name=n) for n in groups)]


def _records(name: str, table: pl.DataFrame, mlc: Any) -> Any:
    stem = name.partition(".")[0]
    fields = [
        mlc.Field(
            id=f"{stem}/{column}", name=f"{stem}/{column}",
            data_types=_type(kind, mlc),
            source=mlc.Source(file_object=name, extract=mlc.Extract(column=column)),
        )
        for column, kind in table.schema.items()
    ]  # fmt: skip
    return mlc.RecordSet(id=stem, name=stem, fields=fields)


def _type(kind: pl.DataType, mlc: Any) -> Any:
    if kind.is_integer():
        return mlc.DataType.INTEGER
    return mlc.DataType.FLOAT if kind.is_float() else mlc.DataType.TEXT
