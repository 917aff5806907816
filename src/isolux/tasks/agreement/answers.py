"""The table of answers: checks, groups of annotators, and answers collected by item."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import (
    SpecError,
    TableError,
    UnknownNameError,
    format_location,
    refuse_unknown_names,
)
from isolux.core.formatting import join_words
from isolux.core.notes import Caution
from isolux.core.placeholders import caution_on_placeholder_labels
from isolux.core.tables import INSTANCES
from isolux.tasks._ids import refuse_no_match, require_columns

# Groups of annotators take the place of models, so that audits compare them as they compare models.
ALL_ANNOTATORS = "all annotators"
"""The value of the column ``model`` for agreement among all annotators."""
_REQUIRED_COLUMNS = ("instance_id", "annotator", "label")
_SOURCE = "the annotators' answers"
_MAX_ABSOLUTE_NUMBER = 1e100
"""Its square, summed over any number of answers, does not overflow."""


def read_answers(
    frame: pl.DataFrame, item_ids: pl.Series, ignored: Collection[str]
) -> tuple[pl.DataFrame, list[str]]:
    """Check the answers, and exclude empty and ignored ones and those of other items."""
    require_columns(frame, _REQUIRED_COLUMNS, _SOURCE)
    rows = frame.with_columns(pl.col(_REQUIRED_COLUMNS).cast(pl.String))
    for name in _REQUIRED_COLUMNS[:2]:
        is_empty = rows[name].is_null()
        if is_empty.any():
            raise TableError(
                f"{int(is_empty.sum()):,} answer(s) have no {name}",
                expected="an item and an annotator for each answer",
                found="an empty cell",
                where=format_location(_SOURCE, int(is_empty.arg_true()[0]) + 1, name),
            )
    word = pl.col("label").str.strip_chars()
    ignored_words = pl.Series([w.strip().lower() for w in ignored], dtype=pl.String)
    # An empty cell is no answer; as an answer of its own, annotators would "agree" on it.
    is_ignored = word.str.len_chars().eq(0) | word.str.to_lowercase().is_in(ignored_words.implode())
    answers = rows.filter(~is_ignored.fill_null(value=True)).with_columns(label=word)
    matched = answers.filter(answers["instance_id"].is_in(item_ids.implode()))
    refuse_no_match(
        "no answer is about an item of the dataset",
        answers["instance_id"],
        item_ids,
        n_matched=matched.height,
        expected="items such as ",
        source=_SOURCE,
    )
    n_unmatched = answers.height - matched.height
    note = f"{n_unmatched:,} answers are about items that the dataset has not; they were left out."
    blanks = caution_on_placeholder_labels(matched["label"], "--option ignored_answers=")
    return matched, [*([note] if n_unmatched else []), *blanks]


def select_annotators(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Keep the answers of the annotators of these names, or all where none is named."""
    if not names:
        return rows
    names = (names,) if isinstance(names, str) else names
    existing_names = rows["annotator"].unique().sort().to_list()
    refuse_unknown_names("annotator", names, existing_names, where=_SOURCE)
    return rows.filter(pl.col("annotator").is_in(list(names)))


def group_annotators(
    rows: pl.DataFrame, by: str | None, names: Sequence[str] = ()
) -> tuple[pl.DataFrame, list[str]]:
    """Repeat the answers for all annotators and for each group of them; with notes."""
    # Of chosen annotators the table and sentences name those, and never "all".
    names = (names,) if isinstance(names, str) else names
    overall_name = join_words(names, conjunction="and") if names else ALL_ANNOTATORS
    overall_rows = rows.with_columns(model=pl.lit(overall_name))
    if by is None:
        return overall_rows, []
    if by not in rows.columns:
        columns = [name for name in rows.columns if name not in (*_REQUIRED_COLUMNS, "model")]
        raise UnknownNameError("column of the annotators", by, columns, where=_SOURCE)
    groups = rows.select("annotator", group=pl.col(by).cast(pl.String)).unique()
    duplicates = groups.filter(pl.col("annotator").is_duplicated()).sort("annotator", "group")
    # An annotator of two groups would be in both, and their own answers would agree with
    # themselves.
    if duplicates.height:
        raise TableError(
            "an annotator is in two groups",
            expected=f"one value of {by!r} for each annotator",
            found=f"{duplicates['annotator'][0]!r}: {duplicates['group'][0]!r} and"
            f" {duplicates['group'][1]!r}",
            where=format_location(_SOURCE, column=by),
        )
    sizes = groups.drop_nulls().group_by("group").len().sort("group")
    # Agreement within a group needs two annotators.
    single_groups = ", ".join(sizes.filter(pl.col("len") < 2)["group"])
    text = f"Annotators with nobody else of their {by}: {single_groups}."
    notes: list[str] = (
        [Caution(f"{text} Agreement among them is not measured.")] if single_groups else []
    )
    unknown = groups["group"].null_count()
    if unknown:
        notes.append(f"{unknown:,} annotators have no {by}; they count among all annotators alone.")
    group_names = sizes.filter(pl.col("len") > 1)["group"]
    group_rows = rows.filter(pl.col(by).cast(pl.String).is_in(group_names.implode()))
    named_rows = group_rows.with_columns(model=pl.format("{} {}", pl.lit(f"{by}:"), pl.col(by)))
    return pl.concat([overall_rows, named_rows]), notes


