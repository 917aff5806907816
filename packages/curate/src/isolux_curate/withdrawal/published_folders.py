"""Published folders that lost rows: the counts and documents in them still count the person.

A count less the number of the rows that are left is the age, the pronoun and every other attribute
of who withdrew. So counts and documents are deleted, and records count the rows that are left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.notes import Caution
from isolux.datasets import TERMS_FILE
from isolux.io.atomic import write_text
from isolux.io.hashing import sha256_file
from isolux_curate.privacy import PRIVACY_FILE
from isolux_curate.publication.manifest import (
    PEOPLE_FILE,
    PHOTO_FOLDER,
    RELEASE_FILE,
    ROW_FILES,
    format_release_manifest,
)
from isolux_curate.withdrawal.file_walk import FileLocation
from isolux_curate.withdrawal.state import WithdrawalState, build_masked_artefact
from isolux_curate.withdrawal.terms import IdentifyingTerms

_CAUTION = (
    "{folder}: its counts and documents counted who withdrew, and were deleted. Give the command"
    " that published it again, with --overwrite, to have new ones."
)


def iterate_outdated_records(
    locations: Sequence[FileLocation], changed_paths: Collection[Path] = ()
) -> Iterator[tuple[FileLocation, dict[str, Any]]]:
    """Iterate over records of published folders whose rows changed, or are about to."""
    for location in locations:
        if location.path.name not in (RELEASE_FILE, PRIVACY_FILE) or not location.path.is_file():
            continue
        try:
            record = json.loads(location.path.read_bytes())
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and "settings" in record:
            folder = location.path.parent
            is_changed = any(folder / name in changed_paths for name in ROW_FILES)
            if is_changed or _has_other_rows(folder, record):
                yield location, record


def _has_other_rows(folder: Path, record: dict[str, Any]) -> bool:
    """Check whether rows changed since a record was written."""
    if "rows" in record:
        return bool(_read_people(folder).height != record["rows"])
    hashes = record.get("files")
    return isinstance(hashes, dict) and any(
        not (folder / name).is_file() or sha256_file(folder / name) != hashes[name]
        for name in ROW_FILES
        if name in hashes
    )


def _read_people(folder: Path) -> pl.DataFrame:
    path = folder / PEOPLE_FILE
    return pl.read_csv(path, infer_schema=False) if path.is_file() else pl.DataFrame()


def list_documents_with_counts(
    record_location: FileLocation, record: dict[str, Any]
) -> list[FileLocation]:
    """List the files of a published folder that count people, and still exist."""
    names = record.get("files", ("counts.csv",))
    documents = [
        _locate_neighbour(record_location, name)
        for name in names
        if name not in (*ROW_FILES, TERMS_FILE) and not name.startswith(f"{PHOTO_FOLDER}/")
    ]
    return [document for document in documents if document.path.is_file()]


def _locate_neighbour(record_location: FileLocation, name: str) -> FileLocation:
    folder_name = record_location.name.rpartition("/")[0]
    return FileLocation(record_location.root, f"{folder_name}/{name}".removeprefix("/"))


def update_published_folders(
    state: WithdrawalState, locations: Sequence[FileLocation], terms: IdentifyingTerms, key: bytes
) -> tuple[str, ...]:
    """Delete counts and documents of published folders that lost rows, and count what is left.

    The record comes last: until it is written, a command that is given again finds the folder.
    """
    notes = []

    def record_and_write(location: FileLocation, text: str | None) -> None:
        old_bytes, new_bytes = location.path.read_bytes(), None if text is None else text.encode()
        artefact = build_masked_artefact(location, old_bytes, new_bytes, 0, terms, key)
        state.append_artefact_to_disk(artefact, hash_before=hashlib.sha256(old_bytes).hexdigest())
        if text is None:
            location.path.unlink()
        else:
            write_text(location.path, text)

    for location, record in iterate_outdated_records(locations):
        for document in list_documents_with_counts(location, record):
            record_and_write(document, None)
        people = _read_people(location.path.parent)
        if "rows" in record:
            new_record = record | {"rows": people.height, "notes": []}
            record_and_write(location, json.dumps(new_record, indent=1, ensure_ascii=False) + "\n")
        else:
            terms_location = _locate_neighbour(location, TERMS_FILE)
            terms_record = json.loads(terms_location.path.read_bytes())
            terms_record |= {"splits": _count_splits(people)}
            text = json.dumps(terms_record, indent=1, ensure_ascii=False) + "\n"
            record_and_write(terms_location, text)
            new_record = record | _count_photos_and_people(people)
            folder = location.path.parent
            names = [name for name in record["files"] if (folder / name).is_file()]
            record_and_write(location, format_release_manifest(folder, new_record, names))
        notes.append(Caution(_CAUTION.format(folder=location.path.parent.name)))
    return tuple(notes)


def _count_splits(people: pl.DataFrame) -> dict[str, int]:
    return dict(people.group_by("split").len().sort("split").rows()) if people.height else {}


def _count_photos_and_people(people: pl.DataFrame) -> dict[str, int]:
    if not people.height:
        return {"photos": 0, "people": 0, "subjects": 0}
    return {
        "photos": people["file"].n_unique(),
        "people": people.height,
        "subjects": people["subject_id"].drop_nulls().n_unique(),
    }
