"""A damaged file is one error, and nothing that the table engine prints about itself."""

from __future__ import annotations

import os
import subprocess
import sys

import polars as pl

from isolux.io.polars_panics import silence_panics

READ = (
    "import sys\n"
    "from isolux.io import read_table\n"
    "from isolux.core.errors import FileError\n"
    "named = 0\n"
    "for path in sys.argv[1:]:\n"
    "    try:\n"
    "        read_table(path)\n"
    "    except FileError as error:\n"
    "        named += 'or it is damaged' in str(error)\n"
    "print(named)\n"
)


def test_damaged_arrow_and_parquet_print_no_panic(tmp_path):
    frame = pl.DataFrame({"id": ["a", "b"] * 50, "l": [["a"], ["b", "c"]] * 50})
    frame.write_ipc(tmp_path / "whole.arrow")
    frame.write_parquet(tmp_path / "whole.parquet")
    paths = []
    for kind in ("arrow", "parquet"):
        whole = (tmp_path / f"whole.{kind}").read_bytes()
        for at in range(0, len(whole), len(whole) // 60):
            paths.append(tmp_path / f"{at}.{kind}")
            paths[-1].write_bytes(whole[:at] + b"\xff\xff\xff\x7f" + whole[at + 4 :])
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 30  # else nothing was damaged, and silence shows nothing
    assert done.stderr == ""


def test_what_is_printed_after_it_is_seen_again(capfd):
    with silence_panics():
        os.write(2, b"thread 'main' panicked")
    os.write(2, b"after")
    assert capfd.readouterr().err == "after"
