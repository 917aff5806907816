from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import OutputError
from isolux.io import staged_directory, write_parquet, write_text
from isolux.io.atomic import explain_os_errors, refuse_existing, write_texts


def listing(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def make_run(path: Path, text: str) -> None:
    with staged_directory(path, overwrite=True) as stage:
        write_text(stage / "audit.json", text)


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    assert write_text(path, "é") == path
    assert path.read_bytes() == "é".encode()
    assert listing(tmp_path) == ["a.txt"]


def test_a_frame_comes_back_as_it_was(tmp_path):
    frame = pl.DataFrame({"a": [1, None], "b": [["x"], []]})
    assert pl.read_parquet(write_parquet(tmp_path / "a.parquet", frame)).equals(frame)
    assert listing(tmp_path) == ["a.parquet"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_text(tmp_path / "a.txt", "old")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"(?s)the disk is full.*free some space"):
        write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert listing(tmp_path) == ["a.txt"]


def test_polars_words_for_a_full_disk_are_understood(tmp_path):
    # /dev/full is a device that is always full; polars reports it as a ComputeError.
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with (
        pytest.raises(OutputError, match="the disk is full"),
        staged_directory(tmp_path / "run"),
    ):
        pl.DataFrame({"a": range(1000)}).write_parquet("/dev/full")
    assert listing(tmp_path) == []


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(OutputError, match="the folder to write to does not exist"):
        write_text(tmp_path / "none" / "a.txt", "x")
    with pytest.raises(OutputError, match="the folder to write to does not exist"):
        write_parquet(tmp_path / "none" / "a.parquet", pl.DataFrame({"a": [1]}))
    with pytest.raises(OutputError) as caught:
        write_text(tmp_path / "none" / "deeper" / "a.txt", "x")
    assert f"found: no folder {tmp_path / 'none'}\n" in str(caught.value)
    assert ".new-" not in str(caught.value)


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path):
    target = tmp_path / "a.txt"
    hidden = str(tmp_path / ".a.txt.new-1-2-3")
    with (
        pytest.raises(OutputError, match="may not be written to") as caught,
        explain_os_errors(target),
    ):
        raise PermissionError(errno.EACCES, "Permission denied", hidden)
    assert f"found: the folder {tmp_path}\n" in str(caught.value)
    assert ".new-" not in str(caught.value)


def test_a_directory_appears_whole_when_the_block_ends(tmp_path):
    target = tmp_path / "deep" / "run"
    with staged_directory(target) as stage:
        write_text(stage / "audit.json", "{}")
        assert not target.exists()
    assert listing(tmp_path) == ["deep", "deep/run", "deep/run/audit.json"]


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_nothing_remains_when_the_work_stops(tmp_path, stop):
    def work() -> None:
        with staged_directory(tmp_path / "deep" / "run") as stage:
            write_text(stage / "audit.json", "{}")
            raise stop

    with pytest.raises(stop):
        work()
    assert listing(tmp_path) == []


def test_parents_that_others_use_meanwhile_stay(tmp_path):
    def work() -> None:
        with staged_directory(tmp_path / "runs" / "a"):
            (tmp_path / "runs" / "other").mkdir()
            raise ValueError

    with pytest.raises(ValueError):
        work()
    assert listing(tmp_path) == ["runs", "runs/other"]


def test_ctrl_c_from_a_terminal_leaves_nothing(tmp_path):
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job has none
        "from isolux.io import staged_directory, write_text\n"
        "with staged_directory(sys.argv[1]) as stage:\n"
        "    write_text(stage / 'audit.json', '{}')\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert listing(tmp_path) == []


def test_an_existing_directory_is_refused_before_any_work(tmp_path):
    make_run(tmp_path / "run", "old")
    with (
        pytest.raises(OutputError, match=r"(?s)this directory exists already.*--overwrite"),
        staged_directory(tmp_path / "run"),
    ):
        pytest.fail("the block must not run")
    assert listing(tmp_path) == ["run", "run/audit.json"]


