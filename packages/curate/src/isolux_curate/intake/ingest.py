"""Ingest photos and subjects into a project: files are copied, facts are read, no rule is applied.

A photo with the same bytes is not copied again; new facts about it or its subject replace the old
ones. Photos are ingested in batches, each with its row of the journal, so that an interrupted
ingest resumes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.core.errors import FileError, TableError
from isolux.io.atomic import write_bytes
from isolux_curate.intake.facts import read_photo_facts_or_trouble
from isolux_curate.intake.sheets import (
    add_existing_file_paths,
    read_photo_rows,
    read_unique_subjects,
)
from isolux_curate.project.database import insert_rows, open_write_transaction, update_rows_by_key
from isolux_curate.project.fact_columns import find_fact_dtype
from isolux_curate.project.folder import PHOTOS_DIR, Project, check_and_store_ledger_head
from isolux_curate.project.queries import drop_rows_of_revoked_consent
from isolux_curate.project.tables import images, instances, subjects, tasks
from isolux_curate.project.verdicts import ARRIVED, write_verdicts_and_journal_row
from isolux_curate.quality.hash_lists import (
    HashList,
    exclude_new_hash_matches,
    read_cleared_entry_by_image,
)

_BATCH_SIZE = 200  # photos in one transaction
_NON_FACT_COLUMNS = ("image_id", "file", "subject_id", "instance_id")
_STEP = "arrival"


@dataclass(frozen=True, slots=True)
class IngestResult:
    """Numbers of new photos, of existing ones, and of those with changed facts.

    Also ids of photos that match a list of known illegal material, which were not copied.
    The last field counts photos of people who revoked their consent; they were not ingested.
    """

    n_new: int
    n_existing: int
    n_changed: int
    n_subjects: int
    matches: tuple[str, ...] = ()
    n_revoked: int = 0


def ingest_sheet_photos(
    project: Project,
    sheet: str | Path,
    *,
    photo_folder: str | Path | None = None,
    subject_sheet: str | Path | None = None,
    illegal_hashes: HashList | None = None,
) -> IngestResult:
    """Ingest photos of a sheet into a project, without people who revoked their consent."""
    path = Path(sheet).expanduser()
    rows = read_photo_rows(path)
    subject_facts = (
        None if subject_sheet is None else read_unique_subjects(Path(subject_sheet).expanduser())
    )
    n_photos = rows["image_id"].n_unique()
    rows, subject_facts = drop_rows_of_revoked_consent(project, rows, subject_facts)
    n_revoked = n_photos - rows["image_id"].n_unique()
    root = Path(photo_folder).expanduser() if photo_folder is not None else path.parent
    located_rows = add_existing_file_paths(rows, root, str(path))
    n_new = n_existing = n_changed = 0
    is_first = True
    matches: list[str] = []
    for batch in _iterate_photo_batches(located_rows):
        copied_photos, batch_matches = _copy_photos_except_matches(project, batch, illegal_hashes)
        batch_result = write_photos_people_and_facts(
            project, copied_photos, batch.drop("path", "file"), subject_facts if is_first else None
        )
        n_new, n_existing, n_changed = (
            n_new + batch_result.n_new,
            n_existing + batch_result.n_existing,
            n_changed + batch_result.n_changed,
        )
        is_first = False
        if illegal_hashes is not None and batch_matches:
            exclude_new_hash_matches(project, batch_matches, illegal_hashes)
            matches += batch_matches
    n_subjects = 0 if subject_facts is None else subject_facts.height
    return IngestResult(n_new, n_existing, n_changed, n_subjects, tuple(matches), n_revoked)


def _iterate_photo_batches(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    ids = rows["image_id"].unique(maintain_order=True)
    for start in range(0, len(ids), _BATCH_SIZE):
        yield rows.filter(pl.col("image_id").is_in(ids[start : start + _BATCH_SIZE].implode()))


def _copy_photos_except_matches(
    project: Project, rows: pl.DataFrame, illegal_hashes: HashList | None
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Copy files into the project, named by their hash, and read their facts; matches with hashes.

    Matching photos are recorded without a file.
    """
    photo_rows: list[dict[str, Any]] = []
    entry_by_image: dict[str, str] = {}
    cleared_entries = {} if illegal_hashes is None else read_cleared_entry_by_image(project)
    for image_id, path in rows.select("image_id", "path").unique(maintain_order=True).iter_rows():
        try:
            file_bytes = Path(path).read_bytes()
        except OSError as error:
            raise FileError("a photo cannot be read", found=error.strerror, where=path) from error
        digest = hashlib.sha256(file_bytes).hexdigest()
        entry = (
            None
            if illegal_hashes is None
            else illegal_hashes.find_matching_entry_or_none(file_bytes)
        )
        if entry is not None and cleared_entries.get(image_id) != entry:
            entry_by_image[image_id] = entry
            empty = dict.fromkeys(("file", "width", "height")) | {"facts": {}}
            photo_rows.append({"image_id": image_id, "sha256": digest} | empty)
            continue
        file = Path(PHOTOS_DIR) / digest[:2] / f"{digest}{Path(path).suffix.lower()}"
        target = project.folder / file
        if not target.is_file() or target.stat().st_size != len(file_bytes):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(target, file_bytes)
        facts = read_photo_facts_or_trouble(file_bytes)
        size = {name: facts.pop(name, None) for name in ("width", "height")}
        photo_rows.append(
            {
                "image_id": image_id,
                "file": file.as_posix(),
                "sha256": digest,
                **size,
                "facts": facts,
            }
        )
    schema = {
        "image_id": pl.String,
        "file": pl.String,
        "sha256": pl.String,
        "width": pl.Int64,
        "height": pl.Int64,
        "facts": pl.Object,
    }
    return pl.DataFrame(photo_rows, schema=schema), entry_by_image


