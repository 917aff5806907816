"""Photos and subjects come into a project: files are copied, facts are read, and nothing is judged.

A photo that is there already, byte by byte, stays as it is; new answers about it or its subject
replace the old ones. Photos come in by hundreds, each with its row of the journal, so that what was
stopped goes on where it was.
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

from isolux.io.atomic import write_bytes
from isolux.io.paths import inside
from isolux.vocabulary.errors import FileError, TableError
from isolux_curate.intake.facts import facts_of
from isolux_curate.project.database import insert_rows, update_rows, writing
from isolux_curate.project.decisions import CAME, write_verdicts
from isolux_curate.project.folder import PHOTOS, Project, remember_ledger_head
from isolux_curate.project.reading import FACTS, drop_revoked_rows
from isolux_curate.project.tables import images, instances, subjects
from isolux_curate.quality.known import HashList, cleared, write_matches
from isolux_curate.user_tables import read_text, refuse_missing, refuse_rows

_TOGETHER = 200  # photos in one transaction
_OWN = ("image_id", "file", "subject_id", "instance_id")
_IDS = ("image_id", "subject_id", "copyright_holder")
_STEP = "arrival"


@dataclass(frozen=True, slots=True)
class Added:
    """What came in: photos, those already there, and those of which other facts were told.

    ``matches``: photos that match a list of known illegal material, by id; they were not copied.
    ``revoked``: photos of people who took their consent back; they did not come in.
    """

    new: int
    known: int
    changed: int
    subjects: int
    matches: tuple[str, ...] = ()
    revoked: int = 0


def add(
    project: Project,
    sheet: str | Path,
    *,
    photos: str | Path | None = None,
    subjects: str | Path | None = None,
    hashes: HashList | None = None,
) -> Added:
    """Bring photos into a project, but for those of people who took their consent back."""
    path = Path(sheet).expanduser()
    rows = _rows(_stripped(read_text(path)), str(path))
    known = None if subjects is None else _of_subjects(Path(subjects).expanduser())
    n_photos = rows["image_id"].n_unique()
    rows, known = drop_revoked_rows(project, rows, known)
    revoked = n_photos - rows["image_id"].n_unique()
    root = Path(photos).expanduser() if photos is not None else path.parent
    found = _located(rows, root, str(path))
    new = again = changed = 0
    first = True
    matches: list[str] = []
    for part in _batches(found):
        taken, matched = _taken(project, part, hashes)
        told = bring_in(project, taken, part.drop("path", "file"), known if first else None)
        new, again, changed = new + told.new, again + told.known, changed + told.changed
        first = False
        if hashes is not None and matched:
            write_matches(project, matched, hashes)
            matches += matched
    n_subjects = 0 if known is None else known.height
    return Added(new, again, changed, n_subjects, tuple(matches), revoked)


def _batches(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    ids = rows["image_id"].unique(maintain_order=True)
    for start in range(0, len(ids), _TOGETHER):
        yield rows.filter(pl.col("image_id").is_in(ids[start : start + _TOGETHER].implode()))


def _stripped(texts: pl.DataFrame) -> pl.DataFrame:
    """Write ids without white space around them."""
    ids = [name for name in _IDS if texts.schema.get(name) == pl.String]
    return texts.with_columns(pl.col(ids).str.strip_chars())


def _rows(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    for name in ("file", "subject_id"):
        refuse_missing(frame, [name], where)
        refuse_rows(
            frame[name].is_null(),
            f"a cell of {name!r} is empty",
            where,
            column=name,
            expected="a photo and who is in it",
        )
    if "image_id" not in frame.columns:
        stem = pl.col("file").str.replace(r"\.[^./\\]*$", "")
        frame = frame.with_columns(image_id=stem)
    twice = frame.filter(pl.struct("image_id", "subject_id").is_duplicated())
    if twice.height:
        raise TableError(
            "a subject is listed twice for one photo",
            expected="one row a photo and subject",
            found=f"photo {twice['image_id'][0]!r}",
            where=where,
        )
    one = frame.group_by("image_id").agg(pl.col("file").n_unique()).filter(pl.col("file") > 1)
    if one.height:
        raise TableError(
            "an image_id is used for several files",
            expected="one file an image_id",
            found=repr(one["image_id"].min()),
            where=where,
        )
    _refuse_words(frame, where)
    number = pl.int_range(pl.len()).over("image_id") + 1
    return frame.with_columns(instance_id=pl.format("{}-{}", "image_id", number))


def _of_subjects(path: Path) -> pl.DataFrame:
    frame = _stripped(read_text(path, "subject_id"))
    if frame["subject_id"].is_duplicated().any() or frame["subject_id"].null_count():
        raise TableError(
            "a subject is in several rows, or in none",
            expected="one row a subject",
            where=str(path),
        )
    _refuse_words(frame, str(path))
    return frame


def _refuse_words(frame: pl.DataFrame, where: str) -> None:
    """Refuse a word in a column of numbers, before anything comes in."""
    for name in frame.columns:
        kind = FACTS.get(name)
        if kind is None or not kind.is_numeric():
            continue
        numbers = frame[name].cast(pl.Float64, strict=False)
        refuse_rows(
            frame[name].is_not_null() & ~numbers.is_finite().fill_null(value=False),
            f"a cell of {name!r} is not a number",
            where,
            expected="a number, or nothing",
            cells=frame[name],
            column=name,
            hint="leave the cell empty where it is not known",
        )


def _located(rows: pl.DataFrame, root: Path, where: str) -> pl.DataFrame:
    """Find every file before anything is done."""
    paths: dict[str, str] = {}
    missing: list[str] = []
    for file in rows["file"].unique(maintain_order=True):
        path = inside(root, file)
        paths[file] = str(path)
        if not path.is_file():
            missing.append(file)
    if missing:
        raise FileError(
            f"{len(missing):,} of {len(paths):,} photos are not there",
            expected=f"files below {root}",
            found=", ".join(map(repr, missing[:5])),
            where=where,
            hint="name the folder with --photos, or take their rows out of the sheet",
        )
    return rows.with_columns(path=pl.col("file").replace_strict(paths, return_dtype=pl.String))


def _taken(
    project: Project, rows: pl.DataFrame, hashes: HashList | None
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Copy the files into the project, each under the hash of its bytes, and read their facts."""
    taken: list[dict[str, Any]] = []
    matched: dict[str, str] = {}
    fine = {} if hashes is None else cleared(project)
    for image_id, path in rows.select("image_id", "path").unique(maintain_order=True).iter_rows():
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise FileError("a photo cannot be read", found=error.strerror, where=path) from error
        digest = hashlib.sha256(data).hexdigest()
        entry = None if hashes is None else hashes.match(data)
        if entry is not None and fine.get(image_id) != entry:
            matched[image_id] = entry
            empty = dict.fromkeys(("file", "width", "height")) | {"facts": {}}
            taken.append({"image_id": image_id, "sha256": digest} | empty)
            continue
        file = Path(PHOTOS) / digest[:2] / f"{digest}{Path(path).suffix.lower()}"
        target = project.folder / file
        if not target.is_file() or target.stat().st_size != len(data):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(target, data)
        facts = facts_of(data)
        size = {name: facts.pop(name, None) for name in ("width", "height")}
        taken.append(
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
    return pl.DataFrame(taken, schema=schema), matched


def bring_in(
    project: Project, photos: pl.DataFrame, people: pl.DataFrame, known: pl.DataFrame | None = None
) -> Added:
    """Write photos, the people in them and what is known of subjects, in one transaction."""
    fine = cleared(project)
    with writing(project.engine) as connection:
        people = _numbered(connection, people)
        about = _about_subjects(people, known)
        changed, _ = _merge(connection, subjects, "subject_id", about)
        new, again = _photos(connection, photos, fine)
        rows = [
            {k: row[k] for k in ("instance_id", "image_id", "subject_id")}
            | {"origin": "submitted", "facts": _facts(row)}
            for row in people.iter_rows(named=True)
        ]
        told, beside = _merge(connection, instances, "instance_id", rows)
        changed += told + len({one["instance_id"] for one in beside if one["image_id"] not in new})
        if new or changed:
            verdicts = pl.DataFrame({"unit_id": new}, schema={"unit_id": pl.String})
            verdicts = verdicts.with_columns(
                verdict=pl.lit(CAME), reason=pl.lit(None, dtype=pl.String)
            )
            said = {"photos": len(new), "changed": changed}
            write_verdicts(connection, project, _STEP, "came in", verdicts, "image", said)
        else:
            remember_ledger_head(connection, project)
    return Added(len(new), again, changed, len(about))


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _number(name, value)
        for name, value in row.items()
        if name not in _OWN and value is not None
    }


