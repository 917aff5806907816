"""The database's tables in SQLAlchemy.

Columns are named as in isolux (``image_id``, ``instance_id``, ``subject_id``), so that published
tables need no renaming. Only ``images``, ``subjects``, ``instances``, ``annotators``,
``annotations`` and ``decisions`` may hold anything about a person: journal rows never do.

========== =======================================================================================
images     a photo that came in: where its copy lies, its size, what Exif told (``facts``)
subjects   a person in photos, and what is known of them: age group, country, answers
instances  a person in a photo, with what was said of both together; a box where one was drawn
decisions  one verdict of one rule about one unit; later ones stand in place of earlier ones
journal    who did what, when, by which rule, with a hash of the verdicts; rows only grow
annotators people who annotate: region and what they disclosed
passes     an annotator's training in a stage: attempts, score, whether they may work on
tasks      one unit that is to be annotated in one round of one stage, and where it was sent
annotations one version of one answer of one annotator to one task
seals      of an annotation that was deleted, since someone withdrew: the journal still verifies
========== =======================================================================================
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

META = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _build_non_null_columns(sql_type: type[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, sql_type, nullable=False) for name in names]


def _build_nullable_columns(sql_type: type[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, sql_type) for name in names]


def _build_primary_key_column(name: str, sql_type: type[Any] = Text) -> Column[Any]:
    return Column(name, sql_type, primary_key=True, autoincrement="auto" if name != "n" else False)


def _build_journal_row_column() -> Column[Any]:
    """Build the column with the number of the journal row that a row was written with."""
    return Column("n", Integer, ForeignKey("journal.n"), nullable=False, index=True)


settings = Table(
    "settings", META, _build_primary_key_column("name"), *_build_non_null_columns(JSON, "value")
)
journal = Table(
    "journal",
    META,
    _build_primary_key_column("n", Integer),  # from 1, without gaps
    *_build_non_null_columns(
        Text, "at", "who", "step", "rule"
    ),  # ISO 8601 in UTC; the curator; intake, push, …
    *_build_non_null_columns(JSON, "said"),  # settings and counts, never an id
    # The digest is of the seals of its verdicts and annotations.
    *_build_non_null_columns(Text, "digest", "previous", "hash", "signature"),
)
images = Table(
    "images",
    META,
    _build_primary_key_column("image_id"),
    *_build_nullable_columns(
        Text, "file", "sha256"
    ),  # below the folder; null: never copied, or withdrawn
    *_build_nullable_columns(Integer, "width", "height"),  # pixels, as stored
    *_build_non_null_columns(JSON, "facts"),
    Index(None, "sha256"),
)
subjects = Table(
    "subjects",
    META,
    _build_primary_key_column("subject_id"),
    *_build_non_null_columns(JSON, "facts"),
)
instances = Table(
    "instances",
    META,
    _build_primary_key_column("instance_id"),
    Column("image_id", Text, ForeignKey("images.image_id"), nullable=False, index=True),
    Column("subject_id", Text, ForeignKey("subjects.subject_id"), index=True),
    *_build_nullable_columns(
        Float, "x", "y", "w", "h"
    ),  # pixels of the photo turned upright; null: no box
    *_build_non_null_columns(Text, "origin"),  # submitted, or the stage that drew it
    *_build_non_null_columns(JSON, "facts"),
)
decisions = Table(
    "decisions",
    META,
    _build_primary_key_column("decision_id", Integer),
    _build_journal_row_column(),
    *_build_non_null_columns(Text, "unit_kind"),  # image, subject, instance, annotation, annotator
    *_build_nullable_columns(
        Text, "unit_id"
    ),  # null: the person withdrew, and the seal alone remains
    *_build_non_null_columns(Text, "step", "rule", "verdict"),  # came, out, in (again), redo
    *_build_nullable_columns(Text, "reason", "salt"),
    *_build_non_null_columns(Text, "seal"),
    Index(None, "unit_kind", "unit_id"),
)
annotators = Table(
    "annotators",
    META,
    _build_primary_key_column("annotator_id"),
    *_build_nullable_columns(Text, "region"),
    *_build_non_null_columns(JSON, "facts"),
)
passes = Table(
    "passes",
    META,
    Column("annotator_id", Text, ForeignKey("annotators.annotator_id"), primary_key=True),
    _build_primary_key_column("stage"),
    Column("attempt", Integer, primary_key=True),
    *_build_non_null_columns(Integer, "units"),  # golden units that were judged
    *_build_nullable_columns(Float, "score"),  # recall or mean IoU, 0 to 1
    *_build_non_null_columns(Text, "status"),  # below, feedback, spot check, graduated
    _build_journal_row_column(),
)
tasks = Table(
    "tasks",
    META,
    _build_primary_key_column("task_id"),
    *_build_non_null_columns(Text, "stage"),
    *_build_non_null_columns(Integer, "round"),
    *_build_non_null_columns(Text, "unit_kind", "unit_id"),
    Column("image_id", Text, ForeignKey("images.image_id"), nullable=False, index=True),
    *_build_non_null_columns(Integer, "wanted"),  # annotators asked
    *_build_non_null_columns(Boolean, "golden"),
    *_build_non_null_columns(Text, "status"),  # open, done, redo, dropped
    *_build_nullable_columns(Text, "server"),
    *_build_nullable_columns(Integer, "server_project", "server_task"),
    *_build_non_null_columns(JSON, "data"),  # what the annotator is shown beside the photo
    UniqueConstraint("stage", "round", "unit_kind", "unit_id", "golden"),
    UniqueConstraint("server", "server_task"),
)
annotations_table = Table(  # `annotations` is a future
    "annotations",
    META,
    _build_primary_key_column("annotation_id"),  # ours: one a version
    Column("task_id", Text, ForeignKey("tasks.task_id"), nullable=False, index=True),
    Column("annotator_id", Text, ForeignKey("annotators.annotator_id"), nullable=False),
    *_build_non_null_columns(Text, "source", "source_id"),  # the server's address, or a file's name
    *_build_non_null_columns(Integer, "version"),  # from 1; the highest stands
    *_build_nullable_columns(Text, "made_at", "updated_at"),
    *_build_nullable_columns(Float, "seconds"),
    *_build_non_null_columns(JSON, "answer"),
    *_build_non_null_columns(Text, "status"),  # stands, superseded, refused, withdrawn
    _build_journal_row_column(),
    *_build_nullable_columns(Text, "salt"),
    *_build_non_null_columns(Text, "seal"),
    UniqueConstraint("source", "source_id", "version"),
)
seals = Table("seals", META, _build_primary_key_column("seal"), _build_journal_row_column())
