"""The viewer: one page in which a run is explored, as a file that travels or from a local server.

``coding`` numbers a run's models, metrics and attributes; ``tables`` and ``distributions`` make the
small tables that the page reads; ``manifest`` its words; ``page`` puts all of it into
``page.html``, which `make viewer` builds from the sources in ``viewer/`` at the repository's root.
"""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import hmac
import io
import json
import re
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from isolux.core.errors import FileError, IsoluxError, OutputError
from isolux.core.extras import import_optional
from isolux.viewer.contents import Contents, DisplayedRun, build_page_contents

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = [
    "BUNDLE_LIMIT_MB",
    "Contents",
    "DisplayedRun",
    "ServedImages",
    "Site",
    "build_page_contents",
    "build_standalone_page",
    "serve_until_interrupted",
]


# The page from a local server: for runs too large for one file, and for pictures.

HOST = "127.0.0.1"
FIRST_PORT = 8765
"""Tried first, then those after it, where none is asked for."""
_TRIES = 50
_PURPOSE = "the local viewer (--bundle FILE.html needs no more)"
_FAST = 1  # gzip's level: between two programs of one computer size hardly matters
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_WHOLE_ADDRESS = (
    "This viewer needs the whole address that `isolux view` printed: it ends in ?token=…\n"
    "Copy it from the terminal that the viewer runs in."
)


class ServedImages(Protocol):
    """Pictures of people whom a run judged, where they may be shown."""

    def around(self, run: int, unit: str) -> dict[str, Any]:
        """Say how large a person's picture is, and where they stand in it."""

    def picture(self, run: int, unit: str) -> bytes:
        """Give a person's picture as JPEG."""

    def thumbnail(self, run: int, unit: str) -> bytes:
        """Give a small JPEG of a person."""

    def mask(self, run: int, unit: str) -> bytes:
        """Give a person's mask as PNG, clear outside of it."""


@dataclass(frozen=True, slots=True)
class Site:
    """What is served: the page's contents, the token, pictures where they may be shown."""

    contents: Contents
    pictures: ServedImages | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))


def build_viewer_app(site: Site, port: int) -> Starlette:
    """Make the program that answers, for a server at a port of this computer."""
    import_optional("starlette", package="starlette", extra="view", purpose=_PURPOSE)
    from starlette.applications import Starlette
    from starlette.routing import Route

    answers = _RequestHandlers(site, port)
    handlers = {
        "/": answers.page,
        "/table": answers.table,
        "/person": answers.person,
        "/picture": answers.picture,
        "/thumbnail": answers.thumbnail,
        "/mask": answers.mask,
    }
    return Starlette(
        routes=[Route(path, answers.guard_handler(handler)) for path, handler in handlers.items()]
    )


class _RequestHandlers:
    """What is answered to each address; ``guard_handler`` first looks who asks."""

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self.text = build_served_page(site.contents)
        self.packed: dict[str, bytes] = {}

    def guard_handler(
        self, handler: Callable[[Request], Response]
    ) -> Callable[[Request], Response]:
        def guarded_handler(request: Request) -> Response:
            response = self._check_request(request)
            if response is None:
                try:
                    response = handler(request)
                except IsoluxError as error:
                    response = _build_text_response(str(error).splitlines()[0], 404)
            response.headers.update(_HEADERS)
            return response

        return guarded_handler

    def _check_request(self, request: Request) -> Response | None:
        if request.headers.get("host") not in self.hosts:
            return _build_text_response("This viewer is for this computer alone.", 403)
        token = request.query_params.get("token", "")
        if not hmac.compare_digest(token.encode(), self.site.token.encode()):
            return _build_text_response(_WHOLE_ADDRESS, 403)
        return None

    def page(self, request: Request) -> Response:
        from starlette.responses import HTMLResponse

        del request
        return HTMLResponse(self.text)

    def table(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        if name not in self.site.contents.tables:
            return _build_text_response("This viewer has no such table.", 404)
        if name not in self.packed:
            self.packed[name] = encode_table_bytes(self.site.contents.tables[name], _FAST)
        return _build_bytes_response(self.packed[name], "application/octet-stream")

    def person(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        pictures, run, unit = self._find_requested_person(request)
        return JSONResponse(pictures.around(run, unit))

    def picture(self, request: Request) -> Response:
        pictures, run, unit = self._find_requested_person(request)
        return _build_bytes_response(pictures.picture(run, unit), "image/jpeg")

    def thumbnail(self, request: Request) -> Response:
        pictures, run, unit = self._find_requested_person(request)
        return _build_bytes_response(pictures.thumbnail(run, unit), "image/jpeg")

    def mask(self, request: Request) -> Response:
        pictures, run, unit = self._find_requested_person(request)
        return _build_bytes_response(pictures.mask(run, unit), "image/png")

    def _find_requested_person(self, request: Request) -> tuple[ServedImages, int, str]:
        run = request.query_params.get("run", "")
        if self.site.pictures is None or not (run.isascii() and run.isdecimal()):
            raise FileError("this viewer shows no pictures of this run")
        return self.site.pictures, int(run), request.query_params.get("id", "")


def _build_text_response(text: str, status: int) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(text, status)


def _build_bytes_response(content: bytes, media_type: str) -> Response:
    from starlette.responses import Response

    return Response(content, media_type=media_type)


def bind_local_socket(port: int | None) -> socket.socket:
    """Take a port of this computer: the one that is asked for, or the first that is free."""
    ports = [port] if port is not None else range(FIRST_PORT, FIRST_PORT + _TRIES)
    reason = ""
    for candidate_port in ports:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate_port))
            listener.listen(128)
        except (OSError, OverflowError) as error:
            listener.close()
            reason = _explain_port_error(candidate_port, error)
        else:
            return listener
    raise OutputError(
        "the viewer cannot listen at this port" if port is not None else "no port is free",
        expected="a free port from 1024 to 65535",
        found=reason if port is not None else f"{FIRST_PORT} and {_TRIES - 1} more",
        hint="another --port, or none, to use the first free one",
    )


