"""The layout of a table of ratings: one row an answer, or one row an item (wide).

What is not named is found by its name; an error says what was looked for and how to name it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from isolux.core.errors import SpecError, TableError, UnknownNameError, format_columns
from isolux.core.formatting import join_first
from isolux.datasets._tables import find_first_column_ignoring_case
from isolux.datasets.ratings.answer_sets import split_answer_sets
from isolux.io.cell_parsing import as_text, is_readable_dtype
from isolux.io.ids import read_ids
from isolux.io.refusals import refuse_cells, refuse_repeats, require_columns

_ITEM_COLUMNS = (
    "item",
    "item_id",
    "task",
    "task_id",
    "unit",
    "unit_id",
    "instance_id",
    "image_id",
    "image",
    "photo",
    "photo_id",
    "file",
    "filename",
    "path",
    "question_id",
    "id",
)
_ANNOTATOR_COLUMNS = (
    "annotator",
    "annotator_id",
    "rater",
    "rater_id",
    "worker",
    "worker_id",
    "labeler",
    "labeler_id",
    "labeller",
    "coder",
    "judge",
    "performer",
    "user",
    "user_id",
    "completed_by",
)
_ANSWER_COLUMNS = (
    "answer",
    "label",
    "rating",
    "value",
    "response",
    "choice",
    "annotation",
    "judgement",
    "judgment",
    "category",
    "class",
    "score",
    "vote",
)
_NUMBERED_ANNOTATOR = re.compile(
    r"(annotator|rater|worker|labell?er|coder|judge|annot|user|obs(?:erver)?|r|a)[ _.-]?(\d+)",
    re.IGNORECASE,
)

_HOLDS_LISTS = "it holds lists"
_QUESTION_COLUMN, _MAX_LISTED = "question", 5


@dataclass(frozen=True, slots=True)
class RatingColumns:
    """The columns of item, annotator and answer, or of all annotators (wide)."""

    item: str | None
    annotator: str | None = None
    answer: str | None = None
    annotators: tuple[str, ...] = ()


def find_rating_columns(
    frame: pl.DataFrame,
    *,
    item: str | None,
    annotator: str | None,
    answer: str | None,
    annotators: Sequence[str],
    source: str,
) -> RatingColumns:
    """Find the columns, by their names where none is given."""
    columns = frame.columns
    require_columns(frame, (item, annotator, answer, *annotators), source)
    if annotators and (annotator or answer):
        raise SpecError(
            "the table cannot have one row an answer and one column an annotator",
            expected="annotators=R1,R2,… (wide), or annotator= and answer= (long)",
            found="both",
            where=source,
        )
    item_column = item or find_first_column_ignoring_case(_ITEM_COLUMNS, columns)
    annotator_column = annotator or find_first_column_ignoring_case(_ANNOTATOR_COLUMNS, columns)
    answer_column = answer or find_first_column_ignoring_case(
        _ANSWER_COLUMNS, [name for name in columns if name not in (item_column, annotator_column)]
    )
    if (
        not annotators
        and annotator_column is not None
        and answer_column is not None
        and item_column is not None
    ):
        used_columns = (item_column, annotator_column, answer_column)
        if annotator is None:
            _check_role_is_unambiguous(
                _ANNOTATOR_COLUMNS, annotator_column, columns, used_columns, "annotator", source
            )
        if answer is None:
            _check_role_is_unambiguous(
                _ANSWER_COLUMNS, answer_column, columns, used_columns, "answer", source
            )
        return RatingColumns(item_column, annotator_column, answer_column)
    annotator_columns = tuple(annotators) or _list_numbered_annotator_columns(columns)
    if len(annotator_columns) < 2:
        raise SpecError(
            "no columns of ratings were found",
            expected="one row an answer: --data-option item=COLUMN --data-option annotator=COLUMN"
            " --data-option answer=COLUMN; or one row an item: --data-option"
            " annotators=COLUMN,COLUMN; or one row an annotator: --data-option annotator=COLUMN"
            " --data-option items=COLUMN,COLUMN",
            found=format_columns(columns),
            where=source,
            hint=_suggest_missing_header(frame),
        )
    return RatingColumns(
        _choose_item_column_or_none(frame, item_column, annotator_columns)
        if item is None
        else item,
        annotators=annotator_columns,
    )


def is_annotator_column_name(column: str) -> bool:
    """Whether a column's name says that it names annotators."""
    return column.lower() in _ANNOTATOR_COLUMNS


