"""The steps of a withdrawal, which can be interrupted and resumed.

    ledger → plan on the disk → files → server → database → ledger without the id → search → receipt

The database and the ledger come after the files, because they say which names to find; until the
receipt is written the plan says it too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isolux.core.errors import FileError, OutputError, SpecError
from isolux.core.notes import Caution
from isolux.io.atomic import RUN_MARK, write_bytes
from isolux.io.consent import SCOPES, erase_people, read_ledger, read_ledger_key, revoke_consent
from isolux.io.consent.chain import compute_keyed_hash
from isolux.io.hashing import sha256_file
from isolux_curate.project.folder import CONSENT_FILE, Project, open_project, read_journal
from isolux_curate.withdrawal.file_walk import (
    FileLocation,
    build_neighbour_lookup,
    find_project_folders,
    iterate_files_sorted,
    list_unsearched_project_files,
)
from isolux_curate.withdrawal.planning import list_files_except_own_records, read_names_of_everyone
from isolux_curate.withdrawal.project_rows import delete_people_and_vacuum
from isolux_curate.withdrawal.published_folders import (
    iterate_outdated_records,
    list_documents_with_counts,
    update_published_folders,
)
from isolux_curate.withdrawal.replacements import ReplacementRows, append_missing_replacement_rows
from isolux_curate.withdrawal.rewriting import UnsearchableFile, rewrite_file_without_people
from isolux_curate.withdrawal.state import (
    Artefact,
    WithdrawalPlan,
    WithdrawalState,
    build_masked_artefact,
    build_state_path,
    format_location_below_root,
    write_signed_receipt,
)
from isolux_curate.withdrawal.terms import IdentifyingTerms

_RUN_CAUTION = (
    "People withdrew after this audit: their rows are gone, and its values still rest on them."
    " Audit again to take them out of the values."
)


def update_changed_runs_and_pages(state: WithdrawalState, folders: Sequence[Path]) -> None:
    """Add a caution to the records of changed runs, with the new hashes of their tables."""
    from isolux.io.run_changes import list_changed_files
    from isolux.io.run_directory import add_warning

    changed_hashes = {
        artefact.after for artefact in state.read_merged_artefacts() if artefact.after
    }
    for location in iterate_files_sorted(folders):
        if location.path.name != RUN_MARK:
            continue
        run = location.path.parent
        changed_names = list_changed_files(run) or []
        paths = {name: run / name for name in changed_names}
        hash_by_name = {
            name: sha256_file(path) if path.is_file() else None for name, path in paths.items()
        }
        if changed_names and all(
            digest in changed_hashes or name == RUN_MARK for name, digest in hash_by_name.items()
        ):
            add_warning(run, _RUN_CAUTION)
            _rebuild_or_delete_page(run)


def _rebuild_or_delete_page(run_folder: Path) -> None:
    """Rebuild a run's page from its remaining rows."""
    from isolux.io import run_directory
    from isolux.report.html import write_comparison_report, write_report

    page = run_folder / "report.html"
    if not page.is_file():
        return
    try:
        loaded_run = run_directory.load_run(run_folder)
        write_page = (
            write_comparison_report if "model_a" in loaded_run.disparities.columns else write_report
        )
        write_page(loaded_run, page)
    except Exception as error:
        page.unlink()
        raise FileError(
            "the page of a run could not be made again, and was deleted",
            where=str(page),
            hint=f"isolux report {run_folder}",
        ) from error


