"""The project's folder, made once and opened by every step, and its journal.

The journal says who did what, when, by which rule. Its rows only grow, and name no person. A row
holds the hash of the row before it, a signature, and a digest of the verdicts (or annotations) that
it brought. Each of those has a seal, the hash of what it says and of a random salt; the digest is
over the seals. A person who withdraws is taken out of a verdict with its salt: the seal stays, from
which they cannot be found, and the journal still verifies.

The project remembers the last row of its consent ledger, so that lost rows are noticed.
"""

from __future__ import annotations

import datetime as dt
import getpass
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa
import yaml
from sqlalchemy.engine import Connection, Engine

from isolux.io.atomic import write_text
from isolux.io.consent import Ledger, read_ledger
from isolux.io.consent.chain import (
    FIRST,
    digest_of,
    is_signed,
    make_key,
    read_key,
    seal_of,
    signature_of,
)
from isolux.io.settings_files import read_mapping
from isolux.vocabulary.errors import FileError, OutputError, SpecError, TableError
from isolux_curate.project.database import (
    VERSION,
    engine_of,
    make_tables,
    reading,
    shown,
    version_of,
    writing,
)
from isolux_curate.project.tables import annotations_table, decisions, journal, seals, settings

_NAME = "consent ledger: last row"


def check_ledger_head(connection: Connection, project: Project, ledger: Ledger | None) -> None:
    """Refuse a ledger without the row that was its last when the project last wrote its journal."""
    query = sa.select(settings.c.value).where(settings.c.name == _NAME)
    head = connection.execute(query).scalar()
    if head is None:
        return
    hint = "bring the ledger back from a backup that has this row"
    expected = f"row {head['n']}, with the hash {head['hash'][:12]}…"
    if ledger is None:
        raise FileError(
            "the project's ledger of consent is not there",
            expected=f"a ledger with {expected}",
            found="no file",
            where=str(project.consent),
            hint=hint,
        )
    rows = ledger.rows
    if len(rows) < head["n"] or rows[head["n"] - 1].hash != head["hash"]:
        raise TableError(
            "the project's ledger of consent lost rows",
            expected=expected,
            found=f"{len(rows):,} rows, without it",
            where=str(project.consent),
            hint=hint,
        )


def remember_ledger_head(connection: Connection, project: Project) -> None:
    """Write down the last row of the ledger, if the project has one that holds the row before."""
    ledger = read_ledger(project.consent) if project.consent.exists() else None
    check_ledger_head(connection, project, ledger)
    if ledger is not None and ledger.rows:
        last = ledger.rows[-1]
        connection.execute(sa.delete(settings).where(settings.c.name == _NAME))
        value = {"n": last.n, "hash": last.hash}
        connection.execute(sa.insert(settings), [{"name": _NAME, "value": value}])


_HASHED = ("n", "at", "who", "step", "rule", "said", "digest", "previous")
_OF_DECISION = ("unit_kind", "unit_id", "step", "rule", "verdict", "reason")
_OF_ANNOTATION = (
    "annotation_id",
    "task_id",
    "annotator_id",
    "source",
    "source_id",
    "version",
    "made_at",
    "updated_at",
    "seconds",
    "answer",
)


def now() -> str:
    """Tell the time, as ISO 8601 in UTC."""
    text = dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")
    return text.replace("+00:00", "Z")


def add_row(
    connection: Connection,
    project: Project,
    *,
    step: str,
    rule: str,
    said: Mapping[str, Any],
    seals: Iterable[str],
) -> int:
    """Add a row at the end; the connection must be the project's only writer."""
    last = connection.execute(
        sa.select(journal.c.n, journal.c.hash).order_by(journal.c.n.desc()).limit(1)
    ).first()
    n, previous = (last.n + 1, last.hash) if last else (1, FIRST)
    fields = {
        "n": n,
        "at": now(),
        "who": project.who,
        "step": step,
        "rule": rule,
        "said": json.loads(json.dumps(said)),
        "digest": _digest(seals),
        "previous": previous,
    }
    digest = digest_of(fields)
    seal = signature_of(digest, project.key)
    connection.execute(sa.insert(journal), [fields | {"hash": digest, "signature": seal}])
    remember_ledger_head(connection, project)
    return int(n)


def _digest(seals: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(seals)).encode()).hexdigest()


