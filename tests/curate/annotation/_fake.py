"""A small server that speaks Label Studio's API as far as isolux uses it, and can be made to fail.

Held to the real one by ``test_label_studio.py``, which runs the same story against both.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

TOKEN = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105
NOW = "2026-01-0{}T10:00:00.000000Z"


class Fake:
    """What the server holds, and what goes wrong next."""

    def __init__(self) -> None:
        self.projects: dict[int, dict[str, Any]] = {}
        self.tasks: dict[int, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.sent = 0
        self.made = 0
        self.asked: list[str] = []
        self.faults: list[Callable[[str, str], int | str | None]] = []
        self.token = TOKEN
        self.users: dict[str, int] = {}
        self.speaks = 1
        self.lock = threading.Lock()
        self.url = ""

    def annotate(self, task: int, result: list[Any], user: int | None = None, **other: Any) -> int:
        user = self.speaks if user is None else user
        held = self.tasks[task]["annotations"]
        number = 1000 * task + len(held) + 1
        held.append({"id": number, "completed_by": user, "result": result, "lead_time": 3.5,
                     "was_cancelled": False, "created_at": NOW.format(1),
                     "updated_at": NOW.format(1), **other})  # fmt: skip
        return number

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        routes = (
            (r"GET /api/projects", self._list),
            (r"POST /api/projects", self._make),
            (r"GET /api/projects/(\d+)", lambda n, q, b: {**self.projects[n], "task_number": sum(
                t["project"] == n for t in self.tasks.values())}),
            (r"GET /api/projects/(\d+)/file-uploads", self._uploads),
            (r"POST /api/projects/(\d+)/import", self._import),
            (r"DELETE /api/import/file-upload/(\d+)", self._forget),
            (r"DELETE /api/annotations/(\d+)", self._unsay),
            (r"GET /data/(.+)", lambda name, q, b: self.files[name] and {}),
            (r"GET /api/tasks", self._tasks),
            (r"DELETE /api/tasks/(\d+)", lambda n, q, b: self.tasks.pop(n) and {}),
            (r"POST /api/tasks/(\d+)/annotations", lambda n, q, b: {
                "id": self.annotate(n, b["result"], **({"was_cancelled": True}
                                    if b.get("was_cancelled") else {}))}),
            (r"PATCH /api/annotations/(\d+)", self._change),
        )  # fmt: skip
        for pattern, act in routes:
            if found := re.fullmatch(pattern, f"{method} {path.rstrip('/')}"):
                numbers = [int(one) if one.isdigit() else one for one in found.groups()]
                try:
                    return (201 if method == "POST" else 200), act(*numbers, query, body)
                except (KeyError, IndexError, StopIteration):
                    break
        # The real one fails over a picture that it has forgotten.
        return (500 if path.startswith("/data/") else 404), {"detail": "Not found."}

    def _list(self, query: dict[str, str], _body: Any) -> Any:
        return {"results": _page(list(self.projects.values()), query)}

    def _make(self, _query: dict[str, str], body: Any) -> Any:
        number = len(self.projects) + 1
        self.projects[number] = {"id": number, **body}
        return self.projects[number]

    def _uploads(self, number: int, _query: dict[str, str], _body: Any) -> Any:
        return [{"file": name, "id": int(name.split("/")[2][:8], 16)} for name in self.files
                if name.startswith(f"upload/{number}/")]  # fmt: skip

    def _forget(self, number: int, _query: dict[str, str], _body: Any) -> Any:
        name = next(n for n in self.files if int(n.split("/")[2][:8], 16) == number)
        del self.files[name]
        return {}

    def _unsay(self, number: int, _query: dict[str, str], _body: Any) -> Any:
        held = self.tasks[number // 1000]["annotations"]
        held.remove(next(one for one in held if one["id"] == number))
        return {}

    def _import(self, number: int, query: dict[str, str], body: Any) -> Any:
        if query.get("commit_to_project") == "false":
            for name, data in body.items():
                self.sent += 1
                self.files[f"upload/{number}/{self.sent:08x}-{name}"] = data
            return {"file_upload_ids": list(range(len(body)))}
        ids = []
        for task in body:
            self.made += 1  # as in a database, numbers of deleted tasks are not used again
            ids.append(self.made)
            self.tasks[ids[-1]] = {"id": ids[-1], "project": number, "annotations": [], **task}
        return {"task_count": len(ids), "task_ids": ids}

    def _tasks(self, query: dict[str, str], _body: Any) -> Any:
        rows = [t for t in self.tasks.values() if t["project"] == int(query["project"])]
        if query.get("fields") != "all":
            rows = [{k: v for k, v in t.items() if k != "annotations"} for t in rows]
        return {"tasks": _page(rows, query)}

    def _change(self, number: int, _query: dict[str, str], body: Any) -> Any:
        held = self.tasks[number // 1000]["annotations"]
        found = next(one for one in held if one["id"] == number)
        found |= {"result": body["result"], "updated_at": NOW.format(2)}
        return found


def _page(rows: list[Any], query: dict[str, str]) -> list[Any]:
    number, size = int(query.get("page", 1)), int(query.get("page_size", 30))
    if number > 1 and (number - 1) * size >= len(rows):
        raise IndexError  # as Label Studio: a page behind the last is 404
    return rows[(number - 1) * size : number * size]


class _Handler(BaseHTTPRequestHandler):
    fake: Fake

    def _do(self) -> None:
        parts = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(parts.query).items()}
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.headers.get("Content-Type", "")
        body = _files(data, kind) if "multipart" in kind else json.loads(data or "null")
        fake = self.fake
        with fake.lock:
            fake.asked.append(f"{self.command} {parts.path}")
            fault = fake.faults.pop(0)(self.command, parts.path) if fake.faults else None
            token = (self.headers.get("Authorization") or "").removeprefix("Token ")
            fake.speaks = fake.users.get(token, 1)
            if token != fake.token and token not in fake.users:
                code, said = 401, {"detail": "Invalid token."}
            elif isinstance(fault, int):
                code, said = fault, {"detail": "injected"}
            else:
                code, said = fake.answer(self.command, parts.path, query, body)
        if fault == "lost":  # it was done, and no one hears of it
            self.close_connection = True
        else:
            self._say(code, said)

    def _say(self, code: int, said: Any) -> None:
        data = json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def _files(data: bytes, kind: str) -> dict[str, bytes]:
    mark = b"--" + kind.partition("boundary=")[2].encode()
    found = {}
    for part in data.split(mark)[1:-1]:
        head, _, body = part.partition(b"\r\n\r\n")
        name = re.search(rb'filename="([^"]+)"', head)
        assert name is not None
        found[name[1].decode()] = body.removesuffix(b"\r\n")
    return found


@contextmanager
def running() -> Iterator[Fake]:
    """Run a server."""
    held = Fake()
    handler = type("Handler", (_Handler,), {"fake": held})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # a client that gave up waiting
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    held.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield held
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """Run a server; its token is in the environment."""
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", TOKEN)
    monkeypatch.setattr("isolux_curate.annotation.server._FIRST_WAIT_S", 0.01)
    with running() as held:
        yield held
