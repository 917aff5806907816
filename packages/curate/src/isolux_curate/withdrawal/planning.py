"""The plan of a withdrawal: of people who request it, or who reappeared from a restored backup.

All names of a person are collected before anything is changed. People who reappeared are recognised
by the keyed hashes (marks) of ledger and receipts: every id and file name in the folders is hashed
with the key and looked up.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isolux.io.consent import KINDS, Kind, Scope, read_ledger
from isolux.io.consent.chain import mark_of
from isolux.io.hashing import sha256_file
from isolux_curate.id_columns import kinds_of_column
from isolux_curate.project.folder import now, open_project
from isolux_curate.withdrawal.gathering import find_in_tables, known_pictures, tables_in
from isolux_curate.withdrawal.progress import (
    UNFINISHED,
    Plan,
    Work,
    check_receipt,
    folder_of,
    receipts_of,
    work_path,
)
from isolux_curate.withdrawal.project_rows import Found, find_in, people_of, tasks_of
from isolux_curate.withdrawal.pseudonymised import published_as, replaced_columns
from isolux_curate.withdrawal.rewriting import PICTURES
from isolux_curate.withdrawal.terms import Terms, is_distinctive, short_names
from isolux_curate.withdrawal.walking import Place, files_below, of_project, projects_in


@dataclass(frozen=True)
class Back:
    """People of one kind who reappeared: ids, other names, hashes of photos, keyed hashes."""

    kind: Kind
    who: tuple[str, ...]
    named: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pictures: frozenset[str] = frozenset()
    marks: tuple[str, ...] = ()


def who_is_back(
    folders: Sequence[Path],
    locations: Sequence[Place],
    ledger: Path,
    key: bytes,
    scope: Scope,
    *,
    published: Sequence[bytes] = (),
) -> list[Back]:
    """Find people in the folders who revoked a scope and did not grant it again."""
    names, columns = _collect_names(folders, locations), replaced_columns(locations)
    revoked_marks, receipts = _list_revoked_marks(ledger, scope), receipts_of(ledger)
    photos = [location.path for location in locations if location.path.suffix.lower() in PICTURES]
    file_hashes = {sha256_file(path) for path in photos} if receipts else set()
    reappeared = []
    for person_kind in KINDS:
        id_by_mark = {mark_of(person_kind, name, key): name for name in names.get(person_kind, ())}
        id_by_mark |= _find_published_people(
            ledger, person_kind, names.get(person_kind, set()), published, columns
        )
        person_ids = [id_by_mark[mark] for mark in revoked_marks[person_kind] if mark in id_by_mark]
        marks = {mark for mark in revoked_marks[person_kind] if mark in id_by_mark}
        names_by_kind: dict[str, frozenset[str]] = {}
        photo_hashes: frozenset[str] = frozenset()
        for path in receipts:
            receipt = check_receipt(path, ledger=ledger)
            if receipt["kind"] != person_kind or not set(receipt["people"]) <= set(
                revoked_marks[person_kind]
            ):
                continue
            receipt_marks = frozenset(receipt["marks"])
            for id_kind, candidate_names in names.items():
                matching_names = frozenset(
                    name for name in candidate_names if mark_of(id_kind, name, key) in receipt_marks
                )
                names_by_kind[id_kind] = names_by_kind.get(id_kind, frozenset()) | matching_names
            matching_hashes = frozenset(
                digest for digest in file_hashes if mark_of("picture", digest, key) in receipt_marks
            )
            photo_hashes |= matching_hashes
            if matching_hashes or any(names_by_kind.values()):
                marks |= set(receipt["people"])
        if person_ids or photo_hashes or any(names_by_kind.values()):
            reappeared.append(
                Back(
                    person_kind,
                    tuple(person_ids),
                    names_by_kind,
                    photo_hashes,
                    tuple(sorted(marks)),
                )
            )
    return reappeared


def _list_revoked_marks(ledger: Path, scope: Scope) -> dict[str, list[str]]:
    """List keyed hashes of people who revoked a scope and did not grant it again, by kind."""
    state: dict[tuple[str, str], bool] = {}
    for row in read_ledger(ledger).rows:
        if scope in row.scopes:
            state[row.kind, row.mark] = row.act == "grant"
    return {
        person_kind: [
            m for (k, m), is_granted in state.items() if k == person_kind and not is_granted
        ]
        for person_kind in KINDS
    }


def _find_published_people(
    ledger: Path,
    person_kind: Kind,
    present_names: set[str],
    published: Sequence[bytes],
    columns: Sequence[str],
) -> dict[str, str]:
    """Find people of the ledger who are present under a published pseudonym: id by keyed hash."""
    if not published:
        return {}
    return {
        row.mark: row.who
        for row in read_ledger(ledger).rows
        if row.kind == person_kind
        and row.who is not None
        and any(
            name in present_names
            for publication_key in published
            for name in published_as(publication_key, person_kind, row.who, columns)
        )
    }


def _collect_names(folders: Sequence[Path], locations: Sequence[Place]) -> dict[str, set[str]]:
    """Collect every id and file name that could be a person's, by kind."""
    names_by_kind: dict[str, set[str]] = {}
    for folder in projects_in(folders):
        references = Found()
        find_in(open_project(folder), references)
        for id_kind, names in (
            *references.others.items(),
            *people_of(open_project(folder)).items(),
        ):
            names_by_kind.setdefault(id_kind, set()).update(names)
    for table in tables_in(locations):
        for column in table.columns:
            id_kinds, _ = kinds_of_column(column) or ((), False)
            cells = set(table[column].drop_nulls())
            for id_kind in id_kinds:
                names_by_kind.setdefault(id_kind, set()).update(cells)
    for location in locations:
        path_parts = location.name.split("/")
        names_by_kind.setdefault("file", set()).update({location.name, path_parts[-1]})
        for id_kind in ("image", "instance"):
            names_by_kind.setdefault(id_kind, set()).update(short_names(path_parts[-1]))
        names_by_kind.setdefault("subject", set()).update(path_parts[:-1])
    return names_by_kind


