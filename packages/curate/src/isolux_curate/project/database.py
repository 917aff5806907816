"""The project's database: SQLite in its folder, or PostgreSQL by an address; one writer at a time.

A writer locks the whole project (``BEGIN IMMEDIATE``; in PostgreSQL a lock of the journal's table),
as each row of the journal holds the hash of the one before. An error rolls the transaction back, so
that a step is stored completely or not at all.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from isolux.core.errors import FileError, OutputError, SpecError
from isolux_curate.project.tables import META, settings

SQLITE_FILE = "project.sqlite"
TABLES_VERSION = 1
"""The version of the tables: projects with another version are refused."""
_VERSION_SETTING = "version of the tables"
_LOCK_TIMEOUT_S = 60  # how long a command waits for another curator's lock
_WRITE_OPTION = "isolux_writes"
_POOL_LOG_NAME = "isolux"  # the pool's log is disabled: its errors are raised


def create_database_engine(address: str, folder: Path) -> Engine:
    """Create the SQLAlchemy engine of an address."""
    if address == "sqlite":
        engine = sa.create_engine(
            URL.create("sqlite", database=str(folder / SQLITE_FILE)),
            poolclass=NullPool,
            connect_args={"timeout": _LOCK_TIMEOUT_S},
        )
        _set_sqlite_pragmas_and_transactions(engine)
        return engine
    url = _parse_postgresql_address(address)
    secret = os.environ.get("PGPASSWORD")
    pool = f"{NullPool.__module__}.{NullPool.__name__}.{_POOL_LOG_NAME}"
    logging.getLogger(pool).disabled = True  # a server that went away: no traceback on the terminal
    try:
        return sa.create_engine(
            url.set(password=secret) if secret else url,
            poolclass=NullPool,
            pool_logging_name=_POOL_LOG_NAME,
            isolation_level="READ COMMITTED",
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SpecError(
            "the driver of this database is not installed",
            found=str(error).splitlines()[0],
            hint="pip install pg8000, or the driver that the address names",
        ) from error


def _parse_postgresql_address(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise SpecError(
            "this is not the address of a database",
            expected="sqlite, or postgresql+pg8000://user@host:5432/name",
            found=repr(address),
        ) from error
    if url.get_backend_name() != "postgresql":
        raise SpecError(
            "projects are stored in SQLite or PostgreSQL",
            expected="sqlite, or postgresql+pg8000://user@host:5432/name",
            found=url.get_backend_name(),
        )
    if url.password is not None:
        raise SpecError(
            "the address holds a password, which would be written into the project",
            expected="an address without it",
            hint="export PGPASSWORD, and take it out here",
        )
    return url


def format_database_address(engine: Engine) -> str:
    """Format a database's address for messages, without a password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return str(engine.url.set(password=None))


def _set_sqlite_pragmas_and_transactions(engine: Engine) -> None:
    """Set explicit transactions, foreign keys, and overwriting of deleted rows (secure_delete)."""

    def set_pragmas(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", "secure_delete=ON", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}").close()

    def begin_transaction(connection: Connection) -> None:
        is_writer = connection.get_execution_options().get(_WRITE_OPTION)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")

    event.listen(engine, "connect", set_pragmas)
    event.listen(engine, "begin", begin_transaction)


@contextmanager
def open_read_transaction(engine: Engine) -> Iterator[Connection]:
    """Open a connection whose reads see one snapshot of the database."""
    try:
        with engine.connect() as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield connection
    except (DBAPIError, OSError) as error:
        raise FileError(
            "the project's database cannot be read",
            found=_format_database_error(error),
            where=format_database_address(engine),
            hint="see that it is there and running, then give the same command again",
        ) from error


