"""Commands that merge answers, and anonymise and publish datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.cli.table_output import print_table_in_column_blocks
from isolux.core.formatting import pluralise
from isolux_curate.api import anonymise as privacy
from isolux_curate.api import consensus as labels
from isolux_curate.api import consensus_shapes as drawings
from isolux_curate.api.release import write_and_journal_release
from isolux_curate.commands.curate._output import (
    print_cautions_return_other_notes,
    print_notes,
    refuse_existing_output_folder,
)
from isolux_curate.labels import CONSENSUS_FILE as LABELS
from isolux_curate.project.folder import open_project
from isolux_curate.shapes import SHAPES_FILE as SHAPES

VERBS = {
    "consensus": labels.consensus,
    "shapes": drawings.consensus_shapes,
    "anonymise": privacy.anonymise,
    "publish": write_and_journal_release,
}
EXAMPLES = {"consensus": "isolux curate consensus ratings:ratings.csv --out labels"}
_MAX_LISTED = 20
_STATUSES = ("agreed", "needs more votes", "discard")


def consensus(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Merge several annotators' answers into one label per item, with its certainty.

    Writes labels.csv (label, probability, status: agreed, needs more votes or discard),
    chances.csv (a column for each answer), annotators.csv (how often each is likely to be right)
    and consensus.json.

    Parameters
    ----------
    data : str
        ratings:FILE, with one row per answer or a column for each annotator.
    out : Path
        The folder to write.
    overwrite : bool
        Replace that folder, if it contains such a consensus.
    """
    refuse_existing_output_folder(out, LABELS, "consensus folder", overwrite=overwrite)
    consensus_labels = labels.consensus(data, **settings)
    notes = print_cautions_return_other_notes(consensus_labels.notes)
    print_clean_lines(
        f"{pluralise(consensus_labels.labels.height, 'item')}:"
        f" {_format_status_counts(consensus_labels.labels)}"
    )
    rated_annotators = consensus_labels.annotators.drop_nulls("right")
    if 0 < rated_annotators.height <= _MAX_LISTED and rated_annotators["low"].null_count() == 0:
        print_table_in_column_blocks("How often each annotator is likely right", rated_annotators)
    print_notes(notes)
    command_output.report_file("labels", consensus_labels.write(out, overwrite=overwrite))


def shapes(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Merge what several annotators drew into one box, mask or pose per object.

    Writes objects.csv (label, how many drew it, how well they agree, status: agreed or needs more
    votes), annotators.csv (what each drew and missed, judged by the others), drawings.csv (the
    outcome for each drawing), agreed.json (the agreed objects in COCO format) and shapes.json.

    Parameters
    ----------
    data : str
        NAME:FILE with one instance per drawing, such as coco:drawn.json.
    out : Path
        The folder to write.
    overwrite : bool
        Replace that folder, if it contains such a consensus.
    """
    refuse_existing_output_folder(out, SHAPES, "consensus folder", overwrite=overwrite)
    consensus_objects = drawings.consensus_shapes(data, **settings)
    notes = print_cautions_return_other_notes(consensus_objects.notes)
    print_clean_lines(
        f"{pluralise(consensus_objects.drawings.height, 'drawing')} of"
        f" {pluralise(consensus_objects.objects.height, 'object')}:"
        f" {_format_status_counts(consensus_objects.objects)}"
    )
    if consensus_objects.annotators.height <= _MAX_LISTED:
        annotator_table = consensus_objects.annotators.select(
            "annotator", "images", "drawn", "kept", "found", "alike"
        )
        print_table_in_column_blocks("Each annotator beside the others", annotator_table)
    print_notes(notes)
    command_output.report_file("objects", consensus_objects.write(out, overwrite=overwrite))


def _format_status_counts(table: pl.DataFrame) -> str:
    counts = dict(table["status"].value_counts().iter_rows())
    return ", ".join(f"{counts[status]:,} {status}" for status in _STATUSES if status in counts)


def anonymise(table: str, **settings: Any) -> None:
    """Prepare photos and their table for publication: no metadata, no names, months for dates.

    Writes people.csv, counts.csv (what is published only as counts), photos/ and privacy.json.

    Parameters
    ----------
    table : str
        One row per person or photo.
    """
    anonymised = privacy.anonymise(table, **settings)
    notes = print_cautions_return_other_notes(anonymised.notes)
    summary = f"{anonymised.people.height:,} rows"
    if anonymised.n_photos:
        summary += (
            f", {anonymised.n_photos:,} photos ({anonymised.n_filled:,} with regions filled in)"
        )
    print_clean_lines(summary)
    print_notes(notes)
    command_output.report_file("dataset", anonymised.folder)


def publish(project: str, **settings: Any) -> None:
    """Publish photos that passed and have consent for it: photos, tables, terms and documents.

    Read it with isolux audit curated:DIR. Publishing again gives the same bytes.

    Parameters
    ----------
    project : str
        The project's folder.
    """
    release_result = write_and_journal_release(open_project(project), **settings)
    notes = print_cautions_return_other_notes(release_result.notes)
    release = release_result.release
    print_clean_lines(
        f"{pluralise(release.n_photos, 'photo')}, {pluralise(release.n_people, 'person', 'people')}"
        " in photos,"
        f" {pluralise(release.n_subjects, 'subject')}. {release.terms}"
    )
    print_notes(notes)
    command_output.report_file("dataset", release_result.folder)
    print_clean_lines(f"next: isolux audit curated:{release_result.folder} --by ATTRIBUTE …")
