"""Folders and tables with pseudonyms: without the key, a search finds no one there.

``isolux curate publish`` and ``anonymise`` record which key replaced ids (its hash, not the key).
Older folders are recognised by their records, runs by the dataset that they name, and copied tables
by the form of pseudonyms. There, a key fits if a person is found with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from isolux.datasets import TERMS_FORMAT
from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.privacy import KEY_HASH_FIELD, PRIVACY_FILE, hash_pseudonym_key
from isolux_curate.privacy.table import compute_pseudonym
from isolux_curate.publication.manifest import RELEASE_FILE, ROW_FILES
from isolux_curate.withdrawal.file_walk import FileLocation
from isolux_curate.withdrawal.table_references import iterate_id_tables_with_location


def list_published_pseudonyms(
    key: bytes, id_kind: str, name: str, more_columns: Sequence[str] = ()
) -> list[str]:
    """List the pseudonyms under which a person or file was published with a key.

    Examples
    --------
    >>> (
    ...     len(list_published_pseudonyms(b"key", "subject", "s17")),
    ...     len(list_published_pseudonyms(b"key", "file", "a.jpg")),
    ... )
    (2, 1)
    """
    columns = ("file",) if id_kind == "file" else (f"{id_kind}_id", id_kind, *more_columns)
    return [compute_pseudonym(key, column, name) for column in dict.fromkeys(columns)]


_PSEUDONYM = "^[0-9a-f]{16}$"
_PERSON_KINDS = ("subject", "copyright", "annotator")
_NO_KEY = (
    "people are in it under pseudonyms, which were not searched for: name the key of isolux curate"
    " publish or anonymise with --published-key FILE"
)
_NO_LINK = (
    "people are in it under pseudonyms, and no key that was given leads any of them back: name the"
    " right one with --published-key FILE and, for a run, its published folder or project, too"
)

_NO_PEOPLE = (
    "it names photos and no people, and nothing in the folders says which photos are theirs: name"
    " the project, or the folder with the table of people and photos, too"
)


def read_key_hash_or_none(file_name: str, file_bytes: bytes) -> str | None:
    """Read the hash of the key with which ids were replaced from a record; empty: not recorded.

    Examples
    --------
    >>> read_key_hash_or_none("dataset.json", b'{"format": "isolux curated dataset"}')
    ''
    """
    record = _read_json_object_or_empty(file_name, file_bytes)
    spec, dataset = record.get("spec"), record.get("dataset")
    source = spec.get("data") if isinstance(spec, dict) else record.get("data")
    file = PurePosixPath(file_name).name
    if KEY_HASH_FIELD in record:
        return str(record[KEY_HASH_FIELD])
    is_published = (
        record.get("format") == TERMS_FORMAT
        or (file == PRIVACY_FILE and "settings" in record)
        or (file == RELEASE_FILE and {"settings", "files"} <= record.keys())
    )
    is_of_published = str(source).startswith("curated:") or (
        isinstance(dataset, dict) and dataset.get("name") == "curated"
    )
    return "" if is_published or is_of_published else None


def _read_json_object_or_empty(file_name: str, file_bytes: bytes) -> dict[str, Any]:
    """Read a JSON object; empty if the file holds none."""
    try:
        record = json.loads(file_bytes) if file_name.endswith(".json") else None
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def read_columns_replaced_by_anonymise(locations: Iterable[FileLocation]) -> tuple[str, ...]:
    """Read the names of id columns that `isolux curate anonymise` replaced."""
    columns: dict[str, None] = {}
    for location in locations:
        if location.path.name == PRIVACY_FILE:
            settings = _read_json_object_or_empty(location.name, location.path.read_bytes()).get(
                "settings"
            )
            ids = settings.get("ids") if isinstance(settings, dict) else None
            columns |= dict.fromkeys(map(str, ids if isinstance(ids, list) else ()))
    return tuple(columns)


def find_files_with_unresolved_pseudonyms(
    locations: Sequence[FileLocation],
    published_keys: Sequence[bytes],
    names_by_kind: Mapping[str, Collection[str]],
    person_ids: Collection[str],
) -> list[tuple[str, str]]:
    """Find files with pseudonyms that no given key resolves, each with the reason."""
    marks = _read_key_hashes_by_folder(locations)
    ids: dict[Path, set[str]] = {
        folder: set() for folder, key_marks in marks.items() if key_marks is not None
    }
    looks_pseudonymous = all(re.match(_PSEUDONYM, person_id) for person_id in person_ids)
    for location, table in iterate_id_tables_with_location(locations):
        cells = {cell for column in table.columns for cell in table[column].drop_nulls()}
        folder = next((up for up in location.path.parents if up in marks), None)
        if folder in ids:
            ids[folder] |= cells
        elif not looks_pseudonymous and _has_column_of_pseudonyms(
            table, include_unit_ids=folder is not None
        ):
            ids.setdefault(folder or location.path, set()).update(cells)
    if not ids:
        return []
    known_marks, columns = (
        {hash_pseudonym_key(key) for key in published_keys},
        read_columns_replaced_by_anonymise(locations),
    )
    names = {
        name
        for key in published_keys
        for id_kind, kind_names in names_by_kind.items()
        for person_name in kind_names
        for name in list_published_pseudonyms(key, id_kind, person_name, columns)
    }

    def has_known_key_or_name(path: Path) -> bool:
        key_marks = marks.get(path) or set()
        return bool(key_marks & known_marks) if key_marks else not ids[path].isdisjoint(names)

    while linked_paths := [
        path for path in ids if has_known_key_or_name(path)
    ]:  # a run is resolved by its published folder
        for path in linked_paths:
            names |= ids.pop(path)
    return [(str(path), _NO_LINK if published_keys else _NO_KEY) for path in sorted(ids)]


def find_photo_tables_without_people(
    locations: Iterable[FileLocation], person_kind: str
) -> list[tuple[str, str]]:
    """Find tables of photos without people, if no table links photos to people."""
    unlinked = []
    for location, table in iterate_id_tables_with_location(locations):
        parsed_columns = {parse_id_column_or_none(c) or ((), False) for c in table.columns}
        has_photos = "unit_id" in table.columns or any(
            strict and id_kinds[0] in ("image", "instance", "file")
            for id_kinds, strict in parsed_columns
        )
        has_people = any(strict and person_kind in id_kinds for id_kinds, strict in parsed_columns)
        if has_photos and has_people:
            return []
        if has_photos:
            unlinked.append((str(location.path), _NO_PEOPLE))
    return unlinked


def _read_key_hashes_by_folder(locations: Iterable[FileLocation]) -> dict[Path, set[str] | None]:
    """Read folders whose records say that ids were replaced, with the hashes of the keys."""
    marks_by_folder: dict[Path, set[str] | None] = {}
    for location in locations:
        if location.path.suffix != ".json":
            continue
        file_bytes, folder = location.path.read_bytes(), location.path.parent
        mark = read_key_hash_or_none(location.name, file_bytes)
        if mark is not None:
            marks_by_folder[folder] = (marks_by_folder.get(folder) or set()) | ({mark} - {""})
        elif folder not in marks_by_folder:
            inputs = _read_json_object_or_empty(location.name, file_bytes).get("inputs")
            if isinstance(inputs, dict) and any(
                PurePosixPath(path).name in ROW_FILES for path in inputs
            ):
                marks_by_folder[folder] = None
    return marks_by_folder


def _has_column_of_pseudonyms(table: pl.DataFrame, *, include_unit_ids: bool) -> bool:
    """Check whether a column of ids of people, or of a run's units, holds pseudonyms only."""
    columns = [
        c
        for c in table.columns
        if (
            (parsed := parse_id_column_or_none(c)) is not None
            and parsed[0][0] in _PERSON_KINDS
            and parsed[1]
        )
        or (include_unit_ids and c == "unit_id")
    ]
    cells = [table[c].drop_nulls() for c in columns]
    return any(
        len(column_cells) > 0 and bool(column_cells.str.contains(_PSEUDONYM).all())
        for column_cells in cells
    )