def _number(name: str, value: object) -> object:
    kind = FACTS.get(name)
    if kind is None or kind == pl.Boolean or not isinstance(value, str):
        return value
    return float(value) if kind == pl.Float64 else int(float(value))


def _about_subjects(people: pl.DataFrame, known: pl.DataFrame | None) -> list[dict[str, Any]]:
    told = {} if known is None else {r["subject_id"]: r for r in known.iter_rows(named=True)}
    ids = dict.fromkeys([*people["subject_id"].drop_nulls(), *told])
    return [{"subject_id": one, "facts": _facts(told.get(one, {}))} for one in ids]


def _photos(
    connection: Connection, photos: pl.DataFrame, fine: Collection[str]
) -> tuple[list[str], int]:
    """Write photos that are new; refuse one that came with other bytes before."""
    query = sa.select(images.c.image_id, images.c.sha256, images.c.file)
    held = {str(one): digest for one, digest, _ in connection.execute(query)}
    bare = {one for one, _, file in connection.execute(query) if file is None} & set(fine)
    rows: list[dict[str, Any]] = []
    for row in photos.iter_rows(named=True):
        if row["image_id"] not in held:
            empty = dict.fromkeys(("file", "sha256", "width", "height")) | {"facts": {}}
            rows.append(empty | row)
        elif held[row["image_id"]] != row.get("sha256"):
            raise TableError(
                "a photo came in before with other bytes",
                expected="another image_id for another photo",
                found=repr(row["image_id"]),
                hint="nothing from this part was added",
            )
        elif row["image_id"] in bare and row.get("file") is not None:
            one = images.c.image_id == row["image_id"]
            held_now = {k: row[k] for k in ("file", "width", "height", "facts")}
            connection.execute(sa.update(images).where(one).values(**held_now))
    insert_rows(connection, images, rows)
    return [row["image_id"] for row in rows], photos.height - len(rows)


