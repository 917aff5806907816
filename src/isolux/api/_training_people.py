"""Inputs of the training functions: training people, their images, and cautions on their labels."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core import progress, registry
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.spec import UNKNOWN_VALUES
from isolux.datasets import check_training_is_licensed
from isolux.engine import list_source_images
from isolux.engine.source_images import SourceImage, decode_and_crop_units, find_image_folder
from isolux.io.atomic import refuse_existing, write_text
from isolux.io.images import Pixels
from isolux.people.sources import load_people_or_take_dataset
from isolux.training import (
    CHECKPOINT,
    UNKNOWN,
    DecodedTrainingImage,
    Epoch,
    ImageScan,
    Schedule,
    State,
    TrainingImages,
    draw_held_out_mask_by_cluster,
    list_people_with_clusters,
    list_people_with_one_label,
    sample_rows_at_most,
)

MIN_CLASS_ROWS = 10
"""Training rows below which a class gets a caution."""
_MAX_LISTED_CLASSES = 8


def load_training_people(source: Dataset | str | Path, **settings: Any) -> Dataset:
    """Load training people; evaluation-only data is refused before it is read."""
    name = "" if isinstance(source, Dataset) else str(source).partition(":")[0]
    if name in registry.names("datasets"):
        check_training_is_licensed(cast("DatasetInfo", registry.load_info("datasets", name)))
    dataset = load_people_or_take_dataset(source, purpose="training", **settings)
    check_training_is_licensed(dataset.info)
    return dataset


def select_rows_with_one_label(
    dataset: Dataset, target: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """Select rows with one label: ``instance_id, cluster, label``, and note the others."""
    clusters, labels = (
        list_people_with_clusters(dataset),
        list_people_with_one_label(dataset, target),
    )
    rows = clusters.join(labels, on="instance_id", how="inner", maintain_order="left")
    refuse_unique_values(target or "classes", rows["label"], dataset.name)
    n_unlabelled = clusters.height - rows.height
    text = f"{n_unlabelled:,} of {clusters.height:,} have no label, or several, and take no part."
    return rows, [text] if n_unlabelled else []


def encode_classes(labels: pl.Series, classes: Sequence[str]) -> npt.NDArray[np.int64]:
    """Encode labels as class numbers; ``UNKNOWN`` for labels of no class."""
    numbers = {name: k for k, name in enumerate(classes)}
    encoded = labels.replace_strict(numbers, default=UNKNOWN, return_dtype=pl.Int64)
    return encoded.to_numpy().astype(np.int64)


def split_rows(
    rows: pl.DataFrame, scan: ImageScan, share: float, seed: int, max_rows: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split readable rows into training and held-out rows; clusters are held out whole."""
    readable_rows = np.flatnonzero(scan.is_readable())
    clusters = rows["cluster"].rank("dense").cast(pl.Int64).to_numpy()
    is_held_out = draw_held_out_mask_by_cluster(clusters[readable_rows], share, seed)
    return sample_rows_at_most(readable_rows[~is_held_out], max_rows, seed), readable_rows[
        is_held_out
    ]


def refuse_one_class(labels: Iterable[object], name: str, source: str | None = None) -> None:
    """Refuse a target with a single class among the training rows."""
    classes = sorted(map(str, set(labels) - {None}))
    if len(classes) < 2:
        raise SpecError(
            f"there is nothing to tell apart in {name!r}",
            expected="two classes or more among those learnt from",
            found=", ".join(map(repr, classes)) or "no label",
            where=source,
        )


