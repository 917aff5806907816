"""What a project's database holds of a person: found, and taken out in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux_curate.id_columns import kinds_of_column
from isolux_curate.project.database import insert_rows, reading, sweep, writing
from isolux_curate.project.folder import Project, add_row
from isolux_curate.project.tables import (
    META,
    annotations_table,
    decisions,
    images,
    instances,
    journal,
    seals,
    settings,
    subjects,
    tasks,
)
from isolux_curate.withdrawal.terms import Terms, others_of, short_names

_PART = 400  # ids in one question: SQLite takes 999
_KEPT = (journal.name, seals.name, settings.name, decisions.name)


class Found:
    """Names by kind: theirs, everyone else's, and the sums of their photos; and pseudonyms."""

    def __init__(self) -> None:
        self.named: dict[str, set[str]] = {}
        self.others: dict[str, set[str]] = {}
        self.pictures: set[str] = set()
        self.pseudonyms: set[str] = set()

    def add(self, kind: str, names: Iterator[str] | Sequence[str] | set[str]) -> None:
        """Note names of theirs."""
        self.named.setdefault(kind, set()).update(str(one) for one in names if one)

    def terms(self) -> Terms:
        """Freeze them."""
        named = {kind: frozenset(names) for kind, names in self.named.items()}
        return Terms(*others_of(named, self.others), frozenset(self.pictures))


def find_in(project: Project, found: Found) -> None:
    """Find what hangs on the subjects, copyright holders and annotators that are named."""
    with reading(project.engine) as connection:
        people = connection.execute(
            sa.select(
                instances.c.instance_id,
                instances.c.image_id,
                instances.c.subject_id,
                instances.c.facts,
            )
        ).all()
        photos = connection.execute(sa.select(images.c.image_id, images.c.file, images.c.sha256))
        held = {image: (file, digest) for image, file, digest in photos}
        work = connection.execute(sa.select(tasks.c.task_id, tasks.c.image_id)).all()
        given = connection.execute(
            sa.select(
                annotations_table.c.annotation_id,
                annotations_table.c.task_id,
                annotations_table.c.annotator_id,
            )
        ).all()
        everyone = connection.execute(sa.select(subjects.c.subject_id)).scalars().all()
    whose, holders = found.named.get("subject", set()), found.named.get("copyright", set())
    gone = set(found.named.get("image", set()))
    for _, image, subject, facts in people:
        if subject in whose or str((facts or {}).get("copyright_holder")) in holders:
            gone.add(image)
    sums = {held[image][1] for image in gone if image in held} - {None}
    gone |= {image for image, (_, digest) in held.items() if digest in sums}
    found.add("image", gone)
    found.pictures |= {str(one) for one in sums}
    files = {held[image][0] for image in gone if image in held} - {None}
    found.add("file", {*files, *(short_names(str(one))[0] for one in files)})
    found.add("instance", {one for one, image, _, _ in people if image in gone})
    found.add("task", {task for task, image in work if image in gone})
    mine, raters = found.named["task"], found.named.get("annotator", set())
    found.add("annotation", {a for a, task, by in given if task in mine or by in raters})
    for kind, names in (
        ("image", held),
        ("subject", everyone),
        ("instance", [one[0] for one in people]),
        ("task", [one[0] for one in work]),
        ("annotation", [one[0] for one in given]),
        ("annotator", {one[2] for one in given}),
    ):
        found.others.setdefault(kind, set()).update(map(str, names))


def sums_of_photos(project: Project) -> frozenset[str]:
    """List the SHA-256 of every photo that a project knows."""
    return frozenset(str(one) for (one,) in project.rows(sa.select(images.c.sha256)) if one)


def take_out(project: Project, terms: Terms, number: str) -> dict[str, int]:
    """Take people out of every table, and note counts alone in the journal."""
    with writing(project.engine) as connection:
        counts = {"decisions": _blot_decisions(connection, terms)}
        reopened = _reopen(connection, terms)
        for table in reversed(META.sorted_tables):
            if table.name not in _KEPT:
                counts[table.name] = _delete(connection, table, terms)
        counts["facts"] = _blot_facts(connection, terms)
        counts = {name: n for name, n in counts.items() if n}
        if counts:
            said = {"withdrawal": number, **counts}
            said |= {"tasks opened again": reopened} if reopened else {}
            add_row(connection, project, step="withdraw", rule="taken out", said=said, seals=())
    sweep(project.engine)  # also where a killed command had deleted them
    return counts


