"""The local server: who may ask, what is answered, which port it takes."""

from __future__ import annotations

import gzip
import io
import re
import socket
import threading
import urllib.error
import urllib.request
from urllib.parse import urlencode

import polars as pl
import pytest

from isolux.core.errors import FileError, OutputError
from isolux.viewer import (
    FIRST_PORT,
    DisplayedRun,
    Site,
    bind_local_socket,
    build_page_contents,
    serve_until_interrupted,
)
from tests.viewer._runs import audited

pytest.importorskip("uvicorn", reason="EXTRA view ABSENT: the local server was NOT started")


class Painted:
    """Pictures of one person; of everyone else there is none."""

    def around(self, run, unit):
        return {"run": run, "unit": unit}

    def picture(self, run, unit):
        if (run, unit) != (0, "p1"):
            raise FileError("this person is not in the dataset as it is now")
        return b"a picture"

    def mask(self, run, unit):
        raise FileError("this person has no mask")


@pytest.fixture(scope="module")
def site():
    return Site(build_page_contents([DisplayedRun(audited(), "a")], people=True), Painted())


@pytest.fixture(scope="module")
def address(site):
    """Serve in this process until the tests are done."""
    found, told = [], threading.Event()

    class EndedError(Exception):
        pass

    done = threading.Event()

    def ready(url):
        found.append(url)
        told.set()
        done.wait(60)
        raise EndedError

    def run():
        with pytest.raises(EndedError):
            serve_until_interrupted(site, None, ready)

    thread = threading.Thread(target=run)
    thread.start()
    assert told.wait(20)
    yield found[0]
    done.set()
    thread.join(10)
    assert not thread.is_alive()


def ask(address, path="/", token=None, host=None, **query):
    base, _, own = address.partition("/?token=")
    said = urlencode({**query, "token": own if token is None else token})
    headers = {"Host": host} if host else {}
    request = urllib.request.Request(f"{base}{path}?{said}", headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), dict(error.headers)


def test_the_page_is_given_to_who_has_the_token(address):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", address)
    status, page, headers = ask(address)
    assert status == 200
    assert b"connect-src 'self'" in page
    assert b'id="table-groups"' in page
    assert b'id="table-people-0"' not in page  # asked for when it is looked at
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/table", "/person", "/picture", "/mask"])
@pytest.mark.parametrize("token", ["", "x", "ü"])
def test_without_the_token_nothing_is_given(address, path, token):
    status, said, _ = ask(address, path, token=token, name="groups", run="0", id="p1")
    assert status == 403
    assert "ends in ?token=" in said.decode()


def test_a_page_elsewhere_that_calls_itself_this_computer_is_refused(address):
    assert ask(address, host="evil.example")[0] == 403
    assert ask(address, host="127.0.0.1:1")[0] == 403


def test_tables_come_whole_and_nothing_else_does(address, site):
    status, data, _ = ask(address, "/table", name="people-0")
    assert status == 200
    table = pl.read_parquet(io.BytesIO(gzip.decompress(data)))
    assert table.equals(site.contents.tables["people-0"])
    for name in ("../../etc/passwd", "/etc/passwd", "people-1", ""):
        assert ask(address, "/table", name=name)[0] == 404


def test_pictures_are_looked_up_by_person(address):
    assert ask(address, "/picture", run="0", id="p1")[:2] == (200, b"a picture")
    for run, unit in (
        ("0", "../p1"),
        ("0", "p2"),
        ("1", "p1"),
        ("x", "p1"),
        ("-1", "p1"),
        ("²", "p1"),
    ):
        status, said, _ = ask(address, "/picture", run=run, id=unit)
        assert status == 404
        assert b"Traceback" not in said
    status, said, _ = ask(address, "/mask", run="0", id="p1")
    assert (status, said) == (404, b"this person has no mask")


def test_two_viewers_take_two_ports_and_a_port_in_use_is_told():
    first, second = bind_local_socket(None), bind_local_socket(None)
    ports = [one.getsockname()[1] for one in (first, second)]
    assert ports[0] != ports[1]
    assert all(FIRST_PORT <= port < FIRST_PORT + 50 for port in ports)
    assert first.getsockname()[0] == "127.0.0.1"
    with pytest.raises(
        OutputError, match=rf"{ports[0]}, which another program uses(.|\n)*another --port"
    ):
        bind_local_socket(ports[0])
    first.close()
    second.close()
    with pytest.raises(OutputError, match="cannot listen"):
        bind_local_socket(99_999)


def test_it_listens_on_this_computer_alone():
    taken = bind_local_socket(None)
    port = taken.getsockname()[1]
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((own, port), timeout=2)
    taken.close()
