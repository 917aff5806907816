"""A run's scores packed in the background: the same bytes as when they are written later."""

from __future__ import annotations

import threading

import polars as pl
import pytest

from isolux.core.containers import Run
from isolux.core.errors import IsoluxError
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.io import background_packing, run_directory
from isolux.io.background_packing import begin_packing, take_packed_bytes


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch):
    monkeypatch.setattr(background_packing, "_MIN_TABLE_BYTES", 1)
    monkeypatch.setattr(background_packing, "count_cores", lambda: 2)
    yield
    background_packing._packing.clear()


def _scores() -> pl.DataFrame:
    n = 5_000
    return SCORES.conform(
        pl.DataFrame(
            {
                "model": "net",
                "task": "t",
                "metric": "accuracy",
                "unit_kind": "instance",
                "unit_id": [f"p{i}" for i in range(n)],
                "value": [float(i % 3 == 0) for i in range(n)],
            }
        )
    )


def _run(scores: pl.DataFrame) -> Run:
    tables = (ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    return Run({"model": "net"}, scores, *(table.empty() for table in tables))


def _files(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_run_whose_scores_were_packed_ahead_has_the_same_bytes(tmp_path):
    run = _run(_scores())
    plain = _files(run_directory.save_run(run, tmp_path / "plain"))
    begin_packing(run.scores, SCORES)
    packing = background_packing._packing[0][1]
    assert _files(run_directory.save_run(run, tmp_path / "packed")) == plain
    assert packing.result() == plain["scores.parquet"]
    assert not background_packing._packing  # nothing of it is held


def test_another_runs_scores_are_not_taken_for_it(tmp_path):
    run, other = _run(_scores()), _run(_scores().head(10))
    begin_packing(run.scores, SCORES)
    saved = run_directory.load_run(run_directory.save_run(other, tmp_path / "other"))
    assert saved.scores.height == 10


def test_what_is_wrong_with_a_table_is_said_where_the_run_is_saved(tmp_path):
    run = _run(_scores().drop("metric"))
    begin_packing(run.scores, SCORES)
    with pytest.raises(IsoluxError, match="metric"):
        run_directory.save_run(run, tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("why", ["small", "large", "one core", "few addresses", "no thread"])
def test_where_it_is_not_worth_it_or_cannot_be_nothing_is_begun(monkeypatch, why):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    match why:
        case "small":
            monkeypatch.setattr(background_packing, "_MIN_TABLE_BYTES", 1 << 40)
        case "large":
            monkeypatch.setattr(background_packing, "_MAX_TABLE_BYTES", 2)
        case "one core":
            monkeypatch.setattr(background_packing, "count_cores", lambda: 1)
        case "few addresses":
            monkeypatch.setattr(
                background_packing, "read_address_space_limit_bytes", lambda: 1 << 30
            )
        case "no thread":
            monkeypatch.setattr(threading.Thread, "start", refuse)
    scores = _scores()
    begin_packing(scores, SCORES)
    assert take_packed_bytes(scores) is None
