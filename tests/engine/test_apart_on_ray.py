"""A model on Ray gives the same bytes as here, also where a node is killed in the middle."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine._painted import paint
from tests.engine.jobs._ray_nodes import Nodes, two_nodes

with_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="RAY IS NOT INSTALLED, so a model with --engine ray is not tested: "
    "pip install --require-hashes -r requirements/ray.txt",
)
PICTURES, SIZE = 240, 8
NETS = """
import os, time
from pathlib import Path

def net(*, seconds: float = 0.0):
    Path(f"opened-{os.getpid()}-{time.time_ns()}").touch()
    def answer(pictures):
        time.sleep(seconds)
        return [str(int(one.mean())) for one in pictures]
    return answer
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    # Ray's sockets have names of up to 107 characters, and pytest's folders are long.
    with (
        tempfile.TemporaryDirectory(prefix="ix", dir="/tmp") as folder,
        two_nodes(Path(folder)) as both,
    ):
        yield both


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give a command without where it writes: pictures, one of them broken, and a slow model."""
    monkeypatch.chdir(tmp_path)
    paint(tmp_path / "in", PICTURES)
    (tmp_path / "in" / "017.png").write_text("no picture")
    names = [f"{k:03}.png" for k in range(PICTURES)]
    (tmp_path / "people.csv").write_text("\n".join(["id", *names]) + "\n")
    (tmp_path / "isolux_ray_nets.py").write_text(NETS)
    return ["predict", "table:people.csv", "--images", "in", "--shard-size", str(SIZE),
            "--model", "python:isolux_ray_nets:net", "--model-option", "settings=seconds=0.3",
            "--model-option", "version=1"]  # fmt: skip


def here(nodes: Nodes, asked: list[str], out: str) -> str:
    """Run the command in one process, and give what it prints."""
    line = [sys.executable, "-m", "isolux", *asked, "--out", out]
    return subprocess.run(line, env=nodes.env, check=True, capture_output=True, text=True).stdout


def everything(folder: Path) -> dict[Path, bytes]:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def committed(out: Path) -> list[Path]:
    return sorted((out / "shards").glob("0*")) if out.is_dir() else []


def wait_for(out: Path, shards: int, run: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while len(committed(out)) < shards and run.poll() is None and time.monotonic() < until:
        time.sleep(0.02)


@with_ray
def test_ctrl_c_keeps_shards_and_a_lost_node_is_survived_with_the_same_bytes(
    nodes: Nodes, asked: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "ray"
    line = ["-m", "isolux", *asked, "--engine", "ray", "--address", nodes.address]
    run = nodes.run(*line, "--out", "ray")
    wait_for(out, 3, run)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert "finishing the shard at hand" in said
    assert f"go on: isolux predict --resume ray --engine ray --address {nodes.address}" in said
    kept = {path.name: path.stat().st_ino for path in committed(out)}
    assert 3 <= len(kept) < PICTURES // SIZE
    opened = len(list(tmp_path.glob("opened-*")))

    run = nodes.run(*line, "--out", "ray")
    wait_for(out, len(kept) + 4, run)
    before = len(committed(out))
    assert nodes.kill_second() > 1
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 0, said
    assert before < PICTURES // SIZE, "the node was killed after the work"
    assert f"{SIZE * len(kept)} answered before" in said
    assert {p.name: p.stat().st_ino for p in committed(out) if p.name in kept} == kept
    # The command itself, and a worker a node; one more where a worker came in place of the lost.
    assert len(list(tmp_path.glob("opened-*"))) - opened <= 4

    here(nodes, asked, "here")
    assert everything(out) == everything(tmp_path / "here")
    told = here(nodes, asked, "ray")  # either engine goes on with what the other did
    assert f"{PICTURES} pictures: 0 looked at now" in told


@with_ray
def test_a_gpu_that_no_node_has_is_said(nodes: Nodes, asked: list[str]) -> None:
    run = nodes.run("-m", "isolux", *asked, "--out", "gpu", "--engine", "ray", "--gpus", "1",
                    "--address", nodes.address)  # fmt: skip
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 2, said
    assert "no node of the cluster has room for a worker" in said
    assert "1 cores and 1 GPUs" in " ".join(said.split())
