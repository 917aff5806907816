"""Labels of other images by a fine-tuned model, with cautions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isolux.api._training_people import (
    assign_label_file_names,
    build_top_label_table,
    caution_or_refuse_unreadable,
    select_one_image_per_person,
)
from isolux.core.containers import Dataset
from isolux.core.notes import Caution
from isolux.io.atomic import write_text
from isolux.io.csv_text import to_safe_csv
from isolux.people.sources import load_people_or_take_dataset
from isolux.training import ImageScan, TrainableExtractor


@dataclass(frozen=True, slots=True)
class LabelPredictionSettings:
    """How images are given to the model, and how many labels each gets."""

    extractor: TrainableExtractor
    input_unit: Literal["image", "person"]
    threads: int
    batch: int
    classes: tuple[str, ...]
    top: int


@dataclass(frozen=True, slots=True)
class LabelFiles:
    """The label files, the input of each, and notes."""

    files: tuple[Path, ...] = ()
    source_by_file: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def load_other_datasets(
    apply: Sequence[str], ids: str | None, images: str | None, withdrawn: str | None
) -> list[tuple[str, Dataset]]:
    """Load the datasets to label; images are looked for in ``images`` if not found nearby."""
    settings: dict[str, Any] = {
        "id": ids,
        "withdrawn": withdrawn,
        "allow_unmatched": withdrawn is not None,
    }
    datasets = []
    for text in apply:
        dataset = load_people_or_take_dataset(text, **settings)
        if dataset.root is None and images is not None:
            dataset = load_people_or_take_dataset(text, **settings, images=images)
        datasets.append((text, dataset))
    return datasets


def predict_labels(
    settings: LabelPredictionSettings,
    other_datasets: Sequence[tuple[str, Dataset]],
    training_scan: ImageScan,
    folder: Path,
) -> LabelFiles:
    """Label other images; unreadable ones have no row, which an audit reports."""
    stems = [Path(text.partition(":")[2]).stem or dataset.name for text, dataset in other_datasets]
    label_results = LabelFiles()
    for name, (text, dataset) in zip(assign_label_file_names(stems), other_datasets, strict=True):
        ids = dataset.instances["instance_id"]
        images = select_one_image_per_person(
            dataset, ids, settings.input_unit, settings.extractor.prepare, settings.threads
        )
        scan = images.scan()
        readable_rows = np.flatnonzero(scan.is_readable())
        notes = [
            *caution_or_refuse_unreadable(ids, scan, text, is_training=False),
            *_caution_on_training_images(text, scan, training_scan),
        ]
        probabilities = settings.extractor.predict_probabilities(
            images, settings.batch, readable_rows
        )
        table = build_top_label_table(
            probabilities, ids.gather(readable_rows), settings.classes, settings.top
        )
        file = write_text(folder / name, to_safe_csv(table))
        label_results = LabelFiles(
            (*label_results.files, file),
            label_results.source_by_file | {name: text},
            (*label_results.notes, *notes),
        )
    return label_results


def _caution_on_training_images(text: str, scan: ImageScan, training_scan: ImageScan) -> list[str]:
    """Caution where images to be labelled were training images, by their hashes."""
    is_training_image = scan.is_readable() & np.isin(
        scan.hashes, training_scan.hashes[training_scan.is_readable()]
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


def read_labelled_files(folder: Path, record: str) -> dict[str, str]:
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


def remove_label_files(folder: Path, record: str) -> None:
    """Remove the label files of this training, which are invalid for other weights."""
    for name in read_labelled_files(folder, record):
        (folder / name).unlink(missing_ok=True)
