"""Label Studio, spoken to by plain HTTP: with time limits, tries again, and errors in plain words.

What is asked twice does the same as once: reads are repeated freely, a write that may have been
heard is looked for on the server before it is repeated (``push``).
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from isolux.vocabulary.errors import FileError, SpecError

TOKEN = "LABEL_STUDIO_TOKEN"  # noqa: S105 (the variable's name)
_TRIES, _FIRST_WAIT_S = 4, 0.5
_PAGE = 100
_AGAIN = (429, 500, 502, 503, 504)
_NOT_GIVEN = (404, 410, 500)  # Label Studio 1.23 fails (500) over a picture that it has forgotten
_LONGEST = 200


@dataclass(slots=True)
class Server:
    """A server and who speaks to it.

    Parameters
    ----------
    url : str
        ``http://127.0.0.1:8080``.
    token : str
        A legacy token, or a personal access token (which is changed for short-lived ones).
    timeout_s : float
        Of one request.
    """

    url: str
    token: str = field(repr=False)
    timeout_s: float = 60.0
    _bearer: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, url: str, *, timeout_s: float = 60.0) -> Server:
        """Take the token from ``LABEL_STUDIO_TOKEN``."""
        token = os.environ.get(TOKEN, "").strip()
        if not token:
            raise SpecError(
                "there is no token for the annotation server",
                expected=f"a token in the variable {TOKEN}",
                hint="copy it in Label Studio: Account & Settings",
            )
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise SpecError(
                "this is not the address of a server", expected="http://host:port", found=repr(url)
            )
        return cls(url.rstrip("/"), token, timeout_s)

    def projects(self) -> Iterator[dict[str, Any]]:
        """List the server's projects."""
        yield from self._pages("/api/projects", {"include": "id,title"}, "results")

    def new_project(self, settings: Mapping[str, Any]) -> int:
        """Make a project, and return its number."""
        return int(self._call("POST", "/api/projects", settings)["id"])

    def tasks(self, project: int, *, answers: bool) -> Iterator[dict[str, Any]]:
        """List a project's tasks, with their annotations where these are asked for."""
        asked = {"project": str(project)} | ({"fields": "all"} if answers else {})
        yield from self._pages("/api/tasks", asked, "tasks")

    def count(self, project: int) -> int:
        """Count a project's tasks."""
        return int(self._call("GET", f"/api/projects/{project}").get("task_number") or 0)

    def uploads(self, project: int) -> dict[str, str]:
        """List pictures that were uploaded: their names, and where the server has them."""
        paths = [str(row["file"]) for row in self._uploaded(project)]
        return {_sent_as(path): f"/data/{path}" for path in paths}

    def upload(self, project: int, pictures: Mapping[str, bytes]) -> None:
        """Send pictures; they make no tasks."""
        path = f"/api/projects/{project}/import?commit_to_project=false"
        self._call("POST", path, files=pictures)

    def new_tasks(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """Make tasks, and return their numbers in the same order."""
        path = f"/api/projects/{project}/import?return_task_ids=true"
        found = self._call("POST", path, list(tasks))
        return [int(one) for one in found.get("task_ids", [])]

    def delete_task(self, task: int) -> bool:
        """Delete a task with its annotations; False where it is gone already."""
        return self._call("DELETE", f"/api/tasks/{task}", absent=None) is not None

    def delete_annotation(self, annotation: int) -> bool:
        """Delete one answer; False where it is gone already."""
        return self._call("DELETE", f"/api/annotations/{annotation}", absent=None) is not None

    def delete_uploads(self, project: int, names: Collection[str]) -> int:
        """Delete uploaded pictures by the names they were sent under, and see that none is given.

        Label Studio 1.23 forgets a picture and keeps its file below ``media/upload`` on its disk.
        """
        rows = [row for row in self._uploaded(project) if _sent_as(row["file"]) in names]
        for row in rows:
            self._call("DELETE", f"/api/import/file-upload/{row['id']}", absent=None)
        left = [row for row in self._uploaded(project) if _sent_as(row["file"]) in names]
        left += [row for row in rows if row not in left and self._gives(f"/data/{row['file']}")]
        if left:
            raise FileError(
                f"{len(left):,} pictures are still on the annotation server",
                expected="none of them",
                found="the server has deleted their tasks alone",
                where=self.url,
                hint="delete the files of this project on the server's disk (media/upload), then"
                " give the same command again",
            )
        return len(rows)

    def _gives(self, path: str) -> bool:
        """Tell whether the server still has a file."""
        try:
            request = self._request("GET", path, None, None)
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:  # noqa: S310
                return bool(answer.read(1))
        except urllib.error.HTTPError as error:
            with error:
                if error.code in (401, 403):
                    raise self._refused(error, "GET", path) from error
                return error.code not in _NOT_GIVEN
        except (OSError, HTTPException) as error:
            raise self._silent(error) from error

    def _uploaded(self, project: int) -> list[dict[str, Any]]:
        found = self._call("GET", f"/api/projects/{project}/file-uploads?all=true", absent=[])
        return list(found if isinstance(found, list) else found.get("results", []))

    def _pages(self, path: str, asked: Mapping[str, str], key: str) -> Iterator[dict[str, Any]]:
        number = 1
        while True:
            query = urllib.parse.urlencode({**asked, "page": number, "page_size": _PAGE})
            found = self._call("GET", f"{path}?{query}", absent={})
            rows = found if isinstance(found, list) else found.get(key, [])
            yield from rows
            if len(rows) < _PAGE:
                return
            number += 1

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        files: Mapping[str, bytes] | None = None,
        absent: Any = ...,
    ) -> Any:
        """Ask once; reads again where the server was not able to answer."""
        wait = _FIRST_WAIT_S
        for left in range(_TRIES - 1, -1, -1):
            request = self._request(method, path, body, files)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:  # noqa: S310
                    data = answer.read()
                return json.loads(data) if data else {}
            except urllib.error.HTTPError as error:
                with error:  # its connection is open until it is closed
                    if error.code == 404 and absent is not ...:
                        return absent
                    if error.code == 401 and self._renewed():
                        continue
                    again = error.code in _AGAIN and (method == "GET" or error.code in (429, 503))
                    if not (again and left):
                        raise self._refused(error, method, path) from error
            except (OSError, HTTPException, ValueError) as error:
                unheard = isinstance(getattr(error, "reason", error), ConnectionRefusedError)
                if not (left and (method == "GET" or unheard)):
                    raise self._silent(error) from error
            time.sleep(wait)
            wait *= 2
        raise AssertionError  # pragma: no cover

    def _request(
        self, method: str, path: str, body: Any, files: Mapping[str, bytes] | None
    ) -> urllib.request.Request:
        headers = {"Authorization": self._authorised(), "Accept": "application/json"}
        data: bytes | None = None
        if files is not None:
            data, headers["Content-Type"] = _multipart(files)
        elif body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        return urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310

    def _authorised(self) -> str:
        if self.token.count(".") != 2:  # a legacy token; a personal one is a JWT of three parts
            return f"Token {self.token}"
        return f"Bearer {self._bearer or self._renewed() or ''}"

    def _renewed(self) -> str:
        """Change a personal access token for one that holds some minutes; a legacy one has none."""
        if self.token.count(".") != 2:
            return ""
        before, self._bearer = self._bearer, "-"
        body = json.dumps({"refresh": self.token}).encode()
        request = urllib.request.Request(  # noqa: S310
            f"{self.url}/api/token/refresh", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:  # noqa: S310
                self._bearer = str(json.loads(answer.read())["access"])
        except urllib.error.HTTPError as error:
            raise self._refused(error, "POST", "/api/token/refresh") from error
        except (OSError, HTTPException, ValueError, KeyError) as error:
            raise self._silent(error) from error
        return self._bearer if self._bearer != before else ""

    def _refused(self, error: urllib.error.HTTPError, method: str, path: str) -> FileError:
        with error:
            said = error.read(_LONGEST).decode("utf-8", "replace").strip()
        if error.code in (401, 403):
            return FileError(
                "the annotation server does not know this token, or it has expired",
                expected=f"a token in {TOKEN} of a user who may change projects",
                found=f"{error.code} {said}".strip(),
                where=self.url,
                hint="copy a new one in Label Studio, then give the same command again",
            )
        return FileError(
            "the annotation server could not do what was requested",
            found=f"{error.code} {error.reason} to {method} {path.partition('?')[0]}: {said}",
            where=self.url,
            hint="what it did take is known; give the same command again to go on",
        )

    def _silent(self, error: BaseException) -> FileError:
        found = getattr(error, "reason", None) or str(error) or type(error).__name__
        return FileError(
            "the annotation server does not answer",
            expected=f"within {self.timeout_s:g} seconds",
            found=str(found)[:_LONGEST],
            where=self.url,
            hint="check that it is running; then repeat the command to resume",
        )


def _sent_as(path: str) -> str:
    """Give the name that a picture was sent under: the server puts letters before it."""
    return str(path).rpartition("/")[2].partition("-")[2]


def _multipart(files: Mapping[str, bytes]) -> tuple[bytes, str]:
    mark = uuid.uuid4().hex
    parts: list[bytes] = []
    for name, data in files.items():
        head = (
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'
            "Content-Type: image/jpeg\r\n\r\n"
        )
        parts += [head.encode(), data, b"\r\n"]
    return b"".join([*parts, f"--{mark}--\r\n".encode()]), f"multipart/form-data; boundary={mark}"
