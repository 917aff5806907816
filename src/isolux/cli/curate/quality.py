"""``isolux curate quality``: what was collected, against the mean of specialists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["quality"]

VERB = "isolux.verbs.annotation_quality:annotation_quality"


def quality(
    project: str,
    specialists: str,
    *,
    out: Path | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> None:
    """Compare annotations with the mean of specialists: IoU, OKS, Dice and Jaccard, by group.

    Parameters
    ----------
    project : str
        The project's folder.
    specialists : str
        A table of their answers: unit, annotator, type, and answer, or x, y, w, h, or points.
    out : Path, optional
        A folder for the tables; default: only print them.
    overwrite : bool
        Replace an earlier folder of tables.
    """
    from isolux.cli.curate._quality_tables import refuse_standing, show_quality
    from isolux.curation.project import open_project
    from isolux.verbs.annotation_quality import annotation_quality

    refuse_standing(out, overwrite=overwrite)
    show_quality(
        annotation_quality(open_project(project), specialists, **settings), out, overwrite=overwrite
    )
