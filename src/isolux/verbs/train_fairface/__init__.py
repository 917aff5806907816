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

from isolux.io.atomic import write_text
from isolux.io.csv_text import csv_text
from isolux.models.fairface import FILE, SIDE, Heads
from isolux.training import (
    CHECKPOINT,
    Epoch,
    Faces,
    Schedule,
    begun,
    draws_of_cell,
    network_of,
    prepared,
    train_faces,
)
from isolux.verbs._for_training import (
    facts_of,
    facts_of_training,
    held_for_training,
    parted_rows,
    pictures_of,
    refuse_one_class,
    refuse_settings,
    remove_files,
    say_epoch,
    told_of_epochs,
    told_of_pictures,
    training_folder,
    unreadable,
    write_record,
)
from isolux.verbs.train_fairface.rows import Rows, rows_of
from isolux.vocabulary import progress, registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.notes import Caution

_RECORD, _COUNTS = "training.json", "classes.csv"
_SMALLEST = 32  # pixels: below it nothing is left for the last stage to look at
_PURPOSE = (
    "This network guesses how annotators perceived a face: an instrument for measuring datasets,"
    " and no product that judges people."
)
_NOT_A_RESULT = (
    "Those held out chose the epoch, so nothing here says how good the network is: audit its"
    " labels of other pictures."
)


@dataclass(frozen=True, slots=True)
class TrainedFaces:
    """A trained network.

    Parameters
    ----------
    folder : Path
        ``fairface.safetensors`` (weights), ``training.json`` (recipe, data, hashes, epochs),
        ``classes.csv`` and ``checkpoint.safetensors``, from which more epochs go on.
    classes : mapping of str to tuple of str
        Of each head.
    history : tuple of Epoch
    kept : int
        The epoch whose weights these are.
    counts : polars.DataFrame
        ``attribute, value, before, after``: faces learnt from, and drawn in each epoch.
    notes : tuple of str
        Cautions first.
    """

    folder: Path
    classes: dict[str, tuple[str, ...]]
    history: tuple[Epoch, ...]
    kept: int
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
    side: int = SIDE,
    flip: bool = False,
    weights: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    threads: int = 0,
    picture_of: Literal["image", "person"] = "image",
    cluster: str | None = None,
    only: Sequence[str] = (),
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    data_option: Sequence[str] = (),
    overwrite: bool = False,
) -> TrainedFaces:
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
    picture_of : {"image", "person"}
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
    TrainedFaces

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
    isolux.vocabulary.errors.LicenceError: FACET may not be used to train a model
      ...
    """
    how = Schedule(learning_rate, batch, epochs, patience, flip, seed, device)
    refuse_settings(
        ("side", side, side >= _SMALLEST, f"{_SMALLEST} pixels or more"),
        ("held_out", held_out, 0.0 < held_out <= 0.5, "above 0, at most 0.5"),
        ("rows", rows, rows is None or rows >= 2, "2 or more"),
    )
    folder = training_folder(out, _RECORD, overwrite=overwrite)
    dataset = _loaded(
        data,
        cluster=cluster,
        only=only,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        id=id,
        data_option=data_option,
        images=None if images is None else str(images),
    )
    people = rows_of(dataset, target, balance)
    network = network_of(Heads(people.classes, side), seed=seed, weights=weights, device=device)
    about = {
        "network": "ResNet-34",
        "heads": {k: list(v) for k, v in people.classes.items()},
        "labels": people.digest(),
        "first weights": network.start,
        "recipe": {
            "learning_rate": learning_rate,
            "batch": batch,
            "flip": flip,
            "seed": seed,
            "side": side,
            "held_out": held_out,
            "rows": rows,
            "balance": list(people.balance),
            "picture_of": picture_of,
        },
    }
    before = None if overwrite else begun(folder, about)
    ids = people.frame["instance_id"]
    pictures = pictures_of(dataset, ids, picture_of, prepared(side), threads)
    looked = pictures.look()
    notes = (*dataset.notes, *people.notes, *told_of_pictures(ids, looked, dataset.name))
    train, held = parted_rows(people.frame, looked, held_out, seed, rows)
    for name in people.classes:
        refuse_one_class(people.frame[name].gather(train), name)
    faces = Faces(pictures, looked, people.labels(), train, held, people.cells())
    counts = class_counts(people, train)
    notes = (*notes, *told_of_counts(people, counts))
    say_counts(counts, len(train), len(held), balanced=bool(balance))
    if overwrite:
        remove_files(folder, (CHECKPOINT, FILE, _RECORD, _COUNTS))
    state = train_faces(
        network,
        faces,
        how,
        folder=folder,
        about=about,
        before=before,
        tell=lambda one: say_epoch(one, epochs),
    )
    notes = (*notes, *told_of_epochs(state, faces.labels, held), _NOT_A_RESULT, _PURPOSE)
    record = about | {
        **facts_of(dataset),
        **facts_of_training(state, how, (train, held)),
        "unreadable": unreadable(ids, looked),
        "notes": list(map(str, notes)),
    }
    write_text(folder / _COUNTS, csv_text(counts))
    write_record(folder / _RECORD, record)
    return TrainedFaces(folder, people.classes, state.history, state.kept(), counts, notes)


def _loaded(data: Dataset | str | Path, **settings: Any) -> Dataset:
    """Load the faces; a bare path is a table of FairFace's form."""
    if not isinstance(data, Dataset):
        name, colon, _ = str(data).partition(":")
        known = bool(colon) and name in registry.names("datasets")
        data = str(data) if known else f"fairface:{data}"
    return held_for_training(data, **settings)


