"""``isolux curate status``: the funnel, and whom each step left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

if TYPE_CHECKING:
    import polars as pl

__all__ = ["status"]


def status(
    project: str, *, by: Sequence[str] = (), replicates: int = 2000, csv: str | None = None
) -> None:
    """Print the funnel: how many photos came in, were left out, and why; with --by, by group.

    Parameters
    ----------
    project : str
        The project's folder.
    by : sequence of str
        Facts about people to compare by, as in --by age_group --by country.
    replicates : int
        Bootstrap replicates of the tests.
    csv : str, optional
        A file for the table of groups; default: only print it.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation.project import open_project
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text
    from isolux.verbs.project_status import project_status

    opened = open_project(project)
    found = project_status(opened, by=by, replicates=replicates)
    for note in found.notes:
        document.warn(note)
    came = found.funnel["remain"][0]
    say(f"{opened.name}: {numbered(came, 'photo')} came in, {found.funnel['remain'][-1]:,} remain")
    say(_sum(found.funnel))
    show_wide("Where photos left (refused: those that had left before included)", found.funnel)
    for (step,), table in found.shifts.group_by("step", maintain_order=True):
        title = f"Whom the step {step!r} left out, in people in photos (shares in %)"
        show_wide(title, _rounded(table.drop("step")))
    if not by:
        say("--by FACT compares whom each step left out: facts of subjects, as age_group")
    if csv is not None:
        write_text(csv, csv_text(found.shifts))
        say(f"groups: {csv}")


def _sum(funnel: pl.DataFrame) -> str:
    """Write the funnel as a sum: 28,703 − 6,868 − 5,855 = 15,980."""
    import polars as pl

    steps = funnel.group_by("step", maintain_order=True).agg(pl.col("left").sum())
    left = [(step, n) for step, n in steps.iter_rows() if n]
    told = "".join(f" − {n:,} ({step})" for step, n in left)
    return f"{funnel['remain'][0]:,}{told} = {funnel['remain'][-1]:,}"


def _rounded(table: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    shares = ("left_share", "share_before", "share_after", "difference", "low", "high")
    return table.with_columns((pl.col(*shares) * 100).round(3))
