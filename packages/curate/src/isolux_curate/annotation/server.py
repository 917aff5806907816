"""A client of Label Studio over HTTP, with time limits and retries.

Requests may be repeated: reads freely, and before a write that may have arrived is repeated, the
caller looks for its effect on the server.
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

from isolux.core.errors import FileError, SpecError

TOKEN_VARIABLE = "LABEL_STUDIO_TOKEN"  # noqa: S105 (the variable's name)
_TRIES, _FIRST_WAIT_S = 4, 0.5
_PAGE = 100
_DEFAULT_PORTS = {"http": 80, "https": 443}
_RETRY_STATUS_CODES = (429, 500, 502, 503, 504)
_MISSING_FILE_STATUS_CODES = (
    404,
    410,
    500,
)  # Label Studio 1.23 fails (500) over a picture that it has forgotten
_MAX_MESSAGE_LENGTH = 200


@dataclass(slots=True)
class LabelStudioServer:
    """An annotation server, and the token of the user who sends requests.

    Parameters
    ----------
    url : str
        ``http://127.0.0.1:8080``.
    token : str
        A legacy token, or a personal access token (which is changed for short-lived ones).
    timeout_s : float
        Of one request.
    stored_url : str
        The address under which a project knows this server; empty: ``url``.
    """

    url: str
    token: str = field(repr=False)
    timeout_s: float = 60.0
    stored_url: str = ""
    _bearer: str = field(default="", repr=False)

    @classmethod
    def from_url_with_environment_token(
        cls, url: str, *, timeout_s: float = 60.0
    ) -> LabelStudioServer:
        """Read the token from ``LABEL_STUDIO_TOKEN``."""
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
        if not token:
            raise SpecError(
                "there is no token for the annotation server",
                expected=f"a token in the variable {TOKEN_VARIABLE}",
                hint="copy it in Label Studio: Account & Settings",
            )
        url_parts = urllib.parse.urlsplit(url)
        if url_parts.scheme not in ("http", "https") or not url_parts.netloc:
            raise SpecError(
                "this is not the address of a server", expected="http://host:port", found=repr(url)
            )
        host = (url_parts.hostname or "").lower()
        host = f"[{host}]" if ":" in host else host
        is_default_port = url_parts.port in (None, _DEFAULT_PORTS[url_parts.scheme])
        address = host if is_default_port else f"{host}:{url_parts.port}"
        return cls(f"{url_parts.scheme}://{address}{url_parts.path.rstrip('/')}", token, timeout_s)

    @property
    def known_url(self) -> str:
        """The address under which a project knows this server."""
        return self.stored_url or self.url

    def list_projects(self) -> Iterator[dict[str, Any]]:
        """List the server's projects."""
        yield from self._iterate_rows_of_pages("/api/projects", {"include": "id,title"}, "results")

    def create_project(self, settings: Mapping[str, Any]) -> int:
        """Create a project, and return its number."""
        return int(self._send_request_with_retries("POST", "/api/projects", settings)["id"])

    def list_tasks(self, project_number: int, *, with_answers: bool) -> Iterator[dict[str, Any]]:
        """List a project's tasks, with their annotations where these are asked for."""
        parameters = {"project": str(project_number)} | ({"fields": "all"} if with_answers else {})
        yield from self._iterate_rows_of_pages("/api/tasks", parameters, "tasks")

    def count_tasks(self, project_number: int) -> int:
        """Count a project's tasks."""
        return int(
            self._send_request_with_retries("GET", f"/api/projects/{project_number}").get(
                "task_number"
            )
            or 0
        )

    def list_upload_paths_by_name(self, project_number: int) -> dict[str, str]:
        """List uploaded images: their names, and their paths on the server."""
        paths = [str(row["file"]) for row in self._read_upload_rows(project_number)]
        return {_extract_original_upload_name(path): f"/data/{path}" for path in paths}

    def upload_images(self, project_number: int, image_bytes_by_name: Mapping[str, bytes]) -> None:
        """Upload images without creating tasks."""
        path = f"/api/projects/{project_number}/import?commit_to_project=false"
        self._send_request_with_retries("POST", path, files=image_bytes_by_name)

    def create_tasks(
        self, project_number: int, task_bodies: Sequence[Mapping[str, Any]]
    ) -> list[int]:
        """Create tasks, and return their numbers in the same order."""
        path = f"/api/projects/{project_number}/import?return_task_ids=true"
        response = self._send_request_with_retries("POST", path, list(task_bodies))
        return [int(task_id) for task_id in response.get("task_ids", [])]

    def delete_task_if_present(self, task_number: int) -> bool:
        """Delete a task with its annotations; False where it is gone already."""
        return (
            self._send_request_with_retries(
                "DELETE", f"/api/tasks/{task_number}", default_if_missing=None
            )
            is not None
        )

    def delete_annotation_if_present(self, annotation_number: int) -> bool:
        """Delete one answer; False where it is gone already."""
        return (
            self._send_request_with_retries(
                "DELETE", f"/api/annotations/{annotation_number}", default_if_missing=None
            )
            is not None
        )

    def delete_uploads_and_verify(self, project_number: int, image_names: Collection[str]) -> int:
        """Delete uploaded images by the names they were sent under, and check that none remains.

        Label Studio 1.23 deletes an image's record and keeps its file below ``media/upload``.
        """
        rows = [
            row
            for row in self._read_upload_rows(project_number)
            if _extract_original_upload_name(row["file"]) in image_names
        ]
        for row in rows:
            self._send_request_with_retries(
                "DELETE", f"/api/import/file-upload/{row['id']}", default_if_missing=None
            )
        remaining = [
            row
            for row in self._read_upload_rows(project_number)
            if _extract_original_upload_name(row["file"]) in image_names
        ]
        remaining += [
            row
            for row in rows
            if row not in remaining and self._is_file_still_served(f"/data/{row['file']}")
        ]
        if remaining:
            raise FileError(
                f"{len(remaining):,} pictures are still on the annotation server",
                expected="none of them",
                found="the server has deleted their tasks alone",
                where=self.url,
                hint="delete the files of this project on the server's disk (media/upload), then"
                " give the same command again",
            )
        return len(rows)

    def _is_file_still_served(self, path: str) -> bool:
        """Check whether the server still returns a file."""
        try:
            request = self._build_authorised_request("GET", path, None, None)
            with urllib.request.urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310
                return bool(response.read(1))
        except urllib.error.HTTPError as error:
            with error:
                if error.code in (401, 403):
                    raise self._build_refusal_error(error, "GET", path) from error
                return error.code not in _MISSING_FILE_STATUS_CODES
        except (OSError, HTTPException) as error:
            raise self._build_no_response_error(error) from error

    def _read_upload_rows(self, project_number: int) -> list[dict[str, Any]]:
        response = self._send_request_with_retries(
            "GET", f"/api/projects/{project_number}/file-uploads?all=true", default_if_missing=[]
        )
        return list(response if isinstance(response, list) else response.get("results", []))

    def _iterate_rows_of_pages(
        self, path: str, parameters: Mapping[str, str], rows_key: str
    ) -> Iterator[dict[str, Any]]:
        page_number = 1
        while True:
            query = urllib.parse.urlencode({**parameters, "page": page_number, "page_size": _PAGE})
            response = self._send_request_with_retries(
                "GET", f"{path}?{query}", default_if_missing={}
            )
            rows = response if isinstance(response, list) else response.get(rows_key, [])
            yield from rows
            if len(rows) < _PAGE:
                return
            page_number += 1

    def _send_request_with_retries(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        files: Mapping[str, bytes] | None = None,
        default_if_missing: Any = ...,
    ) -> Any:
        """Send a request; retry reads, and writes that cannot have been executed."""
        wait_s = _FIRST_WAIT_S
        for n_retries_left in range(_TRIES - 1, -1, -1):
            request = self._build_authorised_request(method, path, body, files)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310
                    response_bytes = response.read()
                return json.loads(response_bytes) if response_bytes else {}
            except urllib.error.HTTPError as error:
                with error:  # its connection is open until it is closed
                    if error.code == 404 and default_if_missing is not ...:
                        return default_if_missing
                    if error.code == 401 and self._refresh_bearer_or_empty():
                        continue
                    is_retryable = error.code in _RETRY_STATUS_CODES and (
                        method == "GET" or error.code in (429, 503)
                    )
                    if not (is_retryable and n_retries_left):
                        raise self._build_refusal_error(error, method, path) from error
            except (OSError, HTTPException, ValueError) as error:
                is_unsent = isinstance(getattr(error, "reason", error), ConnectionRefusedError)
                if not (n_retries_left and (method == "GET" or is_unsent)):
                    raise self._build_no_response_error(error) from error
            time.sleep(wait_s)
            wait_s *= 2
        raise AssertionError  # pragma: no cover

    def _build_authorised_request(
        self, method: str, path: str, body: Any, files: Mapping[str, bytes] | None
    ) -> urllib.request.Request:
        headers = {
            "Authorization": self._build_authorisation_header(),
            "Accept": "application/json",
        }
        body_bytes: bytes | None = None
        if files is not None:
            body_bytes, headers["Content-Type"] = _encode_jpegs_as_multipart(files)
        elif body is not None:
            body_bytes, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        return urllib.request.Request(self.url + path, body_bytes, headers, method=method)  # noqa: S310

    def _build_authorisation_header(self) -> str:
        if self.token.count(".") != 2:  # a legacy token; a personal one is a JWT of three parts
            return f"Token {self.token}"
        return f"Bearer {self._bearer or self._refresh_bearer_or_empty() or ''}"

    def _refresh_bearer_or_empty(self) -> str:
        """Exchange a personal access token for a short-lived one; a legacy token has none."""
        if self.token.count(".") != 2:
            return ""
        previous_bearer, self._bearer = self._bearer, "-"
        body = json.dumps({"refresh": self.token}).encode()
        request = urllib.request.Request(  # noqa: S310
            f"{self.url}/api/token/refresh", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310
                self._bearer = str(json.loads(response.read())["access"])
        except urllib.error.HTTPError as error:
            raise self._build_refusal_error(error, "POST", "/api/token/refresh") from error
        except (OSError, HTTPException, ValueError, KeyError) as error:
            raise self._build_no_response_error(error) from error
        return self._bearer if self._bearer != previous_bearer else ""

    def _build_refusal_error(
        self, error: urllib.error.HTTPError, method: str, path: str
    ) -> FileError:
        with error:
            response_text = error.read(_MAX_MESSAGE_LENGTH).decode("utf-8", "replace").strip()
        if error.code in (401, 403):
            return FileError(
                "the annotation server does not know this token, or it has expired",
                expected=f"a token in {TOKEN_VARIABLE} of a user who may change projects",
                found=f"{error.code} {response_text}".strip(),
                where=self.url,
                hint="copy a new one in Label Studio, then give the same command again",
            )
        return FileError(
            "the annotation server could not do what was requested",
            found=f"{error.code} {error.reason} to {method} {path.partition('?')[0]}:"
            f" {response_text}",
            where=self.url,
            hint="what it did take is known; give the same command again to go on",
        )

    def _build_no_response_error(self, error: BaseException) -> FileError:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        return FileError(
            "the annotation server does not answer",
            expected=f"within {self.timeout_s:g} seconds",
            found=str(reason)[:_MAX_MESSAGE_LENGTH],
            where=self.url,
            hint="check that it is running; then repeat the command to resume",
        )


def _extract_original_upload_name(server_path: str) -> str:
    """Return the name that an image was sent under: the server adds a prefix to it."""
    return str(server_path).rpartition("/")[2].partition("-")[2]


def _encode_jpegs_as_multipart(jpeg_by_name: Mapping[str, bytes]) -> tuple[bytes, str]:
    boundary = uuid.uuid4().hex
    chunks: list[bytes] = []
    for name, file_bytes in jpeg_by_name.items():
        chunk_header = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'
            "Content-Type: image/jpeg\r\n\r\n"
        )
        chunks += [chunk_header.encode(), file_bytes, b"\r\n"]
    return b"".join(
        [*chunks, f"--{boundary}--\r\n".encode()]
    ), f"multipart/form-data; boundary={boundary}"
