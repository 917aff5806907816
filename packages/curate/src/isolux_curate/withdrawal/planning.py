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

from isolux.io.consent import CONSENT_ROLES, ConsentRole, Scope, read_ledger
from isolux.io.consent.chain import compute_keyed_hash
from isolux.io.hashing import sha256_file
from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.project.folder import format_utc_now, open_project
from isolux_curate.withdrawal.file_walk import (
    FileLocation,
    find_project_folders,
    iterate_files_sorted,
    list_unsearched_project_files,
)
from isolux_curate.withdrawal.project_rows import (
    PersonReferences,
    add_names_found_in_project,
    iterate_server_tasks_and_answers,
    read_person_ids_by_kind,
)
from isolux_curate.withdrawal.pseudonyms import (
    list_published_pseudonyms,
    read_columns_replaced_by_anonymise,
)
from isolux_curate.withdrawal.rewriting import IMAGE_SUFFIXES
from isolux_curate.withdrawal.state import (
    UNFINISHED_SUFFIX,
    WithdrawalPlan,
    WithdrawalState,
    build_receipt_folder_path,
    build_state_path,
    list_receipt_paths,
    read_and_verify_receipt,
)
from isolux_curate.withdrawal.table_references import (
    add_names_found_in_tables,
    find_person_images,
    iterate_id_tables,
)
from isolux_curate.withdrawal.terms import (
    IdentifyingTerms,
    is_distinctive_in_text,
    list_file_name_and_stem,
)


@dataclass(frozen=True)
class ReappearedPeople:
    """People of one kind who reappeared: ids, other names, hashes of photos, keyed hashes."""

    kind: ConsentRole
    person_ids: tuple[str, ...]
    names_by_kind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    photo_hashes: frozenset[str] = frozenset()
    marks: tuple[str, ...] = ()


def find_reappeared_people(
    folders: Sequence[Path],
    locations: Sequence[FileLocation],
    ledger: Path,
    key: bytes,
    scope: Scope,
    *,
    published_keys: Sequence[bytes] = (),
) -> list[ReappearedPeople]:
    """Find people in the folders who revoked a scope and did not grant it again."""
    names, columns = (
        _collect_candidate_names_by_kind(folders, locations),
        read_columns_replaced_by_anonymise(locations),
    )
    revoked_marks, receipts = (
        _list_revoked_hashes_by_kind(ledger, scope),
        list_receipt_paths(ledger),
    )
    photos = [
        location.path for location in locations if location.path.suffix.lower() in IMAGE_SUFFIXES
    ]
    file_hashes = {sha256_file(path) for path in photos} if receipts else set()
    reappeared = []
    for person_kind in CONSENT_ROLES:
        id_by_mark = {
            compute_keyed_hash(person_kind, name, key): name for name in names.get(person_kind, ())
        }
        id_by_mark |= _find_id_by_published_pseudonym(
            ledger, person_kind, names.get(person_kind, set()), published_keys, columns
        )
        person_ids = [id_by_mark[mark] for mark in revoked_marks[person_kind] if mark in id_by_mark]
        marks = {mark for mark in revoked_marks[person_kind] if mark in id_by_mark}
        names_by_kind: dict[str, frozenset[str]] = {}
        photo_hashes: frozenset[str] = frozenset()
        for path in receipts:
            receipt = read_and_verify_receipt(path, ledger=ledger)
            if receipt["kind"] != person_kind or not set(receipt["people"]) <= set(
                revoked_marks[person_kind]
            ):
                continue
            receipt_marks = frozenset(receipt["marks"])
            for id_kind, candidate_names in names.items():
                matching_names = frozenset(
                    name
                    for name in candidate_names
                    if compute_keyed_hash(id_kind, name, key) in receipt_marks
                )
                names_by_kind[id_kind] = names_by_kind.get(id_kind, frozenset()) | matching_names
            matching_hashes = frozenset(
                digest
                for digest in file_hashes
                if compute_keyed_hash("picture", digest, key) in receipt_marks
            )
            photo_hashes |= matching_hashes
            if matching_hashes or any(names_by_kind.values()):
                marks |= set(receipt["people"])
        if person_ids or photo_hashes or any(names_by_kind.values()):
            reappeared.append(
                ReappearedPeople(
                    person_kind,
                    tuple(person_ids),
                    names_by_kind,
                    photo_hashes,
                    tuple(sorted(marks)),
                )
            )
    return reappeared


