"""Files below folders: those that are searched, and those of a project that are excluded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from isolux.core.errors import FileError, SpecError
from isolux.io.staging import settle_staging_below
from isolux_curate.project.database import SQLITE_FILE as DATABASE
from isolux_curate.project.folder import CONSENT_FILE, KEY_FILE, PROJECT_FILE


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file, as a root folder and the path below it with slashes."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The file's path."""
        return self.root / self.name


def resolve_existing_outermost_folders(paths: Sequence[str | Path]) -> list[Path]:
    """Resolve folders, without those inside another one."""
    folders = sorted({Path(path).expanduser().resolve() for path in paths})
    if not folders:
        raise SpecError("no folder is named", expected="a project, a run, any folder of files")
    for folder in folders:
        if folder.is_file():
            raise FileError(
                "this is a file",
                expected="a folder",
                where=str(folder),
                hint=f"name the folder that it is in: {folder.parent}",
            )
        if not folder.is_dir():
            raise FileError("there is no such folder", where=str(folder))
    return [folder for folder in folders if not any(parent in folders for parent in folder.parents)]


def find_project_folders(folders: Sequence[Path]) -> list[Path]:
    """Find curation projects below folders."""
    return [
        location.path.parent
        for location in iterate_files_sorted(folders)
        if location.path.name == PROJECT_FILE and (location.path.parent / KEY_FILE).is_file()
    ]


def iterate_files_sorted(
    folders: Sequence[Path], *, excluded_paths: Iterable[Path] = ()
) -> Iterator[FileLocation]:
    """List files in a fixed order; links are not followed."""
    excluded = {excluded_path.resolve() for excluded_path in excluded_paths}
    for root in folders:
        for dirpath, names, files in os.walk(root, onerror=_raise_unreadable_folder):
            directory = Path(dirpath)
            names[:] = sorted(
                folder_name for folder_name in names if directory / folder_name not in excluded
            )
            for name in sorted(files):
                path = directory / name
                if path not in excluded and path.is_file() and not path.is_symlink():
                    yield FileLocation(root, path.relative_to(root).as_posix())


def _raise_unreadable_folder(error: OSError) -> None:
    raise FileError("a folder cannot be read", found=str(error.strerror), where=error.filename)


def list_links_and_special_files(folders: Sequence[Path]) -> list[Path]:
    """List links, which are not followed, and pipes, sockets and devices, which are not read."""
    links = []
    for root in folders:
        for dirpath, names, files in os.walk(root):
            paths = [Path(dirpath) / name for name in (*names, *files)]
            links += [p for p in paths if p.is_symlink() or not (p.is_file() or p.is_dir())]
    return sorted(links)


def list_empty_folders(folders: Sequence[Path]) -> list[Path]:
    """List folders with nothing in them, whose names are no part of any file's path."""
    return sorted(
        Path(dirpath)
        for root in folders
        for dirpath, names, files in os.walk(root)
        if not names and not files
    )


def build_neighbour_lookup(
    locations: Sequence[FileLocation],
) -> Callable[[FileLocation], list[str]]:
    """Build a function that lists a file's siblings, and one file of each folder of its root."""
    names_by_folder: dict[tuple[Path, str], list[str]] = {}
    folders: dict[Path, dict[str, str]] = {}
    for location in locations:
        folder = location.name.rpartition("/")[0]
        names_by_folder.setdefault((location.root, folder), []).append(location.name)
        folders.setdefault(location.root, {}).setdefault(folder, location.name)
    first_names = {root: list(paths.values()) for root, paths in folders.items()}
    return lambda target: [
        *names_by_folder[target.root, target.name.rpartition("/")[0]],
        *first_names[target.root],
    ]


def remove_stale_staging_folders(folders: Sequence[Path]) -> None:
    """Remove staging directories of killed commands."""
    for root in folders:
        for _ in settle_staging_below(root):
            pass


def list_unsearched_project_files(folder: Path) -> list[Path]:
    """List a project's own files, which are not searched: keys, ledger and database."""
    names = (KEY_FILE, CONSENT_FILE, f"{CONSENT_FILE}.key", DATABASE, f"{DATABASE}-journal")
    return [folder / name for name in names]
