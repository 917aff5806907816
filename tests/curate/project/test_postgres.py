"""The same project in a real PostgreSQL: made, judged by two at once, stopped in the middle."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from isolux.core.errors import IsoluxError, OutputError
from isolux_curate.project.database import open_write_transaction
from isolux_curate.project.folder import open_project, verify_journal_and_seals
from isolux_curate.project.queries import tabulate_project_funnel
from isolux_curate.project.verdicts import record_changed_verdicts
from tests.curate._postgres import Postgres
from tests.curate._postgres import postgres as postgres  # noqa: PLC0414 (a fixture)
from tests.curate._projects import project_of, refused


# The driver does not close the file over its socket when the server has gone away: only the
# collector does, and in a later test it would be a fault of that one.
@pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
def test_a_project_in_postgresql(
    tmp_path: Path, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    photos = [f"i{k}" for k in range(12)]
    project = project_of(tmp_path / "p", photos, database=postgres.address)

    def work(name: str) -> None:
        mine = open_project(tmp_path / "p", curator=name)
        for photo in photos[:4]:
            record_changed_verdicts(
                mine, "review", name, refused({photo: "No."}), examined_units=[photo]
            )

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ada", "bo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verify_journal_and_seals(project) == 2 + 8
    assert tabulate_project_funnel(project)["remain"][-1] == 8

    _stopped_in_the_middle(project.engine, postgres)
    with pytest.raises(IsoluxError, match="cannot be read"):
        open_project(tmp_path / "p")
    assert not caplog.records  # which would be a traceback on the terminal
    gc.collect()
    postgres.start()
    assert verify_journal_and_seals(open_project(tmp_path / "p")) == 10
    assert (
        record_changed_verdicts(
            project, "review", "cy", refused({"i9": "No."}), examined_units=photos
        )
        == 1
    )
    assert tabulate_project_funnel(project)["remain"][-1] == 7


def _stopped_in_the_middle(engine: sa.Engine, postgres: Postgres) -> None:
    with (  # noqa: PT012 (what raises is the last line; the driver says when)
        pytest.raises(OutputError, match="could not be written") as caught,
        open_write_transaction(engine) as connection,
    ):
        connection.execute(sa.text("UPDATE images SET facts = '{}'"))
        postgres.stop()
        connection.execute(sa.text("UPDATE images SET width = 1"))
    assert "nothing of this step was kept" in str(caught.value)