def _list_revoked_hashes_by_kind(ledger: Path, scope: Scope) -> dict[str, list[str]]:
    """List keyed hashes of people who revoked a scope and did not grant it again, by kind."""
    state: dict[tuple[str, str], bool] = {}
    for row in read_ledger(ledger).rows:
        if scope in row.scopes:
            state[row.kind, row.mark] = row.act == "grant"
    return {
        person_kind: [
            m for (k, m), is_granted in state.items() if k == person_kind and not is_granted
        ]
        for person_kind in CONSENT_ROLES
    }


def _find_id_by_published_pseudonym(
    ledger: Path,
    person_kind: ConsentRole,
    present_names: set[str],
    published_keys: Sequence[bytes],
    columns: Sequence[str],
) -> dict[str, str]:
    """Find people of the ledger who are present under a published pseudonym: id by keyed hash."""
    if not published_keys:
        return {}
    return {
        row.mark: row.who
        for row in read_ledger(ledger).rows
        if row.kind == person_kind
        and row.who is not None
        and any(
            name in present_names
            for publication_key in published_keys
            for name in list_published_pseudonyms(publication_key, person_kind, row.who, columns)
        )
    }


def _collect_candidate_names_by_kind(
    folders: Sequence[Path], locations: Sequence[FileLocation]
) -> dict[str, set[str]]:
    """Collect every id and file name that could be a person's, by kind."""
    names_by_kind: dict[str, set[str]] = {}
    for folder in find_project_folders(folders):
        references = PersonReferences()
        add_names_found_in_project(open_project(folder), references)
        for id_kind, names in (
            *references.other_names.items(),
            *read_person_ids_by_kind(open_project(folder)).items(),
        ):
            names_by_kind.setdefault(id_kind, set()).update(names)
    for table in iterate_id_tables(locations):
        for column in table.columns:
            id_kinds, _ = parse_id_column_or_none(column) or ((), False)
            cells = set(table[column].drop_nulls())
            for id_kind in id_kinds:
                names_by_kind.setdefault(id_kind, set()).update(cells)
    for location in locations:
        path_parts = location.name.split("/")
        names_by_kind.setdefault("file", set()).update({location.name, path_parts[-1]})
        for id_kind in ("image", "instance"):
            names_by_kind.setdefault(id_kind, set()).update(list_file_name_and_stem(path_parts[-1]))
        names_by_kind.setdefault("subject", set()).update(path_parts[:-1])
    return names_by_kind


def plan_withdrawal_of_people(
    folders: Sequence[Path],
    ledger: Path,
    key: bytes,
    person_kind: ConsentRole,
    person_ids: Sequence[str],
    scopes: Sequence[Scope],
    *,
    reappeared: ReappearedPeople | None = None,
    published_keys: Sequence[bytes] = (),
) -> WithdrawalPlan:
    """Plan a withdrawal; projects are changed only if consent to evaluation is withdrawn."""
    is_complete = "evaluation" in scopes
    locations = list_files_except_own_records(folders, ledger, find_project_folders(folders))
    references, thumbnail_texts = _find_references_and_thumbnails(
        folders,
        locations,
        person_kind,
        person_ids,
        published_keys,
        is_complete=is_complete,
        reappeared=reappeared,
    )
    marks = (
        reappeared.marks
        if reappeared
        else tuple(compute_keyed_hash(person_kind, person_id, key) for person_id in person_ids)
    )
    names_by_kind = {
        name: sorted(names) for name, names in sorted(references.names_by_kind.items())
    }
    projects = find_project_folders(folders) if is_complete else []
    return WithdrawalPlan(
        person_kind,
        marks,
        tuple(scopes),
        tuple(map(str, folders)),
        names_by_kind,
        tuple(sorted(references.photo_hashes)),
        format_utc_now(),
        secrets.token_hex(8),
        tuple(thumbnail_texts),
        tuple(
            task
            for project_dir in projects
            for task in iterate_server_tasks_and_answers(open_project(project_dir), references)
        ),
    )


