"""Who withdrew and is back, since a backup was restored: known by the marks of ledger and receipts.

Every id and every name of a file that stands in the folders is hashed under the key and looked up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isolux.curation._chain import mark_of
from isolux.curation.consent import KINDS, Kind, Scope, read_ledger
from isolux.curation.project.folder import open_project
from isolux.curation.withdrawal.gathering import tables_in
from isolux.curation.withdrawal.project_rows import Found, find_in, people_of
from isolux.curation.withdrawal.pseudonymised import replaced_columns
from isolux.curation.withdrawal.published import published_as
from isolux.curation.withdrawal.receipt import check_receipt, receipts_of
from isolux.curation.withdrawal.rewriting import PICTURES
from isolux.curation.withdrawal.terms import kinds_of_column, short_names
from isolux.curation.withdrawal.walking import Place, projects_in

__all__ = ["Back", "who_is_back"]


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
    gone = _revoked(ledger, scope)
    found = []
    for kind in KINDS:
        told = {mark_of(kind, one, key): one for one in names.get(kind, ())}
        told |= _of_published(ledger, kind, names.get(kind, set()), published, columns)
        who = [told[mark] for mark in gone[kind] if mark in told]
        marks = {mark for mark in gone[kind] if mark in told}
        named: dict[str, frozenset[str]] = {}
        pictures: frozenset[str] = frozenset()
        for path in receipts_of(ledger):
            said = check_receipt(path, ledger=ledger)
            if said["kind"] != kind or not set(said["people"]) <= set(gone[kind]):
                continue
            held = frozenset(said["marks"])
            for of, some in names.items():
                mine = frozenset(one for one in some if mark_of(of, one, key) in held)
                named[of] = named.get(of, frozenset()) | mine
            seen = frozenset(one for one in _sums(places) if mark_of("picture", one, key) in held)
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
        if row.kind == kind and row.who is not None
        and any(name in here for one in published
                for name in published_as(one, kind, row.who, columns))
    }  # fmt: skip


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


def _sums(places: Sequence[Place]) -> set[str]:
    return {
        hashlib.sha256(one.path.read_bytes()).hexdigest()
        for one in places if one.path.suffix.lower() in PICTURES
    }  # fmt: skip
