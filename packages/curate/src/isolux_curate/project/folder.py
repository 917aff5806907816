"""The project's folder, created once and opened by every step, and its journal.

The journal records which curator did what, when, by which rule. It is append-only and holds no id
of a person in a photo. A row holds the hash of the previous row, a signature, and a digest of the
verdicts (or annotations) that were written with it. Each of these has a seal, a commitment: the
hash of its fields and of a random salt; the digest is over the seals. A withdrawal erases a
person's id and the salt from a verdict; the seal stays, from which the id cannot be computed, and
the journal still verifies.

The project stores the last row of its consent ledger, so that lost rows are detected.
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

from isolux.core.errors import FileError, OutputError, SpecError, TableError
from isolux.io.atomic import write_text
from isolux.io.consent import Ledger, read_ledger
from isolux.io.consent.chain import (
    FIRST_PREVIOUS_HASH,
    compute_commitment,
    hash_fields,
    is_signed,
    make_key,
    read_key,
    sign_digest,
)
from isolux.io.settings_files import read_mapping
from isolux_curate.project.database import (
    TABLES_VERSION,
    create_database_engine,
    create_project_tables,
    format_database_address,
    open_read_transaction,
    open_write_transaction,
    read_tables_version_or_none,
)
from isolux_curate.project.tables import annotations_table, decisions, journal, seals, settings

_LEDGER_HEAD_SETTING = "consent ledger: last row"


def refuse_ledger_without_stored_head(
    connection: Connection, project: Project, ledger: Ledger | None
) -> None:
    """Refuse a ledger without the row that was its last when the project last wrote its journal."""
    query = sa.select(settings.c.value).where(settings.c.name == _LEDGER_HEAD_SETTING)
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
            where=str(project.consent_path),
            hint=hint,
        )
    rows = ledger.rows
    if len(rows) < head["n"] or rows[head["n"] - 1].hash != head["hash"]:
        raise TableError(
            "the project's ledger of consent lost rows",
            expected=expected,
            found=f"{len(rows):,} rows, without it",
            where=str(project.consent_path),
            hint=hint,
        )


def check_and_store_ledger_head(connection: Connection, project: Project) -> None:
    """Store the last row of the consent ledger; a ledger without the stored one is refused."""
    ledger = read_ledger(project.consent_path) if project.consent_path.exists() else None
    refuse_ledger_without_stored_head(connection, project, ledger)
    if ledger is not None and ledger.rows:
        last_row = ledger.rows[-1]
        connection.execute(sa.delete(settings).where(settings.c.name == _LEDGER_HEAD_SETTING))
        ledger_head = {"n": last_row.n, "hash": last_row.hash}
        connection.execute(
            sa.insert(settings), [{"name": _LEDGER_HEAD_SETTING, "value": ledger_head}]
        )


_HASHED_COLUMNS = ("n", "at", "who", "step", "rule", "said", "digest", "previous")
_SEALED_DECISION_COLUMNS = ("unit_kind", "unit_id", "step", "rule", "verdict", "reason")
_SEALED_ANNOTATION_COLUMNS = (
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


def format_utc_now() -> str:
    """Format the current time as ISO 8601 in UTC."""
    text = dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")
    return text.replace("+00:00", "Z")


def append_signed_journal_row(
    connection: Connection,
    project: Project,
    *,
    step: str,
    rule: str,
    details: Mapping[str, Any],
    seals: Iterable[str],
) -> int:
    """Append a row to the journal; the connection must be the project's only writer."""
    last_row = connection.execute(
        sa.select(journal.c.n, journal.c.hash).order_by(journal.c.n.desc()).limit(1)
    ).first()
    n, previous = (last_row.n + 1, last_row.hash) if last_row else (1, FIRST_PREVIOUS_HASH)
    fields = {
        "n": n,
        "at": format_utc_now(),
        "who": project.curator,
        "step": step,
        "rule": rule,
        "said": json.loads(json.dumps(details)),
        "digest": _digest_seals(seals),
        "previous": previous,
    }
    digest = hash_fields(fields)
    signature = sign_digest(digest, project.key)
    connection.execute(sa.insert(journal), [fields | {"hash": digest, "signature": signature}])
    check_and_store_ledger_head(connection, project)
    return int(n)


def _digest_seals(seals: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(seals)).encode()).hexdigest()


