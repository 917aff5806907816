"""A PostgreSQL of the test's own: on loopback, in a folder that is thrown away."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


class Postgres:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path, control: str) -> None:
        self.folder, self.control = folder, control
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"postgresql+pg8000://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, *args: str) -> None:
        """Call pg_ctl, as the account that a root must lend it."""
        user = pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else None
        subprocess.run(
            [self.control, "-D", str(self.folder / "data"), "-s", *args],
            check=True, user=user, cwd=self.folder, timeout=60, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self) -> None:
        settings = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c fsync=off"
        self.run("-w", "-o", settings, "start")

    def stop(self) -> None:
        self.run("-m", "immediate", "stop")


def _control() -> str | None:
    found = shutil.which("pg_ctl")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return found or (str(installed[-1]) if installed else None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Start PostgreSQL; without it the test is skipped, and says what to install."""
    pytest.importorskip("pg8000", reason="not installed: pip install pg8000")
    control = _control()
    if control is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="isolux-pg-", dir="/tmp"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    server = Postgres(folder, control)
    try:
        server.run("-o", "-A trust -U postgres --no-sync", "init")
        server.start()
        yield server
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
