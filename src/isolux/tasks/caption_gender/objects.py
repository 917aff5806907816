"""What is in a picture, and which of it a caption names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from isolux.io.settings_files import read_mapping
from isolux.tasks._truth import instances_with_truth
from isolux.tasks._words.mentions import words_of
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError

__all__ = ["read_object_words", "true_objects", "with_said_objects"]


def true_objects(dataset: Dataset, objects: str, unknown_values: Sequence[str]) -> pl.DataFrame:
    """List what is in each person's picture: ``unit_id, objects``; empty where nothing is said."""
    found = instances_with_truth(dataset, objects, {}, unknown_values)
    return found.select(
        "unit_id", objects=pl.col("truth").fill_null(pl.lit([], pl.List(pl.String)))
    )


def read_object_words(file: str | None, there: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Give each object the words that name it, in a file or its own name."""
    names = there["objects"].explode().drop_nulls().unique().sort().to_list()
    if file is None:
        return {name: (name, f"{name}s") for name in names}
    told: Mapping[str, object] = read_mapping(file)
    found = {
        name: tuple(map(str, words if isinstance(words, list) else [words]))
        for name, words in told.items()
        if name in names
    }
    if names and not found:
        raise SpecError(
            "the words of objects are of none that is in the pictures",
            expected="names such as " + ", ".join(map(repr, names[:3])),
            found=", ".join(map(repr, list(told)[:3])),
            where=file,
        )
    return {name: found.get(name, (name, f"{name}s")) for name in names}


def with_said_objects(judged: pl.DataFrame, words: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Add ``said_objects``, those that each text names, words in a row."""
    text = pl.format(" {} ", pl.col("_words").list.join(" "))
    named = [
        pl.when(
            pl.any_horizontal(
                text.str.contains(f" {' '.join(words_of(pl.Series([word]))[0])} ", literal=True)
                for word in said
            )
        ).then(pl.lit(name))
        for name, said in words.items()
    ]
    whole = judged.with_columns(words_of(judged["text"]).fill_null(pl.Series([[]])).alias("_words"))
    none = pl.lit([], dtype=pl.List(pl.String))
    found = pl.concat_list(named).list.drop_nulls() if named else none
    return whole.with_columns(said_objects=found).drop("_words")
