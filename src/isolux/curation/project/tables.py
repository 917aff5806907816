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

settings = Table(
    "settings", META, Column("name", Text, primary_key=True), Column("value", JSON, nullable=False)
)

journal = Table(
    "journal",
    META,
    Column("n", Integer, primary_key=True, autoincrement=False),  # from 1, without gaps
    Column("at", Text, nullable=False),  # ISO 8601, UTC
    Column("who", Text, nullable=False),  # the curator
    Column("step", Text, nullable=False),  # intake, push, pull, …
    Column("rule", Text, nullable=False),
    Column("said", JSON, nullable=False),  # settings and counts, never an id
    Column("digest", Text, nullable=False),  # of the seals of its verdicts and annotations
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("signature", Text, nullable=False),
)

images = Table(
    "images",
    META,
    Column("image_id", Text, primary_key=True),
    Column("file", Text),  # below the project's folder; null: never copied, or withdrawn
    Column("sha256", Text),
    Column("width", Integer),  # pixels, as stored
    Column("height", Integer),
    Column("facts", JSON, nullable=False),
    Index(None, "sha256"),
)

subjects = Table(
    "subjects",
    META,
    Column("subject_id", Text, primary_key=True),
    Column("facts", JSON, nullable=False),
)

instances = Table(
    "instances",
    META,
    Column("instance_id", Text, primary_key=True),
    Column("image_id", Text, ForeignKey("images.image_id"), nullable=False, index=True),
    Column("subject_id", Text, ForeignKey("subjects.subject_id"), index=True),
    Column("x", Float),  # pixels of the photo turned upright; null: no box
    Column("y", Float),
    Column("w", Float),
    Column("h", Float),
    Column("origin", Text, nullable=False),  # submitted, or the stage that drew it
    Column("facts", JSON, nullable=False),
)

decisions = Table(
    "decisions",
    META,
    Column("decision_id", Integer, primary_key=True),
    Column("n", Integer, ForeignKey("journal.n"), nullable=False, index=True),
    Column("unit_kind", Text, nullable=False),  # image, subject, instance, annotation, annotator
    Column("unit_id", Text),  # null: the person withdrew, and the seal alone remains
    Column("step", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("verdict", Text, nullable=False),  # came, out, in (again), redo
    Column("reason", Text),
    Column("salt", Text),
    Column("seal", Text, nullable=False),
    Index(None, "unit_kind", "unit_id"),
)

annotators = Table(
    "annotators",
    META,
    Column("annotator_id", Text, primary_key=True),
    Column("region", Text),
    Column("facts", JSON, nullable=False),
)

passes = Table(
    "passes",
    META,
    Column("annotator_id", Text, ForeignKey("annotators.annotator_id"), primary_key=True),
    Column("stage", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("units", Integer, nullable=False),  # golden units that were judged
    Column("score", Float),  # recall or mean IoU, 0 to 1
    Column("status", Text, nullable=False),  # below, feedback, spot check, graduated
    Column("n", Integer, ForeignKey("journal.n"), nullable=False),
)

tasks = Table(
    "tasks",
    META,
    Column("task_id", Text, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("unit_kind", Text, nullable=False),
    Column("unit_id", Text, nullable=False),
    Column("image_id", Text, ForeignKey("images.image_id"), nullable=False, index=True),
    Column("wanted", Integer, nullable=False),  # annotators asked
    Column("golden", Boolean, nullable=False),
    Column("status", Text, nullable=False),  # open, done, redo, dropped
    Column("server", Text),
    Column("server_project", Integer),
    Column("server_task", Integer),
    Column("data", JSON, nullable=False),  # what the annotator is shown beside the photo
    UniqueConstraint("stage", "round", "unit_kind", "unit_id", "golden"),
    UniqueConstraint("server", "server_task"),
)

annotations_table = Table(  # `annotations` is a future
    "annotations",
    META,
    Column("annotation_id", Text, primary_key=True),  # ours: one a version
    Column("task_id", Text, ForeignKey("tasks.task_id"), nullable=False, index=True),
    Column("annotator_id", Text, ForeignKey("annotators.annotator_id"), nullable=False),
    Column("source", Text, nullable=False),  # the server's address, or a file's name
    Column("source_id", Text, nullable=False),
    Column("version", Integer, nullable=False),  # from 1; the highest stands
    Column("made_at", Text),
    Column("updated_at", Text),
    Column("seconds", Float),
    Column("answer", JSON, nullable=False),
    Column("status", Text, nullable=False),  # stands, superseded, refused, withdrawn
    Column("n", Integer, ForeignKey("journal.n"), nullable=False),
    Column("salt", Text),
    Column("seal", Text, nullable=False),
    UniqueConstraint("source", "source_id", "version"),
)

seals = Table(
    "seals",
    META,
    Column("seal", Text, primary_key=True),
    Column("n", Integer, ForeignKey("journal.n"), nullable=False, index=True),
)
