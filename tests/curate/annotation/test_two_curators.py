"""Two curators at once, in processes of their own: each unit is one task, and is sent once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.folder import Project, verify_journal_and_seals
from isolux_curate.project.queries import read_database_table
from tests.curate._postgres import Postgres
from tests.curate._postgres import postgres as postgres  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._fake import TOKEN, Fake
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._projects import annotated_project

_PHOTOS = 50
_PUSH = """
import sys
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.annotation.exchange import plan_and_upload_tasks
from isolux_curate.project.folder import open_project
folder, who, url, token = sys.argv[1:]
project, server = open_project(folder, curator=who), LabelStudioServer(url, token)
sys.stdin.readline()
print(plan_and_upload_tasks(project, "count", server).n_sent)
"""


def _pushed_by_two(project: Project, fake: Fake) -> None:
    """Let two processes go at one moment, and see that each task is there once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _PUSH, str(project.folder), who, fake.url, TOKEN],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for who in ("ada", "bo")
    ]  # fmt: skip
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    sent = [int(one.communicate(timeout=300)[0]) for one in running]
    assert sum(sent) == _PHOTOS
    tasks = read_database_table(project, "tasks")
    assert tasks["unit_id"].n_unique() == tasks["server_task"].n_unique() == _PHOTOS
    assert tasks.height == _PHOTOS
    number = int(tasks["server_project"][0])
    assert tasks["server_project"].to_list() == [number] * _PHOTOS
    assert LabelStudioServer(fake.url, TOKEN).count_tasks(number) == _PHOTOS
    verify_journal_and_seals(project)


def test_in_sqlite(tmp_path: Path, fake: Fake) -> None:
    _pushed_by_two(annotated_project(tmp_path, _PHOTOS), fake)


def test_in_postgresql(tmp_path: Path, fake: Fake, postgres: Postgres) -> None:
    _pushed_by_two(annotated_project(tmp_path, _PHOTOS, postgres.address), fake)
