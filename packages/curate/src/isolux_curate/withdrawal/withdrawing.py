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

from isolux.io.atomic import RUN_MARK, write_bytes
from isolux.io.consent import SCOPES, erase, key_of, read_ledger, revoke
from isolux.io.consent.chain import mark_of
from isolux.io.hashing import sha256_file
from isolux.vocabulary.errors import FileError, OutputError, SpecError
from isolux.vocabulary.notes import Caution
from isolux_curate.project.folder import CONSENT, Project, open_project, read_journal
from isolux_curate.withdrawal.planning import everyone_else, places_of
from isolux_curate.withdrawal.progress import Artefact, Plan, Work, work_path, write_receipt
from isolux_curate.withdrawal.project_rows import take_out
from isolux_curate.withdrawal.replacing import Replacing, put_in
from isolux_curate.withdrawal.rewriting import Blind, rewrite
from isolux_curate.withdrawal.terms import Terms
from isolux_curate.withdrawal.walking import (
    Place,
    beside_of,
    files_below,
    of_project,
    projects_in,
)

_RUN_CAUTION = (
    "People withdrew after this audit: their rows are gone, and its values still rest on them."
    " Audit again to take them out of the values."
)


def mend_runs(state: Work, folders: Sequence[Path]) -> None:
    """Add a caution to the records of changed runs, with the new hashes of their tables."""
    from isolux.io.run_changes import changed_files
    from isolux.io.run_directory import tell

    changed_hashes = {artefact.after for artefact in state.artefacts() if artefact.after}
    for location in files_below(folders):
        if location.path.name != RUN_MARK:
            continue
        run = location.path.parent
        changed_names = changed_files(run) or []
        paths = {name: run / name for name in changed_names}
        hash_by_name = {
            name: sha256_file(path) if path.is_file() else None for name, path in paths.items()
        }
        if changed_names and all(
            digest in changed_hashes or name == RUN_MARK for name, digest in hash_by_name.items()
        ):
            tell(run, _RUN_CAUTION)
            _rebuild_page(run)


def _rebuild_page(run: Path) -> None:
    """Rebuild a run's page from its remaining rows."""
    from isolux.io import run_directory
    from isolux.report.html import write_comparison, write_report

    page = run / "report.html"
    if not page.is_file():
        return
    try:
        loaded_run = run_directory.load(run)
        write_page = (
            write_comparison if "model_a" in loaded_run.disparities.columns else write_report
        )
        write_page(loaded_run, page)
    except Exception as error:
        page.unlink()
        raise FileError(
            "the page of a run could not be made again, and was deleted",
            where=str(page),
            hint=f"isolux report {run}",
        ) from error


def delete_on_server(
    state: Work, plan: Plan, server: Callable[[str], Any] | None
) -> tuple[str, ...]:
    """Delete tasks, answers and images on servers; some may be deleted already."""
    notes: list[str] = []
    urls = list(dict.fromkeys(str(task["server"]) for task in plan.server))
    for url in urls:
        if server is None:
            raise SpecError(
                "the annotation server holds tasks of theirs",
                expected=f"--server {url}, with its token in LABEL_STUDIO_TOKEN",
                hint="give the same command again with it: what was done stays done",
            )
        client = server(url)
        server_tasks = [task for task in plan.server if task["server"] == url]
        sent_tasks = [task for task in server_tasks if "server_task" in task]
        answers = [task for task in server_tasks if "answer" in task]
        for description, n in (("tasks and pictures", len(sent_tasks)), ("answers", len(answers))):
            if n:  # recorded before the deletion, so that an interrupted one is in the receipt
                state.note(Artefact(f"{url}, {description}", description, "deleted", n))
        if sent_tasks:
            notes.append(Caution(_SERVER_DISK_CAUTION.format(n=len(sent_tasks), url=url)))
        for task in sent_tasks:
            client.delete_task(task["server_task"])
        for task in answers:
            client.delete_annotation(task["answer"])
        for project_number in {task["server_project"] for task in sent_tasks}:
            names = {
                f"{task['task_id']}.jpg"
                for task in sent_tasks
                if task["server_project"] == project_number
            }
            client.delete_uploads(project_number, names)
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


