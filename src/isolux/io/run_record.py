"""The record of a run, ``audit.json``: as text, read back, with the hashes of the run's files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from isolux.core.errors import FileError
from isolux.core.tables import (
    ATTRIBUTES,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    Table,
)
from isolux.io.atomic import RUN_MARK
from isolux.io.frames import FORMATS
from isolux.io.hashing import sha256_file

FILES_KEY = "files"
"""Of the record on disk: the SHA-256 of each file of the run, and of the record itself."""
SCHEMA_KEY, SCHEMA_VERSION = "schema", 1
"""Of the record on disk: the version of the names in the record and in the run's tables."""
_OTHER_FOLDERS = {
    "side_by_side.json": "several models side by side, made by `isolux compare`",
    "monitor.json": "audits over time, made by `isolux monitor`",
}
"""What else has a folder with a page of its own, by the file that marks it."""
RUN_TABLES: dict[str, Table] = {
    "scores": SCORES,
    "attributes": ATTRIBUTES,
    "group_metrics": GROUP_METRICS,
    "disparities": DISPARITIES,
    "findings": FINDINGS,
}


def read_record(root: Path) -> dict[str, Any]:
    """Read a run's record, the hashes of its files among it."""
    if not root.is_dir():
        seems_table = root.name.lower().endswith(tuple(s for f in FORMATS.values() for s in f))
        raise FileError(
            "there is no run directory here",
            expected="a directory that `isolux audit --out` wrote",
            found="a file" if root.is_file() else "nothing",
            where=str(root),
            hint="audit the table first" if root.is_file() and seems_table else None,
        )
    file = root / RUN_MARK
    if not file.is_file():
        raise _missing_run_error(root)
    try:
        record = json.loads(
            file.read_bytes(), parse_float=_parse_finite, parse_constant=_parse_finite
        )
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(
            "the record of this run is damaged",
            found=str(error),
            where=str(file),
            hint="make the run again",
        ) from error
    if not isinstance(record, dict):
        raise FileError(
            "the record of this run is damaged",
            expected="a JSON object",
            found=type(record).__name__,
            where=str(file),
        )
    if record.get(SCHEMA_KEY) != SCHEMA_VERSION:
        raise FileError(
            "this run was written by another version of isolux",
            expected=f"schema {SCHEMA_VERSION}",
            found=f"schema {record[SCHEMA_KEY]!r}" if SCHEMA_KEY in record else "no schema",
            where=str(file),
            hint="run the audit again with this version",
        )
    return record


def _parse_finite(text: str) -> float:
    """Read a number; no record was written with NaN or infinity, so they are damage."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is not a number that a record can hold")
    return number


def format_record(record: Mapping[str, Any]) -> str:
    """Write a record as JSON."""
    # NaN is not JSON: a record that holds one could not be read elsewhere, so it fails here.
    return (
        json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=_to_json_value)
        + "\n"
    )


def _to_json_value(entry: object) -> object:
    """Convert numpy numbers, paths and mappings of a record to JSON types."""
    if isinstance(entry, Mapping):
        return dict(entry)
    if isinstance(entry, Path):
        return str(entry)
    if hasattr(entry, "item"):
        return entry.item()
    raise TypeError(f"{type(entry).__name__} cannot be stored in {RUN_MARK}: {entry!r}")


def _missing_run_error(root: Path) -> FileError:
    """Build the error for a folder without a record, naming what it is if known."""
    runs = sorted(p.parent.name for p in root.glob(f"*/{RUN_MARK}"))
    hint = f"there are runs inside it: {', '.join(runs[:5])}" if runs else None
    folder_kind = next(
        (description for mark, description in _OTHER_FOLDERS.items() if (root / mark).is_file()),
        None,
    )
    if folder_kind is not None:
        pages = sorted(page.name for page in root.glob("*.html"))
        page = f"open its {pages[0]} in a browser; " if pages else ""
        hint = f"{page}this command takes the runs that it was made from"
    return FileError(
        "this directory is not a run of isolux",
        expected=f"{RUN_MARK} in it",
        found=folder_kind,
        where=str(root),
        hint=hint,
    )


def hash_run_files(root: Path, record: Mapping[str, Any]) -> dict[str, str]:
    """Hash each file that ``load`` reads, and the record without its hashes."""
    table_files = [root / f"{name}.parquet" for name in RUN_TABLES]
    evidence = sorted((root / "evidence").glob("*.parquet"))  # others are not read, .DS_Store say
    files = [file for file in (*table_files, *evidence) if file.is_file()]
    hashes = {file.relative_to(root).as_posix(): sha256_file(file) for file in files}
    text = format_record({key: value for key, value in record.items() if key != FILES_KEY})
    return {**hashes, RUN_MARK: _hash_text(text)}


def _hash_text(text: str) -> str:
    # A record that was changed by hand may hold what no text does: half a pair of UTF-16.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
