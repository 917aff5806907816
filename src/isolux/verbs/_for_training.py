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

from isolux.datasets import refuse_training
from isolux.engine import list_pictures
from isolux.engine.pictures import Picture, open_picture, picture_folder
from isolux.io.atomic import refuse_existing, write_text
from isolux.io.images import Pixels
from isolux.people.held import held_people
from isolux.training import (
    CHECKPOINT,
    UNKNOWN,
    Epoch,
    Look,
    Looked,
    Pictures,
    Schedule,
    State,
    clusters_of,
    held_out_rows,
    labels_of,
    some_rows,
)
from isolux.vocabulary import progress, registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import UNKNOWN_VALUES

FEW = 10
"""Training rows below which a class gets a caution."""
_MAX_LISTED_CLASSES = 8


def held_for_training(source: Dataset | str | Path, **settings: Any) -> Dataset:
    """Load training people; evaluation-only data is refused before it is read."""
    name = "" if isinstance(source, Dataset) else str(source).partition(":")[0]
    if name in registry.names("datasets"):
        refuse_training(cast("DatasetInfo", registry.info("datasets", name)))
    dataset = held_people(source, purpose="training", **settings)
    refuse_training(dataset.info)
    return dataset


def labelled_rows(dataset: Dataset, target: str | None) -> tuple[pl.DataFrame, list[str]]:
    """Select rows with one label: ``instance_id, cluster, label``, and note the others."""
    clusters, labels = clusters_of(dataset), labels_of(dataset, target)
    rows = clusters.join(labels, on="instance_id", how="inner", maintain_order="left")
    refuse_own_values(target or "classes", rows["label"], dataset.name)
    n_unlabelled = clusters.height - rows.height
    text = f"{n_unlabelled:,} of {clusters.height:,} have no label, or several, and take no part."
    return rows, [text] if n_unlabelled else []


def class_numbers(labels: pl.Series, classes: Sequence[str]) -> npt.NDArray[np.int64]:
    """Encode labels as class numbers; ``UNKNOWN`` for labels of no class."""
    numbers = {name: k for k, name in enumerate(classes)}
    encoded = labels.replace_strict(numbers, default=UNKNOWN, return_dtype=pl.Int64)
    return encoded.to_numpy().astype(np.int64)


