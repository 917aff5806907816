"""A finished run as a directory, and back: ``audit.json``, one Parquet file a table, evidence.

The directory is written whole or not at all (``isolux.io.atomic``). ``audit.json`` says how the
run was made; the tables hold everything from which its report can be made again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import FileError
from isolux.core.tables import COMPARISONS, DISPARITIES, Table, check
from isolux.io.atomic import RUN_MARK, staged_directory, write_bytes, write_parquet, write_text
from isolux.io.background_packing import take_packed_bytes
from isolux.io.background_thread import run_in_background
from isolux.io.binary_tables import first_error_line, refuse_damaged
from isolux.io.paths import check_file_name
from isolux.io.polars_panics import silence_panics
from isolux.io.run_changes import list_changed_files, refuse_changed
from isolux.io.run_record import (
    FILES_KEY,
    RUN_TABLES,
    SCHEMA_KEY,
    SCHEMA_VERSION,
    format_record,
    hash_run_files,
    read_record,
)
from isolux.io.staging import is_staging_name, remove_stale_staging

_MAX_TEXT_LENGTH = 100  # characters of what was found
_PAGES = ("report.html", "gallery.html")


def save_run(
    run: Run,
    path: str | Path,
    *,
    overwrite: bool = False,
    keeps_other_files: bool = False,
    extra: Callable[[Path], object] | None = None,
) -> Path:
    """Write a run as a directory, whole or not at all."""
    with staged_directory(path, overwrite=overwrite, keeps_other_files=keeps_other_files) as stage:
        with run_in_background(lambda: _write_tables(run, stage)):
            if extra is not None:
                extra(stage)
        record = {SCHEMA_KEY: SCHEMA_VERSION, **run.record}
        hashes = hash_run_files(stage, record)
        write_text(stage / RUN_MARK, format_record({**record, FILES_KEY: hashes}))
    return Path(path)


def _write_tables(run: Run, folder: Path) -> None:
    for name, table in RUN_TABLES.items():
        frame = getattr(run, name)
        packed = take_packed_bytes(frame)
        if packed is not None:
            write_bytes(folder / f"{name}.parquet", packed)
            continue
        checked = check(frame, _choose_schema(table, frame), source=name)
        write_parquet(folder / f"{name}.parquet", checked, bounds=False)  # it is read whole
    (folder / "evidence").mkdir()
    for name, frame in run.evidence.items():
        write_parquet(folder / "evidence" / f"{check_file_name(name)}.parquet", frame, bounds=False)


def carry_over_other_files(run: str | Path, stage: Path) -> None:
    """Copy files that a user or ``isolux demo`` added to a run into its successor."""
    run_files = {f"{name}.parquet" for name in RUN_TABLES} | {"evidence", RUN_MARK, *_PAGES}
    for entry in sorted(Path(run).iterdir()):
        if entry.name in run_files or entry.is_symlink() or is_staging_name(entry.name):
            continue
        if entry.is_dir():
            shutil.copytree(entry, stage / entry.name, symlinks=True)
        elif entry.is_file():
            shutil.copy2(entry, stage / entry.name)


def load_run(path: str | Path, *, on_change: Literal["refuse", "told"] = "refuse") -> Run:
    """Read a run directory back; refuse one whose files are not as they were written."""
    root = Path(path).expanduser()
    remove_stale_staging(root, include_contents=(root / RUN_MARK).is_file())
    record = read_record(root)
    for key in (SCHEMA_KEY, FILES_KEY):  # about the files here; the next run's are others
        record.pop(key, None)
    changes = list_changed_files(root)
    frames = {}
    for name in RUN_TABLES:
        file = root / f"{name}.parquet"
        if not file.is_file():
            raise FileError(
                f"this run has no {name} table",
                expected=file.name,
                where=str(root),
                hint="a run that is not whole cannot be used: make it again",
            )
        frames[name] = _read(file, changes)
    files = sorted((root / "evidence").glob("*.parquet"))
    for name in sorted(_list_evidence_names(record, root) - {file.stem for file in files}):
        raise FileError(
            f"the run's evidence {name!r} is missing",
            expected=f"evidence/{name}.parquet",
            where=str(root),
            hint="run the audit again",
        )
    evidence = {file.stem: _read(file, changes) for file in files}
    if changes and on_change == "refuse":  # last: a file that cannot be read at all is said as such
        refuse_changed(root)
    tables = {
        name: check(frame, _choose_schema(RUN_TABLES[name], frame), source=root / f"{name}.parquet")
        for name, frame in frames.items()
    }
    return Run(record=record, evidence=evidence, **tables)


def _list_evidence_names(record: Mapping[str, object], root: Path) -> set[str]:
    """Return the names of the run's tables of evidence, as its record has them."""
    names = record.get("evidence") or ()
    if not isinstance(names, list | tuple | Mapping) or not all(isinstance(n, str) for n in names):
        raise FileError(
            "the record of this run is damaged",
            expected="names of tables under 'evidence'",
            found=repr(names)[:_MAX_TEXT_LENGTH],
            where=str(root / RUN_MARK),
            hint="make the run again",
        )
    return set(names)


def _choose_schema(table: Table, frame: pl.DataFrame) -> Table:
    """Choose COMPARISONS for the disparities of a run that compares two models."""
    return COMPARISONS if table is DISPARITIES and "model_a" in frame.columns else table


def _read(file: Path, changes: list[str]) -> pl.DataFrame:
    try:
        with silence_panics():
            if changes:  # a file with the hash of what was written is whole
                refuse_damaged(file)
            return pl.read_parquet(file, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise FileError(
            "a table of this run is damaged",
            found=first_error_line(error),
            where=str(file),
            hint="make the run again",
        ) from error


def add_warning(path: str | Path, warning: str) -> None:
    """Add a warning as the first one of a run's record, and update the hashes of its files."""
    root = Path(path).expanduser()
    record = read_record(root)
    record.pop(FILES_KEY, None)
    warnings = [text for text in record.get("warnings") or () if text != warning]
    record["warnings"] = [warning, *warnings]
    write_text(root / RUN_MARK, format_record({**record, FILES_KEY: hash_run_files(root, record)}))
