"""``isolux.train_fairface``: FairFace's network from a table of labels and pictures.

    load (for training) → who is learnt from → look at the pictures → epochs, each kept → weights

The network answers as any model does: ``isolux predict … --model fairface:OUT``. It measures
datasets, and is no product that judges people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.api._training_people import (
    build_epoch_notes,
    caution_or_refuse_unreadable,
    check_or_resume_training_dir,
    describe_dataset,
    describe_training,
    list_unreadable_ids,
    load_training_people,
    refuse_first_invalid_setting,
    refuse_one_class,
    remove_files,
    report_epoch_loss_and_accuracy,
    select_one_image_per_person,
    split_rows,
    write_record,
)
from isolux.api.train_fairface.training_rows import TrainingRows, select_training_rows
from isolux.core import progress, registry
from isolux.core.containers import Dataset
from isolux.core.notes import Caution
from isolux.io.atomic import write_text
from isolux.io.csv_text import to_safe_csv
from isolux.models.fairface import FILE, INPUT_SIZE_PX, Heads
from isolux.training import (
    CHECKPOINT,
    Epoch,
    FaceTrainingSet,
    Schedule,
    build_face_network,
    build_square_resize,
    count_draws_per_cell,
    read_matching_checkpoint_or_none,
    train_face_network,
)

_RECORD_FILE, _CLASS_COUNTS_FILE = "training.json", "classes.csv"
_MIN_SIDE_PX = 32  # pixels: below it the last stage has no spatial extent
_PURPOSE_NOTE = (
    "This network guesses how annotators perceived a face: an instrument for measuring datasets,"
    " and no product that judges people."
)
_NO_PERFORMANCE_NOTE = (
    "Those held out chose the epoch, so nothing here says how good the network is: audit its"
    " labels of other pictures."
)


@dataclass(frozen=True, slots=True)
class FaceTrainingResult:
    """A trained network.

    Parameters
    ----------
    folder : Path
        ``fairface.safetensors`` (weights), ``training.json`` (recipe, data, hashes, epochs),
        ``classes.csv`` and ``checkpoint.safetensors``, from which more epochs go on.
    classes : mapping of str to tuple of str
        Of each head.
    history : tuple of Epoch
    selected_epoch : int
        The epoch whose weights these are.
    counts : polars.DataFrame
        ``attribute, value, before, after``: faces learnt from, and drawn in each epoch.
    notes : tuple of str
        Cautions first.
    """

    folder: Path
    classes: dict[str, tuple[str, ...]]
    history: tuple[Epoch, ...]
    selected_epoch: int
    counts: pl.DataFrame
    notes: tuple[str, ...]


def train_fairface(
    data: Dataset | str | Path,
    *,
    out: str | Path,
    images: str | Path | None = None,
    target: Sequence[str] = (),
    balance: Sequence[str] = (),
    rows: int | None = None,
    held_out: float = 0.1,
    epochs: int = 20,
    patience: int = 3,
    batch: int = 64,
    learning_rate: float = 1e-4,
    side: int = INPUT_SIZE_PX,
    flip: bool = False,
    weights: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    threads: int = 0,
    input_unit: Literal["image", "person"] = "image",
    cluster: str | None = None,
    only: Sequence[str] = (),
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    data_option: Sequence[str] = (),
    overwrite: bool = False,
) -> FaceTrainingResult:
    r"""Train FairFace's network (section 4.2); the same call goes on where it was stopped.

    Parameters
    ----------
    data : Dataset or str
        The labelled faces: a table of FairFace's form, NAME:PATH, or a dataset. Data for
        evaluation alone is refused.
    out : str or Path
        The directory to write, or to resume.
    images : str or Path, optional
        The folder that the pictures' paths are relative to.
    target : sequence of str
        What to learn, with one head each; default: race, gender and age, if present.
    balance : sequence of str
        Attributes whose combinations are drawn equally often in every epoch.
    rows : int, optional
        Learn from this many rows, drawn with the seed (9,000 and 18,000 in the paper). Default:
        all.
    held_out : float
        Share of the rows, in whole clusters, used to choose the epoch.
    epochs : int
        The most epochs.
    patience : int
        Number of epochs without a lower held-out loss after which training stops.
    batch : int
        Faces per step.
    learning_rate : float
        Of Adam.
    side : int
        Height and width to which pictures are resized, in pixels.
    flip : bool
        Mirror half of the faces, different ones each epoch.
    weights : str, optional
        Initial weights of a ResNet-34, a .safetensors file. Default: random.
    seed : int
        Seed for the initial weights, for who is held out, and for the order of faces.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    threads : int
        Threads that open pictures; 0: one per core.
    input_unit : {"image", "person"}
        Whether a face is the whole image, or a person's box in it.
    cluster : str, optional
        What was sampled together: a cluster is learnt from or held out as a whole.
    only : sequence of str
        Who takes part: ``"service_test=False"``.
    withdrawn : str, optional
        File with the ids of people who withdrew: they are left out.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    id : str, optional
        The column of ids in a table.
    data_option : sequence of str
        A setting specific to the dataset, NAME=VALUE.
    overwrite : bool
        Start again, replacing an earlier training in that directory.

    Returns
    -------
    FaceTrainingResult

    Raises
    ------
    LicenceError
        Data whose licence does not let a model be trained on it, with its words.
    SpecError, UnknownNameError
        A setting that cannot be used; one class alone; labels, pictures or a recipe other than the
        training began with; no PyTorch.
    FileError
        Pictures that are missing or broken, beyond a few that are left out.

    Examples
    --------
    ``docs/methods/training.md`` trains one. A benchmark is refused before anything is read:

    >>> train_fairface("facet:annotations.csv", out="net")
    Traceback (most recent call last):
        ...
    isolux.core.errors.LicenceError: FACET may not be used to train a model
      ...
    """
    schedule = Schedule(learning_rate, batch, epochs, patience, flip, seed, device)
    refuse_first_invalid_setting(
        ("side", side, side >= _MIN_SIDE_PX, f"{_MIN_SIDE_PX} pixels or more"),
        ("held_out", held_out, 0.0 < held_out <= 0.5, "above 0, at most 0.5"),
        ("rows", rows, rows is None or rows >= 2, "2 or more"),
    )
    folder = check_or_resume_training_dir(out, _RECORD_FILE, overwrite=overwrite)
    dataset = _load_faces(
        data,
        cluster=cluster,
        only=only,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        id=id,
        data_option=data_option,
        images=None if images is None else str(images),
    )
    people = select_training_rows(dataset, target, balance)
    network = build_face_network(
        Heads(people.classes, side), seed=seed, weights=weights, device=device
    )
    training_record = {
        "network": "ResNet-34",
        "heads": {k: list(v) for k, v in people.classes.items()},
        "labels": people.digest(),
        "first weights": network.initial_weights,
        "recipe": {
            "learning_rate": learning_rate,
            "batch": batch,
            "flip": flip,
            "seed": seed,
            "side": side,
            "held_out": held_out,
            "rows": rows,
            "balance": list(people.balance),
            "input_unit": input_unit,
        },
    }
    checkpoint = None if overwrite else read_matching_checkpoint_or_none(folder, training_record)
    ids = people.frame["instance_id"]
    training_images = select_one_image_per_person(
        dataset, ids, input_unit, build_square_resize(side), threads
    )
    scan = training_images.scan()
    notes = (*dataset.notes, *people.notes, *caution_or_refuse_unreadable(ids, scan, dataset.name))
    train, held_out_rows = split_rows(people.frame, scan, held_out, seed, rows)
    for name in people.classes:
        refuse_one_class(people.frame[name].gather(train), name)
    faces = FaceTrainingSet(
        training_images, scan, people.labels(), train, held_out_rows, people.cells()
    )
    counts = count_classes(people, train)
    notes = (*notes, *build_count_notes(people, counts))
    report_counts(counts, len(train), len(held_out_rows), balanced=bool(balance))
    if overwrite:
        remove_files(folder, (CHECKPOINT, FILE, _RECORD_FILE, _CLASS_COUNTS_FILE))
    state = train_face_network(
        network,
        faces,
        schedule,
        folder=folder,
        training_record=training_record,
        checkpoint=checkpoint,
        report=lambda epoch: report_epoch_loss_and_accuracy(epoch, epochs),
    )
    notes = (
        *notes,
        *build_epoch_notes(state, faces.labels, held_out_rows),
        _NO_PERFORMANCE_NOTE,
        _PURPOSE_NOTE,
    )
    record = training_record | {
        **describe_dataset(dataset),
        **describe_training(state, schedule, (train, held_out_rows)),
        "unreadable": list_unreadable_ids(ids, scan),
        "notes": list(map(str, notes)),
    }
    write_text(folder / _CLASS_COUNTS_FILE, to_safe_csv(counts))
    write_record(folder / _RECORD_FILE, record)
    return FaceTrainingResult(
        folder, people.classes, state.history, state.selected_epoch(), counts, notes
    )


def _load_faces(source: Dataset | str | Path, **settings: Any) -> Dataset:
    """Load the faces; a bare path is a table of FairFace's form."""
    if not isinstance(source, Dataset):
        name, colon, _ = str(source).partition(":")
        has_loader_name = bool(colon) and name in registry.names("datasets")
        source = str(source) if has_loader_name else f"fairface:{source}"
    return load_training_people(source, **settings)


