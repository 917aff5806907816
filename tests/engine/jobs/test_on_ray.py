"""Shards on Ray give the same bytes as here, also where a node is killed in the middle."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import FileError, IsoluxError, SpecError
from isolux.engine.jobs import Job, JobLimits, JobStore, run_jobs
from isolux.engine.jobs.on_ray import RayExecutor
from isolux.people.shards.row_counts import COUNT_SHARD_CALL
from tests.engine.jobs._ray_nodes import Nodes, two_nodes
from tests.people.shards._cuts import cut, people

HAS_RAY = importlib.util.find_spec("ray") is not None
with_ray = pytest.mark.skipif(
    not HAS_RAY,
    reason="RAY IS NOT INSTALLED, so --engine ray is not tested: "
    "pip install --require-hashes -r requirements/ray.txt",
)
TABLES = ("group_metrics", "disparities", "findings")
SHARDS = 24


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_without_ray_it_is_said_what_to_install() -> None:
    with pytest.raises(SpecError, match="--engine ray needs ray, which is not installed") as caught:
        RayExecutor(None)
    assert "pip install 'isolux[ray]'" in str(caught.value)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    # Ray's sockets have names of up to 107 characters, and pytest's folders are long.
    with (
        tempfile.TemporaryDirectory(prefix="ix", dir="/tmp") as folder,
        two_nodes(Path(folder)) as both,
    ):
        yield both


@with_ray
def test_a_lost_node_is_survived_with_the_same_bytes(nodes: Nodes, tmp_path: Path) -> None:
    frame = people(240_000)
    folder = cut(frame, tmp_path / "people", [10_000] * SHARDS)
    frame.write_parquet(tmp_path / "whole.parquet")
    asked = [
        "--target", "truth", "--prediction-column", "answer", "--by", "race", "--metric",
        "accuracy", "--cluster", "subject", "--replicates", "200",
    ]  # fmt: skip
    sums = tmp_path / "sums"
    on_ray = nodes.run(
        "-m", "isolux", "audit", f"table:{folder}", *asked, "--out", str(tmp_path / "ray"),
        "--engine", "ray", "--option", f"address={nodes.address}", "--option", f"sums={sums}",
    )  # fmt: skip
    while len(list(sums.glob("*.json"))) < 5 and on_ray.poll() is None:
        time.sleep(0.02)
    before = len(list(sums.glob("*.json")))
    assert nodes.kill_second() > 1
    said, _ = on_ray.communicate(timeout=300)
    assert on_ray.returncode == 0, said
    assert before < SHARDS, "the node was killed after the work"
    for name, data in (("here", folder), ("whole", tmp_path / "whole.parquet")):
        out = ["--out", str(tmp_path / name)]
        subprocess.run(
            [sys.executable, "-m", "isolux", "audit", f"table:{data}", *asked, *out],
            env=nodes.env, check=True, capture_output=True,
        )  # fmt: skip
    for table in TABLES:
        found = {
            (tmp_path / run / f"{table}.parquet").read_bytes() for run in ("ray", "here", "whole")
        }
        assert len(found) == 1, table


@with_ray
def test_errors_and_late_shards_end_the_work_by_name(tmp_path: Path) -> None:
    pl.DataFrame({"race": ["A"]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no more")
    os.mkfifo(tmp_path / "c.parquet")  # whoever opens it waits

    def piece(name: str) -> Job:
        path = str(tmp_path / f"{name}.parquet")
        return Job(name * 64, path, COUNT_SHARD_CALL, {"path": path, "columns": ["race"]})

    store = JobStore(tmp_path / "sums")
    assert run_jobs([piece("a")], store, engine="ray") == 1
    assert store.read("a" * 64, "kinds")["race"].to_list() == ["A"]
    with pytest.raises(FileError, match="a shard is not a Parquet file"):
        run_jobs([piece("a"), piece("b")], store, engine="ray")
    with pytest.raises(IsoluxError, match="a shard was not computed") as caught:
        run_jobs([piece("c")], store, engine="ray", limits=JobLimits(seconds=1.0, retries=1))
    assert "in one of 2 tries" in str(caught.value)


@with_ray
def test_no_cluster_at_the_address_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def refused(**_: object) -> None:
        raise ConnectionError("ray client connection timeout")

    monkeypatch.setattr(ray, "init", refused)
    missing = Job("d" * 64, "d", COUNT_SHARD_CALL, {"path": "d", "columns": []})
    with pytest.raises(SpecError, match="no Ray cluster answers") as caught:
        run_jobs([missing], JobStore(tmp_path), engine="ray", address="10.0.0.9:6379")
    assert "address 10.0.0.9:6379" in str(caught.value)
