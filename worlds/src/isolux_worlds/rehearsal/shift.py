"""One shift of the simulated annotators: those who may answer the open tasks of a stage do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.vocabulary.errors import SpecError
from isolux_curate.annotation.server import Server
from isolux_curate.project.folder import Project, open_project
from isolux_curate.project.reading import read_table
from isolux_worlds.rehearsal.answering import CREW, Annotator
from isolux_worlds.rehearsal.desks import ServerDesk, SheetDesk, accounts
from isolux_worlds.rehearsal.sight import read_people, tasks_of
from isolux_worlds.rehearsal.working import work

__all__ = ["at_work", "shift"]

_GRADUATED = "graduated"  # as `isolux curate show raters` says it
_LOG = "slips.csv"


def shift(
    project: str | Path,
    inbox: str | Path,
    stage: str,
    *,
    out: str | Path | None = None,
    server: str | None = None,
    training: bool = False,
    seed: int = 0,
) -> tuple[int, int]:
    """Answer what is open, on a sheet or at a server.

    Parameters
    ----------
    project, inbox : str or Path
    stage : str
    out : str or Path, optional
        The sheet, or
    server : str, optional
        a Label Studio, at which everyone signs up; its token is in LABEL_STUDIO_TOKEN.
    training : bool
        The golden tasks, by everyone.
    seed : int

    Returns
    -------
    int, int
        Answers, and those with a slip; each is noted in ``truth/slips.csv`` of the inbox.
    """
    if (out is None) == (server is None):
        raise SpecError(
            "it is not said where answers go",
            expected="--out FILE or --server URL",
            found="neither" if out is None else "both",
        )
    opened = open_project(project)
    asked = tasks_of(opened, stage, read_people(inbox), training=training)
    known = {} if server is None else accounts(server, [one.name for one in CREW])
    crew = (
        CREW if training else at_work(opened, stage, {n: a.annotator_id for n, a in known.items()})
    )
    if server is not None:
        told = work(
            asked, stage, crew, ServerDesk(Server.from_environment(server), known), seed=seed
        )
    else:
        sheet = SheetDesk()
        told = work(asked, stage, crew, sheet, seed=seed)
        sheet.save(str(out))
    _note(Path(inbox).expanduser() / "truth" / _LOG, told)
    return told.height, int((told["slips"] != "").sum())


def at_work(
    project: Project, stage: str, names: dict[str, str] | None = None
) -> Sequence[Annotator]:
    """List who may annotate: who graduated; all but the careless, where there is no training."""
    passed = read_table(project, "passes").filter(stage=stage, status=_GRADUATED)
    golden = read_table(project, "tasks").filter(stage=stage, golden=True)
    if golden.is_empty():
        return CREW[:-1]
    spelt = names or {one.name: one.name for one in CREW}
    return [one for one in CREW if spelt[one.name] in set(passed["annotator_id"])]


def _note(path: Path, told: pl.DataFrame) -> None:
    held = pl.read_csv(path, schema=told.schema) if path.exists() else told.clear()
    pl.concat([held, told]).write_csv(path)