# Training faces of each class, before and after balancing.

_MIN_CLASS_FACES = 10  # training rows below which a class gets a caution
_MAX_REPEATS = 10  # repeats of a face per epoch from which memorisation is likely
_MAX_LISTED = 6
_COUNT_SCHEMA = {"attribute": pl.String, "value": pl.String, "before": pl.Int64, "after": pl.Int64}


def count_classes(training_rows: TrainingRows, train: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Count the training faces of each class, before and after balancing.

    Shapes: ``train`` [k].
    """
    frame = training_rows.frame[train]
    names = list(dict.fromkeys((*training_rows.classes, *training_rows.balance)))
    if training_rows.balance:
        cells = frame.group_by(training_rows.balance).len("before")
        shares = cells.with_columns(
            after=pl.lit(_draws_per_balance_cell(training_rows, train)) / pl.col("before")
        )
        frame = frame.join(shares.drop("before"), on=training_rows.balance, how="left")
    else:
        frame = frame.with_columns(after=pl.lit(1.0))
    count_tables = [
        _count_attribute(frame, name, training_rows.classes.get(name, ())) for name in names
    ]
    if len(training_rows.balance) > 1:
        combination = pl.concat_str(training_rows.balance, separator=" × ").alias(
            "*".join(training_rows.balance)
        )
        count_tables.append(
            _count_attribute(frame.with_columns(combination), "*".join(training_rows.balance), ())
        )
    return pl.concat([pl.DataFrame(schema=_COUNT_SCHEMA), *count_tables])


def _count_attribute(frame: pl.DataFrame, name: str, classes: tuple[str, ...]) -> pl.DataFrame:
    counts = (
        frame.drop_nulls(name)
        .group_by(value=name)
        .agg(before=pl.len().cast(pl.Int64), after=pl.col("after").sum().round().cast(pl.Int64))
    )
    order = classes or tuple(counts["value"].sort().to_list())
    all_classes = pl.DataFrame({"value": order}, schema={"value": pl.String}).join(
        counts, on="value", how="left", maintain_order="left"
    )
    filled_counts = all_classes.with_columns(
        pl.col("before", "after").fill_null(0), attribute=pl.lit(name)
    )
    return filled_counts.select(*_COUNT_SCHEMA)


def _draws_per_balance_cell(training_rows: TrainingRows, train: npt.NDArray[np.int64]) -> int:
    cells = training_rows.cells()
    return 0 if cells is None else count_draws_per_cell(cells[train])


def build_count_notes(training_rows: TrainingRows, counts: pl.DataFrame) -> tuple[str, ...]:
    """Caution on rare classes, and on faces that balancing repeats often."""
    notes: list[str] = []
    rare_rows = counts.filter(
        pl.col("attribute").is_in(list(training_rows.classes)), pl.col("before") < _MIN_CLASS_FACES
    )
    if rare_rows.height:
        examples = _format_examples(
            [f"{row['value']} {row['before']}" for row in rare_rows.iter_rows(named=True)]
        )
        notes.append(
            Caution(
                f"{rare_rows.height:,} classes have fewer than {_MIN_CLASS_FACES} faces to be"
                f" learnt from: {examples}."
            )
        )
    if training_rows.balance:
        notes += _build_balance_notes(
            counts.filter(attribute="*".join(training_rows.balance)), training_rows
        )
    return tuple(notes)


def _build_balance_notes(cells: pl.DataFrame, training_rows: TrainingRows) -> list[str]:
    present = cells.filter(pl.col("before") > 0)
    n_possible = 1
    for name in training_rows.balance:
        n_possible *= max(training_rows.frame[name].n_unique(), 1)
    names_text = " × ".join(training_rows.balance)
    n_drawn, n_available = int(present["after"][0]), sorted(present["before"].to_list())
    text = (
        f"Balanced over {present.height:,} of {n_possible:,} combinations of {names_text}:"
        " each epoch draws"
        f" {n_drawn:,} faces of each, which had {n_available[0]:,} to {n_available[-1]:,}."
    )
    if present.height < n_possible:
        text += " No draw makes up for combinations that no face is of."
    notes: list[str] = [text]
    repeats = present.with_columns(times=pl.col("after") / pl.col("before"))
    repeated_cells = repeats.filter(pl.col("times") >= _MAX_REPEATS).sort("times", descending=True)
    if repeated_cells.height:
        examples = _format_examples(
            [
                f"{row['value']} ({row['before']} faces, {row['times']:.0f} times)"
                for row in repeated_cells.iter_rows(named=True)
            ]
        )
        notes.append(
            Caution(
                f"Faces of {repeated_cells.height:,} rare combinations are shown {_MAX_REPEATS}"
                " times or more"
                f" in each epoch, and may be learnt by heart: {examples}."
            )
        )
    return notes


def _format_examples(examples: list[str]) -> str:
    remainder = f" and {len(examples) - _MAX_LISTED:,} more" if len(examples) > _MAX_LISTED else ""
    return ", ".join(examples[:_MAX_LISTED]) + remainder


# Progress messages before a network is trained.


def report_counts(
    counts: pl.DataFrame, n_training: int, n_held_out: int, *, balanced: bool
) -> None:
    """Report the training faces of each class, before and after balancing."""
    progress.report_line(f"{n_training:,} faces are learnt from, {n_held_out:,} are held out.")
    single_attributes = counts.filter(~pl.col("attribute").str.contains("*", literal=True))
    for (attribute,), attribute_counts in single_attributes.group_by(
        ["attribute"], maintain_order=True
    ):
        text = ", ".join(
            f"{row['value']} {row['before']:,}" + (f" → {row['after']:,}" if balanced else "")
            for row in attribute_counts.iter_rows(named=True)
        )
        progress.report_line(f"{attribute}: {text}")
    if balanced:
        progress.report_line("(before → after: faces, and how often an epoch draws one of them)")