def read_journal(project: Project) -> pl.DataFrame:
    """Read the journal, oldest row first."""
    names = ("n", "at", "who", "step", "rule", "said", "hash")
    query = sa.select(*(journal.c[name] for name in names)).order_by(journal.c.n)
    rows = [
        [json.dumps(c) if n == "said" else c for n, c in zip(names, row, strict=True)]
        for row in project.fetch_rows(query)
    ]
    schema = {name: pl.Int64 if name == "n" else pl.String for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def verify_journal_and_seals(project: Project, *, expected_hash: str | None = None) -> int:
    """Check that no row and no verdict was changed, removed or added; the number of rows."""
    source = format_database_address(project.engine)
    with open_read_transaction(project.engine) as connection:
        rows = connection.execute(sa.select(journal).order_by(journal.c.n)).mappings().all()
        seals_by_row = _read_and_verify_seals(connection, source)
    previous = FIRST_PREVIOUS_HASH
    for number, row in enumerate(rows, 1):
        _verify_journal_row(row, number, previous, project.key, source)
        if row["digest"] != _digest_seals(seals_by_row.pop(number, ())):
            raise TableError(
                f"verdicts of row {number} of the journal were taken out or put in",
                expected="the verdicts that the row was signed with",
                where=source,
                found=f"{row['step']}, rule {row['rule']}",
                hint=_BACKUP_HINT,
            )
        previous = row["hash"]
    if expected_hash is not None and not any(
        row["hash"].startswith(expected_hash.lower()) for row in rows
    ):
        raise TableError(
            "the row that was last is not in the journal: rows were cut off",
            expected=f"a row with the hash {expected_hash}",
            found=f"{len(rows):,} rows",
            where=source,
            hint=_BACKUP_HINT,
        )
    return len(rows)


_BACKUP_HINT = "bring the project back from a backup"


def _verify_journal_row(
    journal_row: Mapping[Any, Any], number: int, previous_hash: str, key: bytes, source: str
) -> None:
    fields = {name: journal_row[name] for name in _HASHED_COLUMNS}
    problem = None
    if journal_row["n"] != number or journal_row["previous"] != previous_hash:
        problem = "a row before this one was taken out, put in or moved"
    elif hash_fields(fields) != journal_row["hash"]:
        problem = "this row was changed after it was written"
    elif not is_signed(journal_row["hash"], journal_row["signature"], key):
        problem = "this row's signature does not verify"
    if problem:
        raise TableError(
            problem,
            expected="the row that was signed",
            found=f"{journal_row['step']}, rule {journal_row['rule']}",
            where=f"{source}, row {number} of the journal",
            hint=_BACKUP_HINT,
        )


def _read_and_verify_seals(connection: Connection, source: str) -> dict[int, list[str]]:
    """Read the seals of each journal row, and check them against the fields they commit to."""
    seals_by_row: dict[int, list[str]] = {}
    for table, fields in (
        (decisions, _SEALED_DECISION_COLUMNS),
        (annotations_table, _SEALED_ANNOTATION_COLUMNS),
    ):
        for row in connection.execute(sa.select(table)).mappings():
            if row["salt"] is not None and row["seal"] != compute_commitment(
                row["salt"], {name: row[name] for name in fields}
            ):
                raise TableError(
                    f"one of the {table.name} was changed after it was written",
                    expected="what was sealed",
                    found=f"one of row {row['n']} of the journal",
                    where=source,
                    hint=_BACKUP_HINT,
                )
            seals_by_row.setdefault(row["n"], []).append(row["seal"])
    for n, seal in connection.execute(sa.select(seals.c.n, seals.c.seal)):
        seals_by_row.setdefault(n, []).append(seal)  # seals of deleted annotations
    return seals_by_row


PROJECT_FILE, KEY_FILE, CONSENT_FILE, PHOTOS_DIR = (
    "project.yaml",
    "journal.key",
    "consent.jsonl",
    "photos",
)
_SETTING_NAMES = ("name", "database", "classes", "rules", "publish")


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
    curator : str
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
    curator: str
    publish: Mapping[str, Any] = field(default_factory=dict)

    @property
    def consent_path(self) -> Path:
        """The ledger of consent."""
        return self.folder / CONSENT_FILE

    def fetch_rows(self, query: Any) -> Sequence[Any]:
        """Read the rows of one query."""
        with open_read_transaction(self.engine) as connection:
            return connection.execute(query).all()


def create_or_open_project(
    folder: str | Path, *, database: str = "sqlite", curator: str | None = None
) -> Project:
    """Create a project, or open it where it exists.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     project = create_or_open_project(Path(folder) / "faces", curator="ada")
    ...     project.name, open_project(Path(folder) / "faces", curator="ada").name
    ('faces', 'faces')
    """
    root = Path(folder).expanduser().resolve()
    if not (root / PROJECT_FILE).exists():
        _create_project_folder(root, database)
    project_settings = read_mapping(root / PROJECT_FILE)
    if database not in ("sqlite", project_settings.get("database")):
        raise SpecError(
            "this project is stored in another database",
            expected=str(project_settings.get("database")),
            found=database,
            where=str(root / PROJECT_FILE),
        )
    project = _open_folder_without_version_check(root, curator)
    if read_tables_version_or_none(project.engine) is None:
        create_project_tables(project.engine)
    _refuse_other_tables_version(project)
    if read_journal(project).is_empty():  # also where the disk was full after the tables
        details = {"version": TABLES_VERSION}
        with open_write_transaction(project.engine) as connection:
            append_signed_journal_row(
                connection, project, step="init", rule="tables", details=details, seals=()
            )
    return project


def _create_project_folder(root: Path, database: str) -> None:
    create_database_engine(
        database, root
    ).dispose()  # refuse a wrong address before creating a folder
    if root.exists() and any(p for p in root.iterdir() if p.name not in (KEY_FILE, CONSENT_FILE)):
        raise OutputError(
            "this folder holds other things",
            expected="a new or empty folder, or a project's",
            where=str(root),
            hint="choose another path",
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not (root / KEY_FILE).exists():
            make_key(root / KEY_FILE)
    except OSError as error:
        raise OutputError(
            "the project's folder cannot be written", found=str(error.strerror), where=str(root)
        ) from error
    settings = {"name": root.name, "database": database, "classes": [], "rules": {}}
    write_text(root / PROJECT_FILE, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))


def open_project(folder: str | Path, *, curator: str | None = None) -> Project:
    """Open a project."""
    root = Path(folder).expanduser().resolve()
    project = _open_folder_without_version_check(root, curator)
    if read_tables_version_or_none(project.engine) is None:
        raise FileError(
            "the project's database holds no project",
            expected="its tables",
            found="none",
            where=format_database_address(project.engine),
            hint=f"bring it back from a backup; for a new project, `isolux curate init {folder}`",
        )
    _refuse_other_tables_version(project)
    return project


def _refuse_other_tables_version(project: Project) -> None:
    version = read_tables_version_or_none(project.engine)
    if version != TABLES_VERSION:
        raise FileError(
            "the project's tables are of another version of isolux",
            expected=str(TABLES_VERSION),
            found=str(version or "no number"),
            where=format_database_address(project.engine),
            hint="open it with the isolux that wrote it, or make a new project",
        )


def _open_folder_without_version_check(root: Path, curator: str | None) -> Project:
    if not (root / PROJECT_FILE).is_file():
        raise FileError(
            "this is not a curation project",
            expected=f"a folder with {PROJECT_FILE}",
            where=str(root),
            hint=f"`isolux curate init {root.name}` makes one",
        )
    project_settings = read_mapping(root / PROJECT_FILE)
    _refuse_invalid_project_settings(project_settings, root / PROJECT_FILE)
    if not (root / KEY_FILE).exists():
        raise FileError(
            "the key that signs this project's journal is not there",
            expected=str(root / KEY_FILE),
            where=str(root),
            hint="bring it back from a backup",
        )
    rules = {str(k): dict(v or {}) for k, v in (project_settings.get("rules") or {}).items()}
    classes = tuple(str(class_name) for class_name in project_settings.get("classes") or ())
    engine = create_database_engine(str(project_settings["database"]), root)
    key = read_key(root / KEY_FILE)
    publish = dict(project_settings.get("publish") or {})
    return Project(
        root,
        str(project_settings["name"]),
        engine,
        key,
        rules,
        classes,
        curator or _read_user_name_or_unknown(),
        publish,
    )


def _refuse_invalid_project_settings(project_settings: Mapping[str, Any], source: Path) -> None:
    missing_names = [name for name in ("name", "database") if not project_settings.get(name)]
    unexpected_names = [name for name in project_settings if name not in _SETTING_NAMES]
    rules = project_settings.get("rules") or {}
    has_wrong_type = (
        not isinstance(project_settings.get("classes") or [], list)
        or not isinstance(rules, Mapping)
        or any(not isinstance(rule_settings or {}, Mapping) for rule_settings in rules.values())
        or not isinstance(project_settings.get("publish") or {}, Mapping)
    )
    if missing_names or unexpected_names or has_wrong_type:
        problem = (
            f"without {missing_names[0]!r}"
            if missing_names
            else f"{unexpected_names[0]!r}"
            if unexpected_names
            else "classes, rules or publish"
        )
        raise SpecError(
            "these are not the settings of a project",
            found=problem,
            where=str(source),
            expected="name, database, classes (a list), rules as `megapixels: {min_megapixels: 6}`,"
            " and publish as `split: train=0.8,test=0.2`",
            hint="change lines of what `isolux curate init` wrote, as `name: faces` and"
            " `database: sqlite`, and leave the others in it",
        )


def _read_user_name_or_unknown() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such account: a container's number without a name
        return "unknown"
