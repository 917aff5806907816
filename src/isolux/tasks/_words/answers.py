"""The first text that a model gave for each person, side by side with the person's group."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.vocabulary.errors import JoinError, UnknownNameError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.schema import to_polars

__all__ = ["NO_ANSWER", "first_texts", "told_of_chance"]

NO_ANSWER = "no prediction"
_NEEDED = ("model", "instance_id", "label")
_FEWEST, _ROOM = 30, 0.02  # texts, and the excess over chance that is none


def first_texts(people: pl.DataFrame, predictions: object, model: str | None) -> pl.DataFrame:
    """Give every model's first text for each person."""
    frame = to_polars(predictions)
    for name in _NEEDED:
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where="predictions")
    rows = frame.with_columns(pl.col("model", "instance_id", "label").cast(pl.String))
    if "rank" in rows.columns:
        rows = rows.sort("rank", maintain_order=True)
    first = rows.unique(["model", "instance_id"], keep="first", maintain_order=True)
    met = first.join(people, left_on="instance_id", right_on="unit_id", how="semi")
    if first.height and people.height and not met.height:
        raise JoinError(
            "no text is of a person of the dataset",
            expected=", ".join(map(repr, people["unit_id"].head(3))),
            found=", ".join(map(repr, first["instance_id"].head(3))),
            where="predictions",
        )
    names = sorted(met["model"].drop_nulls().unique()) or [model or "model"]
    every = people.join(pl.DataFrame({"model": names}), how="cross", maintain_order="left_right")
    texts = met.select("model", unit_id="instance_id", text="label")
    joined = every.join(texts, on=["model", "unit_id"], how="left", maintain_order="left")
    return joined.sort("model", maintain_order=True)


def told_of_chance(judged: pl.DataFrame, groups: Collection[str]) -> tuple[Caution, ...]:
    """Caution where texts name the true group no more often than they would by chance."""
    notes = []
    named = judged.filter(pl.col("said").is_in(list(groups)), pl.col("truth").is_not_null())
    for (model,), rows in named.group_by("model", maintain_order=True):
        n = rows.height
        if n < _FEWEST or rows["truth"].n_unique() == 1:
            continue
        right = rows.select((pl.col("said") == pl.col("truth")).mean()).item()
        chance = sum(
            rows.select((pl.col("said") == g).mean()).item()
            * rows.select((pl.col("truth") == g).mean()).item()
            for g in groups
        )
        error = (max(chance * (1.0 - chance), 0.0) / n) ** 0.5
        if right <= chance + max(3.0 * error, _ROOM):
            notes.append(
                Caution(
                    f"The texts of {model!r} name the true group of {right:.0%}, and of"
                    f" {chance:.0%} they would by chance. Are they of these people?"
                )
            )
    return tuple(notes)
