"""Verdicts of rules and of curators' tables, and matches with known illegal material.

The last verdict of a rule about a unit counts. A photo is excluded while a rule's last verdict
about it, about a subject in it or about an instance in it is ``out``. Verdicts are never changed: a
rule whose result differs later (consent was given) writes ``in``.

A match with a list of known illegal material is out at once, under the step ``known material`` and
the rule ``hash list``. Until someone has decided about it, nothing is sent to annotators, written
for them, sampled for review or published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.formatting import pluralise
from isolux.io.consent.chain import compute_commitment, new_salt
from isolux.io.frames import read_table
from isolux_curate.project.database import (
    insert_rows,
    open_read_transaction,
    open_write_transaction,
)
from isolux_curate.project.folder import (
    Project,
    append_signed_journal_row,
    check_and_store_ledger_head,
)
from isolux_curate.project.tables import decisions, images, instances, journal, subjects
from isolux_curate.user_tables import (
    convert_columns_to_text,
    refuse_faulty_rows,
    refuse_missing_columns,
)

ARRIVED, IN, OUT = "came", "in", "out"
_UNIT_COLUMNS = {
    "image": images.c.image_id,
    "subject": subjects.c.subject_id,
    "instance": instances.c.instance_id,
}


def read_arrived_photos(project: Project) -> pl.DataFrame:
    """Read the photos that arrived, with their journal row, in the order of arrival."""
    query = (
        sa.select(decisions.c.unit_id, sa.func.min(decisions.c.n))
        .where(decisions.c.verdict == ARRIVED, decisions.c.unit_kind == "image")
        .where(decisions.c.unit_id.is_not(None))
        .group_by(decisions.c.unit_id)
        .order_by(sa.func.min(decisions.c.decision_id))
    )
    schema = {"image_id": pl.String, "n": pl.Int64}
    return pl.DataFrame(list(map(tuple, project.fetch_rows(query))), schema=schema, orient="row")


def read_current_out_verdicts(project: Project) -> pl.DataFrame:
    """Read the last verdicts that are ``out``, oldest first."""
    with open_read_transaction(project.engine) as connection:
        return (
            _read_last_verdict_per_rule(connection)
            .filter(verdict=OUT)
            .drop("verdict")
            .sort("decision_id")
        )


def _read_last_verdict_per_rule(
    connection: Connection, step: str | None = None, rule: str | None = None
) -> pl.DataFrame:
    """Read the last verdict of each unit, step and rule."""
    query = sa.select(*(decisions.c[name] for name in _VERDICT_SCHEMA)).where(
        decisions.c.verdict != ARRIVED, decisions.c.unit_id.is_not(None)
    )
    if step is not None:
        query = query.where(decisions.c.step == step, decisions.c.rule == rule)
    rows = connection.execute(query.order_by(decisions.c.decision_id)).all()
    frame = pl.DataFrame([tuple(r) for r in rows], schema=_VERDICT_SCHEMA, orient="row")
    return frame.unique(["unit_kind", "unit_id", "step", "rule"], keep="last", maintain_order=True)


_VERDICT_SCHEMA = {
    "decision_id": pl.Int64,
    "n": pl.Int64,
    "unit_kind": pl.String,
    "unit_id": pl.String,
    "step": pl.String,
    "rule": pl.String,
    "reason": pl.String,
    "verdict": pl.String,
}


def record_changed_verdicts(
    project: Project,
    step: str,
    rule: str,
    refused: pl.DataFrame,
    *,
    examined_units: Sequence[str] | pl.Series,
    unit_kind: str = "image",
    details: Mapping[str, Any] | None = None,
) -> int:
    """Write the verdicts of a rule that differ from its last ones; how many there are."""
    if refused["unit_id"].is_duplicated().any():
        raise TableError("a unit is refused twice by one rule", expected="one reason a unit")
    units = pl.Series("unit_id", list(examined_units), dtype=pl.String)
    examined_ids = pl.DataFrame([units]).unique(maintain_order=True)
    counts = dict(details or {}) | {"looked_at": examined_ids.height, "out": refused.height}
    with open_write_transaction(project.engine) as connection:
        _refuse_unknown_units(connection, examined_ids["unit_id"], unit_kind)
        last_verdicts = _read_last_verdict_per_rule(connection, step, rule).filter(
            unit_kind=unit_kind
        )
        new_verdicts = _find_changed_verdicts(examined_ids, refused, last_verdicts)
        if new_verdicts.is_empty() and _has_same_last_note(connection, step, rule, counts):
            check_and_store_ledger_head(connection, project)
        else:
            write_verdicts_and_journal_row(
                connection, project, step, rule, new_verdicts, unit_kind, counts
            )
    return new_verdicts.height


def _find_changed_verdicts(
    examined_ids: pl.DataFrame, refused: pl.DataFrame, last_verdicts: pl.DataFrame
) -> pl.DataFrame:
    """Find the verdicts that differ from the last ones in verdict or, where out, in reason."""
    current = examined_ids.join(refused.select("unit_id", "reason"), on="unit_id", how="left").join(
        last_verdicts.select("unit_id", old=pl.col("verdict"), told="reason"),
        on="unit_id",
        how="left",
    )
    is_out = pl.col("unit_id").is_in(refused["unit_id"].implode())
    was_out = (pl.col("old") == OUT).fill_null(value=False)
    return current.filter(
        (is_out != was_out) | (is_out & was_out & pl.col("reason").ne_missing(pl.col("told")))
    ).select("unit_id", "reason", verdict=pl.when(is_out).then(pl.lit(OUT)).otherwise(pl.lit(IN)))


def record_journal_note_unless_repeated(
    project: Project, step: str, rule: str, details: Mapping[str, Any]
) -> bool:
    """Add a journal row without verdicts, unless the last row of its rule has the same content."""
    with open_write_transaction(project.engine) as connection:
        if _has_same_last_note(connection, step, rule, details):
            check_and_store_ledger_head(connection, project)
            return False
        append_signed_journal_row(
            connection, project, step=step, rule=rule, details=details, seals=()
        )
    return True


def _has_same_last_note(
    connection: Connection, step: str, rule: str, details: Mapping[str, Any]
) -> bool:
    query = (
        sa.select(journal.c.said)
        .where(journal.c.step == step, journal.c.rule == rule)
        .order_by(journal.c.n.desc())
        .limit(1)
    )
    last_details = connection.execute(query).scalar()
    return last_details is not None and dict(last_details) == dict(details)


def write_verdicts_and_journal_row(
    connection: Connection,
    project: Project,
    step: str,
    rule: str,
    verdicts: pl.DataFrame,
    unit_kind: str,
    details: Mapping[str, Any],
) -> int:
    """Write verdicts with their journal row; the row's number."""
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
        rows.append(fields | {"salt": salt, "seal": compute_commitment(salt, fields)})
    seals = [row["seal"] for row in rows]
    n = append_signed_journal_row(
        connection, project, step=step, rule=rule, details=details, seals=seals
    )
    insert_rows(connection, decisions, [row | {"n": n} for row in rows])
    return n


