"""What the tests of faults share: the process that forks commands, and what these read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults._kills import Server, prepare


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The process that runs commands."""
    one = Server()
    yield one
    one.close()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """Two runs and their tables, to be copied to where a test breaks things."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder, server)
    return folder
