"""Files below folders: what is looked through, and what is known to name people and is left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from isolux.io.stages import left_below
from isolux.vocabulary.errors import FileError, SpecError
from isolux_curate.project.database import FILE as DATABASE
from isolux_curate.project.folder import CONSENT, KEY, MARK


@dataclass(frozen=True, slots=True)
class Place:
    """A file: the folder that was given, and its path below it with slashes."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The file."""
        return self.root / self.name


def folders_of(given: Sequence[str | Path]) -> list[Path]:
    """Resolve folders, and leave out those that lie in another."""
    found = sorted({Path(one).expanduser().resolve() for one in given})
    if not found:
        raise SpecError("no folder is named", expected="a project, a run, any folder of files")
    for one in found:
        if one.is_file():
            raise FileError(
                "this is a file",
                expected="a folder",
                where=str(one),
                hint=f"name the folder that it is in: {one.parent}",
            )
        if not one.is_dir():
            raise FileError("there is no such folder", where=str(one))
    return [one for one in found if not any(up in found for up in one.parents)]


def projects_in(folders: Sequence[Path]) -> list[Path]:
    """Find projects of curation in folders."""
    return [
        place.path.parent
        for place in files_below(folders)
        if place.path.name == MARK and (place.path.parent / KEY).is_file()
    ]


def files_below(folders: Sequence[Path], *, apart: Iterable[Path] = ()) -> Iterator[Place]:
    """List files in a fixed order; links are not followed."""
    left = {one.resolve() for one in apart}
    for root in folders:
        for at, names, files in os.walk(root, onerror=_refuse_unread):
            here = Path(at)
            names[:] = sorted(one for one in names if here / one not in left)
            for name in sorted(files):
                path = here / name
                if path not in left and path.is_file() and not path.is_symlink():
                    yield Place(root, path.relative_to(root).as_posix())


def _refuse_unread(error: OSError) -> None:
    raise FileError("a folder cannot be read", found=str(error.strerror), where=error.filename)


def links_below(folders: Sequence[Path]) -> list[Path]:
    """List links, which are not followed, and pipes, sockets and devices, which are not read."""
    found = []
    for root in folders:
        for at, names, files in os.walk(root):
            below = [Path(at) / one for one in (*names, *files)]
            found += [p for p in below if p.is_symlink() or not (p.is_file() or p.is_dir())]
    return sorted(found)


def beside_of(places: Sequence[Place]) -> Callable[[Place], list[str]]:
    """Tell of each file what lies beside it, and one file of each folder of its root."""
    near: dict[tuple[Path, str], list[str]] = {}
    folders: dict[Path, dict[str, str]] = {}
    for place in places:
        folder = place.name.rpartition("/")[0]
        near.setdefault((place.root, folder), []).append(place.name)
        folders.setdefault(place.root, {}).setdefault(folder, place.name)
    first = {root: list(held.values()) for root, held in folders.items()}
    return lambda one: [*near[one.root, one.name.rpartition("/")[0]], *first[one.root]]


def sweep_below(folders: Sequence[Path]) -> None:
    """Remove what killed commands left half-written."""
    for root in folders:
        for _ in left_below(root):
            pass


def of_project(folder: Path) -> list[Path]:
    """Name the files of a project that are no artefacts: its keys, its ledger, its database."""
    names = (KEY, CONSENT, f"{CONSENT}.key", DATABASE, f"{DATABASE}-journal")
    return [folder / one for one in names]
