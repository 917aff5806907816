"""One shift of the simulated annotators: those who may answer the open tasks of a stage do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.vocabulary.errors import SpecError
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.folder import Project, open_project
from isolux_curate.project.queries import read_database_table
from isolux_worlds.rehearsal.annotation_tasks import list_tasks, read_people
from isolux_worlds.rehearsal.annotator_answers import CREW, Annotator
from isolux_worlds.rehearsal.annotator_work import answer_tasks
from isolux_worlds.rehearsal.workplaces import ServerDesk, SheetDesk, sign_up_or_in

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
    tasks = list_tasks(opened, stage, read_people(inbox), training=training)
    account_by_name = (
        {} if server is None else sign_up_or_in(server, [annotator.name for annotator in CREW])
    )
    crew = (
        CREW
        if training
        else at_work(opened, stage, {n: a.annotator_id for n, a in account_by_name.items()})
    )
    if server is not None:
        log = answer_tasks(
            tasks,
            stage,
            crew,
            ServerDesk(LabelStudioServer.from_url_with_environment_token(server), account_by_name),
            seed=seed,
        )
    else:
        sheet = SheetDesk()
        log = answer_tasks(tasks, stage, crew, sheet, seed=seed)
        sheet.save(str(out))
    _note(Path(inbox).expanduser() / "truth" / _LOG, log)
    return log.height, int((log["slips"] != "").sum())


def at_work(
    project: Project, stage: str, names: dict[str, str] | None = None
) -> Sequence[Annotator]:
    """List who may annotate: who graduated; all but the careless, where there is no training."""
    graduates = read_database_table(project, "passes").filter(stage=stage, status=_GRADUATED)
    golden = read_database_table(project, "tasks").filter(stage=stage, golden=True)
    if golden.is_empty():
        return CREW[:-1]
    id_by_name = names or {annotator.name: annotator.name for annotator in CREW}
    return [
        annotator
        for annotator in CREW
        if id_by_name[annotator.name] in set(graduates["annotator_id"])
    ]


def _note(path: Path, log: pl.DataFrame) -> None:
    earlier = pl.read_csv(path, schema=log.schema) if path.exists() else log.clear()
    pl.concat([earlier, log]).write_csv(path)
