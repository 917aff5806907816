"""``isolux list``: what there is to load, read, score and explain."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["listing"]


class Kind(StrEnum):
    """What can be listed."""

    DATASETS = "datasets"
    FORMATS = "formats"
    TASKS = "tasks"
    MODELS = "models"
    ANALYSES = "analyses"
    PAPERS = "papers"


_ROOM = {"formats": "predictions", "analyses": "explain"}


def listing(
    kind: Annotated[Kind, typer.Argument(help="what to list")],
) -> None:
    """List the datasets, formats, tasks, models, analyses or papers that isolux knows."""
    from isolux import registry
    from isolux.cli._screen import show_table
    from isolux.info import TaskInfo

    room = _ROOM.get(kind.value, kind.value)
    names = registry.names(room)
    if not names:
        typer.echo(f"no {kind.value} yet: another package can add them (docs/architecture.md)")
        return
    infos = [registry.info(room, name) for name in names]
    rows = [[name, i.summary, i.licence] for name, i in zip(names, infos, strict=True)]
    show_table(kind.value, ["name", "what it is", "licence"], rows)
    for name, info in zip(names, infos, strict=True):
        if isinstance(info, TaskInfo):
            typer.echo("")
            better = {"higher": "higher", "lower": "lower", "none": "alike"}
            metrics = [[m.name, m.definition, better[m.direction]] for m in info.metrics]
            show_table(f"metrics of {name}", ["metric", "definition", "better"], metrics)
