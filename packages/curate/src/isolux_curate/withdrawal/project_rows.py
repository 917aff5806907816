"""A person's rows in a project's database: find them, and delete them in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.project.database import (
    insert_rows,
    open_read_transaction,
    open_write_transaction,
    vacuum_database,
)
from isolux_curate.project.folder import Project, append_signed_journal_row
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
from isolux_curate.withdrawal.terms import (
    IdentifyingTerms,
    list_file_name_and_stem,
    separate_own_and_other_names,
)

_IDS_PER_QUERY = 400  # SQLite allows 999 parameters in one query
_KEPT_TABLES = (journal.name, seals.name, settings.name, decisions.name)


class PersonReferences:
    """A person's names and everyone else's by kind, hashes of photos, and pseudonyms."""

    def __init__(self) -> None:
        self.names_by_kind: dict[str, set[str]] = {}
        self.other_names: dict[str, set[str]] = {}
        self.photo_hashes: set[str] = set()
        self.pseudonyms: set[str] = set()

    def add_names(self, id_kind: str, names: Iterator[str] | Sequence[str] | set[str]) -> None:
        """Add names of the person."""
        self.names_by_kind.setdefault(id_kind, set()).update(str(name) for name in names if name)

    def build_identifying_terms(self) -> IdentifyingTerms:
        """Build immutable identifying terms from the names."""
        names_by_kind = {id_kind: frozenset(names) for id_kind, names in self.names_by_kind.items()}
        return IdentifyingTerms(
            *separate_own_and_other_names(names_by_kind, self.other_names),
            frozenset(self.photo_hashes),
        )


def add_names_found_in_project(project: Project, references: PersonReferences) -> None:
    """Add the photos, instances, tasks and annotations of the people named in references."""
    with open_read_transaction(project.engine) as connection:
        people = connection.execute(
            sa.select(
                instances.c.instance_id,
                instances.c.image_id,
                instances.c.subject_id,
                instances.c.facts,
            )
        ).all()
        photos = connection.execute(sa.select(images.c.image_id, images.c.file, images.c.sha256))
        photo_by_image = {image: (file, digest) for image, file, digest in photos}
        task_rows = connection.execute(sa.select(tasks.c.task_id, tasks.c.image_id)).all()
        annotations = connection.execute(
            sa.select(
                annotations_table.c.annotation_id,
                annotations_table.c.task_id,
                annotations_table.c.annotator_id,
            )
        ).all()
        subject_ids = connection.execute(sa.select(subjects.c.subject_id)).scalars().all()
    person_ids, holder_ids = (
        references.names_by_kind.get("subject", set()),
        references.names_by_kind.get("copyright", set()),
    )
    image_ids = set(references.names_by_kind.get("image", set()))
    for _, image, subject, facts in people:
        if subject in person_ids or str((facts or {}).get("copyright_holder")) in holder_ids:
            image_ids.add(image)
    photo_hashes = {photo_by_image[image][1] for image in image_ids if image in photo_by_image} - {
        None
    }
    image_ids |= {image for image, (_, digest) in photo_by_image.items() if digest in photo_hashes}
    references.add_names("image", image_ids)
    references.photo_hashes |= {str(photo_hash) for photo_hash in photo_hashes}
    files = {photo_by_image[image][0] for image in image_ids if image in photo_by_image} - {None}
    references.add_names(
        "file", {*files, *(list_file_name_and_stem(str(file_name))[0] for file_name in files)}
    )
    references.add_names(
        "instance", {instance_id for instance_id, image, _, _ in people if image in image_ids}
    )
    references.add_names("task", {task for task, image in task_rows if image in image_ids})
    task_ids, raters = (
        references.names_by_kind["task"],
        references.names_by_kind.get("annotator", set()),
    )
    references.add_names(
        "annotation",
        {a for a, task, annotator in annotations if task in task_ids or annotator in raters},
    )
    for id_kind, names in (
        ("image", photo_by_image),
        ("subject", subject_ids),
        ("instance", [person[0] for person in people]),
        ("task", [task_row[0] for task_row in task_rows]),
        ("annotation", [annotation[0] for annotation in annotations]),
        ("annotator", {annotation[2] for annotation in annotations}),
    ):
        references.other_names.setdefault(id_kind, set()).update(map(str, names))


def read_photo_hashes(project: Project) -> frozenset[str]:
    """Read the SHA-256 of every photo of a project."""
    return frozenset(
        str(photo_hash)
        for (photo_hash,) in project.fetch_rows(sa.select(images.c.sha256))
        if photo_hash
    )


def delete_people_and_vacuum(
    project: Project, terms: IdentifyingTerms, withdrawal_number: str
) -> dict[str, int]:
    """Delete people from every table; the journal holds counts only."""
    with open_write_transaction(project.engine) as connection:
        counts = {"decisions": _erase_verdicts_about_people(connection, terms)}
        reopened = _reopen_tasks_of_withdrawn_annotators(connection, terms)
        for table in reversed(META.sorted_tables):
            if table.name not in _KEPT_TABLES:
                counts[table.name] = _delete_rows_keeping_seals(connection, table, terms)
        counts["facts"] = _remove_facts_naming_people(connection, terms)
        counts = {name: n for name, n in counts.items() if n}
        if counts:
            details = {"withdrawal": withdrawal_number, **counts}
            details |= {"tasks opened again": reopened} if reopened else {}
            append_signed_journal_row(
                connection, project, step="withdraw", rule="taken out", details=details, seals=()
            )
    vacuum_database(project.engine)  # also after an interrupted deletion
    return counts


def _delete_rows_keeping_seals(
    connection: Connection, table: sa.Table, terms: IdentifyingTerms
) -> int:
    """Delete rows with a person's id, and keep the seals of sealed rows for the journal."""
    n = 0
    for column, names in _iterate_id_columns_with_names(table, terms):
        for id_batch in _iterate_batches_of_ids(names):
            condition: sa.ColumnElement[bool] = column.in_(id_batch)
            if column.name == "unit_id" and "unit_kind" in table.c:
                condition = sa.false()
                for id_kind in ("image", "subject", "instance"):
                    ids_of_kind = [
                        unit_id
                        for unit_id in id_batch
                        if unit_id in terms.names_by_kind.get(id_kind, ())
                    ]
                    condition |= (table.c.unit_kind == id_kind) & column.in_(ids_of_kind)
            if "seal" in table.c and "n" in table.c:
                rows = connection.execute(sa.select(table.c.n, table.c.seal).where(condition))
                insert_rows(connection, seals, map(dict, rows.mappings()))
            n += connection.execute(sa.delete(table).where(condition)).rowcount
    return n


