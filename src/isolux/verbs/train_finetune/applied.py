"""Labels of other images by a fine-tuned model, with cautions."""

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
    """How images are given to the model, and how many labels each gets."""

    tuned: Tuned
    picture_of: Literal["image", "person"]
    threads: int
    batch: int
    classes: tuple[str, ...]
    top: int


@dataclass(frozen=True, slots=True)
class Written:
    """The label files, the input of each, and notes."""

    files: tuple[Path, ...] = ()
    of: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def others_of(
    apply: Sequence[str], ids: str | None, images: str | None, withdrawn: str | None
) -> list[tuple[str, Dataset]]:
    """Load the datasets to label; images are looked for in ``images`` if not found nearby."""
    settings: dict[str, Any] = {"id": ids, "withdrawn": withdrawn, "allow_unmatched": True}
    datasets = []
    for text in apply:
        dataset = held_people(text, **settings)
        if dataset.root is None and images is not None:
            dataset = held_people(text, **settings, images=images)
        datasets.append((text, dataset))
    return datasets


def label_others(
    settings: Showing,
    other_datasets: Sequence[tuple[str, Dataset]],
    training_scan: Looked,
    folder: Path,
) -> Written:
    """Label other images; unreadable ones have no row, which an audit reports."""
    stems = [Path(text.partition(":")[2]).stem or dataset.name for text, dataset in other_datasets]
    label_results = Written()
    for name, (text, dataset) in zip(label_files(stems), other_datasets, strict=True):
        ids = dataset.instances["instance_id"]
        images = pictures_of(
            dataset, ids, settings.picture_of, settings.tuned.prepare, settings.threads
        )
        scan = images.look()
        readable_rows = np.flatnonzero(scan.readable())
        notes = [
            *told_of_pictures(ids, scan, text, learnt=False),
            *_caution_on_training_images(text, scan, training_scan),
        ]
        probabilities = settings.tuned.chances(images, settings.batch, readable_rows)
        table = label_table(
            probabilities, ids.gather(readable_rows), settings.classes, settings.top
        )
        file = write_text(folder / name, csv_text(table))
        label_results = Written(
            (*label_results.files, file),
            label_results.of | {name: text},
            (*label_results.notes, *notes),
        )
    return label_results


def _caution_on_training_images(text: str, scan: Looked, training_scan: Looked) -> list[str]:
    """Caution where images to be labelled were training images, by their hashes."""
    is_training_image = scan.readable() & np.isin(
        scan.marks, training_scan.marks[training_scan.readable()]
    )
    if not is_training_image.any():
        return []
    return [
        Caution(
            f"{text}: {int(is_training_image.sum()):,} of {len(is_training_image):,} pictures"
            " are files that the model"
            " learnt from or was stopped by. It knows their labels: audit those of other"
            " pictures."
        )
    ]


def labelled_in(folder: Path, record: str) -> dict[str, str]:
    """Read the label files of this training, with their inputs; none of a broken record."""
    try:
        source_by_file = dict(json.loads((folder / record).read_text(encoding="utf-8"))["labelled"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {
        str(name): str(text)
        for name, text in source_by_file.items()
        if str(name) == Path(str(name)).name and str(name).endswith(".csv")
    }


def without_labels(folder: Path, record: str) -> None:
    """Remove the label files of this training, which are invalid for other weights."""
    for name in labelled_in(folder, record):
        (folder / name).unlink(missing_ok=True)
