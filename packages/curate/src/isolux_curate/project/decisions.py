"""Verdicts: of rules, of people's tables, and of matches with known illegal material.

Of one rule and unit the last verdict stands. A photo is left out while any rule's standing verdict
about it, about a subject in it or about everyone of an instance in it, is ``out``. Verdicts are
never changed: a rule that thinks otherwise later (consent came in) writes ``in``.

A match with known illegal material is out at once, under ``KNOWN`` and ``LISTED``. Until someone
has decided about it, nothing is sent to annotators, written for them, drawn for review or
published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.io.consent.chain import new_salt, seal_of
from isolux.io.frames import read_table
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError
from isolux.vocabulary.words import numbered
from isolux_curate.project.database import insert_rows, reading, writing
from isolux_curate.project.folder import Project, add_row, remember_ledger_head
from isolux_curate.project.tables import decisions, images, instances, journal, subjects
from isolux_curate.user_tables import refuse_missing, refuse_rows, to_text

CAME, IN, OUT = "came", "in", "out"
_UNITS = {
    "image": images.c.image_id,
    "subject": subjects.c.subject_id,
    "instance": instances.c.instance_id,
}


def came_in(project: Project) -> pl.DataFrame:
    """List what came in, in that order."""
    query = (
        sa.select(decisions.c.unit_id, sa.func.min(decisions.c.n))
        .where(decisions.c.verdict == CAME, decisions.c.unit_kind == "image")
        .where(decisions.c.unit_id.is_not(None))
        .group_by(decisions.c.unit_id)
        .order_by(sa.func.min(decisions.c.decision_id))
    )
    schema = {"image_id": pl.String, "n": pl.Int64}
    return pl.DataFrame(list(map(tuple, project.rows(query))), schema=schema, orient="row")


def standing(project: Project) -> pl.DataFrame:
    """List the verdicts that stand and leave something out, oldest first."""
    with reading(project.engine) as connection:
        return _last(connection).filter(verdict=OUT).drop("verdict").sort("decision_id")


def _last(connection: Connection, step: str | None = None, rule: str | None = None) -> pl.DataFrame:
    """Read the verdict that stands of each unit, step and rule."""
    query = sa.select(*(decisions.c[name] for name in _COLUMNS)).where(
        decisions.c.verdict != CAME, decisions.c.unit_id.is_not(None)
    )
    if step is not None:
        query = query.where(decisions.c.step == step, decisions.c.rule == rule)
    rows = connection.execute(query.order_by(decisions.c.decision_id)).all()
    frame = pl.DataFrame([tuple(r) for r in rows], schema=_COLUMNS, orient="row")
    return frame.unique(["unit_kind", "unit_id", "step", "rule"], keep="last", maintain_order=True)


_COLUMNS = {
    "decision_id": pl.Int64,
    "n": pl.Int64,
    "unit_kind": pl.String,
    "unit_id": pl.String,
    "step": pl.String,
    "rule": pl.String,
    "reason": pl.String,
    "verdict": pl.String,
}


def decide(
    project: Project,
    step: str,
    rule: str,
    refused: pl.DataFrame,
    *,
    looked_at: Sequence[str] | pl.Series,
    unit_kind: str = "image",
    said: Mapping[str, Any] | None = None,
) -> int:
    """Write what a rule decided; what stands already is not written again."""
    if refused["unit_id"].is_duplicated().any():
        raise TableError("a unit is refused twice by one rule", expected="one reason a unit")
    units = pl.Series("unit_id", list(looked_at), dtype=pl.String)
    looked = pl.DataFrame([units]).unique(maintain_order=True)
    counted = dict(said or {}) | {"looked_at": looked.height, "out": refused.height}
    with writing(project.engine) as connection:
        _refuse_strangers(connection, looked["unit_id"], unit_kind)
        before = _last(connection, step, rule).filter(unit_kind=unit_kind)
        new = _find_new(looked, refused, before)
        if new.is_empty() and _said_before(connection, step, rule, counted):
            remember_ledger_head(connection, project)
        else:
            write_verdicts(connection, project, step, rule, new, unit_kind, counted)
    return new.height


def _find_new(looked: pl.DataFrame, refused: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Give the verdicts that are other than before."""
    now = looked.join(refused.select("unit_id", "reason"), on="unit_id", how="left").join(
        before.select("unit_id", old=pl.col("verdict"), told="reason"), on="unit_id", how="left"
    )
    is_out = pl.col("unit_id").is_in(refused["unit_id"].implode())
    was_out = (pl.col("old") == OUT).fill_null(value=False)
    return now.filter(
        (is_out != was_out) | (is_out & was_out & pl.col("reason").ne_missing(pl.col("told")))
    ).select("unit_id", "reason", verdict=pl.when(is_out).then(pl.lit(OUT)).otherwise(pl.lit(IN)))