def collect_by_item(
    rows: pl.DataFrame, dataset: Dataset, scale: str
) -> tuple[pl.DataFrame, pl.Series]:
    """Collect each annotator group's answers by item, as lists; also return distinct answers."""
    rows = rows.with_columns(number=pl.col("label").cast(pl.Float64, strict=False))
    if scale != "nominal":
        _refuse_any_row(
            rows.filter(~pl.col("number").is_finite().fill_null(value=False)),
            f"are not numbers, but the scale is {scale}",
            "numbers; --option ignored_answers=WORD leaves words out; or --option scale=nominal",
        )
        _refuse_any_row(
            rows.filter(pl.col("number").abs() > _MAX_ABSOLUTE_NUMBER),
            "are too large to be compared",
            f"numbers up to {_MAX_ABSOLUTE_NUMBER:g} in size",
        )
    column = "label" if scale == "nominal" else "number"
    values = rows[column].unique().sort()
    lists = (
        # Codes are ranks of the sorted values, because ordinal alpha needs their order.
        rows.with_columns(code=pl.col(column).rank("dense") - 1)
        # A fixed order makes the stored evidence independent of the order of the file.
        .sort("annotator", "code")
        .group_by(["model", "instance_id"], maintain_order=True)
        .agg(
            codes=pl.col("code").cast(pl.Int64),
            numbers="number",
            positions="number" if scale == "interval" else pl.col("code").cast(pl.Float64),
            annotators="annotator",
        )
        .rename({"instance_id": "unit_id"})
    )
    units = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    group_names = rows["model"].unique(maintain_order=True) if rows.height else [ALL_ANNOTATORS]
    item_rows = pl.concat(
        [units.with_columns(model=pl.lit(c, dtype=pl.String)) for c in group_names]
    )
    items = item_rows.join(lists, on=["model", "unit_id"], how="left", maintain_order="left")
    # Items without answers stay, so that the number of items does not depend on the group.
    return items.with_columns(
        pl.col("codes", "numbers", "positions", "annotators").fill_null([])
    ), values


def _refuse_any_row(bad_rows: pl.DataFrame, problem: str, expected: str) -> None:
    """Refuse answers where a check selected any."""
    if bad_rows.height:
        raise TableError(
            f"{bad_rows.height:,} answer(s) {problem}",
            expected=expected,
            found=f"{bad_rows['label'][0]!r} of {bad_rows['instance_id'][0]!r}",
            where=_SOURCE,
        )


def check_single_answers(rows: pl.DataFrame) -> None:
    """Refuse two answers of one annotator about one item, which only sets of answers allow."""
    duplicates = rows.filter(pl.struct("instance_id", "annotator").is_duplicated())
    if not duplicates.height:
        return
    first = duplicates.sort("instance_id", "annotator").head(2)
    raise SpecError(
        "an annotator gave an item several answers",
        expected="one answer of an annotator about an item; or --metric mean_jaccard, which"
        " compares sets of answers",
        found=f"{first['annotator'][0]!r} about {first['instance_id'][0]!r}:"
        f" {first['label'][0]!r} and {first['label'][1]!r}"
        f" ({duplicates.select('instance_id', 'annotator').n_unique():,} such)",
        where=_SOURCE,
    )
