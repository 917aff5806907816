"""A finished run as a directory, and back: ``audit.json``, one Parquet file a table, evidence.

The directory is written whole or not at all (``isolux.io.atomic``). ``audit.json`` says how the
run was made; the tables hold everything from which its report can be made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.atomic import RUN_MARK, staged_directory, write_parquet, write_text
from isolux.io.frames import FORMATS
from isolux.io.hashing import sha256_file
from isolux.io.panics import panics_unprinted
from isolux.io.paths import plain_name
from isolux.io.stages import is_stage, sweep
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import DrawingError, FileError
from isolux.vocabulary.tables import (
    ATTRIBUTES,
    COMPARISONS,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    Table,
    check,
)

__all__ = ["carry_over", "changed_files", "load", "save"]

_PAGES = ("report.html", "gallery.html")
_FILES = "files"
"""Of the record on disk: the SHA-256 of each file of the run, and of the record itself."""
_TABLES: dict[str, Table] = {
    "scores": SCORES,
    "attributes": ATTRIBUTES,
    "group_metrics": GROUP_METRICS,
    "disparities": DISPARITIES,
    "findings": FINDINGS,
}


def save(
    run: Run,
    path: str | Path,
    *,
    overwrite: bool = False,
    extra: Callable[[Path], object] | None = None,
) -> Path:
    """Write a run as a directory, whole or not at all.

    Parameters
    ----------
    run : Run
        The finished run.
    path : str or Path
        The directory to make: ``audit.json``, ``scores.parquet``, ``attributes.parquet``,
        ``group_metrics.parquet``, ``disparities.parquet``, ``findings.parquet`` and
        ``evidence/NAME.parquet``.
    overwrite : bool
        Replace a run that is there already.
    extra : callable, optional
        Called with the directory before it gets its name; what it writes there (``report.html``)
        belongs to the run, and if it fails there is no run. Figures alone may fail: then the run
        is written without them, and the error says so.

    Returns
    -------
    Path
        The directory.

    Raises
    ------
    OutputError
        When the directory exists and may not be replaced, or cannot be written.
    DrawingError
        When the run was written but its figures could not be drawn.
    TableError
        When a table of the run is not as ``isolux.vocabulary.tables`` declares it.
    """
    undrawn: DrawingError | None = None
    with staged_directory(path, overwrite=overwrite) as stage:
        for name, table in _TABLES.items():
            frame = getattr(run, name)
            write_parquet(stage / f"{name}.parquet", check(frame, _kind(table, frame), where=name))
        (stage / "evidence").mkdir()
        for name, frame in run.evidence.items():
            write_parquet(stage / "evidence" / f"{plain_name(name)}.parquet", frame)
        write_text(stage / RUN_MARK, _json({**run.record, _FILES: _hashes(stage, run.record)}))
        try:
            if extra is not None:
                extra(stage)
        except DrawingError as error:
            undrawn = error
    if undrawn is not None:
        raise DrawingError(
            undrawn.problem,
            expected=undrawn.expected,
            found=undrawn.found,
            where=str(path),
            hint=f"the run's tables are written whole; {undrawn.hint}, "
            f"then `isolux report {path}` makes its page",
        ) from undrawn
    return Path(path)


def changed_files(path: str | Path) -> list[str] | None:
    """Name the files of a run that are not as they were written: changed, gone or added.

    Parameters
    ----------
    path : str or Path
        A run's directory. Its pages (``report.html``) may be made again and are not looked at.

    Returns
    -------
    list of str or None
        Relative names, in order; empty: all are as they were. None: the run was written by a
        version that kept no hashes.

    Raises
    ------
    FileError
        When there is no run, or a file cannot be read.
    """
    root = Path(path).expanduser()
    record = _read_record(root)
    kept = record.pop(_FILES, None)
    if not isinstance(kept, Mapping):
        return None
    now = _hashes(root, record)
    return sorted(name for name in kept.keys() | now.keys() if kept.get(name) != now.get(name))


def _hashes(root: Path, record: Mapping[str, Any]) -> dict[str, str]:
    own = [root / f"{name}.parquet" for name in _TABLES]
    files = [file for file in (*own, *sorted((root / "evidence").glob("*"))) if file.is_file()]
    found = {file.relative_to(root).as_posix(): sha256_file(file) for file in files}
    plain = _json({key: value for key, value in record.items() if key != _FILES})
    return {**found, RUN_MARK: hashlib.sha256(plain.encode()).hexdigest()}


def carry_over(run: str | Path, stage: Path) -> None:
    """Copy what a user, or ``isolux demo``, laid among a run's own files into its successor.

    Links are left, and so is ``gallery.html``: a picture of a person who has withdrawn must not
    live on because a run was written anew.
    """
    own = {f"{name}.parquet" for name in _TABLES} | {"evidence", RUN_MARK, *_PAGES}
    for found in sorted(Path(run).iterdir()):
        if found.name in own or found.is_symlink() or is_stage(found.name):
            continue
        if found.is_dir():
            shutil.copytree(found, stage / found.name, symlinks=True)
        elif found.is_file():
            shutil.copy2(found, stage / found.name)


def load(path: str | Path) -> Run:
    """Read a run directory back.

    Parameters
    ----------
    path : str or Path
        A directory that ``save`` wrote.

    Raises
    ------
    FileError
        When there is no such directory, it is not a run, or a table is missing or damaged.
    TableError
        When a table is not as ``isolux.vocabulary.tables`` declares it.
    """
    root = Path(path).expanduser()
    sweep(root, inside=(root / RUN_MARK).is_file())
    record = _read_record(root)
    record.pop(_FILES, None)  # of the files as they were written: the next run's are others
    tables = {}
    for name, table in _TABLES.items():
        file = root / f"{name}.parquet"
        if not file.is_file():
            raise FileError(
                f"this run has no {name} table",
                expected=file.name,
                where=str(root),
                hint="a run that is not whole cannot be used: make it again",
            )
        frame = _read(file)
        tables[name] = check(frame, _kind(table, frame), where=file)
    files = sorted((root / "evidence").glob("*.parquet"))
    for name in sorted(set(record.get("evidence") or ()) - {file.stem for file in files}):
        raise FileError(
            f"the run's evidence {name!r} is missing",
            expected=f"evidence/{name}.parquet",
            where=str(root),
            hint="run the audit again",
        )
    return Run(record=record, evidence={file.stem: _read(file) for file in files}, **tables)


def _kind(table: Table, frame: pl.DataFrame) -> Table:
    """Choose COMPARISONS for the disparities of a run that compares two models."""
    return COMPARISONS if table is DISPARITIES and "model_a" in frame.columns else table


def _read(file: Path) -> pl.DataFrame:
    try:
        with panics_unprinted():
            return pl.read_parquet(file, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(
            "a table of this run is damaged",
            found=str(error).splitlines()[0][:200],
            where=str(file),
            hint="make the run again",
        ) from error


def _read_record(root: Path) -> dict[str, Any]:
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
        runs = sorted(p.parent.name for p in root.glob(f"*/{RUN_MARK}"))
        raise FileError(
            "this directory is not a run of isolux",
            expected=f"{RUN_MARK} in it",
            where=str(root),
            hint=f"there are runs inside it: {', '.join(runs[:5])}" if runs else None,
        )
    try:
        record = json.loads(file.read_bytes())
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
    return record


def _json(record: Mapping[str, Any]) -> str:
    # NaN is not JSON: a record that holds one could not be read elsewhere, so it fails here.
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"


def _plain(value: object) -> object:
    """Turn what records hold besides JSON's own types into it: numpy numbers, paths, mappings."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot stand in {RUN_MARK}: {value!r}")
