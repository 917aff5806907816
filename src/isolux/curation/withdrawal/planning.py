"""What names a person below folders, found before anything is changed: the plan of a withdrawal."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isolux.curation._chain import mark_of
from isolux.curation.consent import Kind, Scope
from isolux.curation.project.folder import open_project
from isolux.curation.project.journal import now
from isolux.curation.withdrawal.gathering import find_in_tables, known_pictures
from isolux.curation.withdrawal.progress import UNFINISHED, Plan, Work, work_path
from isolux.curation.withdrawal.project_rows import Found, find_in
from isolux.curation.withdrawal.pseudonymised import replaced_columns
from isolux.curation.withdrawal.published import published_as
from isolux.curation.withdrawal.receipt import folder_of
from isolux.curation.withdrawal.replaying import Back
from isolux.curation.withdrawal.terms import Terms, is_distinctive
from isolux.curation.withdrawal.walking import Place, files_below, of_project, projects_in

__all__ = ["everyone_else", "known_of", "places_of", "plan_of"]


def apart_of(ledger: Path, key: Path, projects: Sequence[Path]) -> list[Path]:
    """Name what is left where it is: ledgers, keys, receipts, databases, the plan."""
    own = [ledger, key, work_path(ledger), folder_of(ledger)]
    return [*own, *(one for project in projects for one in of_project(project))]


def plan_of(
    folders: Sequence[Path],
    ledger: Path,
    key: bytes,
    kind: Kind,
    who: Sequence[str],
    scopes: Sequence[Scope],
    *,
    whole: bool,
    back: Back | None = None,
    published: Sequence[bytes] = (),
) -> Plan:
    """Find what names people below folders."""
    places = places_of(folders, ledger, projects_in(folders))
    found, looks = _known(folders, places, kind, who, published, whole=whole, back=back)
    marks = back.marks if back else tuple(mark_of(kind, one, key) for one in who)
    named = {name: sorted(held) for name, held in sorted(found.named.items())}
    projects = projects_in(folders) if whole else []
    return Plan(
        kind, marks, tuple(scopes), tuple(map(str, folders)), named,
        tuple(sorted(found.pictures)), now(), secrets.token_hex(8), tuple(looks),
        tuple(_server_tasks(projects, found)),
    )  # fmt: skip


def known_of(
    folders: Sequence[Path], kind: Kind, who: Sequence[str], published: Sequence[bytes] = ()
) -> tuple[Terms, list[Place], Sequence[str]]:
    """Find what names people below folders, for a search that changes nothing."""
    keys = [one for project in projects_in(folders) for one in of_project(project)
            if one.suffix == ".key"]  # fmt: skip
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
    apart = apart_of(ledger, Path(f"{ledger}.key"), projects)
    return list(files_below(folders, apart=apart))


def _server_tasks(projects: Sequence[Path], found: Found) -> Iterable[Mapping[str, Any]]:
    from isolux.curation.withdrawal.on_server import tasks_of

    for folder in projects:
        yield from tasks_of(open_project(folder), found)


def everyone_else(folders: Sequence[Path], places: Sequence[Place]) -> Mapping[str, frozenset[str]]:
    """List the names of everyone whom projects and tables know."""
    found = Found()
    for folder in projects_in(folders):
        find_in(open_project(folder), found)
    find_in_tables(places, found)
    return {kind: frozenset(names) for kind, names in found.others.items()}
