"""Rewrite a file without a person, by its format: recognised by its first bytes and suffix."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from isolux_curate.withdrawal.rewriting.archives import (
    is_archive,
    refuse_unreadable,
    rewrite_archive,
)
from isolux_curate.withdrawal.rewriting.tables import (
    RewriteResult,
    UnsearchableFile,
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
from isolux_curate.withdrawal.terms import IdentifyingTerms

__all__ = ["IMAGE_SUFFIXES", "RewriteResult", "UnsearchableFile", "rewrite_file"]

IMAGE_SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".png",
    ".tif",
    ".tiff",
    ".webp",
    ".bmp",
    ".gif",
    ".jp2",
    ".avif",
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TEXT_SUFFIXES = (
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


def rewrite_file(
    name: str, file_bytes: bytes, neighbours: list[str], terms: IdentifyingTerms
) -> RewriteResult:
    """Remove a person from a file's content; raises where the file cannot be searched."""
    path = PurePosixPath(name)
    if hashlib.sha256(file_bytes).hexdigest() in terms.photo_hashes and file_bytes:
        return None, 1
    if _has_person_name(path, neighbours, terms):
        return None, 1
    with refuse_unreadable("it cannot be read"):
        content, n = _rewrite_by_format(path, file_bytes, terms)
    return (content, n) if n else (file_bytes, 0)


def _has_person_name(path: PurePosixPath, neighbours: list[str], terms: IdentifyingTerms) -> bool:
    """Check whether the file or one of its folders has the person's name."""
    if terms.is_person_path(str(path)):
        return True
    for depth, path_part in enumerate(path.parts):
        if path_part in ("/", ".", "..") or _is_stored_by_hash(path, depth):
            continue
        sibling_names = (
            {
                neighbour_parts[depth]
                for neighbour in neighbours
                if (neighbour_parts := PurePosixPath(neighbour).parts)[:depth] == path.parts[:depth]
                and len(neighbour_parts) > depth
            }
            if neighbours and terms.can_name_person(path_part)
            else set()
        )
        if terms.is_person_name(path_part, tuple(sibling_names)):
            return True
    return False


def _is_stored_by_hash(path: PurePosixPath, depth: int) -> bool:
    """Check whether a folder is named after the first two digits of its photos' hashes."""
    return (
        depth + 2 == len(path.parts)
        and path.parts[depth] == path.name[:2]
        and bool(_SHA256.fullmatch(path.stem))
    )


def _rewrite_by_format(
    path: PurePosixPath, file_bytes: bytes, terms: IdentifyingTerms
) -> RewriteResult:
    suffix = path.suffix.lower()

    def rewrite_part(name: str, part_bytes: bytes, names: list[str]) -> RewriteResult:
        return rewrite_file(name, part_bytes, names, terms)

    if is_archive(file_bytes) and suffix != ".npz":
        inner_name = path.name[: -len(path.suffix)] if path.suffix else path.name
        return rewrite_archive(
            inner_name + ".tar" if suffix == ".tgz" else inner_name, file_bytes, rewrite_part
        )
    for magic_bytes, magic_rewriter in _REWRITERS_BY_MAGIC:
        if file_bytes.startswith(magic_bytes):
            return magic_rewriter(file_bytes, terms)
    suffix_rewriter = next(
        (rewriter for names, rewriter in _REWRITERS_BY_SUFFIX if suffix in names), None
    )
    return suffix_rewriter(file_bytes, terms) if suffix_rewriter else (file_bytes, 0)


_Rewriter = Callable[[bytes, IdentifyingTerms], RewriteResult]
_REWRITERS_BY_MAGIC: tuple[tuple[bytes, _Rewriter], ...] = (
    (b"PAR1", rewrite_frame),
    (b"ARROW1", rewrite_frame),
    (b"\x93NUMPY", rewrite_array),
    (b"SQLite format 3\0", rewrite_database),
)
_REWRITERS_BY_SUFFIX: tuple[tuple[tuple[str, ...], _Rewriter], ...] = (
    ((".arrow", ".feather", ".ipc", ".parquet"), rewrite_frame),
    ((".npz", ".npy"), rewrite_array),
    (SUFFIXES, rewrite_delimited),
    ((".jsonl", ".ndjson"), rewrite_lines),
    ((".json", ".geojson", ".ipynb", ".jsonld"), rewrite_json),
    ((".html", ".htm"), rewrite_page),
    (_TEXT_SUFFIXES, rewrite_list),
)