def write_photos_people_and_facts(
    project: Project,
    photos: pl.DataFrame,
    people: pl.DataFrame,
    subject_facts: pl.DataFrame | None = None,
) -> IngestResult:
    """Write photos, their instances and facts of subjects in one transaction."""
    cleared_entries = read_cleared_entry_by_image(project)
    with open_write_transaction(project.engine) as connection:
        people = _reuse_or_assign_instance_ids(connection, people)
        subject_rows = _build_subject_rows(people, subject_facts)
        n_changed, _ = _insert_or_update_facts(connection, subjects, "subject_id", subject_rows)
        new_ids, n_existing = _insert_or_restore_photos(connection, photos, cleared_entries)
        rows = [
            {k: row[k] for k in ("instance_id", "image_id", "subject_id")}
            | {"origin": "submitted", "facts": _extract_row_facts(instances, row)}
            for row in people.iter_rows(named=True)
        ]
        n_updated, new_instances = _insert_or_update_facts(
            connection, instances, "instance_id", rows
        )
        added_people = [row for row in new_instances if row["image_id"] not in new_ids]
        _reopen_photo_tasks(connection, {row["image_id"] for row in added_people})
        n_changed += n_updated + len(added_people)
        if new_ids or n_changed:
            verdicts = pl.DataFrame({"unit_id": new_ids}, schema={"unit_id": pl.String})
            verdicts = verdicts.with_columns(
                verdict=pl.lit(ARRIVED), reason=pl.lit(None, dtype=pl.String)
            )
            details = {"photos": len(new_ids), "changed": n_changed}
            write_verdicts_and_journal_row(
                connection, project, _STEP, "came in", verdicts, "image", details
            )
        else:
            check_and_store_ledger_head(connection, project)
    return IngestResult(len(new_ids), n_existing, n_changed, len(subject_rows))


def _reopen_photo_tasks(connection: Connection, image_ids: Collection[str]) -> None:
    """Ask again about photos to which a sheet added a person after they were annotated."""
    is_answered = tasks.c.image_id.in_(image_ids) & (tasks.c.status == "done")
    is_asked_again = (tasks.c.unit_kind == "image") & tasks.c.golden.is_(False)
    update = sa.update(tasks).where(is_answered, is_asked_again)
    connection.execute(update.values(status="redo"))


def _extract_row_facts(table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _cast_number_to_fact_dtype(find_fact_dtype(table, name), fact)
        for name, fact in row.items()
        if name not in _NON_FACT_COLUMNS and fact is not None
    }


def _cast_number_to_fact_dtype(dtype: Any, fact: object) -> object:
    if not dtype.is_numeric() or not isinstance(fact, str):
        return fact
    return float(fact) if dtype.is_float() else int(float(fact))


