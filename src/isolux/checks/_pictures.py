"""What is known of a dataset's picture files: where they are, and what was seen inside.

Pixel checks read this and open nothing. ``located`` follows paths without opening a file;
``_inspection.inspect`` opens each of them once.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import polars as pl

from isolux.io.images import Pixels
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.tables import IMAGES

SEEN: dict[str, pl.DataType] = {
    "format": pl.String(),  # as the file's content says; null: not opened, or nothing known
    "stored_width": pl.Int64(),
    "stored_height": pl.Int64(),
    "orientation": pl.Int64(),  # EXIF, 1 to 8
    "frames": pl.Int64(),
    "trouble": pl.String(),  # unreadable, cut off, too large, damaged, another format
    "said": pl.String(),  # in whose words
    "gps": pl.Boolean(),
    "serial_number": pl.Boolean(),
    "owner": pl.Boolean(),
    "author": pl.Boolean(),
    "thumbnail": pl.Int64(),  # row of Pictures.thumbnails; null: none
}
"""Columns of ``Pictures.rows`` that opening a file gives."""

_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_UPWARDS = 4  # FHIBE's table lies three folders below the release's root
_TRIED = 50  # pictures looked for in each folder, from which the fullest is chosen
_BELOW = 40  # folders near the annotations that are tried: COCO's val2017/


@dataclass(frozen=True, slots=True)
class Pictures:
    """A dataset's pictures on disk.

    Parameters
    ----------
    root : Path
        The folder below which they lie, links followed.
    rows : polars.DataFrame
        One row an image that has a path: ``image_id``, ``uri``, ``place`` (``file``, ``missing``,
        ``absolute``, ``outside``, ``link outside``, ``not a file``), ``path`` (absolute, of those
        that may be opened), ``linked``; after inspection the columns of ``SEEN`` too.
    unnamed : polars.Series
        Pictures in the same folders that no image names, by their paths below the root.
    beside : int
        Further pictures there that belong to the release (``DatasetInfo.beside``).
    thumbnails : [n, 32, 32] uint8
        Grey, turned as their EXIF says.
    opened : bool
        Whether files were opened.
    """

    root: Path
    rows: pl.DataFrame
    unnamed: pl.Series
    thumbnails: Pixels
    opened: bool = False
    beside: int = 0


class WithoutPictures(Exception):  # noqa: N818 - no error: a dataset may do without
    """There are no pictures to look at; the message says why, as a sentence."""


def located(dataset: Dataset, root: str | Path | None) -> Pictures:
    """Find each image's file, below the root and nowhere else."""
    images = IMAGES.conform(dataset.images).select("image_id", "uri").drop_nulls("uri")
    local = images.filter(~pl.col("uri").str.contains(_ADDRESS))
    if local.is_empty():
        why = "its pictures are addresses, which are not opened" if images.height else "it has none"
        raise WithoutPictures(f"No file was looked for: {why}.")
    named = root if root is not None else dataset.root
    base = _resolved(Path(named).expanduser() if named else _found(dataset, local["uri"]))
    places = _Places(base)
    found = [places.of(uri) for uri in local["uri"]]
    rows = local.with_columns(
        place=pl.Series([place for place, _, _ in found], dtype=pl.String),
        path=pl.Series([path for _, path, _ in found], dtype=pl.String),
        linked=pl.Series([linked for _, _, linked in found], dtype=pl.Boolean),
    )
    empty = np.empty((0, 32, 32), dtype=np.uint8)
    unnamed = _unnamed(base, rows, dataset)
    known = pl.Series([_is_beside(uri, dataset) for uri in unnamed], dtype=pl.Boolean)
    return Pictures(base, rows, unnamed.filter(~known), empty, beside=int(known.sum()))


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