def _numbered(connection: Connection, people: pl.DataFrame) -> pl.DataFrame:
    """Give each person in a photo the number that they have there already, or the next."""
    column = instances.c
    asked = sa.select(column.instance_id, column.image_id, column.subject_id)
    among = column.image_id.in_(people["image_id"].unique().to_list())
    held = [(i, str(m), s) for i, m, s in connection.execute(asked.where(among))]
    taken = {one for one, _, _ in held}
    own = {(image, who): one for one, image, who in held if who is not None}
    given: list[str] = []
    for one, image, who in people.select("instance_id", "image_id", "subject_id").iter_rows():
        if who is None:
            given.append(one)
            continue
        if (image, who) not in own:
            numbers = (f"{image}-{k}" for k in count(1))
            new = one if one not in taken else next(n for n in numbers if n not in taken)
            own[image, who] = new
            taken.add(new)
        given.append(own[image, who])
    return people.with_columns(instance_id=pl.Series(given, dtype=pl.String))


def _merge(
    connection: Connection, table: sa.Table, key: str, rows: Sequence[Mapping[str, Any]]
) -> tuple[int, list[Mapping[str, Any]]]:
    """Write rows that are new, and other facts than before: how many changed, and the new rows."""
    query = sa.select(table.c[key], table.c.facts)
    held = {str(one): dict(facts) for one, facts in connection.execute(query)}
    fresh = [row for row in rows if row[key] not in held]
    other = {
        row[key]: {"facts": held[row[key]] | row["facts"]}
        for row in rows
        if row[key] in held and held[row[key]] | row["facts"] != held[row[key]]
    }
    insert_rows(connection, table, fresh)
    update_rows(connection, table.c[key], other)
    return len(other), fresh
