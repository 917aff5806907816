"""Known illegal material: what matched a list stops everything that leaves the project.

A match is out at once, under ``KNOWN`` and ``LISTED``. Until someone has decided about it, nothing
is sent to annotators, written for them, drawn for review or published.
"""

from __future__ import annotations

import polars as pl
import sqlalchemy as sa

from isolux.curation.project.database import reading
from isolux.curation.project.decisions import IN, OUT
from isolux.curation.project.folder import Project
from isolux.curation.project.tables import decisions
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.words import numbered

__all__ = ["CONFIRMED", "KNOWN", "LISTED", "listed", "refuse_held"]

KNOWN, LISTED, CONFIRMED = "known material", "hash list", "decided"
_TOLD = 5


def listed(project: Project) -> pl.DataFrame:
    """List photos that ever matched a list."""
    query = (
        sa.select(decisions.c.unit_id, decisions.c.rule, decisions.c.verdict, decisions.c.reason)
        .where(decisions.c.step == KNOWN, decisions.c.unit_kind == "image")
        .where(decisions.c.unit_id.is_not(None))
        .order_by(decisions.c.decision_id)
    )
    found: dict[str, tuple[str | None, str]] = {}
    with reading(project.engine) as connection:
        for unit, rule, verdict, reason in connection.execute(query):
            entry = found.get(unit, (None, ""))[0]
            if rule == LISTED and verdict == OUT:
                found[unit] = reason, "undecided"
            elif verdict == IN or rule == CONFIRMED:
                found[unit] = entry, str(verdict)
    rows = [(unit, *found[unit]) for unit in sorted(found)]
    schema = {"image_id": pl.String, "entry": pl.String, "state": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def refuse_held(project: Project) -> None:
    """Refuse to let anything out while a match is undecided."""
    held = listed(project).filter(state="undecided")["image_id"]
    if not len(held):
        return
    told = ", ".join(held[:_TOLD]) + (
        f" and {len(held) - _TOLD:,} more" if len(held) > _TOLD else ""
    )
    raise SpecError(
        f"{numbered(len(held), 'photo matches', 'photos match')} a list of known illegal "
        "material, and nobody has decided about them",
        expected="a decision about each before anything leaves the project", found=told,
        where=str(project.folder),
        hint="do not open or copy them: tell those who are responsible for this in your country,"
        f" then `isolux curate show hashes {project.folder.name} --decided SHEET`",
    )  # fmt: skip