def test_overwriting_replaces_a_run_and_leaves_no_old_file(tmp_path):
    make_run(tmp_path / "run", "old")
    (tmp_path / "run" / "gallery.html").write_text("of the old run")
    (tmp_path / "run" / ".DS_Store").write_text("of a file manager")
    make_run(tmp_path / "run", "new")
    assert listing(tmp_path) == ["run", "run/audit.json"]
    assert (tmp_path / "run" / "audit.json").read_text() == "new"


@pytest.mark.parametrize("name", ["report.html", "Report.HTML", "numbers.csv"])
def test_a_new_directory_with_the_name_of_a_file_is_refused(tmp_path, name):
    said = r"(?s)file's name, and a directory is written.*such as (report|Report|numbers)\b"
    with pytest.raises(OutputError, match=said):
        refuse_existing(tmp_path / name, overwrite=False)
    refuse_existing(tmp_path / "run.v2", overwrite=False)


def test_an_empty_directory_may_be_overwritten(tmp_path):
    (tmp_path / "run").mkdir()
    make_run(tmp_path / "run", "new")
    assert (tmp_path / "run" / "audit.json").read_text() == "new"


def test_a_directory_that_is_no_run_is_never_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(OutputError, match=r"(?s)not an isolux run, so it is left unchanged"):
        make_run(tmp_path / "thesis", "new")
    assert listing(tmp_path) == ["thesis", "thesis/chapter.txt"]


def test_a_run_with_files_of_others_is_never_overwritten(tmp_path):
    make_run(tmp_path / "run", "old")
    (tmp_path / "run" / "evidence").mkdir()
    for name in (
        "notes.md",
        "a.csv",
        "evidence/own.csv",
        "figures.html",
        "b.csv",
        "c.csv",
        "d.csv",
    ):
        (tmp_path / "run" / name).write_text("years of work")
    before = listing(tmp_path)
    told = r"(?s)a\.csv, b\.csv, c\.csv, d\.csv, evidence/own\.csv and 2 more.*move them away first"
    with pytest.raises(OutputError, match=told):
        make_run(tmp_path / "run", "new")
    assert listing(tmp_path) == before
    with staged_directory(tmp_path / "run", overwrite=True, keeps_other_files=True) as stage:
        write_text(stage / "audit.json", "new")  # whoever says so has brought them over
    assert listing(tmp_path) == ["run", "run/audit.json"]


def test_a_link_in_a_run_is_not_ours(tmp_path):
    make_run(tmp_path / "run", "old")
    (tmp_path / "run" / "report.html").symlink_to(tmp_path / "elsewhere.html")
    with pytest.raises(OutputError, match=r"(?s)not written with it.*report\.html"):
        make_run(tmp_path / "run", "new")


def test_files_of_others_that_appear_during_the_work_are_kept(tmp_path):
    make_run(tmp_path / "run", "old")

    def work() -> None:
        with staged_directory(tmp_path / "run", overwrite=True) as stage:
            write_text(stage / "audit.json", "new")
            (tmp_path / "run" / "chapter.txt").write_text("years of work")

    with pytest.raises(OutputError, match=r"chapter\.txt"):
        work()
    assert listing(tmp_path) == ["run", "run/audit.json", "run/chapter.txt"]
    assert (tmp_path / "run" / "audit.json").read_text() == "old"


def test_files_that_appear_during_the_work_are_not_overwritten(tmp_path):
    def work() -> None:
        with staged_directory(tmp_path / "run", overwrite=True) as stage:
            write_text(stage / "audit.json", "new")
            (tmp_path / "run").mkdir()
            (tmp_path / "run" / "chapter.txt").write_text("years of work")

    with pytest.raises(OutputError, match="left unchanged"):
        work()
    assert listing(tmp_path) == ["run", "run/chapter.txt"]


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "run").write_text("x")
    with pytest.raises(OutputError, match="this path is a file"):
        make_run(tmp_path / "run", "new")
    with pytest.raises(OutputError, match="a part of this path is a file"):
        make_run(tmp_path / "run" / "inner" / "most", "new")
    assert listing(tmp_path) == ["run"]