def _explain_port_error(port: int, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return f"{port}, which another program uses (perhaps another viewer)"
    if number == errno.EACCES:
        return f"{port}, which only an administrator may take"
    return f"{port}: {getattr(error, 'strerror', None) or error}"


def serve_until_interrupted(site: Site, port: int | None, on_ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C."""
    uvicorn = import_optional("uvicorn", package="uvicorn", extra="view", purpose=_PURPOSE)
    listener = bind_local_socket(port)
    number = listener.getsockname()[1]
    settings = uvicorn.Config(
        build_viewer_app(site, number),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(settings)
    # In a thread of its own it leaves signals to the command line, which ends cleanly by them.
    worker = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    worker.start()
    try:
        on_ready(f"http://{HOST}:{number}/?token={site.token}")
        while worker.is_alive():
            worker.join(0.2)
    finally:
        server.should_exit = True
        worker.join(3)
        listener.close()


BUNDLE_LIMIT_MB = 25
"""A larger file is refused: mail servers and browsers begin to refuse it too."""
TEMPLATE = Path(__file__).parent / "page.html"
_DATA_MARK = "<!--isolux:data-->"
_POLICY = "<!--isolux:policy-->"
_PACKED = "application/vnd.apache.parquet+gzip;base64"
_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def build_standalone_page(contents: Contents) -> str:
    """Print a page with everything in it, to be opened by a double click."""
    packed_tables = {name: encode_table_base64(table) for name, table in contents.tables.items()}
    text = _fill_page_template(contents, packed_tables, "connect-src 'none'; img-src data:")
    size = len(text.encode()) / 1e6
    if size > BUNDLE_LIMIT_MB:
        raise _build_size_error(size, packed_tables)
    return text


def build_served_page(contents: Contents) -> str:
    """Print the page that a local server gives: tables of people are asked for when looked at."""
    packed_tables = {
        name: encode_table_base64(t)
        for name, t in contents.tables.items()
        if not name.startswith("people")
    }
    return _fill_page_template(contents, packed_tables, "connect-src 'self'; img-src 'self' data:")


def _fill_page_template(contents: Contents, packed_tables: dict[str, str], sources: str) -> str:
    scripts = [
        (
            '<script type="application/json" id="manifest">'
            f"{_to_script_safe_json(contents.manifest)}</script>"
        )
    ]
    scripts += [
        f'<script type="{_PACKED}" id="table-{name}">{text}</script>'
        for name, text in packed_tables.items()
    ]
    page = read_viewer_template().replace(_POLICY, build_content_security_policy(sources), 1)
    head, mark, tail = page.partition(_DATA_MARK)
    if not mark:
        raise AssertionError("the built page has no place for data")
    return "\n".join([head, *scripts, tail])


def _build_size_error(size: float, packed_tables: dict[str, str]) -> OutputError:
    largest_tables = sorted(packed_tables.items(), key=lambda entry: -len(entry[1]))[:3]
    size_list = ", ".join(f"{name} {len(text) / 1e6:.1f} MB" for name, text in largest_tables)
    return OutputError(
        "this bundle would be too large to be mailed and opened with ease",
        expected=f"{BUNDLE_LIMIT_MB} MB at most",
        found=f"{size:.1f} MB ({size_list})",
        hint="leave out single people (no --people), name fewer metrics with --metric, or look at "
        "it without --bundle: `isolux view RUN` opens a run of any size",
    )


def build_content_security_policy(sources: str) -> str:
    """Make the page's own policy: nothing but its script, its style and ``sources``."""
    text = read_viewer_template()
    script, style = (
        _format_csp_hash(re.search(f"<{tag}>(.*?)</{tag.split()[0]}>", text, re.DOTALL))
        for tag in ('script type="module"', "style")
    )
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; {sources}; "
        f"style-src {style}; script-src {script}"
    )


def _format_csp_hash(tag_match: re.Match[str] | None) -> str:
    if tag_match is None:
        raise AssertionError("the built page lacks its script or its style")
    digest = hashlib.sha256(tag_match.group(1).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def read_viewer_template() -> str:
    """Read the page that `make viewer` built."""
    return TEMPLATE.read_text(encoding="utf-8")


def encode_table_base64(table: pl.DataFrame) -> str:
    """Write a table as Parquet, packed by gzip, in letters that a page may hold.

    Examples
    --------
    >>> data = gzip.decompress(base64.b64decode(encode_table_base64(pl.DataFrame({"n": [1, 2]}))))
    >>> pl.read_parquet(io.BytesIO(data))["n"].to_list()
    [1, 2]
    """
    return base64.b64encode(encode_table_bytes(table)).decode()


def encode_table_bytes(table: pl.DataFrame, level: int = 9) -> bytes:
    """Write a table as Parquet, packed by gzip."""
    buffer = io.BytesIO()
    # gzip packs the whole better than Parquet its pages, and a browser unpacks it by itself.
    table.write_parquet(buffer, compression="uncompressed", statistics=False)
    return gzip.compress(buffer.getvalue(), level, mtime=0)


def _to_script_safe_json(content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    # Inside a script element only these could end it or begin another.
    return re.sub("[<>&\u2028\u2029]", lambda character: _SAFE[character.group()], text)
