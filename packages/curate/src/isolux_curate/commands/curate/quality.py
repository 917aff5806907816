"""Commands that review what was collected, and compare annotators with one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from isolux.cli import document
from isolux.cli.screen import show_wide
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered
from isolux_curate.commands.curate._tell import refuse_folder, say_notes, warn_first, write_csv
from isolux_curate.project.folder import open_project
from isolux_curate.quality.evidence import gather_suspects
from isolux_curate.quality.reviewed import bring_review
from isolux_curate.quality.sampling import LEVEL, METHOD, draw_sample
from isolux_curate.verbs.annotation_quality import Quality, annotation_quality, vendor_consistency
from isolux_curate.verbs.annotation_quality.measured import MARK

VERBS = {
    "sample": draw_sample,
    "quality": annotation_quality,
    "consistency": vendor_consistency,
    "suspects": gather_suspects,
    "review": bring_review,
}


def sample(project: str, *, out: Path, **settings: Any) -> None:
    """Draw subjects, photos or answers for people to review, as many as a stated margin requires.

    Writes sample.csv, a sheet with empty verdicts, and design.json, which says how it was drawn.

    Parameters
    ----------
    project : str
        The project's folder.
    out : Path
        The folder to write.
    """
    done = draw_sample(open_project(project), out, **settings)
    for note in done.notes:
        document.warn(note)
    show_wide("What was drawn", done.design.strata)
    document.wrote("sheet", out / "sample.csv")
    document.wrote("design", out / "design.json")


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
    refuse_folder(out, MARK, "quality folder", overwrite=overwrite)
    _show_quality(
        annotation_quality(open_project(project), specialists, **settings), out, overwrite=overwrite
    )


def consistency(
    table: str, *, out: Path | None = None, overwrite: bool = False, **settings: Any
) -> None:
    """Compare sets of annotations of the same units within and between vendors, by group.

    Parameters
    ----------
    table : str
        One row per answer: unit, annotator, vendor, type, and answer, or x, y, w, h, or points.
    out : Path, optional
        A folder for the tables; default: only print them.
    overwrite : bool
        Replace an earlier folder of tables.
    """
    refuse_folder(out, MARK, "quality folder", overwrite=overwrite)
    _show_quality(vendor_consistency(table, **settings), out, overwrite=overwrite)


def suspects(project: str, *, out: Path, **settings: Any) -> None:
    """Collect evidence about suspicious photos: one row for each subject to be reviewed.

    Nothing is decided yet: people fill in verdict and reason, and curate review reads the sheet
    back.

    Parameters
    ----------
    project : str
        The project's folder.
    out : Path
        The CSV to write.
    """
    found = gather_suspects(open_project(project), **settings)
    write_csv(out, found.sheet)
    show_wide("Evidence", found.kinds)
    say_notes(found.notes)
    say(f"{found.sheet.height:,} to review")
    document.wrote("sheet", out)


def review(project: str, sheet: str, **settings: Any) -> None:
    """Record the verdicts of a sheet that people filled in; for a sample, also estimate the totals.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        unit_id, verdict (out, in, or empty: not reviewed yet) and reason.
    """
    opened = open_project(project)
    done = bring_review(opened, sheet, **settings)
    for note in done.notes:
        document.warn(note)
    say(
        f"{done.looked_at:,} reviewed, {done.out:,} out; {numbered(done.photos, 'photo')} left;"
        f" {numbered(done.new, 'new verdict')}"
    )
    if done.kinds.height:
        show_wide(
            "How often evidence was right", done.kinds.with_columns(pl.selectors.float().round(3))
        )
    if done.estimate is not None:
        one = done.estimate
        say(
            f"of all {one.population:,}: {100 * one.value:.1f} % [{100 * one.low:.1f},"
            f" {100 * one.high:.1f}] ({METHOD}, {100 * LEVEL:g} %; {one.n:,} reviewed)"
        )


def _show_quality(found: Quality, out: Path | None, *, overwrite: bool) -> None:
    """Say what was found, warnings first; where a folder is named, write the tables."""
    missed = found.types.filter(verdict="missed")
    for name, part in missed.select("type", "part").unique(maintain_order=True).iter_rows():
        document.warn(f"{name}: agreement ({part}) is below its threshold")
    notes = warn_first(found.notes)
    numbers = pl.selectors.float() - pl.selectors.by_name("p_adjusted", require_all=False)
    title = "Agreement, 0 to 1 (met, missed: the whole interval is beyond the threshold)"
    show_wide(title, found.types.drop("method").with_columns(numbers.round(3)))
    if found.groups.height:
        told = found.groups.with_columns(numbers.round(3))
        show_wide("By group of people (difference: the group minus everyone)", told)
    say_notes(notes)
    if out is not None:
        document.wrote("quality", found.write(out, overwrite=overwrite))