def delete_from_servers_or_refuse(
    state: WithdrawalState, plan: WithdrawalPlan, open_server: Callable[[str], Any] | None
) -> tuple[str, ...]:
    """Delete tasks, answers and images on servers; some may be deleted already."""
    notes: list[str] = []
    urls = list(dict.fromkeys(str(task["server"]) for task in plan.server))
    for url in urls:
        if open_server is None:
            raise SpecError(
                "the annotation server holds tasks of theirs",
                expected=f"--server {url}, with its token in LABEL_STUDIO_TOKEN",
                hint="give the same command again with it: what was done stays done",
            )
        client = open_server(url)
        server_tasks = [task for task in plan.server if task["server"] == url]
        sent_tasks = [task for task in server_tasks if "server_task" in task]
        answers = [task for task in server_tasks if "answer" in task]
        for description, n in (("tasks and pictures", len(sent_tasks)), ("answers", len(answers))):
            if n:  # recorded before the deletion, so that an interrupted one is in the receipt
                state.append_artefact_to_disk(
                    Artefact(f"{url}, {description}", description, "deleted", n)
                )
        if sent_tasks:
            notes.append(Caution(_SERVER_DISK_CAUTION.format(n=len(sent_tasks), url=url)))
        for task in sent_tasks:
            client.delete_task_if_present(task["server_task"])
        for task in answers:
            client.delete_annotation_if_present(task["answer"])
        for project_number in {task["server_project"] for task in sent_tasks}:
            names = {
                f"{task['task_id']}.jpg"
                for task in sent_tasks
                if task["server_project"] == project_number
            }
            client.delete_uploads_and_verify(project_number, names)
    return tuple(notes)


_SERVER_DISK_CAUTION = (
    "{url} gives {n:,} pictures of theirs no longer, and keeps the files on its disk: Label Studio"
    " deletes none. Give this command for the server's folder media/upload, too, or delete them"
    " there."
)


_MAX_LIST_DEPTH = 3
_HASH_LIST_SUFFIXES = (
    ".json",
    ".jsonld",
    ".txt",
    ".sha256",
    ".csv",
    ".md",
    ".yaml",
    ".yml",
    ".sums",
)


def iterate_changes_collecting_unsearchable(
    locations: Sequence[FileLocation], terms: IdentifyingTerms, unsearchable: list[tuple[str, str]]
) -> Iterator[tuple[FileLocation, bytes, bytes | None, int]]:
    """Find files that hold the people, with old and new content; list unsearchable files."""
    list_neighbours = build_neighbour_lookup(locations)
    for location in locations:
        try:
            file_bytes = location.path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise FileError(
                "a file cannot be read", found=str(error.strerror), where=str(location.path)
            ) from error
        try:
            content, n = rewrite_file_without_people(
                location.name, file_bytes, list_neighbours(location), terms
            )
        except UnsearchableFile as reason:
            unsearchable.append(
                (terms.mask_names_in_path(format_location_below_root(location)), str(reason))
            )
            continue
        if n:
            yield location, file_bytes, content, n


def change_or_delete_files(
    state: WithdrawalState, locations: Sequence[FileLocation], terms: IdentifyingTerms, key: bytes
) -> list[tuple[str, str]]:
    """Change or delete each file that holds the people; return the unsearchable files."""
    unsearchable: list[tuple[str, str]] = []
    for location, file_bytes, content, n in iterate_changes_collecting_unsearchable(
        locations, terms, unsearchable
    ):
        hash_before = hashlib.sha256(file_bytes).hexdigest()
        state.append_artefact_to_disk(
            build_masked_artefact(location, file_bytes, content, n, terms, key),
            hash_before=hash_before,
        )
        if content is not None:
            mode = location.path.stat().st_mode
            write_bytes(location.path, content)
            location.path.chmod(mode)
            continue
        try:
            location.path.unlink()
        except OSError as error:
            raise OutputError(
                "a file cannot be deleted", found=str(error.strerror), where=str(location.path)
            ) from error
        _remove_empty_parent_folders(location)
    return unsearchable


