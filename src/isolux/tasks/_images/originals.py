"""Where the original pictures are: from a dataset's ``uri`` to files that exist.

A loader keeps paths relative to its dataset's root and does not open a picture; code that measures
pictures says where that root is, or it is found from the files that the loader read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from isolux.io.paths import inside
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError

__all__ = ["NO_ORIGINAL", "originals_of"]

NO_ORIGINAL = "no original picture"

_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_UPWARDS = 4  # FHIBE's table lies three folders below the release's root
_TRIED = 5
_HINT = "name their folder: --option originals=DIR (originals=…)"


def originals_of(
    dataset: Dataset, uris: pl.Series, root: str | None
) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Find the files of original pictures."""
    known = uris.drop_nulls().unique(maintain_order=True)
    known = known.filter(~known.str.contains(_ADDRESS))
    if known.is_empty():
        raise SpecError(
            "nothing says where the original pictures are",
            expected="a dataset whose images have paths (uri)",
            found="none" if uris.drop_nulls().is_empty() else "web addresses, which are not opened",
            hint="a table's column `file` or `path` names them",
        )
    base = _given(root) if root is not None else _found(dataset, known)
    files = {uri: inside(base, uri) for uri in known.to_list()}
    there = {uri: path for uri, path in files.items() if path.is_file()}
    if not there:
        raise SpecError(
            "none of the original pictures is there",
            expected=f"{known[0]!r} below {base}",
            found=f"{len(files):,} paths without a file",
            hint=_HINT,
        )
    notes = [f"Original pictures were read from {base}."]
    if len(there) < len(files):
        notes.append(f"{len(files) - len(there):,} of {len(files):,} original pictures are absent.")
    return there, tuple(notes)


def _given(root: str) -> Path:
    base = Path(root).expanduser()
    if not base.is_dir():
        raise FileError("there is no such folder of original pictures", where=str(base), hint=_HINT)
    return base.resolve()


def _found(dataset: Dataset, uris: pl.Series) -> Path:
    for base in _candidates(dataset):
        if any(_is_file_below(base, uri) for uri in uris[:_TRIED]):
            return base
    raise SpecError(
        "the original pictures were not found",
        expected=f"{uris[0]!r} in the dataset's folder or one of three above it",
        found="no such file",
        hint=_HINT,
    )


def _candidates(dataset: Dataset) -> Iterator[Path]:
    seen: set[Path] = set()
    for name in dataset.inputs:
        path = Path(name).expanduser().resolve()
        for base in [path, *path.parents[:_UPWARDS]] if path.is_dir() else path.parents[:_UPWARDS]:
            if base not in seen:
                seen.add(base)
                yield base


def _is_file_below(base: Path, uri: str) -> bool:
    try:
        return inside(base, uri).is_file()
    except (FileError, OSError):
        return False