def _iterate_id_columns_with_names(
    table: sa.Table, terms: IdentifyingTerms
) -> Iterator[tuple[sa.Column[Any], list[str]]]:
    for column in table.columns:
        if not isinstance(column.type, sa.Text):
            continue
        parsed = parse_id_column_or_none(column.name)
        if parsed is None or not (column.name.endswith("_id") or parsed[1]):
            continue
        if table is instances and column.name == "subject_id":
            names = set(terms.names_by_kind.get("subject", ()))
        else:
            names = {name for id_kind in parsed[0] for name in terms.names_by_kind.get(id_kind, ())}
        if names:
            yield column, sorted(names)


def _iterate_batches_of_ids(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _IDS_PER_QUERY):
        yield list(ids[start : start + _IDS_PER_QUERY])


def _erase_verdicts_about_people(connection: Connection, terms: IdentifyingTerms) -> int:
    """Erase unit, reason and salt of verdicts about the person; the seal stays."""
    n = 0
    for id_kind in ("image", "subject", "instance", "annotation", "annotator"):
        for id_batch in _iterate_batches_of_ids(sorted(terms.names_by_kind.get(id_kind, ()))):
            condition = (decisions.c.unit_kind == id_kind) & decisions.c.unit_id.in_(id_batch)
            update = sa.update(decisions).where(condition)
            n += connection.execute(update.values(unit_id=None, reason=None, salt=None)).rowcount
    query = sa.select(decisions.c.decision_id, decisions.c.reason).where(
        decisions.c.reason.is_not(None)
    )
    for number, reason in connection.execute(query).all():
        if terms.does_text_name_people(reason):
            condition = decisions.c.decision_id == number
            connection.execute(sa.update(decisions).where(condition).values(reason=None, salt=None))
            n += 1
    return n