def _build_subject_rows(
    people: pl.DataFrame, subject_facts: pl.DataFrame | None
) -> list[dict[str, Any]]:
    row_by_subject = (
        {}
        if subject_facts is None
        else {r["subject_id"]: r for r in subject_facts.iter_rows(named=True)}
    )
    ids = dict.fromkeys([*people["subject_id"].drop_nulls(), *row_by_subject])
    return [
        {
            "subject_id": subject_id,
            "facts": _extract_row_facts(subjects, row_by_subject.get(subject_id, {})),
        }
        for subject_id in ids
    ]


def _insert_or_restore_photos(
    connection: Connection, photos: pl.DataFrame, cleared_image_ids: Collection[str]
) -> tuple[list[str], int]:
    """Insert new photos; refuse one that was ingested before with other bytes."""
    query = sa.select(images.c.image_id, images.c.sha256, images.c.file)
    hash_by_image = {str(image_id): digest for image_id, digest, _ in connection.execute(query)}
    removed_ids = {
        image_id for image_id, _, file in connection.execute(query) if file is None
    } & set(cleared_image_ids)
    rows: list[dict[str, Any]] = []
    for row in photos.iter_rows(named=True):
        if row["image_id"] not in hash_by_image:
            empty = dict.fromkeys(("file", "sha256", "width", "height")) | {"facts": {}}
            rows.append(empty | row)
        elif hash_by_image[row["image_id"]] != row.get("sha256"):
            raise TableError(
                "a photo came in before with other bytes",
                expected="another image_id for another photo",
                found=repr(row["image_id"]),
                hint="nothing from this part was added",
            )
        elif row["image_id"] in removed_ids and row.get("file") is not None:
            is_image = images.c.image_id == row["image_id"]
            restored_columns = {k: row[k] for k in ("file", "width", "height", "facts")}
            connection.execute(sa.update(images).where(is_image).values(**restored_columns))
    insert_rows(connection, images, rows)
    return [row["image_id"] for row in rows], photos.height - len(rows)


def _reuse_or_assign_instance_ids(connection: Connection, people: pl.DataFrame) -> pl.DataFrame:
    """Assign each person in a photo their existing instance id, or the next free one."""
    column = instances.c
    query = sa.select(column.instance_id, column.image_id, column.subject_id)
    is_listed_image = column.image_id.in_(people["image_id"].unique().to_list())
    existing_rows = [(i, str(m), s) for i, m, s in connection.execute(query.where(is_listed_image))]
    used_ids = {instance_id for instance_id, _, _ in existing_rows}
    id_by_person = {
        (image, subject_id): instance_id
        for instance_id, image, subject_id in existing_rows
        if subject_id is not None
    }
    instance_ids: list[str] = []
    for instance_id, image, subject_id in people.select(
        "instance_id", "image_id", "subject_id"
    ).iter_rows():
        if subject_id is None:
            instance_ids.append(instance_id)
            continue
        if (image, subject_id) not in id_by_person:
            numbers = (f"{image}-{k}" for k in count(1))
            new_id = (
                instance_id
                if instance_id not in used_ids
                else next(n for n in numbers if n not in used_ids)
            )
            id_by_person[image, subject_id] = new_id
            used_ids.add(new_id)
        instance_ids.append(id_by_person[image, subject_id])
    return people.with_columns(instance_id=pl.Series(instance_ids, dtype=pl.String))


def _insert_or_update_facts(
    connection: Connection, table: sa.Table, key_column: str, rows: Sequence[Mapping[str, Any]]
) -> tuple[int, list[Mapping[str, Any]]]:
    """Insert new rows and update changed facts; the number of changed rows, and the new rows."""
    query = sa.select(table.c[key_column], table.c.facts)
    facts_by_key = {str(row_key): dict(facts) for row_key, facts in connection.execute(query)}
    new_rows = [row for row in rows if row[key_column] not in facts_by_key]
    changed_rows = {
        row[key_column]: {"facts": facts_by_key[row[key_column]] | row["facts"]}
        for row in rows
        if row[key_column] in facts_by_key
        and facts_by_key[row[key_column]] | row["facts"] != facts_by_key[row[key_column]]
    }
    insert_rows(connection, table, new_rows)
    update_rows_by_key(connection, table.c[key_column], changed_rows)
    return len(changed_rows), new_rows
