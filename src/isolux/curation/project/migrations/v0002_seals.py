"""Seals of annotations that were deleted, since someone withdrew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "seals",
        sa.Column("seal", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["n"], ["journal.n"], name=op.f("fk_seals_n")),
        sa.PrimaryKeyConstraint("seal", name=op.f("pk_seals")),
    )
    op.create_index(op.f("ix_seals_n"), "seals", ["n"], unique=False)
