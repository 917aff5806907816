"""The project's folder: made once, opened by every step."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy.engine import Engine

from isolux.curation._chain import make_key, read_key
from isolux.curation.project.database import (
    VERSION,
    engine_of,
    make_tables,
    shown,
    version_of,
    writing,
)
from isolux.curation.project.journal import add_row, read_journal
from isolux.io.atomic import write_text
from isolux.io.settings_files import read_mapping
from isolux.vocabulary.errors import FileError, OutputError, SpecError

MARK, KEY, CONSENT, PHOTOS = "project.yaml", "journal.key", "consent.jsonl", "photos"
_KNOWN = ("name", "database", "classes", "rules")


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
    """

    folder: Path
    name: str
    engine: Engine
    key: bytes
    rules: Mapping[str, Mapping[str, Any]]
    classes: tuple[str, ...]
    who: str

    @property
    def consent(self) -> Path:
        """The ledger of consent."""
        return self.folder / CONSENT


def create(
    folder: str | Path, *, name: str | None = None, database: str = "sqlite", who: str | None = None
) -> Project:
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
        _make(root, name or root.name, database)
    held = read_mapping(root / MARK)
    if database not in ("sqlite", held.get("database")):
        raise SpecError(
            "this project is stored in another database", expected=str(held.get("database")),
            found=database, where=str(root / MARK),
        )  # fmt: skip
    project = _opened(root, who)
    if version_of(project.engine) is None:
        make_tables(project.engine)
    _check_version(project)
    if read_journal(project).is_empty():  # also where the disk was full after the tables
        said = {"version": VERSION}
        with writing(project.engine) as connection:
            add_row(connection, project, step="init", rule="tables", said=said, seals=())
    return project


def _make(root: Path, name: str, database: str) -> None:
    engine_of(database, root).dispose()  # an address that is none is refused before a folder is
    if root.exists() and any(p for p in root.iterdir() if p.name not in (KEY, CONSENT)):
        raise OutputError(
            "this folder holds other things", expected="a new or empty folder, or a project's",
            where=str(root), hint="choose another path",
        )  # fmt: skip
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not (root / KEY).exists():
            make_key(root / KEY)
    except OSError as error:
        raise OutputError(
            "the project's folder cannot be written", found=str(error.strerror), where=str(root)
        ) from error
    settings = {"name": name, "database": database, "classes": [], "rules": {}}
    write_text(root / MARK, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))


def open_project(folder: str | Path, *, who: str | None = None) -> Project:
    """Open a project."""
    root = Path(folder).expanduser().resolve()
    project = _opened(root, who)
    if version_of(project.engine) is None:
        raise FileError(
            "the project's database holds no project", expected="its tables", found="none",
            where=shown(project.engine),
            hint=f"bring it back from a backup; for a new project, `isolux curate init {folder}`",
        )  # fmt: skip
    _check_version(project)
    return project


def _check_version(project: Project) -> None:
    version = version_of(project.engine)
    if version != VERSION:
        raise FileError(
            "the project's tables are of another version of isolux", expected=str(VERSION),
            found=str(version or "no number"), where=shown(project.engine),
            hint="open it with the isolux that wrote it, or make a new project",
        )  # fmt: skip


def _opened(root: Path, who: str | None) -> Project:
    if not (root / MARK).is_file():
        raise FileError(
            "this is not a curation project", expected=f"a folder with {MARK}", where=str(root),
            hint=f"`isolux curate init {root.name}` makes one",
        )  # fmt: skip
    held = read_mapping(root / MARK)
    _refuse_settings(held, root / MARK)
    if not (root / KEY).exists():
        raise FileError(
            "the key that signs this project's journal is not there", expected=str(root / KEY),
            where=str(root), hint="bring it back from a backup",
        )  # fmt: skip
    rules = {str(k): dict(v or {}) for k, v in (held.get("rules") or {}).items()}
    classes = tuple(str(one) for one in held.get("classes") or ())
    engine = engine_of(str(held["database"]), root)
    key = read_key(root / KEY)
    return Project(root, str(held["name"]), engine, key, rules, classes, who or _me())


def _refuse_settings(held: Mapping[str, Any], where: Path) -> None:
    lacking = [name for name in ("name", "database") if not held.get(name)]
    strange = [name for name in held if name not in _KNOWN]
    rules = held.get("rules") or {}
    bad = (
        not isinstance(held.get("classes") or [], list)
        or not isinstance(rules, Mapping)
        or any(not isinstance(one or {}, Mapping) for one in rules.values())
    )
    if lacking or strange or bad:
        found = (
            f"without {lacking[0]!r}"
            if lacking
            else f"{strange[0]!r}"
            if strange
            else "classes or rules"
        )
        raise SpecError(
            "these are not the settings of a project", found=found, where=str(where),
            expected="name, database, classes (a list), and rules as `megapixels: {least: 6}`",
            hint="change lines of what `isolux curate init` wrote, as `name: faces` and"
            " `database: sqlite`, and leave the others in it",
        )  # fmt: skip


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such account: a container's number without a name
        return "unknown"
