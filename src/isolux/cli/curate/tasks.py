"""``isolux curate tasks``: what is to be annotated, for labs without a server."""

from __future__ import annotations

from pathlib import Path

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["tasks"]


def tasks(
    project: str, *, stage: str, out: Path, training: bool = False, curator: str | None = None
) -> None:
    """Write the open tasks of a stage: tasks.csv, pictures, and coco.json with boxes drawn so far.

    Parameters
    ----------
    project : str
        The project's folder.
    stage : str
        count, boxes, skin_tone, attributes or masks.
    out : Path
        The folder to write to.
    training : bool
        The golden tasks, which every rater answers before starting work.
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.curation.annotation import write_tasks
    from isolux.curation.project import open_project

    number = write_tasks(open_project(project, who=curator), stage, out, training=training)
    say(f"{numbered(number, 'open task')}: {out / 'tasks.csv'}")
    if number:
        say(f"next: isolux curate answers {project} FILE --stage {stage} --annotator NAME")
