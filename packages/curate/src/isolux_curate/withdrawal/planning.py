"""The plan of a withdrawal, of someone who asks for it or is back from a backup.

What names a person is found before anything is changed. Who is back is known by the marks of ledger
and receipts: every id and every name of a file that stands in the folders is hashed under the key
and looked up.
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
    """Those of one kind who are back: their ids, other names, sums of photos, and their marks."""

    kind: Kind
    who: tuple[str, ...]
    named: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pictures: frozenset[str] = frozenset()
    marks: tuple[str, ...] = ()


def who_is_back(
    folders: Sequence[Path],
    places: Sequence[Place],
    ledger: Path,
    key: bytes,
    scope: Scope,
    *,
    published: Sequence[bytes] = (),
) -> list[Back]:
    """Find those who revoked a scope, did not grant it again, and stand in folders."""
    names, columns = _names(folders, places), replaced_columns(places)
    gone, receipts = _revoked(ledger, scope), receipts_of(ledger)
    photos = [one.path for one in places if one.path.suffix.lower() in PICTURES]
    sums = {sha256_file(path) for path in photos} if receipts else set()
    found = []
    for kind in KINDS:
        told = {mark_of(kind, one, key): one for one in names.get(kind, ())}
        told |= _of_published(ledger, kind, names.get(kind, set()), published, columns)
        who = [told[mark] for mark in gone[kind] if mark in told]
        marks = {mark for mark in gone[kind] if mark in told}
        named: dict[str, frozenset[str]] = {}
        pictures: frozenset[str] = frozenset()
        for path in receipts:
            said = check_receipt(path, ledger=ledger)
            if said["kind"] != kind or not set(said["people"]) <= set(gone[kind]):
                continue
            held = frozenset(said["marks"])
            for of, some in names.items():
                mine = frozenset(one for one in some if mark_of(of, one, key) in held)
                named[of] = named.get(of, frozenset()) | mine
            seen = frozenset(one for one in sums if mark_of("picture", one, key) in held)
            pictures |= seen
            if seen or any(named.values()):
                marks |= set(said["people"])
        if who or pictures or any(named.values()):
            found.append(Back(kind, tuple(who), named, pictures, tuple(sorted(marks))))
    return found


def _revoked(ledger: Path, scope: Scope) -> dict[str, list[str]]:
    """List marks of who revoked a scope and did not grant it again, by kind."""
    state: dict[tuple[str, str], bool] = {}
    for row in read_ledger(ledger).rows:
        if scope in row.scopes:
            state[row.kind, row.mark] = row.act == "grant"
    return {kind: [m for (k, m), may in state.items() if k == kind and not may] for kind in KINDS}


def _of_published(
    ledger: Path, kind: Kind, here: set[str], published: Sequence[bytes], columns: Sequence[str]
) -> dict[str, str]:
    """Find those whom the ledger names and who stand here under a published name: id by mark."""
    if not published:
        return {}
    return {
        row.mark: row.who
        for row in read_ledger(ledger).rows
        if row.kind == kind
        and row.who is not None
        and any(
            name in here for one in published for name in published_as(one, kind, row.who, columns)
        )
    }


def _names(folders: Sequence[Path], places: Sequence[Place]) -> dict[str, set[str]]:
    """Collect every id and name of a file that could be someone's."""
    found: dict[str, set[str]] = {}
    for folder in projects_in(folders):
        held = Found()
        find_in(open_project(folder), held)
        for kind, names in (*held.others.items(), *people_of(open_project(folder)).items()):
            found.setdefault(kind, set()).update(names)
    for table in tables_in(places):
        for column in table.columns:
            kinds, _ = kinds_of_column(column) or ((), False)
            cells = set(table[column].drop_nulls())
            for kind in kinds:
                found.setdefault(kind, set()).update(cells)
    for place in places:
        parts = place.name.split("/")
        found.setdefault("file", set()).update({place.name, parts[-1]})
        for kind in ("image", "instance"):
            found.setdefault(kind, set()).update(short_names(parts[-1]))
        found.setdefault("subject", set()).update(parts[:-1])
    return found


