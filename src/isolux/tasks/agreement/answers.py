"""The table of answers: who said what of which item, and whose answers are compared."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.vocabulary.blanks import on_blanks
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, place
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES

EVERYONE = "all annotators"
"""The name, in the column ``model``, of agreement among everyone."""
_NEEDED = ("instance_id", "annotator", "label")
_WHERE = "the annotators' answers"
_LARGEST = 1e100
"""Its square, times any number of answers, is still a number."""


def answers_of(
    frame: pl.DataFrame, known: pl.Series, ignored: Collection[str]
) -> tuple[pl.DataFrame, list[str]]:
    """Check the answers, and leave out those that are none and those of other items."""
    require_columns(frame, _NEEDED, _WHERE)
    rows = frame.with_columns(pl.col(_NEEDED).cast(pl.String))
    for name in _NEEDED[:2]:
        empty = rows[name].is_null()
        if empty.any():
            raise TableError(
                f"{int(empty.sum()):,} answer(s) have no {name}",
                expected="an item and an annotator for each answer",
                found="an empty cell",
                where=place(_WHERE, int(empty.arg_true()[0]) + 1, name),
            )
    word = pl.col("label").str.strip_chars()
    left_out = pl.Series([w.strip().lower() for w in ignored], dtype=pl.String)
    none = word.str.len_chars().eq(0) | word.str.to_lowercase().is_in(left_out.implode())
    held = rows.filter(~none.fill_null(value=True)).with_columns(label=word)
    ours = held.filter(held["instance_id"].is_in(known.implode()))
    refuse_no_match(
        "no answer is about an item of the dataset",
        held["instance_id"],
        known,
        n_matched=ours.height,
        expected="items such as ",
        where=_WHERE,
    )
    strangers = held.height - ours.height
    note = f"{strangers:,} answers are about items that the dataset has not; they were left out."
    blanks = on_blanks(ours["label"], "--option ignored=")
    return ours, [*([note] if strangers else []), *blanks]


def in_circles(rows: pl.DataFrame, by: str | None) -> tuple[pl.DataFrame, list[str]]:
    """Repeat the answers for each circle of annotators: everyone, and each group of them."""
    everyone = rows.with_columns(model=pl.lit(EVERYONE))
    if by is None:
        return everyone, []
    if by not in rows.columns:
        others = [name for name in rows.columns if name not in (*_NEEDED, "model")]
        raise UnknownNameError("column of the annotators", by, others, where=_WHERE)
    theirs = rows.select("annotator", group=pl.col(by).cast(pl.String)).unique()
    twice = theirs.filter(pl.col("annotator").is_duplicated()).sort("annotator", "group")
    if twice.height:
        raise TableError(
            "an annotator is in two groups",
            expected=f"one value of {by!r} for each annotator",
            found=f"{twice['annotator'][0]!r}: {twice['group'][0]!r} and {twice['group'][1]!r}",
            where=place(_WHERE, column=by),
        )
    sizes = theirs.drop_nulls().group_by("group").len().sort("group")
    alone = ", ".join(sizes.filter(pl.col("len") < 2)["group"])
    text = f"Annotators with nobody else of their {by}: {alone}."
    notes: list[str] = [Caution(f"{text} Agreement among them is not measured.")] if alone else []
    unknown = theirs["group"].null_count()
    if unknown:
        notes.append(f"{unknown:,} annotators have no {by}; they count among all annotators alone.")
    circles = sizes.filter(pl.col("len") > 1)["group"]
    own = rows.filter(pl.col(by).cast(pl.String).is_in(circles.implode()))
    named = own.with_columns(model=pl.format("{} {}", pl.lit(f"{by}:"), pl.col(by)))
    return pl.concat([everyone, named]), notes


def by_item(rows: pl.DataFrame, dataset: Dataset, scale: str) -> tuple[pl.DataFrame, pl.Series]:
    """Bring each circle's answers to the items, as lists."""
    rows = rows.with_columns(number=pl.col("label").cast(pl.Float64, strict=False))
    if scale != "nominal":
        _refuse_rows(
            rows.filter(~pl.col("number").is_finite().fill_null(value=False)),
            f"are not numbers, but the scale is {scale}",
            "numbers; --option ignored=WORD leaves words out; or --option scale=nominal",
        )
        _refuse_rows(
            rows.filter(pl.col("number").abs() > _LARGEST),
            "are too large to be compared",
            f"numbers up to {_LARGEST:g} in size",
        )
    column = "label" if scale == "nominal" else "number"
    values = rows[column].unique().sort()
    lists = (
        rows.with_columns(code=pl.col(column).rank("dense") - 1)
        .sort("annotator", "code")
        .group_by(["model", "instance_id"], maintain_order=True)
        .agg(codes=pl.col("code").cast(pl.Int64), numbers="number", annotators="annotator")
        .rename({"instance_id": "unit_id"})
    )
    units = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    circles = rows["model"].unique(maintain_order=True) if rows.height else [EVERYONE]
    every = pl.concat([units.with_columns(model=pl.lit(c, dtype=pl.String)) for c in circles])
    items = every.join(lists, on=["model", "unit_id"], how="left", maintain_order="left")
    return items.with_columns(pl.col("codes", "numbers", "annotators").fill_null([])), values


def _refuse_rows(bad: pl.DataFrame, problem: str, expected: str) -> None:
    if bad.height:
        raise TableError(
            f"{bad.height:,} answer(s) {problem}",
            expected=expected,
            found=f"{bad['label'][0]!r} of {bad['instance_id'][0]!r}",
            where=_WHERE,
        )


def refuse_several(rows: pl.DataFrame) -> None:
    """Refuse two answers of one annotator about one item, which only sets of answers allow."""
    twice = rows.filter(pl.struct("instance_id", "annotator").is_duplicated())
    if not twice.height:
        return
    first = twice.sort("instance_id", "annotator").head(2)
    raise SpecError(
        "an annotator gave an item several answers",
        expected="one answer of an annotator about an item; or --metric mean_jaccard, which"
        " compares sets of answers",
        found=f"{first['annotator'][0]!r} about {first['instance_id'][0]!r}:"
        f" {first['label'][0]!r} and {first['label'][1]!r}"
        f" ({twice.select('instance_id', 'annotator').n_unique():,} such)",
        where=_WHERE,
    )