def refuse_unique_values(name: str, labels: pl.Series, source: str) -> None:
    """Refuse a target with nearly as many values as people, such as ids or numbers."""
    labelled = labels.drop_nulls()
    values = labelled.unique().sort()
    if values.len() > max(labelled.len() // 2, 2):
        raise SpecError(
            f"{name!r} has nearly as many values as people, so no class can be learnt",
            expected="an attribute of few values",
            found=f"{values.len():,} values of {labelled.len():,} people, such as {values[0]!r}",
            where=source,
        )


def caution_on_unknown_labels(labels: pl.Series) -> list[str]:
    """Caution where a label that means "not known" is used as a class."""
    unknown = labels.filter(labels.str.strip_chars().str.to_lowercase().is_in(UNKNOWN_VALUES))
    return [
        Caution(
            f"{label!r} is learnt as a class ({n:,} rows). If it means that the label is"
            f' not known: --only "TARGET!={label}" leaves it out.'
        )
        for label, n in unknown.value_counts(name="n").sort(labels.name).iter_rows()
    ]


def caution_on_rare_classes(code: npt.NDArray[np.int64], names: Sequence[str]) -> list[str]:
    """Caution on classes with few or no training rows."""
    counts = np.bincount(code, minlength=len(names))
    rare_names = [
        (name, int(n)) for name, n in zip(names, counts, strict=True) if n < MIN_CLASS_ROWS
    ]
    if not rare_names:
        return []
    examples = ", ".join(f"{name!r} {n}" for name, n in rare_names[:_MAX_LISTED_CLASSES])
    remainder = (
        f" and {len(rare_names) - _MAX_LISTED_CLASSES:,} more"
        if len(rare_names) > _MAX_LISTED_CLASSES
        else ""
    )
    return [
        Caution(
            f"{len(rare_names):,} of {len(names):,} classes have fewer than {MIN_CLASS_ROWS} rows"
            f" to be learnt from: {examples}{remainder}."
        )
    ]


def refuse_first_invalid_setting(*settings: tuple[str, object, bool, str]) -> None:
    """Refuse the first invalid setting; each is (name, value, is valid, what is expected)."""
    for name, setting_value, is_good, expected in settings:
        if not is_good:
            raise SpecError(
                f"the setting {name!r} of a training cannot be used",
                expected=expected,
                found=repr(setting_value),
            )


def check_or_resume_training_dir(out: str | Path, record: str, *, overwrite: bool) -> Path:
    """Check the output directory before any work; an unfinished training in it is resumed."""
    folder = Path(out).expanduser().resolve()
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if not is_empty and (overwrite or not (folder / CHECKPOINT).is_file()):
        refuse_existing(
            folder, overwrite=overwrite, marks=(CHECKPOINT, record), folder_kind="training"
        )
    return folder


def remove_files(folder: Path, names: Sequence[str]) -> None:
    """Remove the files of an earlier training."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Describe the training data for the record."""
    return {"data": dataset.name, "licence": dataset.info.licence, "inputs": dict(dataset.inputs)}


def describe_training(
    state: State, schedule: Schedule, split_rows: Sequence[npt.NDArray[np.int64]]
) -> dict[str, Any]:
    """Describe schedule, numbers of rows and epochs for the record."""
    return {
        "schedule": asdict(schedule),
        "learnt_from": len(split_rows[0]),
        "held_out": len(split_rows[1]),
        "kept_epoch": state.selected_epoch(),
        "epochs": [asdict(epoch) for epoch in state.history],
    }


def hash_rows(rows: object) -> str:
    """Hash training rows with their labels, in order."""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON."""
    write_text(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def assign_label_file_names(stems: Sequence[str]) -> list[str]:
    """Name the label file of each input; equal names are numbered."""
    counts = Counter(stems)
    return [
        f"labels-{k}-{stem}.csv" if counts[stem] > 1 else f"labels-{stem}.csv"
        for k, stem in enumerate(stems, start=1)
    ]


def build_top_label_table(
    probabilities: npt.NDArray[np.float64], ids: pl.Series, classes: Sequence[str], top: int
) -> pl.DataFrame:
    """List each image's most likely labels, most likely first: ``id, label, score``.

    Shapes: ``probabilities`` [n, classes], ``ids`` [n].
    """
    k = min(top, len(classes))
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    cells: dict[str, Any] = {
        "id": ids.gather(np.repeat(np.arange(len(ids)), k)),
        "label": pl.Series([classes[j] for j in order.ravel().tolist()], dtype=pl.String),
        "score": np.take_along_axis(probabilities, order, axis=1).ravel(),
    }
    return pl.DataFrame(cells)


def report_epoch_loss_and_accuracy(epoch: Epoch, n_epochs: int) -> None:
    """Report loss and accuracy of an epoch."""
    accuracies = ", ".join(
        f"{name} {100 * share:.1f} %" for name, share in epoch.accuracy.items() if share is not None
    )
    line = (
        f"epoch {epoch.number} of {n_epochs}: loss {epoch.loss:.4f}, held out {epoch.held_loss:.4f}"
        f" (right: {accuracies})"
    )
    progress.report_line(line)


def build_epoch_notes(
    state: State, labels: npt.NDArray[np.int64], held_out_rows: npt.NDArray[np.int64]
) -> tuple[str, ...]:
    """Note the selected epoch, and caution on heads no better than the majority class."""
    selected_epoch = state.history[state.selected_epoch() - 1]
    notes: list[str] = []
    for k, (name, share) in enumerate(selected_epoch.accuracy.items()):
        classes = labels[held_out_rows, k]
        classes = classes[classes != UNKNOWN]
        if share is None or not len(classes):
            notes.append(
                Caution(f"No one who was held out has a {name}: nothing says what its head learnt.")
            )
            continue
        majority_share = float(np.bincount(classes).max() / len(classes))
        if share <= majority_share:
            notes.append(
                Caution(
                    f"The head for {name} is right for {100 * share:.1f} % of those held out, no "
                    f"more than the commonest answer alone ({100 * majority_share:.1f} %)."
                )
            )
    text = (
        f"Epoch {selected_epoch.number} of {len(state.history)} is kept: loss"
        f" {selected_epoch.loss:.4f}"
    )
    return (
        *notes,
        f"{text} of those learnt from, {selected_epoch.held_loss:.4f} of those held out.",
    )


_MAX_UNREADABLE_SHARE = (
    0.05  # of all images: with more unreadable ones, the folder or the files are not the right ones
)
_MAX_LISTED_IMAGES = 3


def select_one_image_per_person(
    dataset: Dataset,
    ids: pl.Series,
    input_unit: Literal["image", "person"],
    prepare: Callable[[Pixels], npt.NDArray[Any]],
    threads: int,
) -> TrainingImages:
    """Select one image per person, in the order of ``ids``."""
    if threads < 0:
        raise SpecError(
            "pictures are opened by threads",
            expected="--threads 1 or more; 0: one a core",
            found=str(threads),
        )
    image_by_unit: dict[str, SourceImage] = {}
    for image in list_source_images(dataset, "labels", input_unit):
        for unit in image.units:
            image_by_unit[unit.id] = replace(image, units=(unit,))
    images, folder = (
        [image_by_unit[unit_id] for unit_id in ids.to_list()],
        find_image_folder(dataset),
    )

    def decode_image(row: int) -> DecodedTrainingImage:
        decoded_image = decode_and_crop_units(images[row], folder)
        crop = decoded_image.crops[0]
        return DecodedTrainingImage(crop.pixels, decoded_image.sha256, crop.reason)

    return TrainingImages(len(images), decode_image, prepare, threads)


def list_unreadable_ids(ids: pl.Series, scan: ImageScan) -> list[list[str]]:
    """List ids without a readable image, with the reason."""
    pairs = zip(ids.to_list(), scan.reasons, strict=True)
    return [[unit_id, reason] for unit_id, reason in pairs if reason is not None]


def caution_or_refuse_unreadable(
    ids: pl.Series, scan: ImageScan, source: str, *, is_training: bool = True
) -> list[str]:
    """Caution on unreadable images; refuse them beyond a share of all."""
    missing = list_unreadable_ids(ids, scan)
    if not missing:
        return []
    n_images = len(scan.reasons)
    examples = "; ".join(
        f"{unit_id} ({reason})" for unit_id, reason in missing[:_MAX_LISTED_IMAGES]
    )
    if len(missing) > (_MAX_UNREADABLE_SHARE * n_images if is_training else n_images - 1):
        raise FileError(
            f"{len(missing):,} of {n_images:,} pictures cannot be "
            + ("learnt from" if is_training else "labelled"),
            expected="nearly all of them: the few that cannot are left out",
            found=examples,
            where=source,
            hint="name the folder that holds them: --images FOLDER (images=…)",
        )
    remainder = (
        f"; and {len(missing) - _MAX_LISTED_IMAGES:,} more"
        if len(missing) > _MAX_LISTED_IMAGES
        else ""
    )
    text = f"{len(missing):,} of {n_images:,} pictures cannot be read and"
    if is_training:
        return [Caution(f"{text} are left out: {examples}{remainder}.")]
    return [Caution(f"{source}: {text} have no labels: {examples}{remainder}.")]
