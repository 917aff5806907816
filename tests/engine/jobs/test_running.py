"""Pieces are computed once, by whom does not matter, and a lost or late worker is replaced."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from isolux.core.errors import FileError, IsoluxError, OutputError
from isolux.engine.jobs import Job, JobLimits, JobStore, processes, run_jobs
from isolux.people.shards.row_counts import COUNT_SHARD_CALL

FRAME = pl.DataFrame({"race": ["A", "B", "A"]})


def _piece(path: Path, key: str) -> Job:
    return Job(key * 64, str(path), COUNT_SHARD_CALL, {"path": str(path), "columns": ["race"]})


def _shards(folder: Path, n: int) -> list[Job]:
    pieces = []
    for k in range(n):
        FRAME.write_parquet(folder / f"{k}.parquet")
        pieces.append(_piece(folder / f"{k}.parquet", "abcdef"[k]))
    return pieces


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_missing_is_computed_and_what_is_there_is_not(tmp_path: Path, workers: int) -> None:
    pieces = _shards(tmp_path, 3)
    store = JobStore(tmp_path / "sums")
    assert run_jobs(pieces[:1], store, workers=workers) == 1
    told: list[tuple[int, int]] = []
    done = run_jobs(pieces, store, workers=workers, report=lambda *said: told.append(said))
    assert done == 2
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert store.read(pieces[2].key, "kinds")["isolux:times"].to_list() == [2, 1]
    assert run_jobs(pieces, store) == 0


def test_files_are_the_same_whoever_computed_them(tmp_path: Path) -> None:
    pieces = _shards(tmp_path, 2)
    for name, workers in (("here", 0), ("there", 2)):
        run_jobs(pieces, JobStore(tmp_path / name), workers=workers)
    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("here", "there")
    )
    assert here == there


def test_a_piece_without_its_last_file_is_not_there(tmp_path: Path) -> None:
    pieces = _shards(tmp_path, 1)
    store = JobStore(tmp_path / "sums")
    run_jobs(pieces, store)
    (mark,) = (tmp_path / "sums").glob("a*.json")
    said = mark.read_text()
    mark.unlink()
    assert not store.has_all_tables(pieces[0].key)
    mark.write_text(said)
    store.table_path(pieces[0].key, "kinds").write_bytes(b"cut off")
    assert not store.has_all_tables(pieces[0].key)
    assert run_jobs(pieces, store) == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_of_isolux_ends_the_work_and_keeps_its_kind(tmp_path: Path, workers: int) -> None:
    pieces = _shards(tmp_path, 2)
    (tmp_path / "1.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(FileError, match="a shard is not a Parquet file") as caught:
        run_jobs(pieces, JobStore(tmp_path / "sums"), workers=workers)
    assert caught.value.where == str(tmp_path / "1.parquet")


def _watched(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """Keep the processes that are started."""
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def kept(*args: Any, **more: Any) -> subprocess.Popen[str]:
        started.append(popen(*args, **more))
        return started[-1]

    monkeypatch.setattr(processes.subprocess, "Popen", kept)
    return started


def test_a_killed_worker_is_replaced_and_its_shard_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = _shards(tmp_path, 2)
    path = tmp_path / "1.parquet"
    data = path.read_bytes()
    path.unlink()
    os.mkfifo(path)  # whoever opens it waits until it is killed
    started = _watched(monkeypatch)

    store = JobStore(tmp_path / "sums")

    def kill() -> None:
        while not store.has_all_tables(pieces[0].key):
            time.sleep(0.01)
        time.sleep(0.5)  # the worker waits for someone to write
        path.unlink()
        path.write_bytes(data)
        started[0].kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert run_jobs(pieces, store, workers=1) == 2
    killer.join(timeout=10)
    assert len(started) == 2
    assert store.read(pieces[1].key, "kinds").height == 2


def test_a_worker_that_ends_between_two_pieces_is_replaced_and_its_pipes_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, answer = _watched(monkeypatch), processes._WorkerThread._send_job

    def answer_and_end(slot: Any, piece: Job, seconds: float | None) -> str | None:
        said = answer(slot, piece, seconds)
        started[-1].kill()
        started[-1].wait()
        return said

    monkeypatch.setattr(processes._WorkerThread, "_send_job", answer_and_end)
    assert run_jobs(_shards(tmp_path, 2), JobStore(tmp_path / "sums"), workers=1) == 2
    assert len(started) == 2
    for one in started:
        assert one.stdin is not None
        assert one.stdout is not None
        assert (one.stdin.closed, one.stdout.closed) == (True, True)


def test_a_late_worker_is_stopped_and_named_after_its_last_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "0.parquet")
    started = _watched(monkeypatch)
    begun = time.monotonic()
    with pytest.raises(IsoluxError, match="a shard was not computed") as caught:
        run_jobs(
            [_piece(tmp_path / "0.parquet", "a")], JobStore(tmp_path / "sums"), workers=1,
            limits=JobLimits(seconds=1.0, retries=1),
        )  # fmt: skip
    assert "in one of 2 tries" in str(caught.value)
    assert "no end within 1 s" in str(caught.value)
    assert str(tmp_path / "0.parquet") in str(caught.value)
    assert time.monotonic() - begun >= 2.0
    assert len(started) == 2
    assert all(child.poll() is not None for child in started)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match="contains something else"):
        JobStore(tmp_path)
    with pytest.raises(OutputError, match="the folder of sums is a file"):
        JobStore(tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
