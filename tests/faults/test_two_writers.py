"""Two commands that write one directory at once: one whole result stands, and nothing else."""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from isolux.io import run_directory
from tests.faults._kills import Server, commands, whole

TIMES = 50 if os.environ.get("ISOLUX_FAULTS") == "whole" else 2


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process that has imported polars")
def test_two_writers_leave_one_whole_run(tmp_path, server, prepared):
    other = Server()
    servers = [server, other]
    seen = []
    try:
        shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
        (tmp_path / "out").mkdir()
        audit = commands(tmp_path)[0]
        with ThreadPoolExecutor(2) as pool:
            for n in range(TIMES):
                argv = audit.argv if n % 2 else audit.argv[:-1]  # without --overwrite, too
                done = list(
                    pool.map(
                        lambda at, argv=argv: servers[at].run(*argv, "--model-name", f"m{at}"),
                        range(2),
                    )
                )
                codes = [one["code"] for one in done]
                assert codes == [0, 0] if n % 2 else sorted(codes) == [0, 2], done
                assert [p.name for p in (tmp_path / "out").iterdir()] == ["run"], done
                assert whole(tmp_path / "out/run", audit)
                run = run_directory.load_run(tmp_path / "out/run")
                (model,) = run.scores["model"].unique()
                assert run.record["model"] == model  # tables of one writer, not of both
                page = (tmp_path / "out/run/report.html").read_text()
                assert (f"m{1 - int(model[1])}" not in page, model in page) == (True, True)
                seen.append(model)
                if n % 2:
                    (tmp_path / "out/run").rename(tmp_path / f"done-{n}")
    finally:
        other.close()
