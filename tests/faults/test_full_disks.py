"""A disk that fills up ends a command by name, and what was there before is untouched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import isolux
from isolux.core.errors import OutputError
from tests.cards._cards import run_of_people
from tests.faults._kills import commands, whole

WHOLE = os.environ.get("ISOLUX_FAULTS") == "whole"
KIB = [4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 200, 256, 320, 400, 512, 4096]
SIZES = KIB if WHOLE else [24, 64, 4096]


@contextmanager
def small_disk(at: Path, kib: int) -> Iterator[None]:
    """Mount a disk of so many KiB that lies in memory."""
    at.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "isolux-test", str(at)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(
            f"NO SMALL DISK CAN BE MOUNTED HERE ({made.stderr.strip()}), so that a full one "
            "leaves nothing half-written was NOT checked; run as root"
        )
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs, as Linux does")
def test_a_full_disk_leaves_nothing_half_written(tmp_path, server, prepared):
    if os.geteuid() != 0:
        pytest.skip("ONLY ROOT MAY MOUNT A SMALL DISK: what a full one leaves was NOT checked")
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    codes = []
    for kib in SIZES:
        with small_disk(tmp_path / "out", kib):
            for command in commands(tmp_path):
                done = server.run(*command.argv)
                target = tmp_path / command.target
                where = f"{command.name} on {kib} KiB: {done}"
                codes.append(done["code"])
                if done["code"] == 0:
                    assert whole(target, command), where
                    continue
                assert done["code"] == 2, where
                assert "the disk is full" in done["err"], where
                assert not target.exists(), where
                assert [p.name for p in target.parent.iterdir() if p.name[0] == "."] == []
    assert {0, 2} == set(codes)  # some fit and some do not, else nothing was tried


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs, as Linux does")
def test_an_old_run_survives_a_full_disk(tmp_path, server, prepared):
    if os.geteuid() != 0:
        pytest.skip("ONLY ROOT MAY MOUNT A SMALL DISK: what a full one leaves was NOT checked")
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    audit = commands(tmp_path)[0]
    with small_disk(tmp_path / "out", 4096):
        assert server.run(*audit.argv)["code"] == 0
        before = (tmp_path / "out/run/audit.json").read_bytes()
        used = sum(p.stat().st_size for p in (tmp_path / "out").rglob("*") if p.is_file())
        (tmp_path / "out" / "filler").write_bytes(bytes((4096 << 10) - used - (96 << 10)))
        done = server.run(*audit.argv)
        assert (done["code"], "the disk is full" in done["err"]) == (2, True), done
        assert (tmp_path / "out/run/audit.json").read_bytes() == before
        assert whole(tmp_path / "out/run", audit)
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["filler", "run"]


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs, as Linux does")
def test_a_card_is_written_with_its_page_or_not_at_all(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("ONLY ROOT MAY MOUNT A SMALL DISK: what a full one leaves was NOT checked")
    card = isolux.card(run_of_people(), kind="model-card")
    room = len(card.markdown().encode()) // 1024 + 8  # for the text, and not for the page
    with small_disk(tmp_path / "out", room):
        with pytest.raises(OutputError, match="the disk is full"):
            card.write(tmp_path / "out" / "cards")
        assert list((tmp_path / "out").iterdir()) == []
