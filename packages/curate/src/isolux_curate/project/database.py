"""The project's database: SQLite in its folder, or PostgreSQL by an address; one writer at a time.

A writer takes the whole project (``BEGIN IMMEDIATE``; in PostgreSQL a lock of the journal's table),
as each of its rows names the hash of the one before. Whatever goes wrong inside ends the
transaction, so that a step is in the database whole or not at all.
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

from isolux.vocabulary.errors import FileError, OutputError, SpecError
from isolux_curate.project.tables import META, settings

FILE = "project.sqlite"
VERSION = 1
"""Of the tables: a project that another isolux wrote is refused."""
_VERSION_NAME = "version of the tables"
_WAIT_S = 60  # for another curator, before a command gives up
_WRITES = "isolux_writes"
_POOL = "isolux"  # the name of its log, which nobody reads: what failed is raised


def engine_of(database: str, folder: Path) -> Engine:
    """Make the engine of an address."""
    if database == "sqlite":
        engine = sa.create_engine(
            URL.create("sqlite", database=str(folder / FILE)),
            poolclass=NullPool,
            connect_args={"timeout": _WAIT_S},
        )
        _teach_sqlite(engine)
        return engine
    url = _read(database)
    secret = os.environ.get("PGPASSWORD")
    pool = f"{NullPool.__module__}.{NullPool.__name__}.{_POOL}"
    logging.getLogger(pool).disabled = True  # a server that went away: no traceback on the terminal
    try:
        return sa.create_engine(
            url.set(password=secret) if secret else url,
            poolclass=NullPool,
            pool_logging_name=_POOL,
            isolation_level="READ COMMITTED",
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SpecError(
            "the driver of this database is not installed",
            found=str(error).splitlines()[0],
            hint="pip install pg8000, or the driver that the address names",
        ) from error


def _read(database: str) -> URL:
    try:
        url = make_url(database)
    except ArgumentError as error:
        raise SpecError(
            "this is not the address of a database",
            expected="sqlite, or postgresql+pg8000://user@host:5432/name",
            found=repr(database),
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


def shown(engine: Engine) -> str:
    """Name a database as messages do, without a password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return str(engine.url.set(password=None))


def _teach_sqlite(engine: Engine) -> None:
    """Let transactions begin when they say so, keys be kept, deleted bytes be overwritten."""

    def settle(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", "secure_delete=ON", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}").close()

    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", settle)
    event.listen(engine, "begin", begin)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection whose reads see one state."""
    try:
        with engine.connect() as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield connection
    except (DBAPIError, OSError) as error:
        raise FileError(
            "the project's database cannot be read",
            found=_said(error),
            where=shown(engine),
            hint="see that it is there and running, then give the same command again",
        ) from error


@contextmanager
def writing(engine: Engine, *, is_new: bool = False) -> Iterator[Connection]:
    """Give a connection that is the project's only writer; all of it is kept, or nothing."""
    try:
        with engine.connect() as plain:
            connection = plain.execution_options(**{_WRITES: True})
            with connection.begin():
                if engine.dialect.name == "postgresql" and not is_new:
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_WAIT_S}s'")
                    connection.exec_driver_sql("LOCK TABLE journal IN EXCLUSIVE MODE")
                yield connection
    except (DBAPIError, OSError) as error:
        raise OutputError(
            "the project's database could not be written",
            found=_said(error),
            where=shown(engine),
            hint="nothing of this step was kept: see that the database is running, that its disk"
            " has room and that no other command holds it, then give the same command again",
        ) from error


def sweep(engine: Engine) -> None:
    """Write the database anew without what was deleted: free pages of it keep nothing."""
    full = "VACUUM" if engine.dialect.name == "sqlite" else "VACUUM FULL"
    try:
        raw = engine.raw_connection()
        try:
            if engine.dialect.name == "postgresql":
                raw.driver_connection.autocommit = True  # type: ignore[union-attr]
            cursor = raw.cursor()
            cursor.execute(full)
            cursor.close()
        finally:
            raw.close()
    except Exception as error:
        raise OutputError(
            "the project's database could not be rewritten",
            found=_said(error),
            where=shown(engine),
            hint="end other commands on it, then give the same command again",
        ) from error


def _said(error: BaseException) -> str:
    origin = getattr(error, "orig", None) or error
    args = getattr(origin, "args", ())
    if args and isinstance(args[0], dict):  # pg8000 gives the server's fields
        return str(args[0].get("M", args[0]))[:200]
    return (str(origin).splitlines() or [type(origin).__name__])[0][:200]


def version_of(engine: Engine) -> int | None:
    """Tell which version of the tables a database has; 0: one without a number, None: no tables."""
    with reading(engine) as connection:
        if not sa.inspect(connection).has_table(settings.name):
            return None
        query = sa.select(settings.c.value).where(settings.c.name == _VERSION_NAME)
        return int(connection.execute(query).scalar() or 0)


def make_tables(engine: Engine) -> None:
    """Make the tables of a new project."""
    with writing(engine, is_new=True) as connection:
        META.create_all(connection)
        connection.execute(sa.insert(settings), [{"name": _VERSION_NAME, "value": VERSION}])


def insert_rows(connection: Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a table; none is fine."""
    if rows := list(rows):
        connection.execute(sa.insert(table), rows)


def update_rows(
    connection: Connection, key: sa.Column[Any], rows: Mapping[str, Mapping[str, Any]]
) -> None:
    """Change the rows with these keys; none is fine. All have the same columns."""
    if rows:
        names = next(iter(rows.values()))
        change = sa.update(key.table).where(key == sa.bindparam("key_of_row"))
        values = [{"key_of_row": one} | dict(values) for one, values in rows.items()]
        connection.execute(change.values({name: sa.bindparam(name) for name in names}), values)