def is_answer_or_item_column_name(column: str) -> bool:
    """Whether a column's name says that it holds answers or items, or one annotator's answers."""
    return column.lower() in (*_ANSWER_COLUMNS, *_ITEM_COLUMNS) or bool(
        _NUMBERED_ANNOTATOR.fullmatch(column.strip())
    )


def _suggest_missing_header(frame: pl.DataFrame) -> str | None:
    """Suggest a missing header if most column names occur among their own cells."""
    texts = [as_text(column) for column in frame.get_columns() if is_readable_dtype(column.dtype)]
    n_header_in_cells = sum(bool((text == text.name).any()) for text in texts)
    if not texts or 2 * n_header_in_cells <= len(texts):
        return None
    return "the first row seems to be data: write a row with the columns' names above it"


def _check_role_is_unambiguous(
    names: Sequence[str],
    chosen_column: str,
    columns: Sequence[str],
    used_columns: Sequence[str],
    column_role: str,
    source: str,
) -> None:
    """Refuse to guess where two columns are named as the annotators or the answers are."""
    other_columns = [c for c in columns if c.lower() in names and c not in used_columns]
    if other_columns:
        raise SpecError(
            f"two columns may hold the {column_role}s",
            expected=f"--data-option {column_role}=COLUMN",
            found=", ".join(map(repr, [chosen_column, *other_columns][:4])),
            where=source,
        )