def find_changes(
    locations: Sequence[Place], terms: Terms, unsearchable: list[tuple[str, str]]
) -> Iterator[tuple[Place, bytes, bytes | None, int]]:
    """Find files that hold the people, with old and new content; list unsearchable files."""
    list_neighbours = beside_of(locations)
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
            content, n = rewrite(location.name, file_bytes, list_neighbours(location), terms)
        except Blind as reason:
            unsearchable.append((terms.masked(told(location)), str(reason)))
            continue
        if n:
            yield location, file_bytes, content, n


def told(location: Place) -> str:
    """Format a file's location as artefacts show it: below the root folder's name."""
    return f"{location.root.name}/{location.name}"


def artefact_of(
    location: Place, before: bytes, after: bytes | None, n: int, terms: Terms, key: bytes
) -> Artefact:
    """Build the artefact of a change: its path is masked, the old content's hash is keyed."""
    old_hash = hashlib.sha256(before).hexdigest()
    masked_path = terms.masked(told(location))
    if masked_path != told(location):  # masked paths may coincide
        masked_path = f"{masked_path} #{mark_of('path', location.name, key)[:8]}"
    return Artefact(
        masked_path,
        "file",
        "deleted" if after is None else "rewritten",
        n,
        mark_of("file", old_hash, key),
        None if after is None else hashlib.sha256(after).hexdigest(),
    )


