"""The journal: what was changed afterwards is found, and a person can be taken out of it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from isolux.core.errors import TableError
from isolux_curate.project.folder import Project, read_journal, verify_journal_and_seals
from isolux_curate.project.verdicts import record_changed_verdicts
from tests.curate._projects import project_of, refused


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = project_of(tmp_path / "p", "abc")
    record_changed_verdicts(
        made, "quality", "blur", refused({"a": "Blurred.", "b": "Blurred."}), examined_units="abc"
    )
    record_changed_verdicts(
        made, "consent", "form", refused({"c": "No form."}), examined_units="abc"
    )
    return made


_PUT_IN = (
    "INSERT INTO decisions (n, unit_kind, unit_id, step, rule, verdict, seal)"
    " VALUES (4, 'image', 'a', 'consent', 'form', 'out', 'ab')"
)


def _tamper(project: Project, statement: str) -> None:
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_journal_that_no_one_touched_verifies(project: Project) -> None:
    assert verify_journal_and_seals(project) == 4


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE journal SET who = 'eve' WHERE n = 3", "this row was changed after it was written"),
        ("UPDATE journal SET said = '{}' WHERE n = 3", "this row was changed after it was written"),
        ("DELETE FROM journal WHERE n = 2", "a row before this one was taken out, put in or moved"),
        ("UPDATE journal SET signature = hash", "this row's signature does not verify"),
        ("UPDATE decisions SET verdict = 'in' WHERE rule = 'form'", "of the decisions was changed"),
        ("UPDATE decisions SET reason = 'x' WHERE rule = 'form'", "of the decisions was changed"),
        ("DELETE FROM decisions WHERE unit_id = 'c' AND rule = 'form'", "verdicts of row 4 of the"),
        ("UPDATE decisions SET n = 3 WHERE rule = 'form'", "verdicts of row 3 of the journal were"),
        (_PUT_IN, "verdicts of row 4 of the journal were taken out or put in"),
    ],
)  # fmt: skip
def test_what_was_changed_afterwards_is_found(project: Project, statement: str, said: str) -> None:
    _tamper(project, statement)
    with pytest.raises(TableError, match=re.escape(said)):
        verify_journal_and_seals(project)


def test_rows_cut_off_at_the_end_are_found_by_the_head(project: Project) -> None:
    head = read_journal(project)["hash"][-1]
    assert verify_journal_and_seals(project, expected_hash=head[:12]) == 4
    _tamper(project, "DELETE FROM decisions WHERE n = 4")
    _tamper(project, "DELETE FROM journal WHERE n = 4")
    assert verify_journal_and_seals(project) == 3
    with pytest.raises(TableError, match="rows were cut off"):
        verify_journal_and_seals(project, expected_hash=head)


def test_a_person_is_taken_out_and_the_journal_still_verifies(project: Project) -> None:
    """What withdrawal does to a verdict: id, reason and salt go, and the seal stays."""
    _tamper(
        project,
        "UPDATE decisions SET unit_id = NULL, reason = NULL, salt = NULL WHERE unit_id = 'a'",
    )
    assert verify_journal_and_seals(project) == 4


def test_seals_do_not_tell_who_they_are_about(project: Project) -> None:
    """Two verdicts that say the same of the same photo have different seals: each has its salt."""
    record_changed_verdicts(project, "quality", "blur", refused({}), examined_units="a")
    record_changed_verdicts(
        project, "quality", "blur", refused({"a": "Blurred."}), examined_units="a"
    )
    with project.engine.begin() as connection:
        query = "SELECT seal FROM decisions WHERE unit_id = 'a' AND rule = 'blur' AND verdict='out'"
        seals = connection.execute(sa.text(query)).scalars().all()
    assert len(seals) == len(set(seals)) == 2
