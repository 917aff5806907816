"""Commands of a project: it is made, photos come in and are judged, and it says where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from isolux.cli import document
from isolux.cli.screen import show_wide
from isolux.cli.streams import say
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.plugin_options import named_options, own_settings
from isolux.vocabulary.words import numbered
from isolux_curate.annotation.training import examine, graduate, know_raters, raters
from isolux_curate.commands.curate._tell import write_csv
from isolux_curate.intake.arrival import add as bring
from isolux_curate.intake.judging import judge
from isolux_curate.intake.judging import letters as written
from isolux_curate.project.decisions import decide_by_sheet
from isolux_curate.project.folder import (
    Project,
    check_journal,
    create,
    open_project,
    read_journal,
)
from isolux_curate.quality.known import decide_matches, match_photos, read_hash_list
from isolux_curate.verbs.project_status import project_status


def init(project: str, *, database: str = "sqlite") -> None:
    """Create a project: its folder, its database and its journal.

    Parameters
    ----------
    project : str
        A new folder, or a project's.
    database : str
        sqlite, or postgresql+pg8000://user@host:port/name (password in PGPASSWORD).
    """
    made_now = create(project, database=database)
    journal = read_journal(made_now)
    say(f"project {made_now.name}: {made_now.folder}")
    say(f"journal: {numbered(journal.height, 'row')}, head {journal['hash'][-1]}")


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
    known = None if hash_list is None else read_hash_list(hash_list)
    done = bring(open_project(project), sheet, photos=photos, subjects=subjects, hashes=known)
    if done.matches:
        _warn_of_matches(done.matches)
    if done.revoked:
        document.warn(
            f"{numbered(done.revoked, 'photo')} left out: people in them took their consent back."
            f" `isolux curate grant {project}/consent.jsonl --who ID --scope evaluation --again`"
            " records that someone consented again."
        )
    say(
        f"{numbered(done.new, 'photo')} came in; {done.known:,} there already;"
        f" {done.changed:,} with new facts"
    )
    say(f"next: isolux curate intake {project}")


def intake(
    project: str,
    *,
    only: Sequence[str] = (),
    devices: str | None = None,
    letters: Path | None = None,
) -> None:
    """Apply the intake rules to decide which photos to accept; see `isolux list rules`.

    The limits are FHIBE's; project.yaml changes them: `rules: {megapixels: {least: 6}}`. Run again,
    it updates only the decisions that have changed.

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
    done = judge(opened, only=only, devices=devices)
    for note in done.notes:
        document.warn(note)
    show_wide("Rules of intake", done.rules)
    if letters is not None:
        told = written(opened)
        write_csv(letters, told)
        say(f"letters: {letters}, {numbered(told.height, 'row')}")
    say(f"next: isolux curate status {project}")


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
    new = decide_by_sheet(open_project(project), sheet, step=step, rule=rule, unit_kind=unit)
    say(numbered(new, "new verdict"))


def status(project: str, *, by: Sequence[str] = ()) -> None:
    """Print the funnel: how many photos came in, were left out, and why; with --by, by group.

    Parameters
    ----------
    project : str
        The project's folder.
    by : sequence of str
        Facts about people to compare by, as in --by age_group --by country.
    """
    opened = open_project(project)
    found = project_status(opened, by=by)
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


def _sum(funnel: pl.DataFrame) -> str:
    """Write the funnel as a sum: 28,703 − 6,868 − 5,855 = 15,980."""
    steps = funnel.group_by("step", maintain_order=True).agg(pl.col("left").sum())
    left = [(step, n) for step, n in steps.iter_rows() if n]
    told = "".join(f" − {n:,} ({step})" for step, n in left)
    return f"{funnel['remain'][0]:,}{told} = {funnel['remain'][-1]:,}"


def _rounded(table: pl.DataFrame) -> pl.DataFrame:
    shares = ("left_share", "share_before", "share_after", "difference", "low", "high")
    return table.with_columns((pl.col(*shares) * 100).round(3))


_MAX_LISTED = 20
_LAST_ROWS = 40
_FLAGS = {
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
    if what not in _FLAGS:
        raise UnknownNameError("part of a project", what, _FLAGS)
    kept = own_settings(named_options(show), settings, _FLAGS[what], f"curate show {what}")
    parts = {"hashes": _show_hashes, "raters": _show_raters, "journal": _show_journal}
    parts[what](open_project(project), kept)


def _show_hashes(project: Project, flags: Mapping[str, Any]) -> None:
    path, decided = flags["list"], flags["decided"]
    if (path is None) == (decided is None):
        raise SpecError(
            "what is to be done is not said, or twice", expected="--list FILE, or --decided FILE"
        )
    if decided is not None:
        say(f"{numbered(decide_matches(project, decided), 'match', 'matches')} decided")
        return
    found = match_photos(project, read_hash_list(path, hasher=flags["hasher"]))
    if found.undecided:
        _warn_of_matches(found.undecided)
    say(
        f"{numbered(found.looked_at, 'photo')} looked at;"
        f" {numbered(len(found.new), 'new match', 'new matches')},"
        f" {len(found.undecided):,} undecided"
    )


def _warn_of_matches(ids: tuple[str, ...]) -> None:
    """Name matches, and what they stop."""
    more = f" and {len(ids) - _MAX_LISTED:,} more" if len(ids) > _MAX_LISTED else ""
    document.warn(
        "photos match a list of known illegal material:"
        f" {', '.join(ids[:_MAX_LISTED])}{more}. Do not open or copy them. Nothing leaves the"
        " project until each is decided: isolux curate show hashes PROJECT --decided SHEET"
    )


def _show_raters(project: Project, flags: Mapping[str, Any]) -> None:
    stage, passed = flags["stage"], flags["graduate"]
    if passed and stage is None:
        raise SpecError("who graduates from which stage is not said", expected="--stage")
    if flags["sheet"] is not None:
        say(f"{numbered(know_raters(project, flags['sheet']), 'rater')} noted")
    if stage is not None:
        examined = examine(project, stage)
        if passed:
            graduate(project, stage, passed)
            examined = examine(project, stage)
        show_wide(f"Golden tasks of the stage {stage}", examined)
    show_wide("Who graduated, by region (95 % interval)", raters(project))


def _show_journal(project: Project, flags: Mapping[str, Any]) -> None:
    rows = check_journal(project, head=flags["head"])
    last = min(_LAST_ROWS, rows)
    table = read_journal(project)
    show_wide(f"The last {last:,} of {rows:,} rows", table.tail(last).drop("hash"))
    say(f"{numbered(rows, 'row')}: hashes, signatures and verdicts verify")
    say(f"head: {table['hash'][-1]}")
