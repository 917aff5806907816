"""The folder that pictures' paths start from: the one that was named, or found near the labels.

Loaders read annotation and open no picture; their ``images.uri`` are relative. Code that needs
pixels later (``derive``) finds them by ``Dataset.root``, which is filled here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from isolux.io.paths import inside
from isolux.vocabulary.errors import FileError

_UPWARDS = 4  # FHIBE's table lies three folders below the release's root
_TRIED = 5  # pictures looked for: enough to know the folder, and quick on a network disk
_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"


def picture_root(
    images: pl.DataFrame, inputs: Mapping[str, str], given: str | Path | None
) -> str | None:
    """Find the folder of a dataset's pictures.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "labels").mkdir()
    ...     (Path(folder) / "1.jpg").touch()
    ...     table = {f"{folder}/labels/people.csv": "its hash"}
    ...     found = picture_root(pl.DataFrame({"image_id": ["1.jpg"]}), table, None)
    ...     found == str(Path(folder).resolve())
    True
    """
    if given is not None:
        base = Path(given).expanduser()
        if not base.is_dir():
            raise FileError(
                "there is no such folder of pictures",
                expected="the folder that the pictures' paths start from",
                where=str(base),
            )
        return str(base.resolve())
    named = [pl.col(c) for c in ("uri", "image_id") if c in images.columns]
    paths = images.head(_TRIED).select(pl.coalesce(named).alias("path"))["path"].drop_nulls()
    paths = paths.filter(~paths.str.contains(_ADDRESS))
    for base in _candidates(inputs):
        if any(_is_file_below(base, path) for path in paths):
            return str(base)
    return None


def _candidates(inputs: Mapping[str, str]) -> Iterator[Path]:
    seen: set[Path] = set()
    for name in inputs:
        path = Path(name).expanduser().resolve()
        for base in [path, *path.parents[:_UPWARDS]] if path.is_dir() else path.parents[:_UPWARDS]:
            if base not in seen:
                seen.add(base)
                yield base


def _is_file_below(base: Path, path: str) -> bool:
    try:
        return inside(base, path).is_file()
    except (FileError, OSError):
        return False