def find_terms_files_and_thumbnails(
    folders: Sequence[Path],
    person_kind: ConsentRole,
    person_ids: Sequence[str],
    published_keys: Sequence[bytes] = (),
) -> tuple[IdentifyingTerms, list[FileLocation], Sequence[str]]:
    """Find names, files and thumbnails of people below folders, for a search only."""
    key_paths = [
        path
        for project in find_project_folders(folders)
        for path in list_unsearched_project_files(project)
        if path.suffix == ".key"
    ]
    locations = list(iterate_files_sorted(folders, excluded_paths=key_paths))
    references, thumbnail_texts = _find_references_and_thumbnails(
        folders, locations, person_kind, person_ids, published_keys, is_complete=True
    )
    for plan in _iterate_unfinished_plans_of_people(
        locations, person_kind, person_ids
    ):  # the plan has names that are deleted by now
        thumbnail_texts = [*dict.fromkeys([*thumbnail_texts, *plan.looks])]
        references.photo_hashes |= set(plan.pictures)
        for name, names in plan.named.items():
            references.add_names(name, names)
    return references.build_identifying_terms(), locations, thumbnail_texts


def _iterate_unfinished_plans_of_people(
    locations: Sequence[FileLocation], person_kind: ConsentRole, person_ids: Sequence[str]
) -> Iterator[WithdrawalPlan]:
    """Read the plans of unfinished withdrawals of these people."""
    for location in locations:
        if location.path.name.endswith(UNFINISHED_SUFFIX):
            plan = WithdrawalState(location.path).read_plan_or_none()
            if (
                plan is not None
                and plan.kind == person_kind
                and set(person_ids) & set(plan.named.get(person_kind, ()))
            ):
                yield plan


def _add_pseudonyms_and_their_photos(
    references: PersonReferences, published_keys: Sequence[bytes], locations: Sequence[FileLocation]
) -> None:
    """Add pseudonyms that `isolux curate publish` and `anonymise` made with keys, and photos."""
    if not published_keys:
        return
    columns = read_columns_replaced_by_anonymise(locations)
    for id_kind, names in list(references.names_by_kind.items()):
        for name in names - references.pseudonyms:
            for key in published_keys:
                pseudonyms = list_published_pseudonyms(key, id_kind, name, columns)
                references.pseudonyms.update(pseudonyms)
                references.add_names(id_kind, pseudonyms)
    add_names_found_in_tables(locations, references)


def _find_references_and_thumbnails(
    folders: Sequence[Path],
    locations: Sequence[FileLocation],
    person_kind: ConsentRole,
    person_ids: Sequence[str],
    published_keys: Sequence[bytes],
    *,
    is_complete: bool,
    reappeared: ReappearedPeople | None = None,
) -> tuple[PersonReferences, Sequence[str]]:
    references = PersonReferences()
    references.add_names(person_kind, list(person_ids))
    if reappeared is not None:
        references.photo_hashes |= reappeared.photo_hashes
        for name, names in reappeared.names_by_kind.items():
            references.add_names(name, sorted(names))
    projects = [
        open_project(project_dir)
        for project_dir in (find_project_folders(folders) if is_complete else [])
    ]
    for _ in range(2):  # tables may name photos with copies in the project
        for project in projects:
            add_names_found_in_project(project, references)
        if person_kind != "annotator":
            add_names_found_in_tables(locations, references)
        _add_pseudonyms_and_their_photos(references, published_keys, locations)
    thumbnail_texts: Sequence[str] = ()
    if person_kind != "annotator":
        pictures = find_person_images(locations, references.build_identifying_terms())
        thumbnail_texts = pictures.thumbnails
        references.photo_hashes |= pictures.hashes
        for project in projects:
            add_names_found_in_project(project, references)
        references.add_names(
            "file",
            {
                file_name
                for file_name in pictures.file_names
                if "/" in file_name or is_distinctive_in_text(file_name)
            },
        )
        add_names_found_in_tables(locations, references)
        _add_pseudonyms_and_their_photos(references, published_keys, locations)
    return references, thumbnail_texts


def list_files_except_own_records(
    folders: Sequence[Path], ledger: Path, projects: Sequence[Path]
) -> list[FileLocation]:
    """List the files to search: all but ledgers, keys, receipts and databases."""
    excluded_paths = [
        ledger,
        Path(f"{ledger}.key"),
        build_state_path(ledger),
        build_receipt_folder_path(ledger),
    ]
    excluded_paths += [
        path for project in projects for path in list_unsearched_project_files(project)
    ]
    return list(iterate_files_sorted(folders, excluded_paths=excluded_paths))


def read_names_of_everyone(
    folders: Sequence[Path], locations: Sequence[FileLocation]
) -> Mapping[str, frozenset[str]]:
    """Read the names of everyone in projects and tables, by kind."""
    references = PersonReferences()
    for folder in find_project_folders(folders):
        add_names_found_in_project(open_project(folder), references)
    add_names_found_in_tables(locations, references)
    return {id_kind: frozenset(names) for id_kind, names in references.other_names.items()}
