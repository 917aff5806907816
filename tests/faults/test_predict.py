"""A model's run that is killed at any moment, or finds its disk full, ends in the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.faults.test_full_disks import small_disk

WHOLE = os.environ.get("ISOLUX_FAULTS") == "whole"
PICTURES, KILLS = (2_000, 10) if WHOLE else (240, 2)
NET = """
import time

def net():
    def answer(pictures):
        time.sleep(0.004 * len(pictures))
        return [str(int(one.mean())) for one in pictures]
    return answer
"""
MAIN = "from isolux.cli import main; main()"


def painted(folder: Path) -> None:
    for k in range(PICTURES):
        grey = np.full((8, 8, 3), k % 256, np.uint8)
        Image.fromarray(grey).save(folder / f"{k:04}.png", compress_level=1)
    rows = "".join(f"{k:04}.png\n" for k in range(PICTURES))
    (folder / "people.csv").write_text("id\n" + rows)
    (folder / "isolux_faults_net.py").write_text(NET)


def line(out: object, *more: str) -> list[str]:
    return [sys.executable, "-c", MAIN, "predict", "table:people.csv", "--out", str(out),
            "--model", "python:isolux_faults_net:net", "--shard-size", "20", *more]  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


WHERE = pytest.mark.parametrize("where", [(), ("--workers", "2")], ids=["one", "workers"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The pictures, and the run that nothing stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    painted(folder)
    subprocess.run(line("whole"), cwd=folder, check=True, capture_output=True)
    return folder


@WHERE
@pytest.mark.skipif(sys.platform != "linux", reason="kills processes")
def test_killed_at_random_it_ends_in_the_bytes_of_a_run_that_was_not(tmp_path, undisturbed, where):
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    rng, shards, killed = np.random.default_rng(1), tmp_path / "out" / "shards", 0
    kept: dict[str, int] = {}
    for _ in range(KILLS):
        run = subprocess.Popen(line("out", *where), cwd=tmp_path, stdout=subprocess.DEVNULL)
        before, deadline = len(kept), time.monotonic() + 60
        while time.monotonic() < deadline and run.poll() is None:  # until it has begun to work
            if shards.is_dir() and len(list(shards.glob("0*"))) > before:
                break
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.15))
        killed += run.poll() is None
        run.kill()
        run.wait()
        now = {p.name: p.stat().st_ino for p in shards.glob("0*")}
        assert {name: now.get(name) for name in kept} == kept  # none was computed again
        kept = now
    assert killed == KILLS
    assert 0 < len(kept) < PICTURES // 20
    subprocess.run(line("out", *where), cwd=tmp_path, check=True, capture_output=True)
    now = {p.name: p.stat().st_ino for p in shards.glob("0*")}
    assert {name: now[name] for name in kept} == kept
    assert files(tmp_path / "out") == files(tmp_path / "whole")


@WHERE
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs, as Linux does")
def test_a_full_disk_is_said_and_what_was_committed_is_whole(tmp_path, where):
    if os.geteuid() != 0:
        pytest.skip("ONLY ROOT MAY MOUNT A SMALL DISK: what a full one leaves was NOT checked")
    painted(tmp_path)
    with small_disk(tmp_path / "small", 64):
        run = subprocess.run(
            line("small/out", *where), cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert run.returncode == 2, run.stderr
        assert "the disk is full" in run.stderr
        names = [p.name for p in (tmp_path / "small" / "out").rglob("*") if p.is_file()]
        assert [name for name in names if name.startswith(".")] == []
        assert "predictions.parquet" not in names
        assert 0 < sum(name.startswith("0") for name in names) < PICTURES // 20