def _remove_empty_parent_folders(location: FileLocation) -> None:
    """Remove folders that are now empty: their names may be the person's."""
    folder = location.path.parent
    while folder != location.root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def update_hashes_in_files(
    state: WithdrawalState, locations: Sequence[FileLocation], terms: IdentifyingTerms, key: bytes
) -> None:
    """Update hashes of rewritten files in file lists, manifests and cards.

    An updated list has a new hash itself, so this is repeated for lists that name lists.
    """
    for _ in range(_MAX_LIST_DEPTH):
        hash_changes = state.read_new_hash_by_old()
        for location in locations:
            if (
                location.path.suffix.lower() not in _HASH_LIST_SUFFIXES
                or not location.path.is_file()
            ):
                continue
            if location.path.name == RUN_MARK:  # a run's record is updated separately
                continue
            file_bytes = new_bytes = location.path.read_bytes()
            for old_hash, new_hash in hash_changes.items():
                new_bytes = new_bytes.replace(old_hash.encode(), new_hash.encode())
            if new_bytes != file_bytes:
                hash_before = hashlib.sha256(file_bytes).hexdigest()
                state.append_artefact_to_disk(
                    build_masked_artefact(location, file_bytes, new_bytes, 0, terms, key),
                    hash_before=hash_before,
                )
                write_bytes(location.path, new_bytes)


@dataclass(frozen=True, slots=True)
class WithdrawalPreview:
    """The changes that a withdrawal would make, and the files that cannot be searched."""

    artefacts: tuple[Artefact, ...]
    unsearchable: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ProofResult:
    """The result of a search: counts, matches, and files that cannot be searched."""

    counts: Mapping[str, int]
    matches: tuple[tuple[str, str], ...]
    unsearchable: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WithdrawalResult:
    """The result of a withdrawal.

    Parameters
    ----------
    receipt : Path or None
        None: something remains, and the plan is kept.
    artefacts : tuple of Artefact
    unsearchable : tuple of (str, str)
        Files that could not be searched, and why.
    remaining : tuple of (str, str)
        Where something of theirs remains, and what.
    notes : tuple of str
    """

    receipt: Path | None
    artefacts: tuple[Artefact, ...]
    unsearchable: tuple[tuple[str, str], ...] = ()
    remaining: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def preview_withdrawal(plan: WithdrawalPlan, ledger: Path) -> WithdrawalPreview:
    """Show what would be removed, and change nothing."""
    folders = [Path(folder) for folder in plan.folders]
    locations = list_files_except_own_records(folders, ledger, find_project_folders(folders))
    terms = plan.build_identifying_terms(read_names_of_everyone(folders, locations))
    unsearchable: list[tuple[str, str]] = []
    artefacts, changed_paths = [], set[Path]()
    for location, file_bytes, content, n in iterate_changes_collecting_unsearchable(
        locations, terms, unsearchable
    ):
        changed_paths.add(location.path)
        artefacts.append(build_masked_artefact(location, file_bytes, content, n, terms, b""))
    for location, record in iterate_outdated_records(locations, changed_paths):
        for document in list_documents_with_counts(location, record):
            document_bytes = document.path.read_bytes()
            artefacts.append(build_masked_artefact(document, document_bytes, None, 0, terms, b""))
    return WithdrawalPreview(tuple(artefacts), tuple(unsearchable))


