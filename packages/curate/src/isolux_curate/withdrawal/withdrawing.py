"""A withdrawal from beginning to end: found, taken out, written down, and begun again where it was.

    ledger → plan on the disk → files → server → database → ledger without the id → search → receipt

The database and the ledger come after the files, as they tell what is to be found; until the
receipt stands the plan tells it too.
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

_TOLD = (
    "People withdrew after this audit: their rows are gone, and its values still rest on them."
    " Audit again to take them out of the values."
)


def mend_runs(work: Work, folders: Sequence[Path]) -> None:
    """Tell in the records of runs that people left, with the hashes of their tables as they are."""
    from isolux.io.run_changes import changed_files
    from isolux.io.run_directory import tell

    ours = {one.after for one in work.artefacts() if one.after}
    for place in files_below(folders):
        if place.path.name != RUN_MARK:
            continue
        run = place.path.parent
        changed = changed_files(run) or []
        paths = {name: run / name for name in changed}
        sums = {name: sha256_file(at) if at.is_file() else None for name, at in paths.items()}
        if changed and all(one in ours or name == RUN_MARK for name, one in sums.items()):
            tell(run, _TOLD)
            _remake_page(run)


def _remake_page(run: Path) -> None:
    """Make a run's page anew from what is left of it."""
    from isolux.io import run_directory
    from isolux.report.html import write_comparison, write_report

    page = run / "report.html"
    if not page.is_file():
        return
    try:
        held = run_directory.load(run)
        write = write_comparison if "model_a" in held.disparities.columns else write_report
        write(held, page)
    except Exception as error:
        page.unlink()
        raise FileError(
            "the page of a run could not be made again, and was deleted",
            where=str(page),
            hint=f"isolux report {run}",
        ) from error


def delete_on_server(
    work: Work, plan: Plan, server: Callable[[str], Any] | None
) -> tuple[str, ...]:
    """Delete tasks, answers and pictures; what is gone already is as good."""
    notes: list[str] = []
    urls = list(dict.fromkeys(str(one["server"]) for one in plan.server))
    for url in urls:
        if server is None:
            raise SpecError(
                "the annotation server holds tasks of theirs",
                expected=f"--server {url}, with its token in LABEL_STUDIO_TOKEN",
                hint="give the same command again with it: what was done stays done",
            )
        one = server(url)
        own = [held for held in plan.server if held["server"] == url]
        sent = [held for held in own if "server_task" in held]
        answers = [held for held in own if "answer" in held]
        for what, n in (("tasks and pictures", len(sent)), ("answers", len(answers))):
            if n:  # written down before: what a killed command deleted is in the receipt, too
                work.note(Artefact(f"{url}, {what}", what, "deleted", n))
        if sent:
            notes.append(Caution(_ON_DISK.format(n=len(sent), url=url)))
        for held in sent:
            one.delete_task(held["server_task"])
        for held in answers:
            one.delete_annotation(held["answer"])
        for number in {held["server_project"] for held in sent}:
            names = {f"{held['task_id']}.jpg" for held in sent if held["server_project"] == number}
            one.delete_uploads(number, names)
    return tuple(notes)


_ON_DISK = (
    "{url} gives {n:,} pictures of theirs no longer, and keeps the files on its disk: Label Studio"
    " deletes none. Give this command for the server's folder media/upload, too, or delete them"
    " there."
)


_LISTS_OF_LISTS = 3
_WITH_SUMS = (".json", ".jsonld", ".txt", ".sha256", ".csv", ".md", ".yaml", ".yml", ".sums")


def find_changes(
    places: Sequence[Place], terms: Terms, blind: list[tuple[str, str]]
) -> Iterator[tuple[Place, bytes, bytes | None, int]]:
    """Give each file that holds them, its bytes and its new ones; note those that are blind."""
    beside = beside_of(places)
    for place in places:
        try:
            data = place.path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise FileError(
                "a file cannot be read", found=str(error.strerror), where=str(place.path)
            ) from error
        try:
            content, n = rewrite(place.name, data, beside(place), terms)
        except Blind as reason:
            blind.append((terms.masked(told(place)), str(reason)))
            continue
        if n:
            yield place, data, content, n