def _refuse_unknown_units(connection: Connection, unit_ids: pl.Series, unit_kind: str) -> None:
    existing_ids = {
        str(unit_id)
        for unit_id in connection.execute(sa.select(_UNIT_COLUMNS[unit_kind])).scalars()
    }
    unknown_ids = [unit_id for unit_id in unit_ids if unit_id not in existing_ids]
    if unknown_ids:
        raise UnknownNameError(unit_kind, unknown_ids[0], existing_ids, where="the project")


def record_sheet_verdicts(
    project: Project, sheet: str | Path, *, step: str, rule: str, unit_kind: str = "image"
) -> int:
    """Write the verdicts of a table."""
    verdicts = read_and_check_verdict_sheet(sheet, unit_kind)
    refused = verdicts.filter(verdict=OUT).select("unit_id", "reason")
    return record_changed_verdicts(
        project, step, rule, refused, examined_units=verdicts["unit_id"], unit_kind=unit_kind
    )


def read_and_check_verdict_sheet(
    sheet: str | Path,
    unit_kind: str = "image",
    *,
    id_column: str | None = None,
    allow_undecided: bool = False,
) -> pl.DataFrame:
    """Read a table of verdicts, and refuse rows that are no verdict."""
    frame = read_table(Path(sheet).expanduser())
    id_column = id_column or f"{unit_kind}_id"
    refuse_missing_columns(frame, (id_column, "verdict", "reason"), str(sheet))
    verdicts = frame.with_columns(convert_columns_to_text(frame, (id_column, "verdict", "reason")))
    verdicts = verdicts.with_columns(pl.col("verdict").str.to_lowercase().str.strip_chars())
    is_out, is_empty = pl.col("verdict") == OUT, pl.col("verdict").is_null()
    for is_faulty, problem, expected in (
        (
            ~pl.col("verdict").is_in([OUT, IN]) | (is_empty if not allow_undecided else False),
            "this is not a verdict",
            "out or in",
        ),
        (
            is_out & pl.col("reason").is_null(),
            "a photo is left out without a reason",
            "why, in words for the person who sent it",
        ),
        (
            pl.col(id_column).is_duplicated() | pl.col(id_column).is_null(),
            "a unit is listed twice, or is not named",
            f"one row a {unit_kind}",
        ),
    ):
        refuse_faulty_rows(
            verdicts.select(is_faulty).to_series(),
            problem,
            str(sheet),
            expected=expected,
            cells=verdicts["verdict"],
        )
    return verdicts.rename({id_column: "unit_id"}) if id_column != "unit_id" else verdicts


