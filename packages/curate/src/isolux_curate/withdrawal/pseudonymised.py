"""Folders and tables that name people by pseudonyms: without the key, no search finds anyone there.

``isolux curate publish`` and ``anonymise`` write down under which key ids were replaced (its mark,
not the key). Older folders are known by their records, runs by the dataset that they name, and
copied tables by what pseudonyms look like. There, a key fits if someone is found by it.

What `isolux curate publish` and `anonymise` called someone under a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from isolux.datasets import FORMAT
from isolux_curate.id_columns import kinds_of_column
from isolux_curate.privacy import KEY_MARK, key_mark
from isolux_curate.privacy.table import pseudonym
from isolux_curate.withdrawal.gathering import tables_by_place
from isolux_curate.withdrawal.walking import Place


def published_as(key: bytes, kind: str, name: str, more: Sequence[str] = ()) -> list[str]:
    """List the names under which someone, or a file of theirs, was published.

    Examples
    --------
    >>> len(published_as(b"key", "subject", "s17")), len(published_as(b"key", "file", "a.jpg"))
    (2, 1)
    """
    columns = ("file",) if kind == "file" else (f"{kind}_id", kind, *more)
    return [pseudonym(key, column, name) for column in dict.fromkeys(columns)]


_PSEUDONYM = "^[0-9a-f]{16}$"
_PUBLISHED = ("people.csv", "answers.csv", "objects.json")
_OF_PEOPLE = ("subject", "copyright", "annotator")
_NO_KEY = (
    "people are in it under pseudonyms, which were not searched for: name the key of isolux curate"
    " publish or anonymise with --published-key FILE"
)
_NO_LINK = (
    "people are in it under pseudonyms, and no key that was given leads any of them back: name the"
    " right one with --published-key FILE and, for a run, its published folder or project, too"
)

_NO_PEOPLE = (
    "it names photos and no people, and nothing in the folders says which photos are theirs: name"
    " the project, or the folder with the table of people and photos, too"
)


def key_mark_in(name: str, data: bytes) -> str | None:
    """Read the mark of the key under which a record says that ids were replaced.

    Examples
    --------
    >>> key_mark_in("dataset.json", b'{"format": "isolux curated dataset"}')
    ''
    """
    told = _record(name, data)
    spec, dataset = told.get("spec"), told.get("dataset")
    source = spec.get("data") if isinstance(spec, dict) else told.get("data")
    file = PurePosixPath(name).name
    if KEY_MARK in told:
        return str(told[KEY_MARK])
    is_published = (
        told.get("format") == FORMAT
        or (file == "privacy.json" and "settings" in told)
        or (file == "publish.json" and {"settings", "files"} <= told.keys())
    )
    is_of_published = str(source).startswith("curated:") or (
        isinstance(dataset, dict) and dataset.get("name") == "curated"
    )
    return "" if is_published or is_of_published else None


def _record(name: str, data: bytes) -> dict[str, Any]:
    """Read an object of JSON; empty: the file is none."""
    try:
        told = json.loads(data) if name.endswith(".json") else None
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def replaced_columns(places: Iterable[Place]) -> tuple[str, ...]:
    """List the columns of ids that `isolux curate anonymise` says it replaced."""
    found: dict[str, None] = {}
    for place in places:
        if place.path.name == "privacy.json":
            settings = _record(place.name, place.path.read_bytes()).get("settings")
            ids = settings.get("ids") if isinstance(settings, dict) else None
            found |= dict.fromkeys(map(str, ids if isinstance(ids, list) else ()))
    return tuple(found)


def without_key(
    places: Sequence[Place],
    keys: Sequence[bytes],
    known: Mapping[str, Collection[str]],
    who: Collection[str],
) -> list[tuple[str, str]]:
    """List what names people by pseudonyms that no given key is known to lead back."""
    marks = _declared(places)
    ids: dict[Path, set[str]] = {folder: set() for folder, own in marks.items() if own is not None}
    looks_alike = all(re.match(_PSEUDONYM, one) for one in who)
    for place, table in tables_by_place(places):
        cells = {one for column in table.columns for one in table[column].drop_nulls()}
        folder = next((up for up in place.path.parents if up in marks), None)
        if folder in ids:
            ids[folder] |= cells
        elif not looks_alike and _is_replaced(table, of_run=folder is not None):
            ids.setdefault(folder or place.path, set()).update(cells)
    if not ids:
        return []
    given, columns = {key_mark(key) for key in keys}, replaced_columns(places)
    names = {
        name
        for key in keys
        for kind, some in known.items()
        for one in some
        for name in published_as(key, kind, one, columns)
    }

    def fits(at: Path) -> bool:
        own = marks.get(at) or set()
        return bool(own & given) if own else not ids[at].isdisjoint(names)

    while known_now := [at for at in ids if fits(at)]:  # a run by its published folder
        for at in known_now:
            names |= ids.pop(at)
    return [(str(at), _NO_LINK if keys else _NO_KEY) for at in sorted(ids)]


def without_link(places: Iterable[Place], kind: str) -> list[tuple[str, str]]:
    """List tables of photos without people, where no table says whose photos are whose."""
    unread = []
    for place, table in tables_by_place(places):
        kinds = {kinds_of_column(c) or ((), False) for c in table.columns}
        has_photos = "unit_id" in table.columns or any(
            strict and of[0] in ("image", "instance", "file") for of, strict in kinds
        )
        has_people = any(strict and kind in of for of, strict in kinds)
        if has_photos and has_people:
            return []
        if has_photos:
            unread.append((str(place.path), _NO_PEOPLE))
    return unread


def _declared(places: Iterable[Place]) -> dict[Path, set[str] | None]:
    """Give folders whose records say that ids were replaced, with the marks of the keys."""
    found: dict[Path, set[str] | None] = {}
    for place in places:
        if place.path.suffix != ".json":
            continue
        data, folder = place.path.read_bytes(), place.path.parent
        mark = key_mark_in(place.name, data)
        if mark is not None:
            found[folder] = (found.get(folder) or set()) | ({mark} - {""})
        elif folder not in found:
            inputs = _record(place.name, data).get("inputs")
            if isinstance(inputs, dict) and any(
                PurePosixPath(one).name in _PUBLISHED for one in inputs
            ):
                found[folder] = None
    return found


def _is_replaced(table: pl.DataFrame, *, of_run: bool) -> bool:
    """Tell whether all ids of people, or of a run's units, look like pseudonyms."""
    columns = [
        c
        for c in table.columns
        if ((kinds := kinds_of_column(c)) is not None and kinds[0][0] in _OF_PEOPLE and kinds[1])
        or (of_run and c == "unit_id")
    ]
    cells = [table[c].drop_nulls() for c in columns]
    return any(len(one) > 0 and bool(one.str.contains(_PSEUDONYM).all()) for one in cells)
