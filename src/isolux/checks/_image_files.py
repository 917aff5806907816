"""What is known of a dataset's picture files: where they are, and what was seen inside.

Pixel checks read this and open nothing. ``locate_images`` follows paths without opening a file;
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

from isolux.core.containers import Dataset
from isolux.core.tables import IMAGES
from isolux.io.images import Pixels

INSPECTION_COLUMNS: dict[str, pl.DataType] = {
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
"""Columns of ``ImageFiles.rows`` that opening a file gives."""

_URL_PATTERN = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_MAX_PARENTS = 4  # FHIBE's table lies three folders below the release's root
_N_TRIED_IMAGES = 50  # pictures looked for in each folder, from which the fullest is chosen
_MAX_SUBFOLDERS = 40  # folders near the annotations that are tried: COCO's val2017/


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """A dataset's image files on disk.

    Parameters
    ----------
    root : Path
        The folder below which they lie, links followed.
    rows : polars.DataFrame
        One row an image that has a path: ``image_id``, ``uri``, ``place`` (``file``, ``missing``,
        ``absolute``, ``outside``, ``link outside``, ``not a file``), ``path`` (absolute, of those
        that may be opened), ``linked``; after inspection the columns of ``INSPECTION_COLUMNS`` too.
    unlisted : polars.Series
        Pictures in the same folders that no image names, by their paths below the root.
    n_siblings : int
        Further pictures there that belong to the release (``DatasetInfo.sibling_image_globs``).
    thumbnails : [n, 32, 32] uint8
        Grey, turned as their EXIF says.
    is_opened : bool
        Whether files were opened.
    """

    root: Path
    rows: pl.DataFrame
    unlisted: pl.Series
    thumbnails: Pixels
    is_opened: bool = False
    n_siblings: int = 0


class NoImages(Exception):  # noqa: N818 - no error: a dataset may do without
    """There are no pictures to look at; the message says why, as a sentence."""


def locate_images(dataset: Dataset, root: str | Path | None) -> ImageFiles:
    """Find each image's file, below the root and nowhere else."""
    images = IMAGES.conform(dataset.images).select("image_id", "uri").drop_nulls("uri")
    local = images.filter(~pl.col("uri").str.contains(_URL_PATTERN))
    if local.is_empty():
        reason = (
            "they are addresses, which are not opened" if images.height else "the data name none"
        )
        raise NoImages(f"Pictures were not checked: {reason}.")
    image_folder = root if root is not None else dataset.root
    base = _resolve_path(
        Path(image_folder).expanduser()
        if image_folder
        else _find_image_folder(dataset, local["uri"])
    )
    resolver = _PathResolver(base)
    resolved = [resolver.resolve(uri) for uri in local["uri"]]
    rows = local.with_columns(
        place=pl.Series([place_type for place_type, _, _ in resolved], dtype=pl.String),
        path=pl.Series([path for _, path, _ in resolved], dtype=pl.String),
        linked=pl.Series([linked for _, _, linked in resolved], dtype=pl.Boolean),
    )
    empty = np.empty((0, 32, 32), dtype=np.uint8)
    unnamed = _list_unnamed_images(base, rows, dataset)
    is_sibling = pl.Series([_belongs_to_release(uri, dataset) for uri in unnamed], dtype=pl.Boolean)
    return ImageFiles(
        base, rows, unnamed.filter(~is_sibling), empty, n_siblings=int(is_sibling.sum())
    )


def _resolve_path(path: Path) -> Path:
    return Path(os.path.realpath(path))


