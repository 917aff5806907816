"""Who may annotate a stage: everyone, or those who graduated from its golden tasks."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.curation.project.tables import passes, tasks

__all__ = ["BELOW", "CHECK", "GRADUATED", "graduates", "last_passes"]

BELOW, CHECK, GRADUATED = "below", "spot check", "graduated"


def last_passes(connection: Connection, stage: str) -> dict[str, tuple[int, float, str]]:
    """Tell each annotator's last attempt at a stage: its number, the score, the status."""
    query = sa.select(passes.c.annotator_id, passes.c.attempt, passes.c.score, passes.c.status)
    query = query.where(passes.c.stage == stage).order_by(passes.c.attempt)
    return {str(w): (int(a), float(s), str(t)) for w, a, s, t in connection.execute(query)}


def graduates(connection: Connection, stage: str) -> frozenset[str] | None:
    """List who may annotate a stage; None: anyone, as it has no golden tasks."""
    query = sa.select(sa.func.count()).select_from(tasks)
    query = query.where(tasks.c.stage == stage, tasks.c.golden.is_(True))
    if not connection.execute(query).scalar():
        return None
    last = last_passes(connection, stage)
    return frozenset(who for who, (_, _, status) in last.items() if status == GRADUATED)