class _Places:
    """Follows paths below a root; a folder's links are followed once for all its files."""

    def __init__(self, base: Path) -> None:
        self.base = str(base)
        self.folders: dict[str, str | None] = {}

    def of(self, uri: str) -> tuple[str, str | None, bool]:
        """Say where a path leads, the file if it may be opened, and whether by way of a link."""
        if uri[:1] in {"/", "\\", "~"} or uri[1:3] in {":\\", ":/"}:
            return "absolute", None, False
        lexical = os.path.normpath(os.path.join(self.base, uri))  # noqa: PTH118 (speed)
        if not self._inside(lexical) or "\0" in uri:
            return "outside", None, False
        try:
            return self._followed(*os.path.split(lexical))
        except (OSError, ValueError):  # a name that is too long, or no text
            return "missing", None, False

    def _followed(self, folder: str, name: str) -> tuple[str, str | None, bool]:
        real = self._folder(folder)
        if real is None:
            return "link outside", None, True
        path, linked = f"{real}/{name}", real != folder
        kind = os.lstat(path).st_mode
        if stat.S_ISLNK(kind):
            path, linked = os.path.realpath(path), True
            if not self._inside(path):
                return "link outside", None, True
            kind = os.stat(path).st_mode  # noqa: PTH116 (speed)
        return ("file", path, linked) if stat.S_ISREG(kind) else ("not a file", None, linked)

    def _inside(self, path: str) -> bool:
        return path == self.base or path.startswith(self.base.rstrip("/") + "/")

    def _folder(self, folder: str) -> str | None:
        if folder not in self.folders:
            real = os.path.realpath(folder)
            self.folders[folder] = real if self._inside(real) else None
        return self.folders[folder]


def _found(dataset: Dataset, uris: pl.Series) -> Path:
    """Choose the folder that holds most of the first pictures, or else the annotation's own."""
    candidates: dict[Path, None] = {}
    for name in dataset.inputs:
        path = Path(os.path.realpath(Path(name).expanduser()))
        folders = [path, *path.parents] if path.is_dir() else list(path.parents)
        candidates |= dict.fromkeys(folders[:_UPWARDS])
        for folder in folders[:2]:
            below = sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
            candidates |= dict.fromkeys(below[:_BELOW])
    if not candidates:
        raise WithoutPictures(
            "No picture was looked for: nothing says where the pictures are (--images DIR)."
        )
    few = uris.head(_TRIED).to_list()
    counts = {
        base: sum(places.of(uri)[0] == "file" for uri in few)
        for base in candidates
        for places in [_Places(base)]
    }
    return max(counts, key=lambda base: counts[base])


def _unnamed(base: Path, rows: pl.DataFrame, dataset: Dataset) -> pl.Series:
    """List pictures that lie in the folders of named ones and that nothing names."""
    from isolux.io.images import IMAGE_SUFFIXES

    held = rows.filter(place="file")
    named = {os.path.normpath(uri) for uri in held["uri"]} | _part_uris(dataset)
    found = []
    for folder in sorted({os.path.dirname(uri) for uri in named}):  # noqa: PTH120
        real = base / folder
        if not _resolved(real).is_relative_to(base) or not real.is_dir():
            continue
        with os.scandir(real) as entries:
            for entry in entries:
                uri = f"{folder}/{entry.name}" if folder else entry.name
                picture = entry.name.lower().endswith((*IMAGE_SUFFIXES, ".gif"))
                if picture and uri not in named and entry.is_file(follow_symlinks=False):
                    found.append(uri.encode("utf-8", "replace").decode())
    return pl.Series("uri", sorted(found), dtype=pl.String)


def _is_beside(uri: str, dataset: Dataset) -> bool:
    name = uri.rpartition("/")[2]
    return any(fnmatchcase(name, pattern) for pattern in dataset.info.beside)


def _part_uris(dataset: Dataset) -> set[str]:
    """Gather the paths of pictures of parts: they are named too."""
    people, found = dataset.instances, set[str]()
    if "part_mask_uri" in people.columns:
        found |= set(people["part_mask_uri"].drop_nulls())
    if "part_mask_files" in people.columns:
        files = people["part_mask_files"].drop_nulls().explode().drop_nulls()
        found |= set(files.struct.field("uri").drop_nulls()) if len(files) else set()
    return {os.path.normpath(uri) for uri in found}