def told(place: Place) -> str:
    """Name a file as artefacts do, by its folder."""
    return f"{place.root.name}/{place.name}"


def artefact_of(
    place: Place, before: bytes, after: bytes | None, n: int, terms: Terms, key: bytes
) -> Artefact:
    """Describe a change without the person: what was theirs is hashed under the key."""
    old = hashlib.sha256(before).hexdigest()
    masked = terms.masked(told(place))
    if masked != told(place):  # several may have one name without the person's
        masked = f"{masked} #{mark_of('path', place.name, key)[:8]}"
    return Artefact(
        masked,
        "file",
        "deleted" if after is None else "rewritten",
        n,
        mark_of("file", old, key),
        None if after is None else hashlib.sha256(after).hexdigest(),
    )


def change_files(
    work: Work, places: Sequence[Place], terms: Terms, key: bytes
) -> list[tuple[str, str]]:
    """Change or delete each file that holds them; those that cannot be looked through are named."""
    blind: list[tuple[str, str]] = []
    for place, data, content, n in find_changes(places, terms, blind):
        before = hashlib.sha256(data).hexdigest()
        work.note(artefact_of(place, data, content, n, terms, key), sum_before=before)
        if content is not None:
            mode = place.path.stat().st_mode
            write_bytes(place.path, content)
            place.path.chmod(mode)
            continue
        try:
            place.path.unlink()
        except OSError as error:
            raise OutputError(
                "a file cannot be deleted", found=str(error.strerror), where=str(place.path)
            ) from error
        _remove_if_empty(place)
    return blind


def _remove_if_empty(place: Place) -> None:
    """Remove folders that held nothing else: their names may be the person's."""
    folder = place.path.parent
    while folder != place.root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def mend_sums(work: Work, places: Sequence[Place], terms: Terms, key: bytes) -> None:
    """Write the sums of rewritten files anew in lists of files, manifests and cards that name them.

    A list that is changed so has another sum itself: once more for those that name lists.
    """
    for _ in range(_LISTS_OF_LISTS):
        sums = work.sums()
        for place in places:
            if place.path.suffix.lower() not in _WITH_SUMS or not place.path.is_file():
                continue
            if place.path.name == RUN_MARK:  # a run's record is told by its own rules
                continue
            data = new = place.path.read_bytes()
            for old, now_ in sums.items():
                new = new.replace(old.encode(), now_.encode())
            if new != data:
                before = hashlib.sha256(data).hexdigest()
                work.note(artefact_of(place, data, new, 0, terms, key), sum_before=before)
                write_bytes(place.path, new)


@dataclass(frozen=True, slots=True)
class Looked:
    """What is to go: how many files, rows, and what could not be looked through."""

    artefacts: tuple[Artefact, ...]
    blind: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found: counts of what was searched, places, and files that it cannot see."""

    counts: Mapping[str, int]
    found: tuple[tuple[str, str], ...]
    blind: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What went.

    Parameters
    ----------
    receipt : Path or None
        None: something is left, and the plan stays.
    artefacts : tuple of Artefact
    blind : tuple of (str, str)
        Files that could not be looked through, and why.
    left : tuple of (str, str)
        Where something of theirs is left, and what.
    notes : tuple of str
    """

    receipt: Path | None
    artefacts: tuple[Artefact, ...]
    blind: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def look_for(plan: Plan, ledger: Path) -> Looked:
    """Show what would be removed, and change nothing."""
    folders = [Path(one) for one in plan.folders]
    places = places_of(folders, ledger, projects_in(folders))
    terms = plan.terms(everyone_else(folders, places))
    blind: list[tuple[str, str]] = []
    found = [
        artefact_of(place, data, content, n, terms, b"")
        for place, data, content, n in find_changes(places, terms, blind)
    ]
    return Looked(tuple(found), tuple(blind))


