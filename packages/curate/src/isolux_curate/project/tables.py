"""The database's tables, as SQLAlchemy makes and knows them.

Names are those of every room (``image_id``, ``instance_id``, ``subject_id``), so that what is
published needs no renaming. Nothing but ``images``, ``subjects``, ``instances``, ``annotators``,
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


def _required(kind: type[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _optional(kind: type[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def _key(name: str, kind: type[Any] = Text) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement="auto" if name != "n" else False)


def _of_journal() -> Column[Any]:
    """Make the column with the row of the journal that a row came with."""
    return Column("n", Integer, ForeignKey("journal.n"), nullable=False, index=True)


settings = Table("settings", META, _key("name"), *_required(JSON, "value"))
journal = Table(
    "journal",
    META,
    _key("n", Integer),  # from 1, without gaps
    *_required(Text, "at", "who", "step", "rule"),  # ISO 8601 in UTC; the curator; intake, push, …
    *_required(JSON, "said"),  # settings and counts, never an id
    # The digest is of the seals of its verdicts and annotations.
    *_required(Text, "digest", "previous", "hash", "signature"),
)
images = Table(
    "images",
    META,
    _key("image_id"),
    *_optional(Text, "file", "sha256"),  # below the folder; null: never copied, or withdrawn
    *_optional(Integer, "width", "height"),  # pixels, as stored
    *_required(JSON, "facts"),
    Index(None, "sha256"),
)
subjects = Table("subjects", META, _key("subject_id"), *_required(JSON, "facts"))
instances = Table(
    "instances",
    META,
    _key("instance_id"),
    Column("image_id", Text, ForeignKey("images.image_id"), nullable=False, index=True),
    Column("subject_id", Text, ForeignKey("subjects.subject_id"), index=True),
    *_optional(Float, "x", "y", "w", "h"),  # pixels of the photo turned upright; null: no box
    *_required(Text, "origin"),  # submitted, or the stage that drew it
    *_required(JSON, "facts"),
)
decisions = Table(
    "decisions",
    META,
    _key("decision_id", Integer),
    _of_journal(),
    *_required(Text, "unit_kind"),  # image, subject, instance, annotation, annotator
    *_optional(Text, "unit_id"),  # null: the person withdrew, and the seal alone remains
    *_required(Text, "step", "rule", "verdict"),  # came, out, in (again), redo
    *_optional(Text, "reason", "salt"),
    *_required(Text, "seal"),
    Index(None, "unit_kind", "unit_id"),
)
annotators = Table(
    "annotators", META, _key("annotator_id"), *_optional(Text, "region"), *_required(JSON, "facts")
)
passes = Table(
    "passes",
    META,
    Column("annotator_id", Text, ForeignKey("annotators.annotator_id"), primary_key=True),
    _key("stage"),
    Column("attempt", Integer, primary_key=True),
    *_required(Integer, "units"),  # golden units that were judged
    *_optional(Float, "score"),  # recall or mean IoU, 0 to 1
    *_required(Text, "status"),  # below, feedback, spot check, graduated
    _of_journal(),
)
tasks = Table(
    "tasks",
    META,
    _key("task_id"),
    *_required(Text, "stage"),
    *_required(Integer, "round"),
    *_required(Text, "unit_kind", "unit_id"),
    Column("image_id", Text, ForeignKey("images.image_id"), nullable=False, index=True),
    *_required(Integer, "wanted"),  # annotators asked
    *_required(Boolean, "golden"),
    *_required(Text, "status"),  # open, done, redo, dropped
    *_optional(Text, "server"),
    *_optional(Integer, "server_project", "server_task"),
    *_required(JSON, "data"),  # what the annotator is shown beside the photo
    UniqueConstraint("stage", "round", "unit_kind", "unit_id", "golden"),
    UniqueConstraint("server", "server_task"),
)
annotations_table = Table(  # `annotations` is a future
    "annotations",
    META,
    _key("annotation_id"),  # ours: one a version
    Column("task_id", Text, ForeignKey("tasks.task_id"), nullable=False, index=True),
    Column("annotator_id", Text, ForeignKey("annotators.annotator_id"), nullable=False),
    *_required(Text, "source", "source_id"),  # the server's address, or a file's name
    *_required(Integer, "version"),  # from 1; the highest stands
    *_optional(Text, "made_at", "updated_at"),
    *_optional(Float, "seconds"),
    *_required(JSON, "answer"),
    *_required(Text, "status"),  # stands, superseded, refused, withdrawn
    _of_journal(),
    *_optional(Text, "salt"),
    *_required(Text, "seal"),
    UniqueConstraint("source", "source_id", "version"),
)
seals = Table("seals", META, _key("seal"), _of_journal())
