"""Commands that review collected data, and compare annotators with one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.cli.table_output import print_table_in_column_blocks
from isolux.core.formatting import pluralise
from isolux_curate.api.annotation_quality import (
    AnnotationQuality,
    measure_and_record_annotation_quality,
    measure_vendor_consistency,
)
from isolux_curate.api.annotation_quality.measurement import QUALITY_FILE
from isolux_curate.commands.curate._output import (
    print_cautions_return_other_notes,
    print_notes,
    refuse_existing_output_folder,
    write_spreadsheet_safe_csv,
)
from isolux_curate.project.folder import open_project
from isolux_curate.quality.evidence import gather_evidence_for_review
from isolux_curate.quality.model_recheck import reopen_tasks_where_model_differs
from isolux_curate.quality.review_results import record_review_and_estimate_share
from isolux_curate.quality.sampling import LEVEL, METHOD, draw_and_write_review_sample

VERBS = {
    "sample": draw_and_write_review_sample,
    "quality": measure_and_record_annotation_quality,
    "consistency": measure_vendor_consistency,
    "recheck": reopen_tasks_where_model_differs,
    "suspects": gather_evidence_for_review,
    "review": record_review_and_estimate_share,
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
    review_sample = draw_and_write_review_sample(open_project(project), out, **settings)
    for note in review_sample.notes:
        command_output.report_warning(note)
    print_table_in_column_blocks("What was drawn", review_sample.design.strata)
    command_output.report_file("sheet", out / "sample.csv")
    command_output.report_file("design", out / "design.json")


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
    refuse_existing_output_folder(out, QUALITY_FILE, "quality folder", overwrite=overwrite)
    _print_and_write_quality(
        measure_and_record_annotation_quality(open_project(project), specialists, **settings),
        out,
        overwrite=overwrite,
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
    refuse_existing_output_folder(out, QUALITY_FILE, "quality folder", overwrite=overwrite)
    _print_and_write_quality(
        measure_vendor_consistency(table, **settings), out, overwrite=overwrite
    )


def recheck(project: str, **settings: Any) -> None:
    """Ask annotators again where a model's labels differ from theirs, as FairFace did.

    Labels on which the model and the annotators make the same mistake are not looked at again.

    Parameters
    ----------
    project : str
        The project's folder.
    """
    recheck_counts = reopen_tasks_where_model_differs(open_project(project), **settings)
    print_clean_lines(
        f"{pluralise(recheck_counts.n_compared, 'label')} compared,"
        f" {recheck_counts.n_different:,} different;"
        f" {pluralise(recheck_counts.n_reopened, 'task')} to be done again"
    )
    if recheck_counts.n_reopened:
        print_clean_lines("next: isolux curate push, or curate tasks, sends them in a new round")


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
    suspect_sheet = gather_evidence_for_review(open_project(project), **settings)
    write_spreadsheet_safe_csv(out, suspect_sheet.sheet)
    print_table_in_column_blocks("Evidence", suspect_sheet.evidence_kinds)
    print_notes(suspect_sheet.notes)
    print_clean_lines(f"{suspect_sheet.sheet.height:,} to review")
    command_output.report_file("sheet", out)


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
    review_result = record_review_and_estimate_share(opened, sheet, **settings)
    for note in review_result.notes:
        command_output.report_warning(note)
    print_clean_lines(
        f"{review_result.n_reviewed:,} reviewed, {review_result.n_out:,} out;"
        f" {pluralise(review_result.n_excluded_photos, 'photo')} left;"
        f" {pluralise(review_result.n_new_verdicts, 'new verdict')}"
    )
    if review_result.evidence_kinds.height:
        print_table_in_column_blocks(
            "How often evidence was right",
            review_result.evidence_kinds.with_columns(pl.selectors.float().round(3)),
        )
    if review_result.estimate is not None:
        estimate = review_result.estimate
        print_clean_lines(
            f"of all {estimate.population:,}: {100 * estimate.value:.1f} %"
            f" [{100 * estimate.low:.1f},"
            f" {100 * estimate.high:.1f}] ({METHOD}, {100 * LEVEL:g} %; {estimate.n:,} reviewed)"
        )


def _print_and_write_quality(
    quality_tables: AnnotationQuality, output_folder: Path | None, *, overwrite: bool
) -> None:
    """Print the agreement, cautions first; write the tables if a folder is given."""
    missed = quality_tables.types.filter(verdict="missed")
    for name, comparison in missed.select("type", "part").unique(maintain_order=True).iter_rows():
        command_output.report_warning(f"{name}: agreement ({comparison}) is below its threshold")
    notes = print_cautions_return_other_notes(quality_tables.notes)
    numbers = pl.selectors.float() - pl.selectors.by_name("p_adjusted", require_all=False)
    title = "Agreement, 0 to 1 (met, missed: the whole interval is beyond the threshold)"
    print_table_in_column_blocks(
        title, quality_tables.types.drop("method").with_columns(numbers.round(3))
    )
    if quality_tables.groups.height:
        group_table = quality_tables.groups.with_columns(numbers.round(3))
        print_table_in_column_blocks(
            "By group of people (difference: the group minus everyone)", group_table
        )
    print_notes(notes)
    if output_folder is not None:
        command_output.report_file(
            "quality", quality_tables.write(output_folder, overwrite=overwrite)
        )
