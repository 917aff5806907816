"""Push and pull that are killed (SIGKILL) at ten of their commits lose nothing, double nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from isolux_curate.annotation.exchange import import_and_apply_server_answers, plan_and_upload_tasks
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.folder import Project, open_project, verify_journal_and_seals
from isolux_curate.project.queries import read_database_table
from tests.curate.annotation._fake import Fake
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._projects import annotated_project, chosen

_PHOTOS, _KILLS = 80, 10
_SCRIPT = Path(__file__).with_name("_killed.py")


def kill(verb: str, project: Project, stage: str, server: LabelStudioServer) -> tuple[int, int]:
    """Kill a step ten times; how often it died, and how often after it had written."""
    asked = [verb, str(project.folder), stage, server.url, server.token, str(_KILLS)]
    done = subprocess.run(
        [sys.executable, str(_SCRIPT), *asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    died, wrote = done.stdout.split()[-2:]
    return int(died), int(wrote)


def at_once(project: Project, server: LabelStudioServer) -> int:
    """Let two curators push together; the number of the server's project."""
    found: list[int] = []

    def work() -> None:
        found.append(
            plan_and_upload_tasks(open_project(project.folder), "count", server).server_project
        )

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    return found[0]


def killed_and_whole(
    project: Project, server: LabelStudioServer, photos: int, answer: object
) -> None:
    """Push and pull, each killed ten times, then in peace: every task and answer once."""
    assert kill("push", project, "count", server) == (_KILLS, 8)
    number = at_once(project, server)
    tasks = read_database_table(project, "tasks")
    assert server.count_tasks(number) == tasks.height == photos
    assert tasks["server_task"].n_unique() == photos
    for task in tasks["server_task"]:
        server._send_request_with_retries(
            "POST", f"/api/tasks/{task}/annotations/", {"result": answer}
        )
    assert kill("pull", project, "count", server) == (_KILLS, 8)
    before = read_database_table(project, "annotations").height
    assert 0 < before < photos
    assert import_and_apply_server_answers(project, "count", server).n_new == photos - before
    held = read_database_table(project, "annotations")
    assert held.height == held["task_id"].n_unique() == held["source_id"].n_unique() == photos
    assert read_database_table(project, "tasks")["status"].unique().to_list() == ["done"]
    verify_journal_and_seals(project)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_killed_at_ten_commits(tmp_path: Path, fake: Fake) -> None:
    project = annotated_project(tmp_path, _PHOTOS)
    server = LabelStudioServer.from_url_with_environment_token(fake.url, timeout_s=20)
    killed_and_whole(project, server, _PHOTOS, chosen(people=["2"]))
