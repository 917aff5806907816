"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    _people()
    _verdicts()
    _annotators()
    _annotation()


def _people() -> None:
    """Make those of what came in, and who is in it."""
    op.create_table(
        "images",
        sa.Column("image_id", sa.Text(), nullable=False),
        sa.Column("file", sa.Text(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("image_id", name=op.f("pk_images")),
    )
    op.create_index(op.f("ix_images_sha256"), "images", ["sha256"], unique=False)
    op.create_table(
        "subjects",
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("subject_id", name=op.f("pk_subjects")),
    )
    op.create_table(
        "instances",
        sa.Column("instance_id", sa.Text(), nullable=False),
        sa.Column("image_id", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=True),
        sa.Column("x", sa.Float(), nullable=True),
        sa.Column("y", sa.Float(), nullable=True),
        sa.Column("w", sa.Float(), nullable=True),
        sa.Column("h", sa.Float(), nullable=True),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["image_id"], ["images.image_id"], name=op.f("fk_instances_image_id")
        ),
        sa.ForeignKeyConstraint(
            ["subject_id"], ["subjects.subject_id"], name=op.f("fk_instances_subject_id")
        ),
        sa.PrimaryKeyConstraint("instance_id", name=op.f("pk_instances")),
    )
    op.create_index(op.f("ix_instances_image_id"), "instances", ["image_id"], unique=False)
    op.create_index(op.f("ix_instances_subject_id"), "instances", ["subject_id"], unique=False)


def _verdicts() -> None:
    """Make the journal and what was decided."""
    op.create_table(
        "settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )
    op.create_table(
        "journal",
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("said", sa.JSON(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_journal")),
    )
    op.create_table(
        "decisions",
        sa.Column("decision_id", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("unit_kind", sa.Text(), nullable=False),
        sa.Column("unit_id", sa.Text(), nullable=True),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("salt", sa.Text(), nullable=True),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["n"], ["journal.n"], name=op.f("fk_decisions_n")),
        sa.PrimaryKeyConstraint("decision_id", name=op.f("pk_decisions")),
    )
    op.create_index(op.f("ix_decisions_n"), "decisions", ["n"], unique=False)
    op.create_index(
        op.f("ix_decisions_unit_kind_unit_id"), "decisions", ["unit_kind", "unit_id"], unique=False
    )


def _annotators() -> None:
    """Make those of who annotates, and with what training."""
    op.create_table(
        "annotators",
        sa.Column("annotator_id", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("annotator_id", name=op.f("pk_annotators")),
    )
    op.create_table(
        "passes",
        sa.Column("annotator_id", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotators.annotator_id"], name=op.f("fk_passes_annotator_id")
        ),
        sa.ForeignKeyConstraint(["n"], ["journal.n"], name=op.f("fk_passes_n")),
        sa.PrimaryKeyConstraint("annotator_id", "stage", "attempt", name=op.f("pk_passes")),
    )


def _annotation() -> None:
    """Make those of what is to be annotated, and what was answered."""
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("unit_kind", sa.Text(), nullable=False),
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.Column("image_id", sa.Text(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("golden", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=True),
        sa.Column("server_project", sa.Integer(), nullable=True),
        sa.Column("server_task", sa.Integer(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["image_id"], ["images.image_id"], name=op.f("fk_tasks_image_id")),
        sa.PrimaryKeyConstraint("task_id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("server", "server_task", name=op.f("uq_tasks_server_server_task")),
        sa.UniqueConstraint(
            "stage",
            "round",
            "unit_kind",
            "unit_id",
            "golden",
            name=op.f("uq_tasks_stage_round_unit_kind_unit_id_golden"),
        ),
    )
    op.create_index(op.f("ix_tasks_image_id"), "tasks", ["image_id"], unique=False)
    op.create_table(
        "annotations",
        sa.Column("annotation_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("annotator_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Text(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=True),
        sa.Column("seal", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotators.annotator_id"], name=op.f("fk_annotations_annotator_id")
        ),
        sa.ForeignKeyConstraint(["n"], ["journal.n"], name=op.f("fk_annotations_n")),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.task_id"], name=op.f("fk_annotations_task_id")
        ),
        sa.PrimaryKeyConstraint("annotation_id", name=op.f("pk_annotations")),
        sa.UniqueConstraint(
            "source", "source_id", "version", name=op.f("uq_annotations_source_source_id_version")
        ),
    )
    op.create_index(op.f("ix_annotations_task_id"), "annotations", ["task_id"], unique=False)