def finish(
    ledger: Path,
    key: bytes,
    plan: Plan,
    *,
    server: Callable[[str], Any] | None,
    search: Callable[[Sequence[Place], Terms, Sequence[str]], Searched],
    key_file: Path,
) -> Withdrawn:
    """Take out what a plan names, and write the receipt."""
    work = Work(work_path(ledger))
    folders = [Path(one) for one in plan.folders]
    projects = projects_in(folders) if "evaluation" in plan.scopes else []
    places = places_of(folders, ledger, projects_in(folders))
    terms = plan.terms(everyone_else(folders, places))
    blind = change_files(work, places, terms, key)
    mend_sums(work, places, terms, key)
    if plan.replacing is not None:
        put_in(Replacing(**plan.replacing))
    mend_runs(work, folders)
    more = delete_on_server(work, plan, server)
    for folder in projects:
        _change_project(work, open_project(folder), terms, plan.number)
    os.sync()  # deleted files are deleted on the disk, before what names them goes
    if set(plan.scopes) >= set(SCOPES):
        erase(ledger, plan.marks, key=key_file)
    _revoke_in_others(ledger, key, plan, projects)
    searched = search(_searchable(plan, ledger), terms, plan.looks)
    blind = [*dict.fromkeys([*blind, *((terms.masked(at), why) for at, why in searched.blind)])]
    left = tuple((terms.masked(at), terms.masked_words(how)) for at, how in searched.found)
    if blind or left:
        # The receipt waits, and the plan knows what is theirs until everything is settled.
        return Withdrawn(
            None, tuple(work.artefacts()), tuple(blind), left, (*more, *searched.notes)
        )
    head = read_ledger(ledger, key=key_file).rows[-1].hash
    receipt = write_receipt(
        ledger, key, plan, work.artefacts(), head=head, searched=searched.counts
    )
    done = Withdrawn(receipt, tuple(work.artefacts()), notes=(*more, *searched.notes))
    work.end()
    return done


def _revoke_in_others(ledger: Path, key: bytes, plan: Plan, projects: Sequence[Path]) -> None:
    """Revoke their consent in ledgers of other projects, which know them by their mark from now."""
    names = plan.named.get(plan.kind, ())
    people = [name for name in names if mark_of(plan.kind, name, key) in plan.marks]
    for other in [folder / CONSENT for folder in projects]:
        if other.exists() and other.samefile(ledger):
            continue
        revoke(other, plan.kind, people, plan.scopes)  # type: ignore[arg-type]
        if people and set(plan.scopes) >= set(SCOPES):
            erase(other, [mark_of(plan.kind, name, key_of(other)) for name in people])


def _searchable(plan: Plan, ledger: Path) -> list[Place]:
    """List what is searched: all but keys and the plan, the ledger too where it lost their ids."""
    folders = [Path(one) for one in plan.folders]
    apart = [Path(f"{ledger}.key"), work_path(ledger)]
    if not set(plan.scopes) >= set(SCOPES):
        apart += [ledger, *(project / CONSENT for project in projects_in(folders))]
    if "evaluation" not in plan.scopes:
        apart += [one for project in projects_in(folders) for one in of_project(project)]
    return list(files_below(folders, apart=apart))


def _change_project(work: Work, project: Project, terms: Terms, number: str) -> None:
    take_out(project, terms, number)
    known = {one.where for one in work.artefacts()}
    for row in read_journal(project).filter(step="withdraw").iter_rows(named=True):
        said = json.loads(row["said"])
        if said.pop("withdrawal", None) != number:
            continue
        for name, n in said.items():
            where = f"{project.folder.name}, {name}, row {row['n']} of the journal"
            if where not in known:
                work.note(Artefact(where, "rows", "deleted", n))
