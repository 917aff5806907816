"""A pipe where a file is expected is refused: whoever opens one waits for what never comes."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from isolux.core.errors import IsoluxError
from tests.contracts._hostile import files_of
from tests.faults._fuzz_readers import reader, readers

_SECONDS = 5.0


def waited_for(pipe: Path) -> bool:
    """Tell whether a reader stands at the pipe, and let it go on if so."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="pipes that have a name")
@pytest.mark.parametrize("name", readers())
def test_a_pipe_is_not_waited_for(tmp_path, name):
    write, read = reader(name)
    whole = write(tmp_path)
    victim = files_of(whole)[0] if whole.is_dir() else whole
    victim.unlink()
    os.mkfifo(victim)
    waited = []
    watch = threading.Timer(_SECONDS, lambda: waited.append(waited_for(victim)))
    watch.start()
    with suppress(IsoluxError):
        read(whole)
    watch.cancel()
    assert waited in ([], [False])
