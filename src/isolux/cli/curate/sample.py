"""``isolux curate sample``: units for people to review, as many as a margin needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isolux.cli import document

__all__ = ["sample"]


def sample(
    project: str,
    *,
    out: Path,
    of: Sequence[str] = (),
    table: str | None = None,
    by: Sequence[str] = (),
    margin: float = 0.05,
    expected: float = 0.5,
    level: float = 0.95,
    size: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    curator: str | None = None,
) -> None:
    """Draw subjects, photos or answers for people to review, as many as a stated margin requires.

    Writes sample.csv, a sheet with empty verdicts, and design.json, which says how it was drawn.

    Parameters
    ----------
    project : str
        The project's folder.
    out : Path
        The folder to write.
    of : sequence of str
        What is drawn, each type separately: subject, image, instance, or a stage of annotation.
    table : str, optional
        Draw from the column unit_id of a table in place of the project's units.
    by : sequence of str
        Facts (or the table's columns) whose values are strata, each drawn from in proportion.
    margin : float
        Half the width of the interval of a share, 0 to 1: the sample is as large as it needs.
    expected : float
        The share that is expected, 0 to 1; .5 needs most.
    level : float
        The interval's confidence.
    size : int, optional
        How many of each type, in place of a margin.
    seed : int
        The same seed draws the same units.
    overwrite : bool
        Replace an earlier sample.
    curator : str, optional
        Who runs the command; default: the name of your account.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation.project import open_project
    from isolux.curation.quality.sampling import draw_sample

    done = draw_sample(
        open_project(project, who=curator), out, of=of, table=table, by=by, margin=margin,
        expected=expected, level=level, size=size, seed=seed, overwrite=overwrite,
    )  # fmt: skip
    for note in done.notes:
        document.warn(note)
    show_wide("What was drawn", done.design.strata)
    document.wrote("sheet", out / "sample.csv")
    document.wrote("design", out / "design.json")
