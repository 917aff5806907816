"""A withdrawal from beginning to end: found, taken out, written down, and begun again where it was.

    ledger → plan on the disk → files → server → database → ledger without the id → search → receipt

The database and the ledger come after the files, as they tell what is to be found; until the
receipt stands the plan tells it too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isolux.curation._chain import mark_of
from isolux.curation.consent import SCOPES, erase, key_of, read_ledger, revoke
from isolux.curation.project.folder import CONSENT, Project, open_project
from isolux.curation.project.journal import now, read_journal
from isolux.curation.withdrawal.changing import (
    artefact_of,
    change_files,
    delete_on_server,
    find_changes,
    mend_runs,
    mend_sums,
)
from isolux.curation.withdrawal.planning import everyone_else, places_of
from isolux.curation.withdrawal.progress import Artefact, Plan, Work, work_path, write_receipt
from isolux.curation.withdrawal.project_rows import take_out
from isolux.curation.withdrawal.replacing import Replacing, put_in
from isolux.curation.withdrawal.terms import Terms
from isolux.curation.withdrawal.walking import Place, files_below, of_project, projects_in


@dataclass(frozen=True, slots=True)
class Looked:
    """What is to go: how many files, rows, and what could not be looked through."""

    artefacts: tuple[Artefact, ...]
    blind: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found: counts of what was searched, places, and files that it cannot see."""

    counts: Mapping[str, int] = field(default_factory=dict)
    found: tuple[tuple[str, str], ...] = ()
    blind: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


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
    made_by: str,
    server: Callable[[str], Any] | None = None,
    remake: Callable[[Path, str], None] | None = None,
    search: Callable[[Sequence[Place], Terms, Sequence[str]], Searched] | None = None,
    key_file: Path | None = None,
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
    mend_runs(work, folders, remake)
    more = delete_on_server(work, plan, server)
    for folder in projects:
        _change_project(work, open_project(folder), terms, plan.number)
    os.sync()  # deleted files are deleted on the disk, before what names them goes
    if set(plan.scopes) >= set(SCOPES):
        erase(ledger, plan.marks, key=key_file)
    _revoke_in_others(ledger, key, plan, projects)
    searched = Searched()
    if search is not None:
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
        ledger, key, plan, work.artefacts(), at=now(), head=head, made_by=made_by,
        searched=searched.counts, replaced=(plan.replacing or {}).get("told", ()),
    )  # fmt: skip
    done = Withdrawn(receipt, tuple(work.artefacts()), (), (), (*more, *searched.notes))
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