def _list_numbered_annotator_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Take the columns that are numbered annotators, of the one word that most of them have."""
    columns_by_word: dict[str, list[str]] = {}
    for column in columns:
        match = _NUMBERED_ANNOTATOR.fullmatch(column.strip())
        if match:
            columns_by_word.setdefault(match[1].lower(), []).append(column)
    max_columns = max(map(len, columns_by_word.values()), default=0)
    return next(
        (
            tuple(word_columns)
            for word_columns in columns_by_word.values()
            if len(word_columns) == max_columns
        ),
        (),
    )


def _choose_item_column_or_none(
    frame: pl.DataFrame, column: str | None, annotator_columns: Sequence[str]
) -> str | None:
    """Take the column that is named as items are; without one, the row names the item."""
    if column is None or column in annotator_columns or not is_readable_dtype(frame[column].dtype):
        return None
    return column


def select_answers_to_question(
    frame: pl.DataFrame, layout: RatingColumns, question: str | None, source: str
) -> pl.DataFrame:
    """Keep the answers to one question, of a table that tells questions apart."""
    if question is None:
        pair = [layout.item, layout.annotator]
        if _QUESTION_COLUMN not in frame.columns or None in pair or _QUESTION_COLUMN in pair:
            return frame
        question_counts = frame.group_by(pair).agg(n=pl.col(_QUESTION_COLUMN).n_unique())
        if (question_counts["n"] <= 1).all():
            return frame
        question_names = as_text(frame[_QUESTION_COLUMN]).drop_nulls().unique(maintain_order=True)
        raise SpecError(
            "annotators answered several questions about an item",
            expected=f"one of them: --data-option {_QUESTION_COLUMN}={question_names[0]!r}",
            found=join_first(map(repr, question_names), _MAX_LISTED),
            where=source,
        )
    require_columns(frame, (_QUESTION_COLUMN,), source)
    questions = as_text(frame[_QUESTION_COLUMN])
    selected = frame.filter(questions == question)
    if selected.is_empty():
        raise UnknownNameError("question", question, questions.drop_nulls().unique(), where=source)
    return selected


def build_answer_rows(
    frame: pl.DataFrame, layout: RatingColumns, source: str, separator: str | None = None
) -> pl.DataFrame:
    """Bring the answers to one row each; of a set of answers in one cell, a row for each."""
    items = _read_item_ids_or_row_numbers(frame, layout, source)
    if layout.annotator is not None and layout.answer is not None:
        annotator_ids = read_ids(frame, layout.annotator, source).alias("annotator")
        used_columns = (layout.item, layout.annotator, layout.answer)
        further_columns = [
            as_text(frame[name]).alias(name)
            for name in frame.columns
            if name not in used_columns and is_readable_dtype(frame[name].dtype)
        ]
        kept_columns = [
            column
            for column in further_columns
            if column.name not in ("instance_id", "annotator", "label")
        ]
        rows = pl.DataFrame(
            [items, annotator_ids, as_text(frame[layout.answer]).alias("label"), *kept_columns]
        )
        rows = split_answer_sets(rows, separator)
        _check_answers_are_unique(rows, layout, source)
        return rows
    refuse_cells(
        ~items.is_first_distinct(),
        items,
        "an item is in two rows",
        "one row an item, with a column for each annotator",
        source,
        column=layout.item,
        hint="--data-option item=COLUMN names another column; a table of one row an answer"
        " needs annotator= and answer=",
    )
    wide = pl.DataFrame([items, *(as_text(frame[name]).alias(name) for name in layout.annotators)])
    return split_answer_sets(
        wide.unpivot(index="instance_id", variable_name="annotator", value_name="label"), separator
    )


def _read_item_ids_or_row_numbers(
    frame: pl.DataFrame, layout: RatingColumns, source: str
) -> pl.Series:
    if layout.item is not None:
        return read_ids(frame, layout.item, source).alias("instance_id")
    return pl.int_range(1, frame.height + 1, eager=True).cast(pl.String).alias("instance_id")


def _check_answers_are_unique(rows: pl.DataFrame, layout: RatingColumns, source: str) -> None:
    """Refuse an answer that stands in the table twice, as after a second export."""
    key = ["instance_id", "annotator", "label"]
    answer_rows = rows.select(*key, row=pl.int_range(1, pl.len() + 1))
    repeated = (
        answer_rows.group_by(key, maintain_order=True)
        .agg("row")
        .filter(pl.col("row").list.len() > 1)
    )
    if not repeated.height:
        return
    first = repeated.row(0, named=True)
    raise TableError(
        f"{int(repeated['row'].list.len().sum()):,} rows repeat an annotator's answer about an "
        f"item",
        expected=f"one row for each {layout.item} and {layout.annotator}",
        found=f"{first['annotator']!r} about {first['instance_id']!r}: {first['label']!r} in rows"
        f" {first['row'][0]} and {first['row'][1]}",
        where=source,
        hint="was an export added to the file twice? Keep one row of each; if several people share"
        " a name, tell them apart",
    )


def build_item_table(
    frame: pl.DataFrame, layout: RatingColumns, source: str
) -> tuple[pl.DataFrame, list[str], dict[str, str]]:
    """Bring the items to one row each, with what the table says of them."""
    ids = _read_item_ids_or_row_numbers(frame, layout, source)
    used_columns = {layout.item, layout.annotator, layout.answer, *layout.annotators}
    other_columns = [name for name in frame.columns if name not in used_columns]
    value_columns = [name for name in other_columns if is_readable_dtype(frame[name].dtype)]
    table = pl.DataFrame([ids, *(frame[name] for name in value_columns if name != "instance_id")])
    value_columns = table.columns[1:]
    if layout.annotator is None:
        return (
            table,
            [],
            {name: _HOLDS_LISTS for name in other_columns if name not in value_columns},
        )
    annotator_ids = as_text(frame[layout.annotator]).alias("annotator_")
    with_annotators = table.with_columns(annotator_ids)
    item_columns = _list_columns_constant_within_group(
        with_annotators, "instance_id", value_columns
    )
    annotator_columns = _list_columns_constant_within_group(
        with_annotators, "annotator_", value_columns
    )
    items = table.unique("instance_id", keep="first", maintain_order=True)
    skipped_columns = {
        name: _describe_first_difference(with_annotators, name, str(layout.item))
        if name in value_columns
        else _HOLDS_LISTS
        for name in other_columns
        if name not in {*item_columns, *annotator_columns}
    }
    return items.select("instance_id", *item_columns), annotator_columns, skipped_columns


def _describe_first_difference(with_annotators: pl.DataFrame, name: str, item_word: str) -> str:
    """Describe the first item for which a column has two values."""
    distinct_values = pl.col(name).unique(maintain_order=True)
    values = with_annotators.group_by("instance_id", maintain_order=True).agg(distinct_values)
    inconsistent = values.filter(pl.col(name).list.len() > 1)
    first, cell_values = inconsistent.row(0)
    examples = " and ".join(
        "an empty cell" if cell_value is None else repr(cell_value)
        for cell_value in cell_values[:2]
    )
    return (
        f"it differs between rows of one {item_word} ({examples} of {first!r}; so for"
        f" {inconsistent.height:,} of {values.height:,})"
    )


def _list_columns_constant_within_group(
    frame: pl.DataFrame, group_column: str, columns: Sequence[str]
) -> list[str]:
    """Name the columns that have one value for each ``group_column``."""
    if not columns:
        return []
    max_counts = (
        frame.group_by(group_column).agg(pl.col(columns).n_unique()).select(pl.col(columns).max())
    )
    return [name for name in columns if (max_counts[name][0] or 0) <= 1]


def transpose_row_per_annotator(
    frame: pl.DataFrame, annotator: str | None, items: Sequence[str], source: str
) -> tuple[pl.DataFrame, dict[str, str]] | None:
    """Transpose a table with one row an annotator to one row an answer."""
    require_columns(frame, (annotator, *items), source)
    annotator_column = annotator or next(
        (c for c in frame.columns if is_annotator_column_name(c)), None
    )
    if not items and (
        annotator_column is None or not _is_row_per_annotator(frame, annotator_column)
    ):
        return None
    if annotator_column is None:
        raise SpecError(
            "no column names the annotators",
            where=source,
            expected="--data-option annotator=COLUMN, beside items=COLUMN,COLUMN",
        )
    refuse_repeats(
        frame[annotator_column], "an annotator is in two rows", "one row an annotator", source
    )
    item_columns = list(items) or _list_item_columns(frame, annotator_column, source)
    other_columns = [c for c in frame.columns if c not in (annotator_column, *item_columns)]
    names = {
        "item": _choose_unused_column_name("item", other_columns),
        "annotator": annotator_column,
        "answer": _choose_unused_column_name("answer", other_columns),
    }
    texts = frame.with_columns(as_text(frame[name]).alias(name) for name in item_columns)
    rows = texts.unpivot(
        item_columns,
        index=[annotator_column, *other_columns],
        variable_name=names["item"],
        value_name=names["answer"],
    )
    return rows, names


def _is_row_per_annotator(frame: pl.DataFrame, annotator_column: str) -> bool:
    other_columns = [c for c in frame.columns if c != annotator_column]
    has_named_columns = any(is_answer_or_item_column_name(c) for c in other_columns)
    has_plain_cells = all(is_readable_dtype(frame[c].dtype) for c in frame.columns)
    return (
        len(other_columns) > 1
        and not has_named_columns
        and has_plain_cells
        and not frame[annotator_column].is_duplicated().any()
    )


def _list_item_columns(frame: pl.DataFrame, annotator_column: str, source: str) -> list[str]:
    """List all other columns as items; refuse one that shares no answer with the others."""
    names = [c for c in frame.columns if c != annotator_column]
    long = (
        pl.concat(
            pl.DataFrame(
                {
                    "column": pl.Series([name] * frame.height, dtype=pl.String),
                    "said": as_text(frame[name]),
                }
            )
            for name in names
        )
        .drop_nulls()
        .unique()
    )
    with_numbers = long.with_columns(number=pl.col("said").cast(pl.Float64, strict=False))
    column_ranges = with_numbers.group_by("column").agg(
        low=pl.col("number").min(), high=pl.col("number").max()
    )
    low = column_ranges["low"].drop_nulls().sort()
    high = column_ranges["high"].drop_nulls().sort(descending=True)
    is_in_range = (
        pl.lit(value=False)
        if len(low) < 2
        else pl.col("number")
        .is_between(
            # of the other columns: the second one where this column is the first
            pl.when(pl.col("low") == low[0]).then(low[1]).otherwise(low[0]),
            pl.when(pl.col("high") == high[0]).then(high[1]).otherwise(high[0]),
        )
        .fill_null(value=False)
    )
    shared_answers = with_numbers.join(column_ranges, on="column").filter(
        pl.col("said").is_duplicated() | is_in_range
    )
    unshared_columns = set(long["column"]) - set(shared_answers["column"])
    unshared_names = [c for c in names if c in unshared_columns]
    if unshared_names:
        raise SpecError(
            "a table of one row an annotator has a column that looks like no item",
            expected="columns of items, in which the same answers occur",
            found=f"{unshared_names[0]!r}: none of its values is in another column",
            where=source,
            hint="--data-option items=COLUMN,COLUMN names the items; other columns say something of"
            " the annotators",
        )
    return names


def _choose_unused_column_name(name: str, used_columns: Sequence[str]) -> str:
    return (
        name if name not in used_columns else _choose_unused_column_name(f"{name}_", used_columns)
    )