def test_the_old_run_stays_when_the_new_one_fails(tmp_path):
    make_run(tmp_path / "run", "old")

    def work() -> None:
        with staged_directory(tmp_path / "run", overwrite=True) as stage:
            write_text(stage / "audit.json", "new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert (tmp_path / "run" / "audit.json").read_text() == "old"
    assert listing(tmp_path) == ["run", "run/audit.json"]


def test_the_old_run_comes_back_when_the_last_rename_fails(tmp_path, monkeypatch):
    make_run(tmp_path / "run", "old")
    rename = Path.rename

    def failing(self, target):
        if ".new-" in self.name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OutputError, match="the disk reports an error"):
        make_run(tmp_path / "run", "new")
    assert (tmp_path / "run" / "audit.json").read_text() == "old"
    assert listing(tmp_path) == ["run", "run/audit.json"]


def test_a_link_to_a_run_keeps_pointing_to_it(tmp_path):
    make_run(tmp_path / "run", "old")
    (tmp_path / "latest").symlink_to(tmp_path / "run")
    make_run(tmp_path / "latest", "new")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "run" / "audit.json").read_text() == "new"


def test_an_error_about_a_file_elsewhere_is_not_called_a_writing_error(tmp_path):
    def work() -> None:
        with staged_directory(tmp_path / "out" / "run"):
            (tmp_path / "template.html").read_text()

    with pytest.raises(FileNotFoundError):
        work()


OLD = {"a.md": "old text", "a.html": "old page"}
NEW = {"a.md": "new text", "a.html": "new page", "a.json": "{}"}


def texts_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_several_texts_are_written_and_replaced(tmp_path):
    folder = tmp_path / "x" / "cards"
    assert write_texts(folder, OLD) == [folder / "a.md", folder / "a.html"]
    write_texts(folder, NEW)
    assert texts_in(folder) == NEW


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_several_texts_that_cannot_be_written_leave_what_was_there(tmp_path, monkeypatch, stop, at):
    write_texts(tmp_path / "old", OLD)
    real, n_calls = Path.open, [0]

    def fails(self, *given, **named):
        n_calls[0] += ".new-" in self.name
        if n_calls[0] == at + 1:
            raise stop
        return real(self, *given, **named)

    for name in ("old", "fresh/cards"):
        n_calls[0] = 0
        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", fails)
            with pytest.raises((OutputError, KeyboardInterrupt)):
                write_texts(tmp_path / name, NEW)
    assert not (tmp_path / "fresh").exists()
    assert texts_in(tmp_path / "old") == OLD


def test_a_real_limit_of_the_system_is_said_in_plain_words(tmp_path):
    # The system refuses to let any file of this process grow beyond 64 kB.
    program = (
        "import resource, sys\n"
        "import polars as pl\n"
        "from isolux.core.errors import OutputError\n"
        "from isolux.io import staged_directory, write_parquet, write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "for write in (lambda p: write_text(p / 'a.txt', 'x' * 200_000),\n"
        "              lambda p: write_parquet(p / 'a.parquet',\n"
        "                  pl.select(a=pl.int_range(100_000).hash()))):\n"
        "    try:\n"
        "        with staged_directory(sys.argv[1]) as stage:\n"
        "            write(stage)\n"
        "    except OutputError as error:\n"
        "        print(error.problem)\n"
    )
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=True,
    )
    said = "a file would be larger than this system allows"
    assert done.stdout.splitlines() == [said, said]
    assert listing(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_said(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="may not be written to"):
            make_run(tmp_path / "run", "x")
    finally:
        tmp_path.chmod(0o700)


def test_a_read_only_disk_is_said(tmp_path, monkeypatch):
    def read_only(self, *_args, **_kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(OutputError, match=r"(?s)the disk is read-only.*another folder"):
        make_run(tmp_path / "run", "x")
