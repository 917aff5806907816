"""What was computed of each piece, kept in a folder by its key: a stopped command goes on there.

::

    FOLDER/KEY.NAME.parquet   one of a piece's tables
    FOLDER/KEY.json           written last: the piece is whole
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError, OutputError
from isolux.engine.jobs.job import Tables
from isolux.io.atomic import write_parquet, write_text
from isolux.io.binary_tables import first_error_line, refuse_damaged
from isolux.io.polars_panics import silence_panics
from isolux.io.staging import settle_staging_below

STORE_FILE = "isolux-sums.json"
"""The file that marks a folder as a store of shard sums."""
_KEY_LENGTH = 32  # hex digits of a key in a file's name: 128 bits
_POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
_ROW_GROUP_SIZE = 1 << 16  # rows per row group: a part of a sorted table is read without the rest


class JobStore:
    """The result tables of jobs in one folder.

    Parameters
    ----------
    folder : str or Path
        Made where it is not there.

    Raises
    ------
    OutputError
        It holds something else, or cannot be made.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().resolve()
        _check_is_job_store(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                "the folder of sums cannot be made",
                found=error.strerror,
                where=str(self.folder),
                hint="choose another path",
            ) from error
        for _ in settle_staging_below(self.folder):  # staging files of a killed command
            pass
        write_text(self.folder / STORE_FILE, '{"holds": "sums of shards"}\n')

    def table_path(self, key: str, name: str) -> Path:
        """Return the file of one of a job's tables."""
        return self.folder / f"{key[:_KEY_LENGTH]}.{name}.parquet"

    def has_all_tables(self, key: str) -> bool:
        """Return whether all tables of a job exist and can be opened."""
        job_file = self.folder / f"{key[:_KEY_LENGTH]}.json"
        try:
            contents = json.loads(job_file.read_text(encoding="utf-8"))
            if contents["key"] != key:
                return False
            for name in contents["tables"]:
                with silence_panics():
                    refuse_damaged(self.table_path(key, name))
                    pl.read_parquet_schema(self.table_path(key, name))
        except (OSError, ValueError, KeyError, TypeError, *_POLARS_ERRORS):
            return False
        return True

    def commit(self, key: str, tables: Tables) -> None:
        """Write a job's tables; the last file marks it as complete."""
        for name, table in tables.items():
            write_parquet(self.table_path(key, name), table, row_group_size=_ROW_GROUP_SIZE)
        contents = {"key": key, "tables": sorted(tables)}
        write_text(self.folder / f"{key[:_KEY_LENGTH]}.json", json.dumps(contents) + "\n")

    def pop(self, key: str) -> Tables:
        """Read all tables of a finished job, and remove them from the store."""
        job_file = self.folder / f"{key[:_KEY_LENGTH]}.json"
        contents = json.loads(job_file.read_text(encoding="utf-8"))
        tables = {name: self.read(key, name) for name in contents["tables"]}
        for path in (job_file, *(self.table_path(key, name) for name in tables)):
            path.unlink(missing_ok=True)
        return tables

    def read(self, key: str, name: str) -> pl.DataFrame:
        """Read one of a job's tables."""
        return self.query(key, name, pl.LazyFrame.collect)

    def query(
        self, key: str, name: str, collect: Callable[[pl.LazyFrame], pl.DataFrame]
    ) -> pl.DataFrame:
        """Run a lazy query on one of a job's tables."""
        path = self.table_path(key, name)
        try:
            with silence_panics():
                return collect(pl.scan_parquet(path, glob=False))
        except (OSError, *_POLARS_ERRORS) as error:
            raise FileError(
                "the sums of a shard are damaged",
                found=first_error_line(error),
                where=str(path),
                hint="delete this file; the next command counts that shard again",
            ) from error


def _check_is_job_store(folder: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STORE_FILE).is_file():
        raise OutputError(
            "this folder contains something else and is left unchanged",
            expected="an empty folder, or one of sums",
            found=", ".join(sorted(path.name for path in folder.iterdir())[:3]),
            where=str(folder),
            hint="choose another path",
        )
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            "the folder of sums is a file", where=str(folder), hint="choose another path"
        )