def plan_of(
    folders: Sequence[Path],
    ledger: Path,
    key: bytes,
    kind: Kind,
    who: Sequence[str],
    scopes: Sequence[Scope],
    *,
    back: Back | None = None,
    published: Sequence[bytes] = (),
) -> Plan:
    """Find what names people below folders; projects stay as they are where evaluation stands."""
    whole = "evaluation" in scopes
    places = places_of(folders, ledger, projects_in(folders))
    found, looks = _known(folders, places, kind, who, published, whole=whole, back=back)
    marks = back.marks if back else tuple(mark_of(kind, one, key) for one in who)
    named = {name: sorted(held) for name, held in sorted(found.named.items())}
    projects = projects_in(folders) if whole else []
    return Plan(
        kind,
        marks,
        tuple(scopes),
        tuple(map(str, folders)),
        named,
        tuple(sorted(found.pictures)),
        now(),
        secrets.token_hex(8),
        tuple(looks),
        tuple(one for at in projects for one in tasks_of(open_project(at), found)),
    )


def known_of(
    folders: Sequence[Path], kind: Kind, who: Sequence[str], published: Sequence[bytes] = ()
) -> tuple[Terms, list[Place], Sequence[str]]:
    """Find what names people below folders, for a search that changes nothing."""
    keys = [
        one
        for project in projects_in(folders)
        for one in of_project(project)
        if one.suffix == ".key"
    ]
    places = list(files_below(folders, apart=keys))
    found, looks = _known(folders, places, kind, who, published, whole=True)
    for plan in _unfinished(places, kind, who):  # it knows what is deleted by now
        looks = [*dict.fromkeys([*looks, *plan.looks])]
        found.pictures |= set(plan.pictures)
        for name, held in plan.named.items():
            found.add(name, held)
    return found.terms(), places, looks


def _unfinished(places: Sequence[Place], kind: Kind, who: Sequence[str]) -> Iterator[Plan]:
    """Read what withdrawals of these people that are not finished set out to find."""
    for place in places:
        if place.path.name.endswith(UNFINISHED):
            plan = Work(place.path).plan()
            if plan is not None and plan.kind == kind and set(who) & set(plan.named.get(kind, ())):
                yield plan


def _add_published(found: Found, keys: Sequence[bytes], places: Sequence[Place]) -> None:
    """Add what `isolux curate publish` and `anonymise` called them under keys, and their photos."""
    if not keys:
        return
    columns = replaced_columns(places)
    for kind, names in list(found.named.items()):
        for name in names - found.pseudonyms:
            for key in keys:
                said = published_as(key, kind, name, columns)
                found.pseudonyms.update(said)
                found.add(kind, said)
    find_in_tables(places, found)


def _known(
    folders: Sequence[Path],
    places: Sequence[Place],
    kind: Kind,
    who: Sequence[str],
    published: Sequence[bytes],
    *,
    whole: bool,
    back: Back | None = None,
) -> tuple[Found, Sequence[str]]:
    found = Found()
    found.add(kind, list(who))
    if back is not None:
        found.pictures |= back.pictures
        for name, held in back.named.items():
            found.add(name, sorted(held))
    projects = [open_project(one) for one in (projects_in(folders) if whole else [])]
    for _ in range(2):  # tables may name photos whose bytes others in the project have
        for project in projects:
            find_in(project, found)
        if kind != "annotator":
            find_in_tables(places, found)
        _add_published(found, published, places)
    looks: Sequence[str] = ()
    if kind != "annotator":
        pictures = known_pictures(places, found.terms())
        looks = pictures.looks
        found.pictures |= pictures.sums
        for project in projects:
            find_in(project, found)
        found.add("file", {one for one in pictures.names if "/" in one or is_distinctive(one)})
        find_in_tables(places, found)
        _add_published(found, published, places)
    return found, looks


def places_of(folders: Sequence[Path], ledger: Path, projects: Sequence[Path]) -> list[Place]:
    """List the files that are looked through: all but ledgers, keys, receipts and databases."""
    apart = [ledger, Path(f"{ledger}.key"), work_path(ledger), folder_of(ledger)]
    apart += [one for project in projects for one in of_project(project)]
    return list(files_below(folders, apart=apart))


def everyone_else(folders: Sequence[Path], places: Sequence[Place]) -> Mapping[str, frozenset[str]]:
    """List the names of everyone whom projects and tables know."""
    found = Found()
    for folder in projects_in(folders):
        find_in(open_project(folder), found)
    find_in_tables(places, found)
    return {kind: frozenset(names) for kind, names in found.others.items()}