def _reopen_tasks_of_withdrawn_annotators(connection: Connection, terms: IdentifyingTerms) -> int:
    """Reopen tasks that a withdrawn annotator answered: now they have too few answers."""
    n = 0
    for id_batch in _iterate_batches_of_ids(sorted(terms.names_by_kind.get("annotator", ()))):
        table = annotations_table.c
        query = sa.select(table.task_id).where(table.annotator_id.in_(id_batch)).distinct()
        for task in connection.execute(query).scalars().all():
            update = sa.update(tasks).where(tasks.c.task_id == task, tasks.c.status == "done")
            n += connection.execute(update.values(status="redo")).rowcount
    return n


def _remove_facts_naming_people(connection: Connection, terms: IdentifyingTerms) -> int:
    """Remove facts of other people that name the person (a friend's id)."""
    n = 0
    for table in META.sorted_tables:
        if "facts" not in table.c:
            continue
        key = next(iter(table.primary_key.columns))
        for name, facts in connection.execute(sa.select(key, table.c.facts)).all():
            remaining_facts = {
                k: v for k, v in (facts or {}).items() if not _does_fact_name_people(k, v, terms)
            }
            if remaining_facts != (facts or {}):
                update = sa.update(table).where(key == name).values(facts=remaining_facts)
                n += connection.execute(update).rowcount
    return n


def _does_fact_name_people(fact_name: str, fact: object, terms: IdentifyingTerms) -> bool:
    text = fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False)
    parsed = parse_id_column_or_none(fact_name)
    if parsed is not None and terms.does_id_cell_name_people(text, parsed[0], strict=parsed[1]):
        return True
    return terms.does_text_name_people(text)


def read_person_ids_by_kind(project: Project) -> Mapping[str, Sequence[str]]:
    """Read the ids of a project's people, by kind: candidates of a replay."""
    with open_read_transaction(project.engine) as connection:
        subject_ids = connection.execute(sa.select(subjects.c.subject_id)).scalars().all()
        facts = connection.execute(sa.select(instances.c.facts)).scalars().all()
        raters = connection.execute(sa.select(META.tables["annotators"].c.annotator_id)).scalars()
        holders = {
            str(fact_values["copyright_holder"])
            for fact_values in facts
            if fact_values.get("copyright_holder")
        }
        return {
            "subject": list(subject_ids),
            "copyright": sorted(holders),
            "annotator": list(raters),
        }


def iterate_server_tasks_and_answers(
    project: Project, references: PersonReferences
) -> Iterator[Mapping[str, Any]]:
    """Read the person's tasks on servers, and answers there of annotators who withdrew."""
    task_ids, annotation_ids = (
        references.names_by_kind.get("task", set()),
        references.names_by_kind.get("annotation", set()),
    )
    with open_read_transaction(project.engine) as connection:
        columns = (tasks.c.task_id, tasks.c.server, tasks.c.server_project, tasks.c.server_task)
        for row in connection.execute(sa.select(*columns).where(tasks.c.server.is_not(None))):
            if row.task_id in task_ids:
                yield dict(row._mapping)  # noqa: SLF001 (SQLAlchemy's own way to a mapping)
        table = annotations_table.c
        query = sa.select(table.annotation_id, table.task_id, table.source, table.source_id)
        for row in connection.execute(query):
            if (
                row.annotation_id in annotation_ids
                and row.task_id not in task_ids
                and "://" in row.source
            ):
                yield {"server": row.source, "answer": int(row.source_id)}
