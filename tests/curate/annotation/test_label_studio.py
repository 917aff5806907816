"""One story, told to the fake server and to a real Label Studio 1.23, where one is installed.

The real one is found as ``label-studio`` on the path, or by ``ISOLUX_LABEL_STUDIO``; it starts on
SQLite in one or two minutes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.exchange import import_and_apply_server_answers, plan_and_upload_tasks
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.folder import verify_journal_and_seals
from isolux_curate.project.queries import read_people_in_photos
from tests.curate.annotation._fake import TOKEN, Fake
from tests.curate.annotation._fake import fake as fake  # noqa: PLC0414 (a fixture)
from tests.curate.annotation._projects import annotated_project, box, chosen
from tests.curate.annotation.test_killed import killed_and_whole

_STARTS_S = 600


def _story(tmp_path: Path, server: LabelStudioServer) -> None:
    """Push, annotate as the page does, pull, change an answer, delete a task, push once more."""
    project = annotated_project(tmp_path, 23)
    assert plan_and_upload_tasks(project, "boxes", server).n_sent == 23
    number = plan_and_upload_tasks(project, "boxes", server).server_project
    assert server.count_tasks(number) == 23
    listed = list(server.list_tasks(number, with_answers=True))
    picture = urllib.request.Request(  # noqa: S310
        server.url + listed[0]["data"]["image"], headers={"Authorization": f"Token {server.token}"}
    )
    if "upload" in listed[0]["data"]["image"] and server.timeout_s > 20:  # the real one serves it
        with urllib.request.urlopen(picture, timeout=30) as answer:  # noqa: S310
            assert answer.read(3) == b"\xff\xd8\xff"
    ids = [task["id"] for task in listed]
    for task in ids[:3]:
        body = {"result": box("nurse", 10, 20, 30, 40, "guitarist"), "lead_time": 3.5}
        made = server._send_request_with_retries("POST", f"/api/tasks/{task}/annotations/", body)
    done = import_and_apply_server_answers(project, "boxes", server)
    assert (done.n_answers, done.n_new, done.n_refused, done.notes) == (3, 3, 0, ())
    assert import_and_apply_server_answers(project, "boxes", server).n_new == 0
    drawn = read_people_in_photos(project).filter(origin="boxes")
    assert drawn.select("x", "y", "w", "h", "primary", "secondary").unique().rows() == [
        (40.0, 60.0, 120.0, 120.0, "nurse", "guitarist")
    ]
    time.sleep(0.01)
    change = {"result": box("guitarist", 0, 0, 50, 50)}
    server._send_request_with_retries("PATCH", f"/api/annotations/{made['id']}/", change)
    assert import_and_apply_server_answers(project, "boxes", server).n_new == 1
    assert sorted(read_answer_rows(project, "boxes")["label"]) == ["guitarist", "nurse", "nurse"]
    assert server.delete_task_if_present(ids[0])
    assert not server.delete_task_if_present(ids[0])
    assert (
        "no longer on the server"
        in import_and_apply_server_answers(project, "boxes", server).notes[0]
    )
    verify_journal_and_seals(project)


def test_the_story_with_the_fake_server(tmp_path: Path, fake: Fake) -> None:
    _story(tmp_path, LabelStudioServer.from_url_with_environment_token(fake.url, timeout_s=5))


@pytest.fixture
def label_studio(tmp_path: Path) -> Iterator[LabelStudioServer]:
    program = os.environ.get("ISOLUX_LABEL_STUDIO") or shutil.which("label-studio")
    if program is None:
        pytest.skip("Label Studio is not installed: pip install label-studio==1.23.2")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true", "LABEL_STUDIO_USERNAME": "a@example.org",
        "LABEL_STUDIO_PASSWORD": "a-password-1", "LABEL_STUDIO_USER_TOKEN": TOKEN,
        "COLLECT_ANALYTICS": "False", "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "ls"),
        "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": "",
    }  # fmt: skip
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [program, "start", "--no-browser", "--port", str(port), "--internal-host",
               "127.0.0.1", "--data-dir", str(tmp_path / "ls")]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with (tmp_path / "log").open("w") as log, subprocess.Popen(
        command, env=kept | settings, stdout=log, stderr=log, cwd=tmp_path
    ) as running:  # fmt: skip
        try:
            _wait(url, running, tmp_path / "log")
            yield LabelStudioServer(url, TOKEN, timeout_s=60)
        finally:
            running.kill()


def _wait(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(_STARTS_S):
        assert running.poll() is None, log.read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):  # noqa: S310
                return
        except OSError:
            time.sleep(1)
    pytest.fail(f"Label Studio did not start in {_STARTS_S} seconds")


def test_the_story_with_label_studio(tmp_path: Path, label_studio: LabelStudioServer) -> None:
    _story(tmp_path, label_studio)
    (tmp_path / "killed").mkdir()
    project = annotated_project(tmp_path / "killed", 80)
    killed_and_whole(project, label_studio, 80, chosen(people=["2"]))