# How many faces of each class are learnt from, before a balance and after.

_FEW = 10  # rows of a class below which it is hardly learnt
_OFTEN = 10  # times that a face is shown in one epoch, from which on it may be learnt by heart
_SHOWN = 6
_SCHEMA = {"attribute": pl.String, "value": pl.String, "before": pl.Int64, "after": pl.Int64}


def class_counts(rows: Rows, train: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Count the faces that are learnt from.

    Shapes: ``train`` [k].
    """
    frame = rows.frame[train]
    names = list(dict.fromkeys((*rows.classes, *rows.balance)))
    if rows.balance:
        cells = frame.group_by(rows.balance).len("before")
        shares = cells.with_columns(after=pl.lit(_drawn(rows, train)) / pl.col("before"))
        frame = frame.join(shares.drop("before"), on=rows.balance, how="left")
    else:
        frame = frame.with_columns(after=pl.lit(1.0))
    found = [_counted(frame, name, rows.classes.get(name, ())) for name in names]
    if len(rows.balance) > 1:
        joined = pl.concat_str(rows.balance, separator=" × ").alias("*".join(rows.balance))
        found.append(_counted(frame.with_columns(joined), "*".join(rows.balance), ()))
    return pl.concat([pl.DataFrame(schema=_SCHEMA), *found])


def _counted(frame: pl.DataFrame, name: str, classes: tuple[str, ...]) -> pl.DataFrame:
    counts = (
        frame.drop_nulls(name)
        .group_by(value=name)
        .agg(before=pl.len().cast(pl.Int64), after=pl.col("after").sum().round().cast(pl.Int64))
    )
    order = classes or tuple(counts["value"].sort().to_list())
    whole = pl.DataFrame({"value": order}, schema={"value": pl.String}).join(
        counts, on="value", how="left", maintain_order="left"
    )
    told = whole.with_columns(pl.col("before", "after").fill_null(0), attribute=pl.lit(name))
    return told.select(*_SCHEMA)


def _drawn(rows: Rows, train: npt.NDArray[np.int64]) -> int:
    cells = rows.cells()
    return 0 if cells is None else draws_of_cell(cells[train])


def told_of_counts(rows: Rows, counts: pl.DataFrame) -> tuple[str, ...]:
    """Say which classes are rare, and which faces a balance shows again and again."""
    notes: list[str] = []
    learnt = counts.filter(pl.col("attribute").is_in(list(rows.classes)), pl.col("before") < _FEW)
    if learnt.height:
        told = _listed([f"{row['value']} {row['before']}" for row in learnt.iter_rows(named=True)])
        notes.append(
            Caution(
                f"{learnt.height:,} classes have fewer than {_FEW} faces to be learnt from: {told}."
            )
        )
    if rows.balance:
        notes += _told_of_balance(counts.filter(attribute="*".join(rows.balance)), rows)
    return tuple(notes)


def _told_of_balance(cells: pl.DataFrame, rows: Rows) -> list[str]:
    there = cells.filter(pl.col("before") > 0)
    possible = 1
    for name in rows.balance:
        possible *= max(rows.frame[name].n_unique(), 1)
    named = " × ".join(rows.balance)
    each, had = int(there["after"][0]), sorted(there["before"].to_list())
    text = (
        f"Balanced over {there.height:,} of {possible:,} combinations of {named}: each epoch draws"
        f" {each:,} faces of each, which had {had[0]:,} to {had[-1]:,}."
    )
    if there.height < possible:
        text += " No draw makes up for combinations that no face is of."
    notes: list[str] = [text]
    times = there.with_columns(times=pl.col("after") / pl.col("before"))
    again = times.filter(pl.col("times") >= _OFTEN).sort("times", descending=True)
    if again.height:
        told = _listed(
            [
                f"{row['value']} ({row['before']} faces, {row['times']:.0f} times)"
                for row in again.iter_rows(named=True)
            ]
        )
        notes.append(
            Caution(
                f"Faces of {again.height:,} rare combinations are shown {_OFTEN} times or more"
                f" in each epoch, and may be learnt by heart: {told}."
            )
        )
    return notes


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


# What is said before a network is trained.


def say_counts(counts: pl.DataFrame, train: int, held: int, *, balanced: bool) -> None:
    """Say how many faces of each class are learnt from, before a balance and after."""
    progress.say(f"{train:,} faces are learnt from, {held:,} are held out.")
    alone = counts.filter(~pl.col("attribute").str.contains("*", literal=True))
    for (attribute,), part in alone.group_by(["attribute"], maintain_order=True):
        told = ", ".join(
            f"{row['value']} {row['before']:,}" + (f" → {row['after']:,}" if balanced else "")
            for row in part.iter_rows(named=True)
        )
        progress.say(f"{attribute}: {told}")
    if balanced:
        progress.say("(before → after: faces, and how often an epoch draws one of them)")