def note(project: Project, step: str, rule: str, said: Mapping[str, Any]) -> bool:
    """Write a row of the journal without verdicts, unless the last of its rule says the same."""
    with writing(project.engine) as connection:
        if _said_before(connection, step, rule, said):
            remember_ledger_head(connection, project)
            return False
        add_row(connection, project, step=step, rule=rule, said=said, seals=())
    return True


def _said_before(connection: Connection, step: str, rule: str, said: Mapping[str, Any]) -> bool:
    query = (
        sa.select(journal.c.said)
        .where(journal.c.step == step, journal.c.rule == rule)
        .order_by(journal.c.n.desc())
        .limit(1)
    )
    last = connection.execute(query).scalar()
    return last is not None and dict(last) == dict(said)


def write_verdicts(
    connection: Connection,
    project: Project,
    step: str,
    rule: str,
    verdicts: pl.DataFrame,
    unit_kind: str,
    said: Mapping[str, Any],
) -> int:
    """Write verdicts with their row of the journal, and return the row's number."""
    rows: list[dict[str, Any]] = []
    for unit, verdict, reason in verdicts.select("unit_id", "verdict", "reason").iter_rows():
        fields = {
            "unit_kind": unit_kind,
            "unit_id": unit,
            "step": step,
            "rule": rule,
            "verdict": verdict,
            "reason": reason,
        }
        salt = new_salt()
        rows.append(fields | {"salt": salt, "seal": seal_of(salt, fields)})
    seals = [row["seal"] for row in rows]
    n = add_row(connection, project, step=step, rule=rule, said=said, seals=seals)
    insert_rows(connection, decisions, [row | {"n": n} for row in rows])
    return n


def _refuse_strangers(connection: Connection, units: pl.Series, unit_kind: str) -> None:
    known = {str(one) for one in connection.execute(sa.select(_UNITS[unit_kind])).scalars()}
    strangers = [one for one in units if one not in known]
    if strangers:
        raise UnknownNameError(unit_kind, strangers[0], known, where="the project")


def decide_by_sheet(
    project: Project, sheet: str | Path, *, step: str, rule: str, unit_kind: str = "image"
) -> int:
    """Write the verdicts of a table."""
    said = read_verdicts(sheet, unit_kind)
    refused = said.filter(verdict=OUT).select("unit_id", "reason")
    return decide(project, step, rule, refused, looked_at=said["unit_id"], unit_kind=unit_kind)


def read_verdicts(
    sheet: str | Path, unit_kind: str = "image", *, key: str | None = None, open_too: bool = False
) -> pl.DataFrame:
    """Read a table of verdicts, and refuse what is none."""
    frame = read_table(Path(sheet).expanduser())
    key = key or f"{unit_kind}_id"
    refuse_missing(frame, (key, "verdict", "reason"), str(sheet))
    said = frame.with_columns(to_text(frame, (key, "verdict", "reason")))
    said = said.with_columns(pl.col("verdict").str.to_lowercase().str.strip_chars())
    out, empty = pl.col("verdict") == OUT, pl.col("verdict").is_null()
    for wrong, problem, expected in (
        (
            ~pl.col("verdict").is_in([OUT, IN]) | (empty if not open_too else False),
            "this is not a verdict",
            "out or in",
        ),
        (
            out & pl.col("reason").is_null(),
            "a photo is left out without a reason",
            "why, in words for the person who sent it",
        ),
        (
            pl.col(key).is_duplicated() | pl.col(key).is_null(),
            "a unit is listed twice, or is not named",
            f"one row a {unit_kind}",
        ),
    ):
        refuse_rows(
            said.select(wrong).to_series(),
            problem,
            str(sheet),
            expected=expected,
            cells=said["verdict"],
        )
    return said.rename({key: "unit_id"}) if key != "unit_id" else said


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
    for unit, rule, verdict, reason in project.rows(query):
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
        expected="a decision about each before anything leaves the project",
        found=told,
        where=str(project.folder),
        hint="do not open or copy them: tell those who are responsible for this in your country,"
        f" then `isolux curate show hashes {project.folder.name} --decided SHEET`",
    )
