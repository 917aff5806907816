"""Where simulated annotators work: at an annotation server, each with an account, or on a sheet.

A desk is given answers one by one. ``ServerDesk`` speaks Label Studio's own API, as its page does;
``SheetDesk`` gathers a table for ``isolux curate answers``, and outlines for it as JSON.
"""

from __future__ import annotations

import http.cookiejar
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from isolux.core.errors import FileError
from isolux.io.atomic import write_text
from isolux.io.csv_text import to_safe_csv
from isolux_curate.annotation.server import LabelStudioServer
from isolux_worlds.rehearsal.annotation_tasks import AnnotationTask
from isolux_worlds.rehearsal.annotator_answers import (
    Answer,
    answer_to_label_studio,
    build_answer_sheet_rows,
)
from isolux_worlds.rehearsal.inbox import SIZE

__all__ = ["Account", "Desk", "ServerDesk", "SheetDesk", "sign_up_or_in"]

_SECONDS = 7.5
_NO_ROWS: dict[str, list[str]] = {"task_id": [], "annotator": [], "question": [], "answer": []}
_PASSWORD = "a-password-1"  # noqa: S105 (of people who do not exist, on a server for a rehearsal)


@dataclass(frozen=True, slots=True)
class Account:
    """An annotator's account: the token, and the id that `isolux curate pull` uses."""

    token: str = field(repr=False)
    annotator_id: str


class Desk(Protocol):
    """Where simulated annotators hand in their answers."""

    def count_answers(self, annotation_task: AnnotationTask) -> int:
        """Count the answers that a task has already."""

    def submit_answer(
        self, annotation_task: AnnotationTask, annotator_name: str, answer: Answer
    ) -> None:
        """Give one person's answer to a task."""


class ServerDesk:
    """Label Studio, or a server with the same interface."""

    def __init__(self, server: LabelStudioServer, people: Mapping[str, Account]) -> None:
        self._server, self._people = server, people
        self._counts: dict[int, dict[int, int]] = {}

    def count_answers(self, annotation_task: AnnotationTask) -> int:
        """Count the answers that a task has on the server, which is queried once per project."""
        number, task = annotation_task.server_project, annotation_task.server_task
        if number is None or task is None:
            raise FileError(
                "a task was not sent to the server",
                expected="isolux curate push",
                found="none",
                where=self._server.url,
            )
        if number not in self._counts:
            server_tasks = self._server.list_tasks(number, with_answers=True)
            self._counts[number] = {
                int(t["id"]): len(t.get("annotations") or ()) for t in server_tasks
            }
        return self._counts[number].get(task, 0)

    def submit_answer(
        self, annotation_task: AnnotationTask, annotator_name: str, answer: Answer
    ) -> None:
        """Post an annotation with the annotator's own token."""
        body = {"result": answer_to_label_studio(answer, SIZE), "lead_time": _SECONDS}
        token = self._people[annotator_name].token
        request = urllib.request.Request(  # noqa: S310 (an address that Server has checked)
            f"{self._server.url}/api/tasks/{annotation_task.server_task}/annotations/",
            json.dumps(body).encode(),
            {"Authorization": f"Token {token}", "Content-Type": "application/json"},
            method="POST",
        )
        timeout = self._server.timeout_s
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:  # noqa: S310
                reply.read()
        except urllib.error.HTTPError as error:
            with error:
                description = f"{error.code} {error.read(200)!r}"
                problem = "an annotator's answer was not taken"
                raise FileError(problem, found=description, where=self._server.url) from error


class SheetDesk:
    """A table of answers, for labs without a server; written by ``save``."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def count_answers(self, annotation_task: AnnotationTask) -> int:
        """Count the answers to a task that are on the sheet."""
        return len({r["annotator"] for r in self.rows if r["task_id"] == annotation_task.task_id})

    def submit_answer(
        self, annotation_task: AnnotationTask, annotator_name: str, answer: Answer
    ) -> None:
        """Write an answer's rows."""
        head = {"task_id": annotation_task.task_id, "annotator": annotator_name}
        self.rows += build_answer_sheet_rows(head, answer)
        self.rows += [
            head | {"label": shape["label"], "points": json.dumps(shape["points"])}
            for shape in answer.get("polygons", ())
        ]
        if not any(answer.values()):  # looked at, and there was nothing to draw
            self.rows.append(head)

    def save(self, file: str | Path) -> int:
        """Write the sheet; how many rows it has."""
        table = pl.DataFrame(self.rows or _NO_ROWS, infer_schema_length=None)
        write_text(Path(file).expanduser(), to_safe_csv(table))
        return table.height


def sign_up_or_in(url: str, names: Iterable[str], *, timeout_s: float = 60.0) -> dict[str, Account]:
    """Sign people up at a Label Studio, or in where they are known, as they would on its page."""
    return {name: _sign_up_or_in_one(url.rstrip("/"), name, timeout_s) for name in names}


def _sign_up_or_in_one(url: str, name: str, timeout_s: float) -> Account:
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    credentials = {
        "email": f"{name}@example.org",
        "password": _PASSWORD,
        "allow_newsletters": "false",
    }
    try:
        for page in ("signup", "login"):
            address = f"{url}/user/{page}/"
            browser.open(address, timeout=timeout_s).close()
            csrf_token = next((c.value for c in jar if c.name == "csrftoken"), "") or ""
            body = urllib.parse.urlencode(
                credentials | {"csrfmiddlewaretoken": csrf_token}
            ).encode()
            request = urllib.request.Request(address, body, {"Referer": address})  # noqa: S310
            browser.open(request, timeout=timeout_s).close()
            if token := _fetch_form_field(
                browser, f"{url}/api/current-user/token", "token", timeout_s
            ):
                number = _fetch_form_field(
                    browser, f"{url}/api/current-user/whoami", "id", timeout_s
                )
                return Account(token, f"user-{number}")
    except OSError as error:
        raise FileError(
            "no account could be made at the annotation server", found=str(error)[:200], where=url
        ) from error
    raise FileError(
        "the annotation server lets no one sign up",
        expected="an account",
        found="none",
        where=url,
        hint="LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN=true gives people tokens",
    )


def _fetch_form_field(
    browser: urllib.request.OpenerDirector, address: str, name: str, timeout_s: float
) -> str:
    try:
        with browser.open(address, timeout=timeout_s) as answer:
            return str(json.loads(answer.read())[name])
    except urllib.error.HTTPError as error:
        error.close()
        return ""
