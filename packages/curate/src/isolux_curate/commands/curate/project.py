"""Commands of a project: create it, add photos, apply rules, show its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.cli.table_output import print_table_in_column_blocks
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.formatting import pluralise
from isolux.core.plugin_options import list_keyword_defaults, select_used_settings
from isolux_curate.annotation.golden_tasks import (
    graduate_spot_checked_annotators,
    insert_or_update_annotator_facts,
    score_and_record_annotators,
    tabulate_graduation_rates,
)
from isolux_curate.api.project_status import (
    ProjectStatus,
    compute_funnel_and_group_exclusions,
)
from isolux_curate.commands.curate._output import write_spreadsheet_safe_csv
from isolux_curate.intake.fact_removal import remove_fact_column
from isolux_curate.intake.ingest import ingest_sheet_photos as ingest
from isolux_curate.intake.intake_verdicts import apply_and_record_rules
from isolux_curate.intake.intake_verdicts import list_refusal_reasons_by_subject as list_letters
from isolux_curate.project.folder import (
    Project,
    create_or_open_project,
    open_project,
    read_journal,
    verify_journal_and_seals,
)
from isolux_curate.project.verdicts import record_sheet_verdicts
from isolux_curate.quality.hash_lists import (
    match_and_exclude_photos,
    read_hash_list,
    record_decisions_about_matches,
)


def init(project: str, *, database: str = "sqlite") -> None:
    """Create a project: its folder, its database and its journal.

    Parameters
    ----------
    project : str
        A new folder, or a project's.
    database : str
        sqlite, or postgresql+pg8000://user@host:port/name (password in PGPASSWORD).
    """
    new_project = create_or_open_project(project, database=database)
    journal = read_journal(new_project)
    print_clean_lines(f"project {new_project.name}: {new_project.folder}")
    print_clean_lines(f"journal: {pluralise(journal.height, 'row')}, head {journal['hash'][-1]}")


def add(
    project: str,
    sheet: str,
    *,
    photos: str | None = None,
    subjects: str | None = None,
    hash_list: str | None = None,
) -> None:
    """Add photos to a project; they are copied and their Exif is read, but nothing is judged yet.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        A table with a row for each subject in each photo: file, subject_id, and their statements.
    photos : str, optional
        The folder that contains the files; default: the sheet's.
    subjects : str, optional
        A table with a row for each subject: subject_id, age, country, and anything else known.
    hash_list : str, optional
        Your list of hashes of known illegal material: matches are not copied, and are reported by
        id.
    """
    illegal_hashes = None if hash_list is None else read_hash_list(hash_list)
    ingest_result = ingest(
        open_project(project),
        sheet,
        photo_folder=photos,
        subject_sheet=subjects,
        illegal_hashes=illegal_hashes,
    )
    if ingest_result.matches:
        _warn_about_illegal_matches(ingest_result.matches)
    if ingest_result.n_revoked:
        command_output.report_warning(
            f"{pluralise(ingest_result.n_revoked, 'photo')} left out: people in them took their"
            " consent back."
            f" `isolux curate grant {project}/consent.jsonl --who ID --scope evaluation --again`"
            " records that someone consented again."
        )
    print_clean_lines(
        f"{pluralise(ingest_result.n_new, 'photo')} came in; {ingest_result.n_existing:,} there"
        f" already; {ingest_result.n_changed:,} with new facts"
    )
    print_clean_lines(f"next: isolux curate intake {project}")


def unset(project: str, column: str, *, sheet: Literal["photos", "subjects"]) -> None:
    """Remove a column of facts that came in by mistake, from everyone who has it.

    Parameters
    ----------
    project : str
        The project's folder.
    column : str
        Its name in the sheet.
    sheet : {"photos", "subjects"}
        The sheet that it came in with.
    """
    n_rows = remove_fact_column(open_project(project), column, sheet)
    print_clean_lines(f"{column}: removed from {pluralise(n_rows, 'row')}")
    print_clean_lines(f"next: isolux curate intake {project}")


def intake(
    project: str,
    *,
    only: Sequence[str] = (),
    devices: str | None = None,
    letters: Path | None = None,
) -> None:
    """Apply the intake rules to decide which photos to accept; see `isolux list rules`.

    The limits are FHIBE's; project.yaml changes them: `rules: {megapixels: {min_megapixels: 6}}`.
    Run again, it updates only the decisions that have changed.

    Parameters
    ----------
    project : str
        The project's folder.
    only : sequence of str
        Rules to apply; default: all.
    devices : str, optional
        A table make, model, year: when devices were released, by their Exif names.
    letters : Path, optional
        A CSV to write: what to tell each subject about each photo.
    """
    opened = open_project(project)
    verdicts = apply_and_record_rules(opened, only_rules=only, device_years=devices)
    for note in verdicts.notes:
        command_output.report_warning(note)
    print_table_in_column_blocks("Rules of intake", verdicts.rules)
    if letters is not None:
        letter_rows = list_letters(opened)
        write_spreadsheet_safe_csv(letters, letter_rows)
        print_clean_lines(f"letters: {letters}, {pluralise(letter_rows.height, 'row')}")
    print_clean_lines(f"next: isolux curate status {project}")


def decide(
    project: str,
    sheet: str,
    *,
    step: str,
    rule: str,
    unit: Literal["image", "subject", "instance"] = "image",
) -> None:
    """Record what people decided: a table of ids, each with out or in and a reason.

    Parameters
    ----------
    project : str
        The project's folder.
    sheet : str
        A table with the columns image_id (or subject_id, instance_id), verdict and reason.
    step : str
        The part of the funnel it belongs to, such as review.
    rule : str
        The rule that was applied, such as offensive content.
    unit : {"image", "subject", "instance"}
        What the decision is about; if a subject is left out, so are their photos.
    """
    new = record_sheet_verdicts(open_project(project), sheet, step=step, rule=rule, unit_kind=unit)
    print_clean_lines(pluralise(new, "new verdict"))


def status(project: str, *, by: Sequence[str] = ()) -> None:
    """Print the funnel, annotation by stage, and revocations; with --by, whom each step left out.

    Journal and ledger of consent are verified first.

    Parameters
    ----------
    project : str
        The project's folder.
    by : sequence of str
        Facts about people to compare by, as in --by age_group --by country.
    """
    opened = open_project(project)
    project_state = compute_funnel_and_group_exclusions(opened, by=by)
    for note in project_state.notes:
        command_output.report_warning(note)
    n_arrived = project_state.funnel["remain"][0]
    print_clean_lines(
        f"{opened.name}: {pluralise(n_arrived, 'photo')} came in,"
        f" {project_state.funnel['remain'][-1]:,} remain"
    )
    print_clean_lines(_format_funnel_as_subtraction(project_state.funnel))
    print_table_in_column_blocks(
        "Where photos left (refused: those that had left before included)", project_state.funnel
    )
    if project_state.annotation.height:
        print_table_in_column_blocks(
            "Annotation: photos or people by stage (left: no longer in the project)",
            project_state.annotation,
        )
    for (step,), table in project_state.shifts.group_by("step", maintain_order=True):
        title = f"Whom the step {step!r} left out, in people in photos (shares in %)"
        print_table_in_column_blocks(title, _convert_shares_to_percent(table.drop("step")))
    print_clean_lines(_format_verified_rows(project_state))
    if not by:
        print_clean_lines(
            "--by FACT compares whom each step left out: facts of subjects, as age_group"
        )


def _format_verified_rows(project_state: ProjectStatus) -> str:
    ledger_text = (
        "there is no ledger of consent"
        if project_state.n_ledger_rows is None
        else f"the ledger of consent, {pluralise(project_state.n_ledger_rows, 'row')}, verifies"
    )
    journal_text = f"the journal, {pluralise(project_state.n_journal_rows, 'row')}, verifies"
    return f"{journal_text}; {ledger_text}"


def _format_funnel_as_subtraction(funnel: pl.DataFrame) -> str:
    """Format the funnel as a sum: 28,703 − 6,868 − 5,855 = 15,980."""
    steps = funnel.group_by("step", maintain_order=True).agg(pl.col("left").sum())
    n_by_step = [(step, n) for step, n in steps.iter_rows() if n]
    terms = "".join(f" − {n:,} ({step})" for step, n in n_by_step)
    return f"{funnel['remain'][0]:,}{terms} = {funnel['remain'][-1]:,}"


def _convert_shares_to_percent(table: pl.DataFrame) -> pl.DataFrame:
    shares = ("left_share", "share_before", "share_after", "difference", "low", "high")
    return table.with_columns((pl.col(*shares) * 100).round(3))


_MAX_LISTED = 20
_LAST_ROWS = 40
_FLAGS_BY_VIEW = {
    "hashes": ("list", "decided", "hasher"),
    "raters": ("stage", "graduate", "sheet"),
    "journal": ("head",),
}


def show(
    what: str,
    project: str,
    *,
    list: str | None = None,  # noqa: A002  (the flag is called --list)
    decided: str | None = None,
    hasher: str | None = None,
    stage: str | None = None,
    graduate: Sequence[str] = (),
    sheet: str | None = None,
    head: str | None = None,
) -> None:
    """Show what a project's journal, raters or photos against your list of hashes say.

    journal: who decided what, when and by which rule, and whether anything was changed afterwards.
    raters: who passed the training for a stage, and how many from each region graduated. hashes:
    photos that match a list of known illegal material, by id; a match is neither shown nor copied,
    and nothing leaves the project until each match is decided. To keep such material out from the
    start, use curate add --hash-list.

    Parameters
    ----------
    what : str
        journal, raters or hashes.
    project : str
        The project's folder.
    list : str, optional
        hashes: a table with md5, sha1, sha256 or phash, or one hash per line.
    decided : str, optional
        hashes: a table image_id, verdict (out: it is such material; in: it is not) and reason.
    hasher : str, optional
        hashes: python:MODULE:FUNCTION, which turns a file's bytes into hexadecimal digits, for
        lists of such hashes.
    stage : str, optional
        raters: the stage whose golden answers are scored; default: only regions.
    graduate : sequence of str
        raters: those whose boxes were checked by hand, and who may now annotate.
    sheet : str, optional
        raters: a table annotator_id, region, and what else they disclosed.
    head : str, optional
        journal: the hash of the last row, as noted elsewhere: detects rows that were cut off at
        the end.
    """
    settings = {
        "list": list,
        "decided": decided,
        "hasher": hasher,
        "stage": stage,
        "graduate": graduate,
        "sheet": sheet,
        "head": head,
    }
    if what not in _FLAGS_BY_VIEW:
        raise UnknownNameError("part of a project", what, _FLAGS_BY_VIEW)
    view_flags = select_used_settings(
        list_keyword_defaults(show), settings, _FLAGS_BY_VIEW[what], f"curate show {what}"
    )
    views = {
        "hashes": _match_hashes_or_record_decisions,
        "raters": _update_and_print_raters,
        "journal": _check_and_print_journal,
    }
    views[what](open_project(project), view_flags)


def _match_hashes_or_record_decisions(project: Project, flags: Mapping[str, Any]) -> None:
    path, decided = flags["list"], flags["decided"]
    if (path is None) == (decided is None):
        raise SpecError(
            "what is to be done is not said, or twice", expected="--list FILE, or --decided FILE"
        )
    if decided is not None:
        n_decided = record_decisions_about_matches(project, decided)
        print_clean_lines(f"{pluralise(n_decided, 'match', 'matches')} decided")
        return
    hash_matches = match_and_exclude_photos(project, read_hash_list(path, hasher=flags["hasher"]))
    if hash_matches.undecided_ids:
        _warn_about_illegal_matches(hash_matches.undecided_ids)
    print_clean_lines(
        f"{pluralise(hash_matches.n_photos, 'photo')} looked at;"
        f" {pluralise(len(hash_matches.new_ids), 'new match', 'new matches')},"
        f" {len(hash_matches.undecided_ids):,} undecided"
    )


def _warn_about_illegal_matches(image_ids: tuple[str, ...]) -> None:
    """Print a warning with the ids of matching photos."""
    more_text = (
        f" and {len(image_ids) - _MAX_LISTED:,} more" if len(image_ids) > _MAX_LISTED else ""
    )
    command_output.report_warning(
        "photos match a list of known illegal material:"
        f" {', '.join(image_ids[:_MAX_LISTED])}{more_text}. Do not open or copy them."
        " Nothing leaves the project until each is decided:"
        " isolux curate show hashes PROJECT --decided SHEET"
    )


def _update_and_print_raters(project: Project, flags: Mapping[str, Any]) -> None:
    stage, graduate_ids = flags["stage"], flags["graduate"]
    if graduate_ids and stage is None:
        raise SpecError("who graduates from which stage is not said", expected="--stage")
    if flags["sheet"] is not None:
        print_clean_lines(
            f"{pluralise(insert_or_update_annotator_facts(project, flags['sheet']), 'rater')} noted"
        )
    if stage is not None:
        examined = score_and_record_annotators(project, stage)
        if graduate_ids:
            graduate_spot_checked_annotators(project, stage, graduate_ids)
            examined = score_and_record_annotators(project, stage)
        print_table_in_column_blocks(f"Golden tasks of the stage {stage}", examined)
    print_table_in_column_blocks(
        "Who graduated, by region (95 % interval)", tabulate_graduation_rates(project)
    )


def _check_and_print_journal(project: Project, flags: Mapping[str, Any]) -> None:
    rows = verify_journal_and_seals(project, expected_hash=flags["head"])
    last = min(_LAST_ROWS, rows)
    table = read_journal(project)
    print_table_in_column_blocks(
        f"The last {last:,} of {rows:,} rows", table.tail(last).drop("hash")
    )
    print_clean_lines(f"{pluralise(rows, 'row')}: hashes, signatures and verdicts verify")
    print_clean_lines(f"head: {table['hash'][-1]}")
