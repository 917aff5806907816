"""Files lose a person: each is looked through, changed or deleted, and the change is noted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from isolux.curation._chain import mark_of
from isolux.curation.withdrawal.progress import Artefact, Work
from isolux.curation.withdrawal.rewriting import rewrite
from isolux.curation.withdrawal.terms import Terms
from isolux.curation.withdrawal.walking import Place, beside_of
from isolux.io.atomic import RUN_MARK, write_bytes
from isolux.vocabulary.errors import FileError, OutputError

__all__ = ["artefact_of", "change_files", "mend_sums", "rewritten", "told"]

_LISTS_OF_LISTS = 3
_WITH_SUMS = (".json", ".jsonld", ".txt", ".sha256", ".csv", ".md", ".yaml", ".yml", ".sums")


def rewritten(places: Sequence[Place], terms: Terms) -> Iterable[tuple[Place, bytes, Any]]:
    """Give each file, its bytes, and what becomes of them."""
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
        yield place, data, rewrite(place.name, data, beside(place), terms)


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
        masked, "file", "deleted" if after is None else "rewritten", n,
        mark_of("file", old, key), None if after is None else hashlib.sha256(after).hexdigest(),
    )  # fmt: skip


def change_files(
    work: Work, places: Sequence[Place], terms: Terms, key: bytes
) -> list[tuple[str, str]]:
    """Change or delete each file that holds them; those that cannot be looked through are named."""
    blind = []
    for place, data, done in rewritten(places, terms):
        if done.why:
            blind.append((terms.masked(told(place)), done.why))
            continue
        if not done.n:
            continue
        before = hashlib.sha256(data).hexdigest()
        work.note(artefact_of(place, data, done.data, done.n, terms, key), sum_before=before)
        if done.data is not None:
            mode = place.path.stat().st_mode
            write_bytes(place.path, done.data)
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