class _PathResolver:
    """Follows paths below a root; a folder's links are followed once for all its files."""

    def __init__(self, base: Path) -> None:
        self.base = str(base)
        self.folders: dict[str, str | None] = {}

    def resolve(self, uri: str) -> tuple[str, str | None, bool]:
        """Resolve a path: its type, the file if it may be opened, and whether it is linked."""
        if uri[:1] in {"/", "\\", "~"} or uri[1:3] in {":\\", ":/"}:
            return "absolute", None, False
        lexical = os.path.normpath(os.path.join(self.base, uri))  # noqa: PTH118 (speed)
        if not self._is_inside_root(lexical) or "\0" in uri:
            return "outside", None, False
        try:
            return self._follow_links(*os.path.split(lexical))
        except (OSError, ValueError):  # a name that is too long, or no text
            return "missing", None, False

    def _follow_links(self, folder: str, name: str) -> tuple[str, str | None, bool]:
        real = self._resolve_folder(folder)
        if real is None:
            return "link outside", None, True
        path, is_linked = f"{real}/{name}", real != folder
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            path, is_linked = os.path.realpath(path), True
            if not self._is_inside_root(path):
                return "link outside", None, True
            mode = os.stat(path).st_mode  # noqa: PTH116 (speed)
        return ("file", path, is_linked) if stat.S_ISREG(mode) else ("not a file", None, is_linked)

    def _is_inside_root(self, path: str) -> bool:
        return path == self.base or path.startswith(self.base.rstrip("/") + "/")

    def _resolve_folder(self, folder: str) -> str | None:
        if folder not in self.folders:
            real = os.path.realpath(folder)
            self.folders[folder] = real if self._is_inside_root(real) else None
        return self.folders[folder]


def _find_image_folder(dataset: Dataset, uris: pl.Series) -> Path:
    """Choose the folder that holds most of the first pictures, or else the annotation's own."""
    candidates: dict[Path, None] = {}
    for name in dataset.inputs:
        path = Path(os.path.realpath(Path(name).expanduser()))
        folders = [path, *path.parents] if path.is_dir() else list(path.parents)
        candidates |= dict.fromkeys(folders[:_MAX_PARENTS])
        for folder in folders[:2]:
            subfolders = (
                sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
            )
            candidates |= dict.fromkeys(subfolders[:_MAX_SUBFOLDERS])
    if not candidates:
        raise NoImages(
            "No picture was looked for: nothing says where the pictures are (--images DIR)."
        )
    first_uris = uris.head(_N_TRIED_IMAGES).to_list()
    counts = {
        base: sum(resolver.resolve(uri)[0] == "file" for uri in first_uris)
        for base in candidates
        for resolver in [_PathResolver(base)]
    }
    return max(counts, key=lambda base: counts[base])


def _list_unnamed_images(base: Path, rows: pl.DataFrame, dataset: Dataset) -> pl.Series:
    """List pictures that lie in the folders of named ones and that nothing names."""
    from isolux.io.images import IMAGE_SUFFIXES

    existing = rows.filter(place="file")
    listed_uris = {os.path.normpath(uri) for uri in existing["uri"]} | _read_part_uris(dataset)
    unlisted = []
    for folder in sorted({os.path.dirname(uri) for uri in listed_uris}):  # noqa: PTH120
        real = base / folder
        if not _resolve_path(real).is_relative_to(base) or not real.is_dir():
            continue
        with os.scandir(real) as entries:
            for entry in entries:
                uri = f"{folder}/{entry.name}" if folder else entry.name
                picture = entry.name.lower().endswith(IMAGE_SUFFIXES)
                if picture and uri not in listed_uris and entry.is_file(follow_symlinks=False):
                    unlisted.append(uri.encode("utf-8", "replace").decode())
    return pl.Series("uri", sorted(unlisted), dtype=pl.String)


def _belongs_to_release(uri: str, dataset: Dataset) -> bool:
    name = uri.rpartition("/")[2]
    return any(fnmatchcase(name, pattern) for pattern in dataset.info.sibling_image_globs)


def _read_part_uris(dataset: Dataset) -> set[str]:
    """Collect the paths of part masks, which the dataset names too."""
    people, part_uris = dataset.instances, set[str]()
    if "part_mask_uri" in people.columns:
        part_uris |= set(people["part_mask_uri"].drop_nulls())
    if "part_mask_files" in people.columns:
        files = people["part_mask_files"].drop_nulls().explode().drop_nulls()
        part_uris |= set(files.struct.field("uri").drop_nulls()) if len(files) else set()
    return {os.path.normpath(uri) for uri in part_uris}