KNOWN_MATERIAL, HASH_LIST, DECIDED = "known material", "hash list", "decided"
_MAX_LISTED = 5


def read_hash_matches_with_state(project: Project) -> pl.DataFrame:
    """Read the photos that ever matched a hash list, with the state of the decision about them."""
    query = (
        sa.select(decisions.c.unit_id, decisions.c.rule, decisions.c.verdict, decisions.c.reason)
        .where(decisions.c.step == KNOWN_MATERIAL, decisions.c.unit_kind == "image")
        .where(decisions.c.unit_id.is_not(None))
        .order_by(decisions.c.decision_id)
    )
    state_by_image: dict[str, tuple[str | None, str]] = {}
    for unit, rule, verdict, reason in project.fetch_rows(query):
        entry = state_by_image.get(unit, (None, ""))[0]
        if rule == HASH_LIST and verdict == OUT:
            state_by_image[unit] = reason, "undecided"
        elif verdict == IN or rule == DECIDED:
            state_by_image[unit] = entry, str(verdict)
    rows = [(unit, *state_by_image[unit]) for unit in sorted(state_by_image)]
    schema = {"image_id": pl.String, "entry": pl.String, "state": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def refuse_undecided_hash_matches(project: Project) -> None:
    """Refuse to send or write anything while a match with a hash list is undecided."""
    undecided_ids = read_hash_matches_with_state(project).filter(state="undecided")["image_id"]
    if not len(undecided_ids):
        return
    id_list = ", ".join(undecided_ids[:_MAX_LISTED]) + (
        f" and {len(undecided_ids) - _MAX_LISTED:,} more"
        if len(undecided_ids) > _MAX_LISTED
        else ""
    )
    raise SpecError(
        f"{pluralise(len(undecided_ids), 'photo matches', 'photos match')} a list of known illegal "
        "material, and nobody has decided about them",
        expected="a decision about each before anything leaves the project",
        found=id_list,
        where=str(project.folder),
        hint="do not open or copy them: tell those who are responsible for this in your country,"
        f" then `isolux curate show hashes {project.folder.name} --decided SHEET`",
    )
