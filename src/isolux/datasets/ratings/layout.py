"""How a table of ratings lies: one row an answer, or one row an item with a column an annotator.

What is not named is found by its name; an error says what was looked for and how to name it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from isolux.datasets._tables import first_named
from isolux.io.cells import as_text, is_plain
from isolux.io.ids import ids_of
from isolux.io.refusals import refuse_cells, refuse_repeats, require_columns
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, columns_shown

_ITEM = (
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
_ANNOTATOR = (
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
_ANSWER = (
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
_NUMBERED = re.compile(
    r"(annotator|rater|worker|labell?er|coder|judge|annot|user|obs(?:erver)?|r|a)[ _.-]?(\d+)",
    re.IGNORECASE,
)

_LISTS = "it holds lists"
_QUESTION, _SHOWN = "question", 5


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column is which."""

    item: str | None
    annotator: str | None = None
    answer: str | None = None
    annotators: tuple[str, ...] = ()


def find_layout(
    frame: pl.DataFrame,
    *,
    item: str | None,
    annotator: str | None,
    answer: str | None,
    annotators: Sequence[str],
    where: str,
) -> Layout:
    """Find the columns, by their names where none is given."""
    columns = frame.columns
    require_columns(frame, (item, annotator, answer, *annotators), where)
    if annotators and (annotator or answer):
        raise SpecError(
            "the table cannot have one row an answer and one column an annotator",
            expected="annotators=R1,R2,… (wide), or annotator= and answer= (long)",
            found="both",
            where=where,
        )
    known = item or first_named(_ITEM, columns)
    who = annotator or first_named(_ANNOTATOR, columns)
    said = answer or first_named(_ANSWER, [name for name in columns if name not in (known, who)])
    if not annotators and who is not None and said is not None and known is not None:
        taken = (known, who, said)
        if annotator is None:
            _refuse_two(_ANNOTATOR, who, columns, taken, "annotator", where)
        if answer is None:
            _refuse_two(_ANSWER, said, columns, taken, "answer", where)
        return Layout(known, who, said)
    wide = tuple(annotators) or _numbered(columns)
    if len(wide) < 2:
        raise SpecError(
            "no columns of ratings were found",
            expected="one row an answer: --data-option item=COLUMN --data-option annotator=COLUMN"
            " --data-option answer=COLUMN; or one row an item: --data-option"
            " annotators=COLUMN,COLUMN; or one row an annotator: --data-option annotator=COLUMN"
            " --data-option items=COLUMN,COLUMN",
            found=columns_shown(columns),
            where=where,
            hint=_headless(frame),
        )
    return Layout(_of_rows(frame, known, wide) if item is None else item, annotators=wide)


def is_named_as_annotators(column: str) -> bool:
    """Whether a column's name says that it names annotators."""
    return column.lower() in _ANNOTATOR


def is_named_as_answers_or_items(column: str) -> bool:
    """Whether a column's name says that it holds answers or items, or one annotator's answers."""
    return column.lower() in (*_ANSWER, *_ITEM) or bool(_NUMBERED.fullmatch(column.strip()))


def _headless(frame: pl.DataFrame) -> str | None:
    """Ask whether the names of the columns are answers: most stand among their own cells."""
    texts = [as_text(one) for one in frame.get_columns() if is_plain(one.dtype)]
    among = sum(bool((text == text.name).any()) for text in texts)
    if not texts or 2 * among <= len(texts):
        return None
    return "the first row seems to be data: write a row with the columns' names above it"


def _refuse_two(
    names: Sequence[str],
    chosen: str,
    columns: Sequence[str],
    taken: Sequence[str],
    what: str,
    where: str,
) -> None:
    """Refuse to guess where two columns are named as the annotators or the answers are."""
    others = [c for c in columns if c.lower() in names and c not in taken]
    if others:
        raise SpecError(
            f"two columns may hold the {what}s",
            expected=f"--data-option {what}=COLUMN",
            found=", ".join(map(repr, [chosen, *others][:4])),
            where=where,
        )


