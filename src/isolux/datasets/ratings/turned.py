"""A table with a row an annotator and a column an item, turned into one with a row an answer."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.datasets._refusals import refuse_repeats, require_columns
from isolux.datasets.ratings.layout import is_named_as_annotators, is_named_as_answers_or_items
from isolux.io.cells import as_text, is_plain
from isolux.vocabulary.errors import SpecError


def turned(
    frame: pl.DataFrame, annotator: str | None, items: Sequence[str], where: str
) -> tuple[pl.DataFrame, dict[str, str]] | None:
    """Bring a table of one row an annotator to one row an answer.

    Examples
    --------
    >>> wide = pl.DataFrame({"rater": ["x", "y"], "a.jpg": ["3", "4"], "b.jpg": ["4", "4"]})
    >>> turned(wide, None, (), "ratings.csv")[0].rows()
    [('x', 'a.jpg', '3'), ('y', 'a.jpg', '4'), ('x', 'b.jpg', '4'), ('y', 'b.jpg', '4')]
    """
    require_columns(frame, (annotator, *items), where)
    who = annotator or next((c for c in frame.columns if is_named_as_annotators(c)), None)
    if not items and (who is None or not _lies_so(frame, who)):
        return None
    if who is None:
        raise SpecError(
            "no column names the annotators", where=where,
            expected="--data-option annotator=COLUMN, beside items=COLUMN,COLUMN",
        )  # fmt: skip
    refuse_repeats(frame[who], "an annotator is in two rows", "one row an annotator", where)
    asked = list(items) or _alike(frame, who, where)
    rest = [c for c in frame.columns if c not in (who, *asked)]
    names = {"item": _free("item", rest), "annotator": who, "answer": _free("answer", rest)}
    texts = frame.with_columns(as_text(frame[name]).alias(name) for name in asked)
    rows = texts.unpivot(
        asked, index=[who, *rest], variable_name=names["item"], value_name=names["answer"]
    )
    return rows, names


def _lies_so(frame: pl.DataFrame, who: str) -> bool:
    others = [c for c in frame.columns if c != who]
    told = any(is_named_as_answers_or_items(c) for c in others)
    plain = all(is_plain(frame[c].dtype) for c in frame.columns)
    return len(others) > 1 and not told and plain and not frame[who].is_duplicated().any()


def _alike(frame: pl.DataFrame, who: str, where: str) -> list[str]:
    """Take all other columns for items; refuse one whose answers are in no other column."""
    names = [c for c in frame.columns if c != who]
    long = pl.concat(
        pl.DataFrame({"column": pl.Series([name] * frame.height, dtype=pl.String),
                      "said": as_text(frame[name])}) for name in names
    ).drop_nulls().unique()  # fmt: skip
    said = long.with_columns(number=pl.col("said").cast(pl.Float64, strict=False))
    ends = said.group_by("column").agg(low=pl.col("number").min(), high=pl.col("number").max())
    low, high = ends["low"].drop_nulls().sort(), ends["high"].drop_nulls().sort(descending=True)
    within = pl.lit(value=False) if len(low) < 2 else pl.col("number").is_between(
        # of the other columns: the second one where this column is the first
        pl.when(pl.col("low") == low[0]).then(low[1]).otherwise(low[0]),
        pl.when(pl.col("high") == high[0]).then(high[1]).otherwise(high[0]),
    ).fill_null(value=False)  # fmt: skip
    told = said.join(ends, on="column").filter(pl.col("said").is_duplicated() | within)
    strange = set(long["column"]) - set(told["column"])
    foreign = [c for c in names if c in strange]
    if foreign:
        raise SpecError(
            "a table of one row an annotator has a column that looks like no item",
            expected="columns of items, in which the same answers occur",
            found=f"{foreign[0]!r}: none of its values is in another column", where=where,
            hint="--data-option items=COLUMN,COLUMN names the items; other columns say something of"
            " the annotators",
        )  # fmt: skip
    return names


def _free(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)
