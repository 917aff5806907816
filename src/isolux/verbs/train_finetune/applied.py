"""Labels of other pictures by a fine-tuned model, and what must be said of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isolux.io.atomic import write_text
from isolux.io.csv_text import csv_text
from isolux.people.held import held_people
from isolux.training import Looked, Tuned
from isolux.verbs._for_training import label_files, label_table, pictures_of, told_of_pictures
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.notes import Caution


@dataclass(frozen=True, slots=True)
class Showing:
    """How pictures are shown to the model, and how many labels each gets."""

    tuned: Tuned
    picture_of: Literal["image", "person"]
    threads: int
    batch: int
    classes: tuple[str, ...]
    top: int


@dataclass(frozen=True, slots=True)
class Written:
    """The files of labels, by the name of what was labelled, and what is said of them."""

    files: tuple[Path, ...] = ()
    of: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def others_of(
    apply: Sequence[str], ids: str | None, images: str | None, withdrawn: str | None
) -> list[tuple[str, Dataset]]:
    """Load what is to be labelled; where no picture lies with its files, from ``images``."""
    settings: dict[str, Any] = {"id": ids, "withdrawn": withdrawn, "allow_unmatched": True}
    found = []
    for text in apply:
        one = held_people(text, **settings)
        if one.root is None and images is not None:
            one = held_people(text, **settings, images=images)
        found.append((text, one))
    return found


def label_others(
    how: Showing, others: Sequence[tuple[str, Dataset]], learnt: Looked, folder: Path
) -> Written:
    """Label other pictures; those that cannot be read have no row, and an audit says so."""
    stems = [Path(text.partition(":")[2]).stem or dataset.name for text, dataset in others]
    made = Written()
    for name, (text, dataset) in zip(label_files(stems), others, strict=True):
        ids = dataset.instances["instance_id"]
        pictures = pictures_of(dataset, ids, how.picture_of, how.tuned.prepare, how.threads)
        looked = pictures.look()
        there = np.flatnonzero(looked.readable())
        notes = [
            *told_of_pictures(ids, looked, text, learnt=False),
            *_seen_before(text, looked, learnt),
        ]
        chances = how.tuned.chances(pictures, how.batch, there)
        table = label_table(chances, ids.gather(there), how.classes, how.top)
        file = write_text(folder / name, csv_text(table))
        made = Written((*made.files, file), made.of | {name: text}, (*made.notes, *notes))
    return made


def _seen_before(text: str, looked: Looked, learnt: Looked) -> list[str]:
    """Caution where pictures to be labelled were learnt from: by their bytes."""
    again = looked.readable() & np.isin(looked.marks, learnt.marks[learnt.readable()])
    if not again.any():
        return []
    return [
        Caution(
            f"{text}: {int(again.sum()):,} of {len(again):,} pictures are files that the model"
            " learnt from or was stopped by. It knows their labels: audit those of other"
            " pictures."
        )
    ]


def labelled_in(folder: Path, record: str) -> dict[str, str]:
    """Name the labels that the training written here gave, and of what; of a broken record none."""
    try:
        named = dict(json.loads((folder / record).read_text(encoding="utf-8"))["labelled"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {
        str(name): str(text)
        for name, text in named.items()
        if str(name) == Path(str(name)).name and str(name).endswith(".csv")
    }


def without_labels(folder: Path, record: str) -> None:
    """Remove the labels that the training written here gave: of other weights they are no more."""
    for name in labelled_in(folder, record):
        (folder / name).unlink(missing_ok=True)
