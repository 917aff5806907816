"""Rewrite a file without a person, by its format: recognised by its first bytes and suffix."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from isolux_curate.withdrawal.rewriting.archives import (
    convert_errors_to_unsearchable,
    is_archive_or_compressed,
    rewrite_archive_members,
)
from isolux_curate.withdrawal.rewriting.tables import (
    RewriteResult,
    UnsearchableFile,
    rewrite_numpy_arrays,
    rewrite_parquet_or_arrow,
    rewrite_sqlite,
)
from isolux_curate.withdrawal.rewriting.text import (
    SUFFIXES,
    rewrite_delimited_table,
    rewrite_json_document,
    rewrite_json_lines,
    rewrite_or_delete_page,
    rewrite_text_lines,
)
from isolux_curate.withdrawal.terms import IdentifyingTerms

__all__ = ["IMAGE_SUFFIXES", "RewriteResult", "UnsearchableFile", "rewrite_file_without_people"]

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


def rewrite_file_without_people(
    file_name: str, file_bytes: bytes, neighbour_names: list[str], terms: IdentifyingTerms
) -> RewriteResult:
    """Remove a person from a file's content; raises where the file cannot be searched."""
    path = PurePosixPath(file_name)
    if hashlib.sha256(file_bytes).hexdigest() in terms.photo_hashes and file_bytes:
        return None, 1
    if _has_person_name_in_path(path, neighbour_names, terms):
        return None, 1
    with convert_errors_to_unsearchable("it cannot be read"):
        content, n = _rewrite_by_format(path, file_bytes, terms)
    return (content, n) if n else (file_bytes, 0)


def _has_person_name_in_path(
    path: PurePosixPath, neighbour_names: list[str], terms: IdentifyingTerms
) -> bool:
    """Check whether the file or one of its folders has the person's name."""
    if terms.is_path_of_people(str(path)):
        return True
    for depth, path_part in enumerate(path.parts):
        if path_part in ("/", ".", "..") or _is_folder_named_by_hash(path, depth):
            continue
        sibling_names = (
            {
                neighbour_parts[depth]
                for neighbour in neighbour_names
                if (neighbour_parts := PurePosixPath(neighbour).parts)[:depth] == path.parts[:depth]
                and len(neighbour_parts) > depth
            }
            if neighbour_names and terms.is_name_without_neighbours(path_part)
            else set()
        )
        if terms.is_name_among_neighbours(path_part, tuple(sibling_names)):
            return True
    return False


def _is_folder_named_by_hash(path: PurePosixPath, depth: int) -> bool:
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

    def rewrite_part_without_people(
        part_name: str, part_bytes: bytes, part_names: list[str]
    ) -> RewriteResult:
        return rewrite_file_without_people(part_name, part_bytes, part_names, terms)

    if is_archive_or_compressed(file_bytes) and suffix != ".npz":
        inner_name = path.name[: -len(path.suffix)] if path.suffix else path.name
        return rewrite_archive_members(
            inner_name + ".tar" if suffix == ".tgz" else inner_name,
            file_bytes,
            rewrite_part_without_people,
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
    (b"PAR1", rewrite_parquet_or_arrow),
    (b"ARROW1", rewrite_parquet_or_arrow),
    (b"\x93NUMPY", rewrite_numpy_arrays),
    (b"SQLite format 3\0", rewrite_sqlite),
)
_REWRITERS_BY_SUFFIX: tuple[tuple[tuple[str, ...], _Rewriter], ...] = (
    ((".arrow", ".feather", ".ipc", ".parquet"), rewrite_parquet_or_arrow),
    ((".npz", ".npy"), rewrite_numpy_arrays),
    (SUFFIXES, rewrite_delimited_table),
    ((".jsonl", ".ndjson"), rewrite_json_lines),
    ((".json", ".geojson", ".ipynb", ".jsonld"), rewrite_json_document),
    ((".html", ".htm"), rewrite_or_delete_page),
    (_TEXT_SUFFIXES, rewrite_text_lines),
)
