"""Join predictions to the people of a dataset, and count unmatched ids on both sides."""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError
from isolux.core.formatting import join_first
from isolux.io.id_spellings import (
    JoinSides,
    find_spelling_match,
    refuse_different_numbering,
    refuse_other_spelling,
)
from isolux.io.ids import ID_FROM, IdFrom, reduce_ids
from isolux.predictions._id_parts import shorten_ids


def join_predictions(
    dataset: Dataset,
    predictions: pl.DataFrame,
    *,
    id_from: IdFrom = "column",
    row_name: str = "prediction",
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Give predictions the ids of the dataset's people."""
    _refuse_row_numbers(dataset)
    people = dataset.instances["instance_id"].cast(pl.String)
    keys = pl.DataFrame({"_key": shorten_ids(people, id_from, "the dataset"), "_person": people})
    short_ids = shorten_ids(predictions["instance_id"], id_from, "the predictions")
    joined_rows = predictions.with_columns(_key=short_ids).join(
        keys, on="_key", how="left", maintain_order="left"
    )
    notes: list[str] = []
    if len(people):
        for model in predictions["model"].unique(maintain_order=True).to_list():
            rows = joined_rows.filter(model=model)
            join_sides = JoinSides(
                "the dataset", f"the {row_name}s of {model!r}", shows_ids=not dataset.withdrawn_ids
            )
            notes += _note_unmatched(
                rows, keys["_key"], people, model, id_from, join_sides, row_name
            )
        if predictions.is_empty():
            notes.append(f"None of {len(people):,} people has a {row_name}.")
    aligned = joined_rows.drop_nulls("_person").with_columns(instance_id="_person")
    return aligned.select(predictions.columns), tuple(notes)


def _refuse_row_numbers(dataset: Dataset) -> None:
    if dataset.has_row_number_ids:
        raise JoinError(
            "the people have no id, so answers in another file cannot be joined to them",
            expected="a column that names each person, in both files: order of rows is not an id",
            found="; ".join(dataset.notes[:1]) or "row numbers",
            hint="name the columns with --id and --prediction-id, or put the answers into the"
            " people's own table",
        )


def _note_unmatched(
    rows: pl.DataFrame,
    keys: pl.Series,
    people: pl.Series,
    model: str,
    id_from: IdFrom,
    join_sides: JoinSides,
    row_name: str,
) -> list[str]:
    predicted_ids = rows["instance_id"].unique(maintain_order=True)
    is_matched = rows["_person"].is_not_null()
    matched_people = rows["_person"].filter(is_matched).unique()
    if matched_people.is_empty():
        raise _no_match_error(people, predicted_ids, model, id_from, row_name)
    prediction_keys = rows["_key"].unique(maintain_order=True)
    refuse_different_numbering(keys, prediction_keys, join_sides)
    unmatched_ids = rows.filter(~is_matched)["instance_id"].unique(maintain_order=True)
    missing_people = people.filter(~people.is_in(matched_people.implode()))
    unmatched_keys = rows.filter(~is_matched)["_key"].unique(maintain_order=True)
    refuse_other_spelling(
        keys.filter(~keys.is_in(prediction_keys.implode())), unmatched_keys, join_sides
    )
    notes = []
    if len(unmatched_ids):
        # An id that is not in the data may be that of a person who withdrew, written otherwise.
        examples = (
            _format_examples(unmatched_ids)
            if join_sides.shows_ids
            else "not named here, because people withdrew"
        )
        notes.append(
            f"{len(unmatched_ids):,} of {len(predicted_ids):,} ids in the {row_name}s of {model!r}"
            f" have no person in the dataset and were left out: {examples}."
        )
    if len(missing_people):
        notes.append(
            f"{len(missing_people):,} of {len(people):,} people have no {row_name} of {model!r}:"
            f" {_format_examples(missing_people)}."
        )
    return notes


def _no_match_error(
    people: pl.Series, predicted_ids: pl.Series, model: str, id_from: IdFrom, row_name: str
) -> JoinError:
    return JoinError(
        f"no {row_name} of {model!r} is about a person of the dataset",
        expected=f"ids in common, by {'whole id' if id_from == 'column' else id_from}",
        found=f"people {_format_examples(people)}; predictions {_format_examples(predicted_ids)}",
        hint=_suggest_id_form(people, predicted_ids, id_from),
    )


def _suggest_id_form(people: pl.Series, predicted_ids: pl.Series, tried_form: str) -> str:
    counts: dict[IdFrom, int] = {}
    for id_from in ID_FROM:
        short_ids = reduce_ids(people, id_from).unique()
        if id_from != tried_form and len(short_ids) == people.n_unique():
            counts[id_from] = int(
                reduce_ids(predicted_ids, id_from).is_in(short_ids.implode()).sum()
            )
    best = max(counts, key=lambda id_form: counts[id_form], default=None)
    if best is None or not counts[best]:
        spelling = find_spelling_match(people, predicted_ids)
        if spelling is None:
            return "check which columns hold the ids (--id); no part of them agrees"
        return f"{spelling[0]:,} ids are the same but for {spelling[1]}: {spelling[2]}".format(
            flag="--id-from "
        )
    n = len(predicted_ids)
    return f"--id-from {best} (id_from={best!r}) would match {counts[best]:,} of {n:,} ids"


def _format_examples(ids: pl.Series) -> str:
    return join_first(map(repr, ids), 3)
