"""Steps that bring answers together, and make what may be published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from isolux.cli import document
from isolux.cli.screen import show_wide
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered
from isolux_curate.commands.curate._tell import refuse_folder, say_notes, warn_first
from isolux_curate.labels import MARK as LABELS
from isolux_curate.project.folder import open_project
from isolux_curate.shapes import MARK as SHAPES
from isolux_curate.verbs import anonymise as privacy
from isolux_curate.verbs import consensus as labels
from isolux_curate.verbs import consensus_shapes as drawings
from isolux_curate.verbs.release import publish_dataset

VERBS = {
    "consensus": labels.consensus,
    "shapes": drawings.consensus_shapes,
    "anonymise": privacy.anonymise,
    "publish": publish_dataset,
}
EXAMPLES = {"consensus": "isolux curate consensus ratings:ratings.csv --out labels"}
_SHOWN = 20
_STATUSES = ("agreed", "ask again", "discard")


def consensus(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Merge several annotators' answers into one label per item, with its certainty.

    Writes labels.csv (label, probability, status: agreed, ask again or discard), chances.csv (a
    column for each answer), annotators.csv (how often each is likely to be right) and
    consensus.json.

    Parameters
    ----------
    data : str
        ratings:FILE, with one row per answer or a column for each annotator.
    out : Path
        The folder to write.
    overwrite : bool
        Replace that folder, if it contains such a consensus.
    """
    refuse_folder(out, LABELS, "consensus folder", overwrite=overwrite)
    done = labels.consensus(data, **settings)
    notes = warn_first(done.notes)
    say(f"{numbered(done.labels.height, 'item')}: {_count_statuses(done.labels)}")
    known = done.annotators.drop_nulls("right")
    if 0 < known.height <= _SHOWN and known["low"].null_count() == 0:
        show_wide("How often each annotator is likely right", known)
    say_notes(notes)
    document.wrote("labels", done.write(out, overwrite=overwrite))


def shapes(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Merge what several annotators drew into one box, mask or pose per object.

    Writes objects.csv (label, how many drew it, how well they agree, status: agreed or ask again),
    annotators.csv (what each drew and missed, judged by the others), drawings.csv (the outcome for
    each drawing), agreed.json (the agreed objects in COCO format) and shapes.json.

    Parameters
    ----------
    data : str
        NAME:FILE with one instance per drawing, such as coco:drawn.json.
    out : Path
        The folder to write.
    overwrite : bool
        Replace that folder, if it contains such a consensus.
    """
    refuse_folder(out, SHAPES, "consensus folder", overwrite=overwrite)
    done = drawings.consensus_shapes(data, **settings)
    notes = warn_first(done.notes)
    say(
        f"{numbered(done.drawings.height, 'drawing')} of"
        f" {numbered(done.objects.height, 'object')}: {_count_statuses(done.objects)}"
    )
    if done.annotators.height <= _SHOWN:
        shown = done.annotators.select("annotator", "images", "drawn", "kept", "found", "alike")
        show_wide("Each annotator beside the others", shown)
    say_notes(notes)
    document.wrote("objects", done.write(out, overwrite=overwrite))


def _count_statuses(table: pl.DataFrame) -> str:
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
    done = privacy.anonymise(table, **settings)
    notes = warn_first(done.notes)
    told = f"{done.people.height:,} rows"
    if done.pictures:
        told += f", {done.pictures:,} photos ({done.filled:,} with regions filled in)"
    say(told)
    say_notes(notes)
    document.wrote("dataset", done.folder)


def publish(project: str, **settings: Any) -> None:
    """Publish photos that passed and have consent for it: photos, tables, terms and documents.

    Read it with isolux audit curated:DIR. Publishing again gives the same bytes.

    Parameters
    ----------
    project : str
        The project's folder.
    """
    done = publish_dataset(open_project(project), **settings)
    notes = warn_first(done.notes)
    one = done.release
    say(
        f"{numbered(one.photos, 'photo')}, {numbered(one.people, 'person', 'people')} in photos,"
        f" {numbered(one.subjects, 'subject')}. {one.terms}"
    )
    say_notes(notes)
    document.wrote("dataset", done.folder)
    say(f"next: isolux audit curated:{done.folder} --by ATTRIBUTE …")