def read_journal(project: Project) -> pl.DataFrame:
    """Read the journal, oldest row first."""
    names = ("n", "at", "who", "step", "rule", "said", "hash")
    query = sa.select(*(journal.c[name] for name in names)).order_by(journal.c.n)
    rows = [
        [json.dumps(c) if n == "said" else c for n, c in zip(names, row, strict=True)]
        for row in project.rows(query)
    ]
    schema = {name: pl.Int64 if name == "n" else pl.String for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def check_journal(project: Project, *, head: str | None = None) -> int:
    """See that no row and no verdict was changed, taken out or put in; the number of rows."""
    where = shown(project.engine)
    with reading(project.engine) as connection:
        rows = connection.execute(sa.select(journal).order_by(journal.c.n)).mappings().all()
        held = _seals(connection, where)
    previous = FIRST
    for number, row in enumerate(rows, 1):
        _check_row(row, number, previous, project.key, where)
        if row["digest"] != _digest(held.pop(number, ())):
            raise TableError(
                f"verdicts of row {number} of the journal were taken out or put in",
                expected="the verdicts that the row was signed with",
                where=where,
                found=f"{row['step']}, rule {row['rule']}",
                hint=_BACKUP,
            )
        previous = row["hash"]
    if head is not None and not any(row["hash"].startswith(head.lower()) for row in rows):
        raise TableError(
            "the row that was last is not in the journal: rows were cut off",
            expected=f"a row with the hash {head}",
            found=f"{len(rows):,} rows",
            where=where,
            hint=_BACKUP,
        )
    return len(rows)


_BACKUP = "bring the project back from a backup"


def _check_row(row: Mapping[Any, Any], number: int, previous: str, key: bytes, where: str) -> None:
    fields = {name: row[name] for name in _HASHED}
    wrong = None
    if row["n"] != number or row["previous"] != previous:
        wrong = "a row before this one was taken out, put in or moved"
    elif digest_of(fields) != row["hash"]:
        wrong = "this row was changed after it was written"
    elif not is_signed(row["hash"], row["signature"], key):
        wrong = "this row's signature does not verify"
    if wrong:
        raise TableError(
            wrong,
            expected="the row that was signed",
            found=f"{row['step']}, rule {row['rule']}",
            where=f"{where}, row {number} of the journal",
            hint=_BACKUP,
        )


def _seals(connection: Connection, where: str) -> dict[int, list[str]]:
    """Gather the seals of each row, and see that what is sealed is as it was."""
    found: dict[int, list[str]] = {}
    for table, fields in ((decisions, _OF_DECISION), (annotations_table, _OF_ANNOTATION)):
        for row in connection.execute(sa.select(table)).mappings():
            if row["salt"] is not None and row["seal"] != seal_of(
                row["salt"], {name: row[name] for name in fields}
            ):
                raise TableError(
                    f"one of the {table.name} was changed after it was written",
                    expected="what was sealed",
                    found=f"one of row {row['n']} of the journal",
                    where=where,
                    hint=_BACKUP,
                )
            found.setdefault(row["n"], []).append(row["seal"])
    for n, seal in connection.execute(sa.select(seals.c.n, seals.c.seal)):
        found.setdefault(n, []).append(seal)  # of answers that were deleted
    return found


MARK, KEY, CONSENT, PHOTOS = "project.yaml", "journal.key", "consent.jsonl", "photos"
_KNOWN = ("name", "database", "classes", "rules", "publish")


@dataclass(frozen=True, slots=True)
class Project:
    """An open project.

    Parameters
    ----------
    folder : Path
    name : str
    engine : sqlalchemy.Engine
    key : bytes
        Signs the journal's rows.
    rules : mapping
        Settings of rules that differ from their defaults, rule by rule, as ``project.yaml`` has
        them.
    classes : tuple of str
        What people are labelled with.
    who : str
        The curator who gives the commands: the journal names them.
    publish : mapping
        Settings of publications, as ``project.yaml`` has them.
    """

    folder: Path
    name: str
    engine: Engine
    key: bytes
    rules: Mapping[str, Mapping[str, Any]]
    classes: tuple[str, ...]
    who: str
    publish: Mapping[str, Any] = field(default_factory=dict)

    @property
    def consent(self) -> Path:
        """The ledger of consent."""
        return self.folder / CONSENT

    def rows(self, query: Any) -> Sequence[Any]:
        """Read the rows of one question."""
        with reading(self.engine) as connection:
            return connection.execute(query).all()


def create(folder: str | Path, *, database: str = "sqlite", who: str | None = None) -> Project:
    """Make a project; nothing is made twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     project = create(Path(folder) / "faces", who="ada")
    ...     project.name, open_project(Path(folder) / "faces", who="ada").name
    ('faces', 'faces')
    """
    root = Path(folder).expanduser().resolve()
    if not (root / MARK).exists():
        _make(root, database)
    held = read_mapping(root / MARK)
    if database not in ("sqlite", held.get("database")):
        raise SpecError(
            "this project is stored in another database",
            expected=str(held.get("database")),
            found=database,
            where=str(root / MARK),
        )
    project = _opened(root, who)
    if version_of(project.engine) is None:
        make_tables(project.engine)
    _check_version(project)
    if read_journal(project).is_empty():  # also where the disk was full after the tables
        said = {"version": VERSION}
        with writing(project.engine) as connection:
            add_row(connection, project, step="init", rule="tables", said=said, seals=())
    return project


def _make(root: Path, database: str) -> None:
    engine_of(database, root).dispose()  # an address that is none is refused before a folder is
    if root.exists() and any(p for p in root.iterdir() if p.name not in (KEY, CONSENT)):
        raise OutputError(
            "this folder holds other things",
            expected="a new or empty folder, or a project's",
            where=str(root),
            hint="choose another path",
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not (root / KEY).exists():
            make_key(root / KEY)
    except OSError as error:
        raise OutputError(
            "the project's folder cannot be written", found=str(error.strerror), where=str(root)
        ) from error
    settings = {"name": root.name, "database": database, "classes": [], "rules": {}}
    write_text(root / MARK, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))


def open_project(folder: str | Path, *, who: str | None = None) -> Project:
    """Open a project."""
    root = Path(folder).expanduser().resolve()
    project = _opened(root, who)
    if version_of(project.engine) is None:
        raise FileError(
            "the project's database holds no project",
            expected="its tables",
            found="none",
            where=shown(project.engine),
            hint=f"bring it back from a backup; for a new project, `isolux curate init {folder}`",
        )
    _check_version(project)
    return project


def _check_version(project: Project) -> None:
    version = version_of(project.engine)
    if version != VERSION:
        raise FileError(
            "the project's tables are of another version of isolux",
            expected=str(VERSION),
            found=str(version or "no number"),
            where=shown(project.engine),
            hint="open it with the isolux that wrote it, or make a new project",
        )


def _opened(root: Path, who: str | None) -> Project:
    if not (root / MARK).is_file():
        raise FileError(
            "this is not a curation project",
            expected=f"a folder with {MARK}",
            where=str(root),
            hint=f"`isolux curate init {root.name}` makes one",
        )
    held = read_mapping(root / MARK)
    _refuse_settings(held, root / MARK)
    if not (root / KEY).exists():
        raise FileError(
            "the key that signs this project's journal is not there",
            expected=str(root / KEY),
            where=str(root),
            hint="bring it back from a backup",
        )
    rules = {str(k): dict(v or {}) for k, v in (held.get("rules") or {}).items()}
    classes = tuple(str(one) for one in held.get("classes") or ())
    engine = engine_of(str(held["database"]), root)
    key = read_key(root / KEY)
    publish = dict(held.get("publish") or {})
    return Project(root, str(held["name"]), engine, key, rules, classes, who or _me(), publish)


def _refuse_settings(held: Mapping[str, Any], where: Path) -> None:
    lacking = [name for name in ("name", "database") if not held.get(name)]
    strange = [name for name in held if name not in _KNOWN]
    rules = held.get("rules") or {}
    bad = (
        not isinstance(held.get("classes") or [], list)
        or not isinstance(rules, Mapping)
        or any(not isinstance(one or {}, Mapping) for one in rules.values())
        or not isinstance(held.get("publish") or {}, Mapping)
    )
    if lacking or strange or bad:
        found = (
            f"without {lacking[0]!r}"
            if lacking
            else f"{strange[0]!r}"
            if strange
            else "classes, rules or publish"
        )
        raise SpecError(
            "these are not the settings of a project",
            found=found,
            where=str(where),
            expected="name, database, classes (a list), rules as `megapixels: {least: 6}`,"
            " and publish as `split: train=0.8,test=0.2`",
            hint="change lines of what `isolux curate init` wrote, as `name: faces` and"
            " `database: sqlite`, and leave the others in it",
        )


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such account: a container's number without a name
        return "unknown"
