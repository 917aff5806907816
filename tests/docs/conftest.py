"""What several pages read: the folder that `make demo` leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from isolux import cli


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `demo/` in it, to be copied from."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("sys.argv", ["isolux", "demo"])
        with pytest.raises(SystemExit) as done:
            cli.main()
    assert not done.value.code
    return folder