def parted_rows(
    rows: pl.DataFrame, scan: Looked, share: float, seed: int, max_rows: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split readable rows into training and held-out rows; clusters are held out whole."""
    readable_rows = np.flatnonzero(scan.readable())
    clusters = rows["cluster"].rank("dense").cast(pl.Int64).to_numpy()
    is_held_out = held_out_rows(clusters[readable_rows], share, seed)
    return some_rows(readable_rows[~is_held_out], max_rows, seed), readable_rows[is_held_out]


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


def refuse_own_values(name: str, labels: pl.Series, source: str) -> None:
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


def unknown_labels(labels: pl.Series) -> list[str]:
    """Caution where a label that means "not known" is used as a class."""
    unknown = labels.filter(labels.str.strip_chars().str.to_lowercase().is_in(UNKNOWN_VALUES))
    return [
        Caution(
            f"{label!r} is learnt as a class ({n:,} rows). If it means that the label is"
            f' not known: --only "TARGET!={label}" leaves it out.'
        )
        for label, n in unknown.value_counts(name="n").sort(labels.name).iter_rows()
    ]


def rare_classes(code: npt.NDArray[np.int64], names: Sequence[str]) -> list[str]:
    """Caution on classes with few or no training rows."""
    counts = np.bincount(code, minlength=len(names))
    rare_names = [(name, int(n)) for name, n in zip(names, counts, strict=True) if n < FEW]
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
            f"{len(rare_names):,} of {len(names):,} classes have fewer than {FEW} rows to be learnt"
            f" from: {examples}{remainder}."
        )
    ]


def refuse_settings(*settings: tuple[str, object, bool, str]) -> None:
    """Refuse the first invalid setting; each is (name, value, is valid, what is expected)."""
    for name, setting_value, is_good, expected in settings:
        if not is_good:
            raise SpecError(
                f"the setting {name!r} of a training cannot be used",
                expected=expected,
                found=repr(setting_value),
            )


def training_folder(out: str | Path, record: str, *, overwrite: bool) -> Path:
    """Check the output directory before any work; an unfinished training in it is resumed."""
    folder = Path(out).expanduser().resolve()
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if not is_empty and (overwrite or not (folder / CHECKPOINT).is_file()):
        refuse_existing(folder, overwrite=overwrite, marks=(CHECKPOINT, record), what="training")
    return folder


def remove_files(folder: Path, names: Sequence[str]) -> None:
    """Remove the files of an earlier training."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


def facts_of(dataset: Dataset) -> dict[str, Any]:
    """Describe the training data for the record."""
    return {"data": dataset.name, "licence": dataset.info.licence, "inputs": dict(dataset.inputs)}


def facts_of_training(
    state: State, schedule: Schedule, split_rows: Sequence[npt.NDArray[np.int64]]
) -> dict[str, Any]:
    """Describe schedule, numbers of rows and epochs for the record."""
    return {
        "schedule": asdict(schedule),
        "learnt_from": len(split_rows[0]),
        "held_out": len(split_rows[1]),
        "kept_epoch": state.kept(),
        "epochs": [asdict(epoch) for epoch in state.history],
    }


def digest_of(rows: object) -> str:
    """Hash training rows with their labels, in order."""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON."""
    write_text(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def label_files(stems: Sequence[str]) -> list[str]:
    """Name the label file of each input; equal names are numbered."""
    counts = Counter(stems)
    return [
        f"labels-{k}-{stem}.csv" if counts[stem] > 1 else f"labels-{stem}.csv"
        for k, stem in enumerate(stems, start=1)
    ]


def label_table(
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


def say_epoch(epoch: Epoch, n_epochs: int) -> None:
    """Report loss and accuracy of an epoch."""
    accuracies = ", ".join(
        f"{name} {100 * share:.1f} %" for name, share in epoch.accuracy.items() if share is not None
    )
    line = (
        f"epoch {epoch.number} of {n_epochs}: loss {epoch.loss:.4f}, held out {epoch.held_loss:.4f}"
        f" (right: {accuracies}), {epoch.seconds:.0f} s"
    )
    progress.say(line)


def told_of_epochs(
    state: State, labels: npt.NDArray[np.int64], held_out_rows: npt.NDArray[np.int64]
) -> tuple[str, ...]:
    """Note the selected epoch, and caution on heads no better than the majority class."""
    selected_epoch = state.history[state.kept() - 1]
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


def pictures_of(
    dataset: Dataset,
    ids: pl.Series,
    input_unit: Literal["image", "person"],
    prepare: Callable[[Pixels], npt.NDArray[Any]],
    threads: int,
) -> Pictures:
    """Select one image per person, in the order of ``ids``."""
    if threads < 0:
        raise SpecError(
            "pictures are opened by threads",
            expected="--threads 1 or more; 0: one a core",
            found=str(threads),
        )
    image_by_unit: dict[str, Picture] = {}
    for image in list_pictures(dataset, "labels", input_unit):
        for unit in image.units:
            image_by_unit[unit.id] = replace(image, units=(unit,))
    images, folder = [image_by_unit[unit_id] for unit_id in ids.to_list()], picture_folder(dataset)

    def decode_image(row: int) -> Look:
        decoded_image = open_picture(images[row], folder)
        crop = decoded_image.cuts[0]
        return Look(crop.pixels, decoded_image.sha256, crop.reason)

    return Pictures(len(images), decode_image, prepare, threads)


def unreadable(ids: pl.Series, scan: Looked) -> list[list[str]]:
    """List ids without a readable image, with the reason."""
    pairs = zip(ids.to_list(), scan.reasons, strict=True)
    return [[unit_id, reason] for unit_id, reason in pairs if reason is not None]


def told_of_pictures(
    ids: pl.Series, scan: Looked, source: str, *, learnt: bool = True
) -> list[str]:
    """Caution on unreadable images; refuse them beyond a share of all."""
    missing = unreadable(ids, scan)
    if not missing:
        return []
    n_images = len(scan.reasons)
    examples = "; ".join(
        f"{unit_id} ({reason})" for unit_id, reason in missing[:_MAX_LISTED_IMAGES]
    )
    if len(missing) > (_MAX_UNREADABLE_SHARE * n_images if learnt else n_images - 1):
        raise FileError(
            f"{len(missing):,} of {n_images:,} pictures cannot be "
            + ("learnt from" if learnt else "labelled"),
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
    if learnt:
        return [Caution(f"{text} are left out: {examples}{remainder}.")]
    return [Caution(f"{source}: {text} have no labels: {examples}{remainder}.")]
