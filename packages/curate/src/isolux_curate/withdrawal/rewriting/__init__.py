"""A file without what is theirs, by its format, which its first bytes and its suffix tell."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from isolux_curate.withdrawal.rewriting.archives import is_archive, refusing, rewrite_archive
from isolux_curate.withdrawal.rewriting.tables import (
    Blind,
    Rewritten,
    rewrite_array,
    rewrite_database,
    rewrite_frame,
)
from isolux_curate.withdrawal.rewriting.text import (
    SUFFIXES,
    rewrite_delimited,
    rewrite_json,
    rewrite_lines,
    rewrite_list,
    rewrite_page,
)
from isolux_curate.withdrawal.terms import Terms

__all__ = ["PICTURES", "Blind", "Rewritten", "rewrite"]

PICTURES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".jp2", ".avif")
_SUM = re.compile(r"[0-9a-f]{64}")
_TEXT = (
    ".txt",
    ".lst",
    ".md",
    ".log",
    ".yaml",
    ".yml",
    ".toml",
    ".xml",
    ".tex",
    ".svg",
    ".sha256",
    ".rst",
    ".ini",
    ".cfg",
    ".py",
    ".sh",
    ".md5",
    ".sums",
)


def rewrite(name: str, data: bytes, beside: list[str], terms: Terms) -> Rewritten:
    """Take what is theirs out of a file; ``Blind``: it cannot be looked through."""
    path = PurePosixPath(name)
    if hashlib.sha256(data).hexdigest() in terms.pictures and data:
        return None, 1
    if _is_named(path, beside, terms):
        return None, 1
    with refusing("it cannot be read"):
        content, n = _by_format(path, data, terms)
    return (content, n) if n else (data, 0)


def _is_named(path: PurePosixPath, beside: list[str], terms: Terms) -> bool:
    """Tell whether the file or a folder that it lies in has their name."""
    if terms.is_path(str(path)):
        return True
    for depth, part in enumerate(path.parts):
        if part in ("/", ".", "..") or _is_shelf(path, depth):
            continue
        near = (
            {
                other[depth]
                for one in beside
                if (other := PurePosixPath(one).parts)[:depth] == path.parts[:depth]
                and len(other) > depth
            }
            if beside and terms.may_name(part)
            else set()
        )
        if terms.is_name(part, tuple(near)):
            return True
    return False


def _is_shelf(path: PurePosixPath, depth: int) -> bool:
    """Tell whether a folder holds photos whose sums begin with its two letters."""
    return (
        depth + 2 == len(path.parts)
        and path.parts[depth] == path.name[:2]
        and bool(_SUM.fullmatch(path.stem))
    )


def _by_format(path: PurePosixPath, data: bytes, terms: Terms) -> Rewritten:
    suffix = path.suffix.lower()

    def part(name: str, held: bytes, names: list[str]) -> Rewritten:
        return rewrite(name, held, names, terms)

    if is_archive(data) and suffix != ".npz":
        inner = path.name[: -len(path.suffix)] if path.suffix else path.name
        return rewrite_archive(inner + ".tar" if suffix == ".tgz" else inner, data, part)
    for mark, by_mark in _BY_MARK:
        if data.startswith(mark):
            return by_mark(data, terms)
    by_suffix = next((way for names, way in _BY_SUFFIX if suffix in names), None)
    return by_suffix(data, terms) if by_suffix else (data, 0)


_Way = Callable[[bytes, Terms], Rewritten]
_BY_MARK: tuple[tuple[bytes, _Way], ...] = (
    (b"PAR1", rewrite_frame),
    (b"ARROW1", rewrite_frame),
    (b"\x93NUMPY", rewrite_array),
    (b"SQLite format 3\0", rewrite_database),
)
_BY_SUFFIX: tuple[tuple[tuple[str, ...], _Way], ...] = (
    ((".arrow", ".feather", ".ipc", ".parquet"), rewrite_frame),
    ((".npz", ".npy"), rewrite_array),
    (SUFFIXES, rewrite_delimited),
    ((".jsonl", ".ndjson"), rewrite_lines),
    ((".json", ".geojson", ".ipynb", ".jsonld"), rewrite_json),
    ((".html", ".htm"), rewrite_page),
    (_TEXT, rewrite_list),
)