def change_files(
    state: Work, locations: Sequence[Place], terms: Terms, key: bytes
) -> list[tuple[str, str]]:
    """Change or delete each file that holds the people; return the unsearchable files."""
    unsearchable: list[tuple[str, str]] = []
    for location, file_bytes, content, n in find_changes(locations, terms, unsearchable):
        hash_before = hashlib.sha256(file_bytes).hexdigest()
        state.note(
            artefact_of(location, file_bytes, content, n, terms, key), sum_before=hash_before
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
        _remove_if_empty(location)
    return unsearchable


def _remove_if_empty(location: Place) -> None:
    """Remove folders that are now empty: their names may be the person's."""
    folder = location.path.parent
    while folder != location.root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def mend_sums(state: Work, locations: Sequence[Place], terms: Terms, key: bytes) -> None:
    """Update hashes of rewritten files in file lists, manifests and cards.

    An updated list has a new hash itself, so this is repeated for lists that name lists.
    """
    for _ in range(_MAX_LIST_DEPTH):
        hash_changes = state.sums()
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
                state.note(
                    artefact_of(location, file_bytes, new_bytes, 0, terms, key),
                    sum_before=hash_before,
                )
                write_bytes(location.path, new_bytes)


@dataclass(frozen=True, slots=True)
class Looked:
    """The changes that a withdrawal would make, and the files that cannot be searched."""

    artefacts: tuple[Artefact, ...]
    blind: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search: counts, matches, and files that cannot be searched."""

    counts: Mapping[str, int]
    found: tuple[tuple[str, str], ...]
    blind: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The result of a withdrawal.

    Parameters
    ----------
    receipt : Path or None
        None: something remains, and the plan is kept.
    artefacts : tuple of Artefact
    blind : tuple of (str, str)
        Files that could not be searched, and why.
    left : tuple of (str, str)
        Where something of theirs remains, and what.
    notes : tuple of str
    """

    receipt: Path | None
    artefacts: tuple[Artefact, ...]
    blind: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def look_for(plan: Plan, ledger: Path) -> Looked:
    """Show what would be removed, and change nothing."""
    folders = [Path(folder) for folder in plan.folders]
    locations = places_of(folders, ledger, projects_in(folders))
    terms = plan.terms(everyone_else(folders, locations))
    unsearchable: list[tuple[str, str]] = []
    artefacts = [
        artefact_of(location, file_bytes, content, n, terms, b"")
        for location, file_bytes, content, n in find_changes(locations, terms, unsearchable)
    ]
    return Looked(tuple(artefacts), tuple(unsearchable))


def finish(
    ledger: Path,
    key: bytes,
    plan: Plan,
    *,
    server: Callable[[str], Any] | None,
    search: Callable[[Sequence[Place], Terms, Sequence[str]], Searched],
    key_file: Path,
) -> Withdrawn:
    """Execute a plan, search for remains, and write the receipt if there are none."""
    state = Work(work_path(ledger))
    folders = [Path(path) for path in plan.folders]
    projects = projects_in(folders) if "evaluation" in plan.scopes else []
    locations = places_of(folders, ledger, projects_in(folders))
    terms = plan.terms(everyone_else(folders, locations))
    unsearchable = change_files(state, locations, terms, key)
    mend_sums(state, locations, terms, key)
    if plan.replacing is not None:
        put_in(Replacing(**plan.replacing))
    mend_runs(state, folders)
    server_notes = delete_on_server(state, plan, server)
    for folder in projects:
        _delete_from_project(state, open_project(folder), terms, plan.number)
    os.sync()  # deletions must reach the disk before the ids are erased
    if set(plan.scopes) >= set(SCOPES):
        erase(ledger, plan.marks, key=key_file)
    _revoke_in_others(ledger, key, plan, projects)
    proof = search(_list_searchable_files(plan, ledger), terms, plan.looks)
    unsearchable = [
        *dict.fromkeys(
            [
                *unsearchable,
                *((terms.masked(file_name), reason) for file_name, reason in proof.blind),
            ]
        )
    ]
    remaining = tuple(
        (terms.masked(file_name), terms.masked_words(match_text))
        for file_name, match_text in proof.found
    )
    if unsearchable or remaining:
        # No receipt yet: the plan keeps the names until everything is removed.
        return Withdrawn(
            None,
            tuple(state.artefacts()),
            tuple(unsearchable),
            remaining,
            (*server_notes, *proof.notes),
        )
    ledger_head = read_ledger(ledger, key=key_file).rows[-1].hash
    receipt = write_receipt(
        ledger, key, plan, state.artefacts(), head=ledger_head, searched=proof.counts
    )
    outcome = Withdrawn(receipt, tuple(state.artefacts()), notes=(*server_notes, *proof.notes))
    state.end()
    return outcome


def _revoke_in_others(ledger: Path, key: bytes, plan: Plan, projects: Sequence[Path]) -> None:
    """Revoke and erase the people in ledgers of other projects, which keep their keyed hash."""
    names = plan.named.get(plan.kind, ())
    people = [name for name in names if mark_of(plan.kind, name, key) in plan.marks]
    for other_ledger in [folder / CONSENT for folder in projects]:
        if other_ledger.exists() and other_ledger.samefile(ledger):
            continue
        revoke(other_ledger, plan.kind, people, plan.scopes)  # type: ignore[arg-type]
        if people and set(plan.scopes) >= set(SCOPES):
            erase(other_ledger, [mark_of(plan.kind, name, key_of(other_ledger)) for name in people])


def _list_searchable_files(plan: Plan, ledger: Path) -> list[Place]:
    """List the files to search: all but keys and the plan; the ledger only if ids were erased."""
    folders = [Path(folder) for folder in plan.folders]
    excluded_paths = [Path(f"{ledger}.key"), work_path(ledger)]
    if not set(plan.scopes) >= set(SCOPES):
        excluded_paths += [ledger, *(project / CONSENT for project in projects_in(folders))]
    if "evaluation" not in plan.scopes:
        excluded_paths += [path for project in projects_in(folders) for path in of_project(project)]
    return list(files_below(folders, apart=excluded_paths))


def _delete_from_project(state: Work, project: Project, terms: Terms, number: str) -> None:
    take_out(project, terms, number)
    recorded_locations = {artefact.where for artefact in state.artefacts()}
    for row in read_journal(project).filter(step="withdraw").iter_rows(named=True):
        details = json.loads(row["said"])
        if details.pop("withdrawal", None) != number:
            continue
        for name, n in details.items():
            location = f"{project.folder.name}, {name}, row {row['n']} of the journal"
            if location not in recorded_locations:
                state.note(Artefact(location, "rows", "deleted", n))