def plan_of(
    folders: Sequence[Path],
    ledger: Path,
    key: bytes,
    person_kind: Kind,
    person_ids: Sequence[str],
    scopes: Sequence[Scope],
    *,
    back: Back | None = None,
    published: Sequence[bytes] = (),
) -> Plan:
    """Plan a withdrawal; projects are changed only if consent to evaluation is withdrawn."""
    is_complete = "evaluation" in scopes
    locations = places_of(folders, ledger, projects_in(folders))
    references, thumbnail_texts = _find_references(
        folders,
        locations,
        person_kind,
        person_ids,
        published,
        is_complete=is_complete,
        reappeared=back,
    )
    marks = (
        back.marks
        if back
        else tuple(mark_of(person_kind, person_id, key) for person_id in person_ids)
    )
    names_by_kind = {name: sorted(names) for name, names in sorted(references.named.items())}
    projects = projects_in(folders) if is_complete else []
    return Plan(
        person_kind,
        marks,
        tuple(scopes),
        tuple(map(str, folders)),
        names_by_kind,
        tuple(sorted(references.pictures)),
        now(),
        secrets.token_hex(8),
        tuple(thumbnail_texts),
        tuple(
            task
            for project_dir in projects
            for task in tasks_of(open_project(project_dir), references)
        ),
    )


def known_of(
    folders: Sequence[Path],
    person_kind: Kind,
    person_ids: Sequence[str],
    published: Sequence[bytes] = (),
) -> tuple[Terms, list[Place], Sequence[str]]:
    """Find names, files and thumbnails of people below folders, for a search only."""
    key_paths = [
        path
        for project in projects_in(folders)
        for path in of_project(project)
        if path.suffix == ".key"
    ]
    locations = list(files_below(folders, apart=key_paths))
    references, thumbnail_texts = _find_references(
        folders, locations, person_kind, person_ids, published, is_complete=True
    )
    for plan in _read_unfinished_plans(
        locations, person_kind, person_ids
    ):  # the plan has names that are deleted by now
        thumbnail_texts = [*dict.fromkeys([*thumbnail_texts, *plan.looks])]
        references.pictures |= set(plan.pictures)
        for name, names in plan.named.items():
            references.add(name, names)
    return references.terms(), locations, thumbnail_texts


def _read_unfinished_plans(
    locations: Sequence[Place], person_kind: Kind, person_ids: Sequence[str]
) -> Iterator[Plan]:
    """Read the plans of unfinished withdrawals of these people."""
    for location in locations:
        if location.path.name.endswith(UNFINISHED):
            plan = Work(location.path).plan()
            if (
                plan is not None
                and plan.kind == person_kind
                and set(person_ids) & set(plan.named.get(person_kind, ()))
            ):
                yield plan


def _add_published_names(
    references: Found, keys: Sequence[bytes], locations: Sequence[Place]
) -> None:
    """Add pseudonyms that `isolux curate publish` and `anonymise` made with keys, and photos."""
    if not keys:
        return
    columns = replaced_columns(locations)
    for id_kind, names in list(references.named.items()):
        for name in names - references.pseudonyms:
            for key in keys:
                pseudonyms = published_as(key, id_kind, name, columns)
                references.pseudonyms.update(pseudonyms)
                references.add(id_kind, pseudonyms)
    find_in_tables(locations, references)


def _find_references(
    folders: Sequence[Path],
    locations: Sequence[Place],
    person_kind: Kind,
    person_ids: Sequence[str],
    published: Sequence[bytes],
    *,
    is_complete: bool,
    reappeared: Back | None = None,
) -> tuple[Found, Sequence[str]]:
    references = Found()
    references.add(person_kind, list(person_ids))
    if reappeared is not None:
        references.pictures |= reappeared.pictures
        for name, names in reappeared.named.items():
            references.add(name, sorted(names))
    projects = [
        open_project(project_dir) for project_dir in (projects_in(folders) if is_complete else [])
    ]
    for _ in range(2):  # tables may name photos with copies in the project
        for project in projects:
            find_in(project, references)
        if person_kind != "annotator":
            find_in_tables(locations, references)
        _add_published_names(references, published, locations)
    thumbnail_texts: Sequence[str] = ()
    if person_kind != "annotator":
        pictures = known_pictures(locations, references.terms())
        thumbnail_texts = pictures.looks
        references.pictures |= pictures.sums
        for project in projects:
            find_in(project, references)
        references.add(
            "file",
            {
                file_name
                for file_name in pictures.names
                if "/" in file_name or is_distinctive(file_name)
            },
        )
        find_in_tables(locations, references)
        _add_published_names(references, published, locations)
    return references, thumbnail_texts


def places_of(folders: Sequence[Path], ledger: Path, projects: Sequence[Path]) -> list[Place]:
    """List the files to search: all but ledgers, keys, receipts and databases."""
    excluded_paths = [ledger, Path(f"{ledger}.key"), work_path(ledger), folder_of(ledger)]
    excluded_paths += [path for project in projects for path in of_project(project)]
    return list(files_below(folders, apart=excluded_paths))


def everyone_else(
    folders: Sequence[Path], locations: Sequence[Place]
) -> Mapping[str, frozenset[str]]:
    """Read the names of everyone in projects and tables, by kind."""
    references = Found()
    for folder in projects_in(folders):
        find_in(open_project(folder), references)
    find_in_tables(locations, references)
    return {id_kind: frozenset(names) for id_kind, names in references.others.items()}