def _delete(connection: Connection, table: sa.Table, terms: Terms) -> int:
    """Delete rows whose columns of ids name them, and keep the seals of those that are sealed."""
    n = 0
    for column, names in _columns(table, terms):
        for part in _parts(names):
            where: sa.ColumnElement[bool] = column.in_(part)
            if column.name == "unit_id" and "unit_kind" in table.c:
                where = sa.false()
                for kind in ("image", "subject", "instance"):
                    own = [one for one in part if one in terms.named.get(kind, ())]
                    where |= (table.c.unit_kind == kind) & column.in_(own)
            if "seal" in table.c and "n" in table.c:
                rows = connection.execute(sa.select(table.c.n, table.c.seal).where(where))
                insert_rows(connection, seals, map(dict, rows.mappings()))
            n += connection.execute(sa.delete(table).where(where)).rowcount
    return n


def _columns(table: sa.Table, terms: Terms) -> Iterator[tuple[sa.Column[Any], list[str]]]:
    for column in table.columns:
        if not isinstance(column.type, sa.Text):
            continue
        known = kinds_of_column(column.name)
        if known is None or not (column.name.endswith("_id") or known[1]):
            continue
        if table is instances and column.name == "subject_id":
            names = set(terms.named.get("subject", ()))
        else:
            names = {one for kind in known[0] for one in terms.named.get(kind, ())}
        if names:
            yield column, sorted(names)


def _parts(names: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _PART):
        yield list(names[start : start + _PART])


def _blot_decisions(connection: Connection, terms: Terms) -> int:
    """Take unit, reason and salt out of verdicts about them; the seal stays."""
    n = 0
    for kind in ("image", "subject", "instance", "annotation", "annotator"):
        for part in _parts(sorted(terms.named.get(kind, ()))):
            where = (decisions.c.unit_kind == kind) & decisions.c.unit_id.in_(part)
            change = sa.update(decisions).where(where)
            n += connection.execute(change.values(unit_id=None, reason=None, salt=None)).rowcount
    query = sa.select(decisions.c.decision_id, decisions.c.reason).where(
        decisions.c.reason.is_not(None)
    )
    for number, reason in connection.execute(query).all():
        if terms.in_text(reason):
            where = decisions.c.decision_id == number
            connection.execute(sa.update(decisions).where(where).values(reason=None, salt=None))
            n += 1
    return n


def _reopen(connection: Connection, terms: Terms) -> int:
    """Ask again what an annotator who withdrew had answered: too few answers count without them."""
    n = 0
    for part in _parts(sorted(terms.named.get("annotator", ()))):
        table = annotations_table.c
        query = sa.select(table.task_id).where(table.annotator_id.in_(part)).distinct()
        for task in connection.execute(query).scalars().all():
            change = sa.update(tasks).where(tasks.c.task_id == task, tasks.c.status == "done")
            n += connection.execute(change.values(status="redo")).rowcount
    return n


def _blot_facts(connection: Connection, terms: Terms) -> int:
    """Take facts about others that name them (a friend's id) out."""
    n = 0
    for table in META.sorted_tables:
        if "facts" not in table.c:
            continue
        key = next(iter(table.primary_key.columns))
        for name, facts in connection.execute(sa.select(key, table.c.facts)).all():
            kept = {k: v for k, v in (facts or {}).items() if not _tells(k, v, terms)}
            if kept != (facts or {}):
                change = sa.update(table).where(key == name).values(facts=kept)
                n += connection.execute(change).rowcount
    return n


def _tells(name: str, value: object, terms: Terms) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    known = kinds_of_column(name)
    if known is not None and terms.is_id(text, known[0], strict=known[1]):
        return True
    return terms.in_text(text)


def people_of(project: Project) -> Mapping[str, Sequence[str]]:
    """List ids that may have been erased, by kind: candidates of a replay."""
    with reading(project.engine) as connection:
        held = connection.execute(sa.select(subjects.c.subject_id)).scalars().all()
        facts = connection.execute(sa.select(instances.c.facts)).scalars().all()
        raters = connection.execute(sa.select(META.tables["annotators"].c.annotator_id)).scalars()
        holders = {str(one["copyright_holder"]) for one in facts if one.get("copyright_holder")}
        return {"subject": list(held), "copyright": sorted(holders), "annotator": list(raters)}


def tasks_of(project: Project, found: Found) -> Iterator[Mapping[str, Any]]:
    """List tasks that were sent, and single answers of annotators who withdrew."""
    mine, gone = found.named.get("task", set()), found.named.get("annotation", set())
    with reading(project.engine) as connection:
        columns = (tasks.c.task_id, tasks.c.server, tasks.c.server_project, tasks.c.server_task)
        for row in connection.execute(sa.select(*columns).where(tasks.c.server.is_not(None))):
            if row.task_id in mine:
                yield dict(row._mapping)  # noqa: SLF001 (SQLAlchemy's own way to a mapping)
        table = annotations_table.c
        query = sa.select(table.annotation_id, table.task_id, table.source, table.source_id)
        for row in connection.execute(query):
            if row.annotation_id in gone and row.task_id not in mine and "://" in row.source:
                yield {"server": row.source, "answer": int(row.source_id)}