@contextmanager
def open_write_transaction(engine: Engine, *, has_no_tables: bool = False) -> Iterator[Connection]:
    """Open a connection as the project's only writer: all changes are committed, or none."""
    try:
        with engine.connect() as reader:
            connection = reader.execution_options(**{_WRITE_OPTION: True})
            with connection.begin():
                if engine.dialect.name == "postgresql" and not has_no_tables:
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_S}s'")
                    connection.exec_driver_sql("LOCK TABLE journal IN EXCLUSIVE MODE")
                yield connection
    except (DBAPIError, OSError) as error:
        raise OutputError(
            "the project's database could not be written",
            found=_format_database_error(error),
            where=format_database_address(engine),
            hint="nothing of this step was kept: see that the database is running, that its disk"
            " has room and that no other command holds it, then give the same command again",
        ) from error


_STATISTICS_OF_EMPTY_TABLES = """
    SELECT 'ALTER TABLE ' || quote_ident(s.tablename) || ' ALTER COLUMN ' || quote_ident(s.attname)
        || ' TYPE ' || format_type(a.atttypid, a.atttypmod)
    FROM pg_stats s JOIN pg_attribute a ON a.attname = s.attname JOIN pg_class c
        ON c.oid = a.attrelid AND c.relname = s.tablename AND c.reltuples = 0
    WHERE s.schemaname = current_schema() AND c.relnamespace = s.schemaname::regnamespace
"""
"""Statements that drop what pg_stats keeps of emptied tables: ANALYZE leaves it, a change of a
column's type drops it, also a change to the same type."""


def vacuum_database(engine: Engine) -> None:
    """Rewrite the database file, so that no free page holds deleted rows (VACUUM).

    PostgreSQL also keeps frequent values and bounds of histograms in ``pg_stats``.
    """
    is_sqlite = engine.dialect.name == "sqlite"
    try:
        raw_connection = engine.raw_connection()
        try:
            if engine.dialect.name == "postgresql":
                raw_connection.driver_connection.autocommit = True  # type: ignore[union-attr]
            cursor = raw_connection.cursor()
            cursor.execute("VACUUM" if is_sqlite else "VACUUM (FULL, ANALYZE)")
            if not is_sqlite:
                cursor.execute(_STATISTICS_OF_EMPTY_TABLES)
                for (statement,) in cursor.fetchall():
                    cursor.execute(statement)
                cursor.execute("VACUUM FULL pg_statistic")
            cursor.close()
        finally:
            raw_connection.close()
    except Exception as error:
        raise OutputError(
            "the project's database could not be rewritten",
            found=_format_database_error(error),
            where=format_database_address(engine),
            hint="end other commands on it, then give the same command again",
        ) from error


def _format_database_error(error: BaseException) -> str:
    origin = getattr(error, "orig", None) or error
    args = getattr(origin, "args", ())
    if args and isinstance(args[0], dict):  # pg8000 gives the server's fields
        return str(args[0].get("M", args[0]))[:200]
    return (str(origin).splitlines() or [type(origin).__name__])[0][:200]


def read_tables_version_or_none(engine: Engine) -> int | None:
    """Read the version of a database's tables; 0 without a number, None without tables."""
    with open_read_transaction(engine) as connection:
        if not sa.inspect(connection).has_table(settings.name):
            return None
        query = sa.select(settings.c.value).where(settings.c.name == _VERSION_SETTING)
        return int(connection.execute(query).scalar() or 0)


def create_project_tables(engine: Engine) -> None:
    """Create the tables of a new project."""
    with open_write_transaction(engine, has_no_tables=True) as connection:
        META.create_all(connection)
        connection.execute(
            sa.insert(settings), [{"name": _VERSION_SETTING, "value": TABLES_VERSION}]
        )


def insert_rows(connection: Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows into a table; there may be none."""
    if rows := list(rows):
        connection.execute(sa.insert(table), rows)


def update_rows_by_key(
    connection: Connection,
    key_column: sa.Column[Any],
    values_by_key: Mapping[str, Mapping[str, Any]],
) -> None:
    """Update the rows with these keys, which may be none; all have the same columns."""
    if values_by_key:
        names = next(iter(values_by_key.values()))
        statement = sa.update(key_column.table).where(key_column == sa.bindparam("key_of_row"))
        values = [
            {"key_of_row": key_value} | dict(values) for key_value, values in values_by_key.items()
        ]
        connection.execute(statement.values({name: sa.bindparam(name) for name in names}), values)
