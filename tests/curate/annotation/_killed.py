"""Run one step of annotation again and again, each time killed (SIGKILL) at one of its commits.

    python _killed.py pull|push PROJECT STAGE URL TOKEN KILLS

Children are forked from a process that has no threads yet. Child k dies at its first, second or
third commit of what it wrote: just before it, or just after. The last line is how many died, and
how many of them had written something.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import sqlalchemy as sa

from isolux_curate.annotation import exchange
from isolux_curate.annotation.exchange import import_and_apply_server_answers, plan_and_upload_tasks
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.database import _WRITE_OPTION
from isolux_curate.project.folder import open_project

_BATCH = 4


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _step(asked: list[str], at: int, *, after: bool) -> None:
    verb, folder, stage, url, token = asked
    exchange._READ_TOGETHER = exchange._UPLOAD_BATCH_SIZE = _BATCH
    writes = [0]
    real = sa.engine.default.DefaultDialect.do_commit
    project = open_project(folder, curator="kill")

    @sa.event.listens_for(project.engine, "commit")
    def _(connection: sa.Connection) -> None:
        if connection.get_execution_options().get(_WRITE_OPTION):
            writes[0] += 1
            if writes[0] == at and not after:
                _die()

    def commit(self: Any, connection: Any) -> None:
        real(self, connection)
        if writes[0] == at:
            _die()

    sa.engine.default.DefaultDialect.do_commit = commit
    (import_and_apply_server_answers if verb == "pull" else plan_and_upload_tasks)(
        project, stage, LabelStudioServer(url, token, timeout_s=120)
    )


def main() -> None:
    """Kill children until one ends, or so many have died."""
    asked, kills = sys.argv[1:6], int(sys.argv[6])
    died = wrote = 0
    for k in range(kills):
        at, after = 1 + k // 2 % 3, k % 2 == 1
        child = os.fork()
        if not child:
            _step(asked, at, after=after)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            break
        died, wrote = died + 1, wrote + (after or at > 1)
    print(died, wrote)


if __name__ == "__main__":
    main()