def execute_plan_write_receipt_if_clean(
    ledger: Path,
    key: bytes,
    plan: WithdrawalPlan,
    *,
    open_server: Callable[[str], Any] | None,
    search_remains: Callable[
        [Sequence[FileLocation], IdentifyingTerms, Sequence[str]], ProofResult
    ],
    key_file: Path,
) -> WithdrawalResult:
    """Execute a plan, search for remains, and write the receipt if there are none."""
    state = WithdrawalState(build_state_path(ledger))
    folders = [Path(path) for path in plan.folders]
    projects = find_project_folders(folders) if "evaluation" in plan.scopes else []
    locations = list_files_except_own_records(folders, ledger, find_project_folders(folders))
    terms = plan.build_identifying_terms(read_names_of_everyone(folders, locations))
    unsearchable = change_or_delete_files(state, locations, terms, key)
    notes = [*update_published_folders(state, locations, terms, key)]
    update_hashes_in_files(state, locations, terms, key)
    if plan.replacing is not None:
        append_missing_replacement_rows(ReplacementRows(**plan.replacing))
    update_changed_runs_and_pages(state, folders)
    notes += delete_from_servers_or_refuse(state, plan, open_server)
    for folder in projects:
        _delete_people_and_record_counts(state, open_project(folder), terms, plan.number)
    os.sync()  # deletions must reach the disk before the ids are erased
    if set(plan.scopes) >= set(SCOPES):
        erase_people(ledger, plan.marks, key=key_file)
    _revoke_in_other_ledgers(ledger, key, plan, projects)
    proof = search_remains(_list_files_for_final_search(plan, ledger), terms, plan.looks)
    unsearchable = [
        *dict.fromkeys(
            [
                *unsearchable,
                *(
                    (terms.mask_names_in_path(file_name), reason)
                    for file_name, reason in proof.unsearchable
                ),
            ]
        )
    ]
    remaining = tuple(
        (terms.mask_names_in_path(file_name), terms.mask_quoted_names(match_text))
        for file_name, match_text in proof.matches
    )
    if unsearchable or remaining:
        # No receipt yet: the plan keeps the names until everything is removed.
        return WithdrawalResult(
            None,
            tuple(state.read_merged_artefacts()),
            tuple(unsearchable),
            remaining,
            (*notes, *proof.notes),
        )
    ledger_head = read_ledger(ledger, key=key_file).rows[-1].hash
    receipt = write_signed_receipt(
        ledger,
        key,
        plan,
        state.read_merged_artefacts(),
        ledger_head=ledger_head,
        search_counts=proof.counts,
    )
    outcome = WithdrawalResult(
        receipt, tuple(state.read_merged_artefacts()), notes=(*notes, *proof.notes)
    )
    state.overwrite_and_delete()
    return outcome


def _revoke_in_other_ledgers(
    ledger: Path, key: bytes, plan: WithdrawalPlan, projects: Sequence[Path]
) -> None:
    """Revoke and erase the people in ledgers of other projects, which keep their keyed hash."""
    names = plan.named.get(plan.kind, ())
    people = [name for name in names if compute_keyed_hash(plan.kind, name, key) in plan.marks]
    for other_ledger in [folder / CONSENT_FILE for folder in projects]:
        if other_ledger.exists() and other_ledger.samefile(ledger):
            continue
        revoke_consent(other_ledger, plan.kind, people, plan.scopes)  # type: ignore[arg-type]
        if people and set(plan.scopes) >= set(SCOPES):
            erase_people(
                other_ledger,
                [
                    compute_keyed_hash(plan.kind, name, read_ledger_key(other_ledger))
                    for name in people
                ],
            )


def _list_files_for_final_search(plan: WithdrawalPlan, ledger: Path) -> list[FileLocation]:
    """List the files to search: all but keys and the plan; the ledger only if ids were erased."""
    folders = [Path(folder) for folder in plan.folders]
    excluded_paths = [Path(f"{ledger}.key"), build_state_path(ledger)]
    if not set(plan.scopes) >= set(SCOPES):
        excluded_paths += [
            ledger,
            *(project / CONSENT_FILE for project in find_project_folders(folders)),
        ]
    if "evaluation" not in plan.scopes:
        excluded_paths += [
            path
            for project in find_project_folders(folders)
            for path in list_unsearched_project_files(project)
        ]
    return list(iterate_files_sorted(folders, excluded_paths=excluded_paths))


def _delete_people_and_record_counts(
    state: WithdrawalState, project: Project, terms: IdentifyingTerms, withdrawal_number: str
) -> None:
    delete_people_and_vacuum(project, terms, withdrawal_number)
    recorded_locations = {artefact.where for artefact in state.read_merged_artefacts()}
    for row in read_journal(project).filter(step="withdraw").iter_rows(named=True):
        details = json.loads(row["said"])
        if details.pop("withdrawal", None) != withdrawal_number:
            continue
        for name, n in details.items():
            location = f"{project.folder.name}, {name}, row {row['n']} of the journal"
            if location not in recorded_locations:
                state.append_artefact_to_disk(Artefact(location, "rows", "deleted", n))
