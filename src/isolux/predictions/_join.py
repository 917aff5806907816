"""Bring predictions to the ids of a dataset, and count who has no partner on either side."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.io.id_spellings import (
    Sides,
    other_spelling,
    refuse_counted_from_elsewhere,
    refuse_other_spelling,
)
from isolux.io.ids import ID_FROM, IdFrom, reduced
from isolux.predictions._id_parts import shortened
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError


def join(
    dataset: Dataset,
    predictions: pl.DataFrame,
    *,
    id_from: IdFrom = "column",
    what: str = "prediction",
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Give predictions the ids of the dataset's people."""
    _refuse_row_numbers(dataset)
    people = dataset.instances["instance_id"].cast(pl.String)
    keys = pl.DataFrame({"_key": shortened(people, id_from, "the dataset"), "_person": people})
    short = shortened(predictions["instance_id"], id_from, "the predictions")
    met = predictions.with_columns(_key=short).join(
        keys, on="_key", how="left", maintain_order="left"
    )
    notes: list[str] = []
    if len(people):
        for model in predictions["model"].unique(maintain_order=True).to_list():
            rows = met.filter(pl.col("model") == model)
            sides = Sides("the dataset", f"the {what}s of {model!r}", named=not dataset.withdrawn)
            notes += _notes_on(rows, keys["_key"], people, model, id_from, sides, what)
        if predictions.is_empty():
            notes.append(f"None of {len(people):,} people has a {what}.")
    aligned = met.filter(pl.col("_person").is_not_null()).with_columns(instance_id="_person")
    return aligned.select(predictions.columns), tuple(notes)


def _refuse_row_numbers(dataset: Dataset) -> None:
    if dataset.ids_are_rows:
        raise JoinError(
            "the people have no id, so answers in another file cannot be joined to them",
            expected="a column that names each person, in both files: order of rows is not an id",
            found="; ".join(dataset.notes[:1]) or "row numbers",
            hint="name the columns with --id and --prediction-id, or put the answers into the"
            " people's own table",
        )


def _notes_on(
    rows: pl.DataFrame,
    keys: pl.Series,
    people: pl.Series,
    model: str,
    id_from: IdFrom,
    sides: Sides,
    what: str,
) -> list[str]:
    given = rows["instance_id"].unique(maintain_order=True)
    here = rows["_person"].is_not_null()
    known = rows["_person"].filter(here).unique()
    if known.is_empty():
        raise _nobody_met(people, given, model, id_from, what)
    there = rows["_key"].unique(maintain_order=True)
    refuse_counted_from_elsewhere(keys, there, sides)
    strangers = rows.filter(~here)["instance_id"].unique(maintain_order=True)
    absent = people.filter(~people.is_in(known.implode()))
    alone = rows.filter(~here)["_key"].unique(maintain_order=True)
    refuse_other_spelling(keys.filter(~keys.is_in(there.implode())), alone, sides)
    notes = []
    if len(strangers):
        # An id that is not in the data may be that of a person who withdrew, written otherwise.
        named = _examples(strangers) if sides.named else "not named here, because people withdrew"
        notes.append(
            f"{len(strangers):,} of {len(given):,} ids in the {what}s of {model!r} have no"
            f" person in the dataset and were left out: {named}."
        )
    if len(absent):
        notes.append(
            f"{len(absent):,} of {len(people):,} people have no {what} of {model!r}:"
            f" {_examples(absent)}."
        )
    return notes


def _nobody_met(
    people: pl.Series, given: pl.Series, model: str, id_from: IdFrom, what: str
) -> JoinError:
    return JoinError(
        f"no {what} of {model!r} is about a person of the dataset",
        expected=f"ids in common, by {'whole id' if id_from == 'column' else id_from}",
        found=f"people {_examples(people)}; predictions {_examples(given)}",
        hint=_what_would_match(people, given, id_from),
    )


def _what_would_match(people: pl.Series, given: pl.Series, tried: str) -> str:
    counts: dict[IdFrom, int] = {}
    for id_from in ID_FROM:
        known = reduced(people, id_from).unique()
        if id_from != tried and len(known) == people.n_unique():
            counts[id_from] = int(reduced(given, id_from).is_in(known.implode()).sum())
    best = max(counts, key=lambda way: counts[way], default=None)
    if best is None or not counts[best]:
        spelt = other_spelling(people, given)
        if spelt is None:
            return "check which columns hold the ids (--id); no part of them agrees"
        return f"{spelt[0]:,} ids are the same but for {spelt[1]}: {spelt[2]}".format(
            flag="--id-from "
        )
    return f"--id-from {best} (id_from={best!r}) would match {counts[best]:,} of {len(given):,} ids"


def _examples(ids: pl.Series) -> str:
    shown: Sequence[str] = ids[:3].to_list()
    return ", ".join(map(repr, shown)) + (", …" if len(ids) > 3 else "")