def _numbered(columns: Sequence[str]) -> tuple[str, ...]:
    """Take the columns that are numbered annotators, of the one word that most of them have."""
    found: dict[str, list[str]] = {}
    for column in columns:
        match = _NUMBERED.fullmatch(column.strip())
        if match:
            found.setdefault(match[1].lower(), []).append(column)
    most = max(map(len, found.values()), default=0)
    return next((tuple(held) for held in found.values() if len(held) == most), ())


def _of_rows(frame: pl.DataFrame, column: str | None, others: Sequence[str]) -> str | None:
    """Take the column that is named as items are; without one, the row names the item."""
    if column is None or column in others or not is_plain(frame[column].dtype):
        return None
    return column


def of_question(
    frame: pl.DataFrame, layout: Layout, question: str | None, where: str
) -> pl.DataFrame:
    """Keep the answers to one question, of a table that tells questions apart."""
    if question is None:
        pair = [layout.item, layout.annotator]
        if _QUESTION not in frame.columns or None in pair or _QUESTION in pair:
            return frame
        several = frame.group_by(pair).agg(n=pl.col(_QUESTION).n_unique())
        if (several["n"] <= 1).all():
            return frame
        known = as_text(frame[_QUESTION]).drop_nulls().unique(maintain_order=True)
        raise SpecError(
            "annotators answered several questions about an item",
            expected=f"one of them: --data-option {_QUESTION}={known[0]!r}",
            found=", ".join(map(repr, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else ""),
            where=where,
        )
    require_columns(frame, (_QUESTION,), where)
    told = as_text(frame[_QUESTION])
    kept = frame.filter(told == question)
    if kept.is_empty():
        raise UnknownNameError("question", question, told.drop_nulls().unique(), where=where)
    return kept


def answers_of(frame: pl.DataFrame, layout: Layout, where: str) -> pl.DataFrame:
    """Bring the answers to one row each."""
    items = _ids(frame, layout, where)
    if layout.annotator is not None and layout.answer is not None:
        who = ids_of(frame, layout.annotator, where).alias("annotator")
        taken = (layout.item, layout.annotator, layout.answer)
        others = [
            as_text(frame[name]).alias(name)
            for name in frame.columns
            if name not in taken and is_plain(frame[name].dtype)
        ]
        rest = [one for one in others if one.name not in ("instance_id", "annotator", "label")]
        rows = pl.DataFrame([items, who, as_text(frame[layout.answer]).alias("label"), *rest])
        _refuse_repeats(rows, layout, where)
        return rows
    refuse_cells(
        ~items.is_first_distinct(),
        items,
        "an item is in two rows",
        "one row an item, with a column for each annotator",
        where,
        column=layout.item,
        hint="--data-option item=COLUMN names another column; a table of one row an answer"
        " needs annotator= and answer=",
    )
    wide = pl.DataFrame([items, *(as_text(frame[name]).alias(name) for name in layout.annotators)])
    return wide.unpivot(index="instance_id", variable_name="annotator", value_name="label")


def _ids(frame: pl.DataFrame, layout: Layout, where: str) -> pl.Series:
    if layout.item is not None:
        return ids_of(frame, layout.item, where).alias("instance_id")
    return pl.int_range(1, frame.height + 1, eager=True).cast(pl.String).alias("instance_id")


def _refuse_repeats(rows: pl.DataFrame, layout: Layout, where: str) -> None:
    """Refuse an answer that stands in the table twice, as after a second export."""
    key = ["instance_id", "annotator", "label"]
    numbered = rows.select(*key, row=pl.int_range(1, pl.len() + 1))
    twice = (
        numbered.group_by(key, maintain_order=True).agg("row").filter(pl.col("row").list.len() > 1)
    )
    if not twice.height:
        return
    first = twice.row(0, named=True)
    raise TableError(
        f"{int(twice['row'].list.len().sum()):,} rows repeat an annotator's answer about an item",
        expected=f"one row for each {layout.item} and {layout.annotator}",
        found=f"{first['annotator']!r} about {first['instance_id']!r}: {first['label']!r} in rows"
        f" {first['row'][0]} and {first['row'][1]}",
        where=where,
        hint="was an export added to the file twice? Keep one row of each; if several people share"
        " a name, tell them apart",
    )


def items_of(
    frame: pl.DataFrame, layout: Layout, where: str
) -> tuple[pl.DataFrame, list[str], dict[str, str]]:
    """Bring the items to one row each, with what the table says of them."""
    ids = _ids(frame, layout, where)
    taken = {layout.item, layout.annotator, layout.answer, *layout.annotators}
    others = [name for name in frame.columns if name not in taken]
    plain = [name for name in others if is_plain(frame[name].dtype)]
    table = pl.DataFrame([ids, *(frame[name] for name in plain if name != "instance_id")])
    plain = table.columns[1:]
    if layout.annotator is None:
        return table, [], {name: _LISTS for name in others if name not in plain}
    who = as_text(frame[layout.annotator]).alias("annotator_")
    both = table.with_columns(who)
    of_items = _constant(both, "instance_id", plain)
    of_annotators = _constant(both, "annotator_", plain)
    items = table.unique("instance_id", keep="first", maintain_order=True)
    left = {
        name: _unlike(both, name, str(layout.item)) if name in plain else _LISTS
        for name in others
        if name not in {*of_items, *of_annotators}
    }
    return items.select("instance_id", *of_items), of_annotators, left


def _unlike(both: pl.DataFrame, name: str, item: str) -> str:
    """Name the first item of which a column says two things."""
    said = pl.col(name).unique(maintain_order=True)
    values = both.group_by("instance_id", maintain_order=True).agg(said)
    torn = values.filter(pl.col(name).list.len() > 1)
    first, two = torn.row(0)
    shown = " and ".join("an empty cell" if one is None else repr(one) for one in two[:2])
    return (
        f"it differs between rows of one {item} ({shown} of {first!r}; so for {torn.height:,} of"
        f" {values.height:,})"
    )


def _constant(frame: pl.DataFrame, within: str, columns: Sequence[str]) -> list[str]:
    """Name the columns that have one value for each ``within``."""
    if not columns:
        return []
    most = frame.group_by(within).agg(pl.col(columns).n_unique()).select(pl.col(columns).max())
    return [name for name in columns if (most[name][0] or 0) <= 1]


def turned(
    frame: pl.DataFrame, annotator: str | None, items: Sequence[str], where: str
) -> tuple[pl.DataFrame, dict[str, str]] | None:
    """Bring a table of one row an annotator to one row an answer."""
    require_columns(frame, (annotator, *items), where)
    who = annotator or next((c for c in frame.columns if is_named_as_annotators(c)), None)
    if not items and (who is None or not _lies_so(frame, who)):
        return None
    if who is None:
        raise SpecError(
            "no column names the annotators",
            where=where,
            expected="--data-option annotator=COLUMN, beside items=COLUMN,COLUMN",
        )
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
    said = long.with_columns(number=pl.col("said").cast(pl.Float64, strict=False))
    ends = said.group_by("column").agg(low=pl.col("number").min(), high=pl.col("number").max())
    low, high = ends["low"].drop_nulls().sort(), ends["high"].drop_nulls().sort(descending=True)
    within = (
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
    told = said.join(ends, on="column").filter(pl.col("said").is_duplicated() | within)
    strange = set(long["column"]) - set(told["column"])
    foreign = [c for c in names if c in strange]
    if foreign:
        raise SpecError(
            "a table of one row an annotator has a column that looks like no item",
            expected="columns of items, in which the same answers occur",
            found=f"{foreign[0]!r}: none of its values is in another column",
            where=where,
            hint="--data-option items=COLUMN,COLUMN names the items; other columns say something of"
            " the annotators",
        )
    return names


def _free(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)
