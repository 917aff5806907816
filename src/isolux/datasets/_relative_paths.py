"""Paths in a dataset's table that must lead to its own pictures, and listings of its folders."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError
from isolux.core.formatting import join_first
from isolux.core.notes import Caution
from isolux.datasets._files import Inputs, find_single_file
from isolux.io.hashing import sha256_listing
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.refusals import refuse_cells
from isolux.io.text import check_utf8

IMAGE_NAME_PATTERN = rf"(?i)({'|'.join(IMAGE_SUFFIXES)})$".replace(".", r"\.")
"""What the name of a picture ends in."""
_OUTSIDE = r"^[/\\~]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|\x00"
_CAUTION_SHARE = 0.01  # of the pictures, from which their loss can move a number by a point
_MAX_LISTED = 3


def check_paths_stay_inside(paths: pl.Series, source: str, column: str) -> None:
    """Refuse a path that is absolute or climbs out of the dataset's folder."""
    refuse_cells(
        paths.str.contains(_OUTSIDE),
        paths,
        "a path leads out of the dataset's folder",
        "a path below it, without '..'",
        source,
        column=column,
        max_length=120,
    )


def list_relative_file_paths(root: Path) -> pl.Series:
    """List the files below a folder, by their paths in it, sorted. Links to folders stay closed."""
    relative_paths: list[str] = []

    def refuse(error: OSError) -> None:
        raise FileError(
            "the folder cannot be listed", found=error.strerror, where=str(root)
        ) from error

    for folder, _, names in os.walk(root, onerror=refuse):
        relative_folder = os.path.relpath(folder, root).replace(os.sep, "/")
        relative_paths += (
            names if relative_folder == "." else [f"{relative_folder}/{name}" for name in names]
        )
    try:
        return pl.Series("file", sorted(relative_paths), dtype=pl.String)
    except UnicodeEncodeError as error:
        raise FileError(
            "the name of a file is not UTF-8 text", found=ascii(error.object), where=str(root)
        ) from error


@dataclass(frozen=True, slots=True)
class FolderListing:
    """Paths below a dataset's folder, and the hash of what listed them."""

    names: pl.Series
    digest: str


def list_files_of_folder_or_list(root: Path, description: str) -> FolderListing:
    """List the files of a folder, or the paths in a text file, a line each."""
    if root.is_dir():
        return FolderListing(list_relative_file_paths(root), sha256_listing(root))
    file, inputs = find_single_file(root, (), description), Inputs()
    text = check_utf8(inputs.read(file), str(file)).decode("utf-8")
    lines = pl.Series("file", text.splitlines(), pl.String)
    check_paths_stay_inside(lines, str(file), "file")
    names = lines.str.strip_chars().str.strip_prefix("./")
    is_repeated = ~names.is_first_distinct() & (names != "")
    refuse_cells(
        is_repeated, names.alias(""), "a picture is listed twice", "each path once", str(file)
    )
    return FolderListing(names, inputs[str(file)])


def note_images_without_annotation(
    folders: Iterable[Path], labelled: Collection[str], *, annotation_word: str, empty: str
) -> tuple[str, ...]:
    """Count the pictures of these folders that have no annotation file."""
    pictures = [
        file
        for folder in dict.fromkeys(folders)
        if folder.is_dir()
        for file in folder.iterdir()
        if file.suffix.lower() in IMAGE_SUFFIXES
    ]
    labelled_names = set(labelled)
    unlabelled = sorted(file for file in pictures if file.stem not in labelled_names)
    if not unlabelled or len(unlabelled) == len(pictures):
        return ()  # a folder of other pictures
    examples = join_first((file.name for file in unlabelled), _MAX_LISTED)
    note = (
        f"{len(unlabelled):,} of {len(pictures):,} pictures have no {annotation_word} ({examples},"
        f" in {unlabelled[0].parent}): who is in them is not judged, nor what is found in them."
        f" {empty} says that a picture holds nothing."
    )
    return (Caution(note) if len(unlabelled) >= _CAUTION_SHARE * len(pictures) else note,)
