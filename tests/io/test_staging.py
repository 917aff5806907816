"""What a killed command leaves is found, named and removed; what a living one writes stays."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isolux.core.errors import OutputError
from isolux.io import staged_directory, write_text
from isolux.io.staging import StagingPath, remove_stale_staging, settle_staging_below

WRITER = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from isolux.io.staging import StagingPath\n"
    "stage = StagingPath(Path(sys.argv[1]), is_folder=sys.argv[2] == 'folder')\n"
    "if stage.is_folder: (stage.path / 'scores.parquet').write_text('people')\n"
    "print(stage.path, flush=True)\n"
    "time.sleep(60)\n"
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def writer(target: Path, kind: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that fills a stage, and wait until it does."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target), kind], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_living_process_keeps_its_stage_and_a_killed_one_does_not(tmp_path, caplog, kind):
    process, stage = writer(tmp_path / "run", kind)
    try:
        assert remove_stale_staging(tmp_path / "run") == []
        assert [left.is_active for left in settle_staging_below(tmp_path)] == [True]
        assert stage.exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert stage.exists()  # nobody can clean up after kill -9 but the next command
    (left,) = remove_stale_staging(tmp_path / "run")
    assert (left.path, left.is_active) == (stage, False)
    assert list(tmp_path.iterdir()) == []
    assert f"removed {stage}: left by a command that was stopped" in caplog.text


def test_the_next_command_on_that_path_removes_what_was_left(tmp_path, caplog):
    (tmp_path / ".run.new-0a1b2c3d").mkdir()
    (tmp_path / ".run.new-0a1b2c3d" / "scores.parquet").write_text("people")
    (tmp_path / ".other.new-0a1b2c3d").mkdir()
    with staged_directory(tmp_path / "run") as stage:
        write_text(stage / "audit.json", "{}")
    assert names(tmp_path) == [".other.new-0a1b2c3d", "run"]
    assert ".run.new-0a1b2c3d: left by" in caplog.text


def test_a_refused_command_removes_it_too(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / ".run.new-0a1b2c3d").mkdir()
    with pytest.raises(OutputError, match="exists already"), staged_directory(tmp_path / "run"):
        pytest.fail("the block must not run")
    assert names(tmp_path) == ["run"]


def test_an_old_result_without_a_successor_is_put_back(tmp_path, caplog):
    (tmp_path / ".run.old-0a1b2c3d").mkdir()
    (tmp_path / ".run.old-0a1b2c3d" / "audit.json").write_text("{}")
    (left,) = remove_stale_staging(tmp_path / "run")
    assert left.is_restored
    assert (tmp_path / "run" / "audit.json").read_text() == "{}"
    assert "put back" in caplog.text


def test_an_old_result_with_a_successor_is_removed(tmp_path):
    for name in (".run.old-0a1b2c3d", "run"):
        (tmp_path / name).mkdir()
    assert [left.is_restored for left in remove_stale_staging(tmp_path / "run")] == [False]
    assert names(tmp_path) == ["run"]


def test_what_only_looks_like_a_stage_is_not_touched(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".run.new-0a1b2c3d").symlink_to(tmp_path / "elsewhere")
    others = [".run.new-draft", "run.new-0a1b2c3d", ".run.new-0a1b2c3d.txt", ".run.next-0a1b2c3d"]
    for name in others:
        (tmp_path / name).write_text("mine")
    assert remove_stale_staging(tmp_path / "run") == []
    assert list(settle_staging_below(tmp_path)) == []
    assert names(tmp_path) == sorted([*others, ".run.new-0a1b2c3d", "elsewhere"])


def test_without_locks_nothing_is_swept(tmp_path, monkeypatch):
    monkeypatch.setattr("isolux.io.staging._acquire_lock", lambda _: None)
    (tmp_path / ".run.new-0a1b2c3d").mkdir()
    assert remove_stale_staging(tmp_path / "run") == []
    assert names(tmp_path) == [".run.new-0a1b2c3d"]


def test_two_threads_of_one_process_do_not_sweep_each_other(tmp_path):
    first = StagingPath(tmp_path / "run", is_folder=True)
    assert remove_stale_staging(tmp_path / "run") == []
    with staged_directory(tmp_path / "run") as second:
        assert first.path.is_dir()
        assert second.is_dir()
    first.discard()
    assert names(tmp_path) == ["run"]


def test_many_threads_write_into_one_stage(tmp_path):
    """Each file of a stage has a stage of its own for a moment, while others look at them all."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with staged_directory(tmp_path / "run") as stage, ThreadPoolExecutor(16) as pool:
            for _ in pool.map(lambda k: write_text(stage / f"{k}.txt", "x"), range(2000)):
                pass
    finally:
        sys.setswitchinterval(before)
    assert len(names(tmp_path / "run")) == 2000
