"""One job: a function by its name, its arguments as JSON, and the key of its result."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import polars as pl

from isolux.core.errors import IsoluxError

Tables = dict[str, pl.DataFrame]
"""Result of a job: tables by name."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    Parameters
    ----------
    key : str
        SHA-256 of all that the tables depend on, 64 hex digits: content, settings, code.
    name : str
        What it is called in messages: the shard's file.
    call : str
        ``module:function``, of isolux alone: it takes ``arguments`` by name and returns ``Tables``.
    arguments : mapping
        JSON values.
    """

    key: str
    name: str
    call: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Time limit of a job in seconds (None: no limit), and number of retries.

    ``retries`` counts workers that were lost, and those that were late if ``retries_late``. An
    error that isolux raises on purpose would come again, so it ends the work at once.
    """

    seconds: float | None = None
    retries: int = 2
    retries_late: bool = True

    def count_retries_left(self, n_retries: int, *, is_late: bool) -> int:
        """Count the retries left of a job whose worker was lost or late."""
        return 0 if is_late and not self.retries_late else n_retries


def compute_job(job: Job) -> Tables:
    """Compute a job in this process.

    Examples
    --------
    >>> compute_job(Job("k", "a shard", "os:listdir", {}))
    Traceback (most recent call last):
        ...
    isolux.core.errors.IsoluxError: a piece names a function that is not of isolux
      found: os:listdir
    """
    module, _, function = job.call.partition(":")
    if not module.startswith("isolux."):
        raise IsoluxError("a piece names a function that is not of isolux", found=job.call)
    tables: Tables = getattr(import_module(module), function)(**job.arguments)
    return tables


def tables_to_bytes(tables: Tables) -> dict[str, bytes]:
    """Write tables as Arrow, to be sent to another process."""
    bytes_by_name = {}
    for name, table in tables.items():
        stream = io.BytesIO()
        table.write_ipc(stream)
        bytes_by_name[name] = stream.getvalue()
    return bytes_by_name


def tables_from_bytes(bytes_by_name: Mapping[str, bytes]) -> Tables:
    """Read tables that ``tables_to_bytes`` wrote."""
    return {
        name: pl.read_ipc(io.BytesIO(table_bytes)) for name, table_bytes in bytes_by_name.items()
    }


_ERROR_FIELDS = ("problem", "expected", "found", "where", "hint")


def error_to_json(error: IsoluxError) -> dict[str, str | None]:
    """Write an error as JSON, so that another process can raise it again."""
    fields = {field_name: getattr(error, field_name, None) for field_name in _ERROR_FIELDS}
    if fields["problem"] is None:  # UnknownNameError has its whole message in its text
        fields["problem"] = str(error)
    return {"type": type(error).__name__, **fields}


def error_from_json(fields: Mapping[str, str | None]) -> IsoluxError:
    """Rebuild the error that another process wrote as JSON.

    Examples
    --------
    >>> from isolux.core.errors import FileError
    >>> again = error_from_json(error_to_json(FileError("it is damaged", where="a.parquet")))
    >>> type(again).__name__, again.where
    ('FileError', 'a.parquet')
    """
    from isolux.core import errors

    error_type = getattr(errors, str(fields.get("type")), IsoluxError)
    if error_type is errors.UnknownNameError:
        error_type = IsoluxError
    details = {field_name: fields.get(field_name) for field_name in _ERROR_FIELDS[1:]}
    error: IsoluxError = error_type(str(fields.get("problem")), **details)
    return error
