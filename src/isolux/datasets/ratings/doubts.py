"""What looks wrong in a table of ratings before anything is compared."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.notes import Caution

_FEWEST = 10  # answers of an annotator, or items, below which chance explains it


def doubts(answers: pl.DataFrame, column: str | None) -> list[Caution]:
    """Caution about answers that are spelt in two ways, foreign to the others', or all alike.

    Examples
    --------
    >>> said = pl.DataFrame({"instance_id": ["a", "a"], "annotator": ["x", "y"],
    ...                      "label": ["Cat", "cat"]})
    >>> print(doubts(said, "label")[0])
    Answers differ in their spelling alone: 'Cat' and 'cat'. They count as two answers.
    """
    held = answers.drop_nulls("label").with_columns(pl.col("label").str.strip_chars())
    return [*_spelt_twice(held), *_foreign(held), *_all_alike(held, column)]


def _spelt_twice(held: pl.DataFrame) -> list[Caution]:
    number = pl.col("label").cast(pl.Float64, strict=False)
    key = pl.when(number.is_not_null()).then(number.cast(pl.String)).otherwise(
        pl.col("label").str.to_lowercase()
    )  # fmt: skip
    words = held.select("label").unique().with_columns(key=key).sort("label")
    twins = words.group_by("key", maintain_order=True).agg("label").filter(
        pl.col("label").list.len() > 1
    )  # fmt: skip
    if not twins.height:
        return []
    shown = "; ".join(" and ".join(map(repr, one[:3])) for one in twins["label"].head(3).to_list())
    more = "; …" if twins.height > 3 else ""
    return [
        Caution(
            f"Answers differ in their spelling alone: {shown}{more}. They count as two answers."
        )
    ]


def _foreign(held: pl.DataFrame) -> list[Caution]:
    """Name annotators of whose answers no other gave a single one."""
    whose = held.group_by("label").agg(pl.col("annotator").n_unique().alias("annotators"))
    each = (
        held.join(whose, on="label")
        .group_by("annotator")
        .agg(n=pl.len(), shared=(pl.col("annotators") > 1).any())
        .filter(~pl.col("shared"), pl.col("n") >= _FEWEST)
        .sort("annotator")
    )
    if not each.height or held["annotator"].n_unique() < 2:
        return []
    named = ", ".join(map(repr, each["annotator"].head(3).to_list()))
    return [
        Caution(
            f"No other annotator ever gave an answer of {named}{', …' if each.height > 3 else ''}:"
            " is it spelt otherwise, or another column?"
        )
    ]


def _all_alike(held: pl.DataFrame, column: str | None) -> list[Caution]:
    """Say where annotators agree about everything, as they do in a column that is no answer."""
    items = held.group_by("instance_id").agg(
        n=pl.col("annotator").n_unique(), answers=pl.col("label").n_unique()
    )
    judged = items.filter(pl.col("n") > 1)
    if judged.height < _FEWEST or (judged["answers"] > 1).any():
        return []
    asked = "did they answer on their own?"
    if column is not None:
        asked = f"is {column!r} the column of their answers?"
    return [
        Caution(
            f"All annotators gave the same answer about each of {judged.height:,} items: {asked}"
        )
    ]
