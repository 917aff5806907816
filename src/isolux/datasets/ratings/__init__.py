"""Ratings: what several annotators answered about the same items, in one table.

One row an answer, with columns for the item, the annotator and the answer; or one row an item,
with a column for each annotator; or one row an annotator, with a column for each item. Columns that
are the same in all rows of an item say who the item is about, and those that are the same in all
rows of an annotator group the annotators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from isolux.datasets._wide import attributes_of, images_of, with_columns_to_choose
from isolux.datasets.ratings.layout import (
    Layout,
    answers_of,
    find_layout,
    items_of,
    of_question,
    turned,
)
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.vocabulary import works
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES, check

INFO = DatasetInfo(
    title="annotators' ratings",
    summary="What several annotators answered about the same items: a row an answer or an item.",
    references=(
        works.DATASHEETS.at("questions on composition and collection: who judged, and how"),
    ),
    licence="the licence of your table",
    judgement="perceived",
    assumptions=(
        "annotators answered on their own",
        "items are independent of one another, or a cluster column says which belong together",
    ),
    task="agreement",
)
_FEWEST = 10  # answers of an annotator, or items, below which chance explains it


def load(
    path: str | Path,
    *,
    item: str | None = None,
    annotator: str | None = None,
    answer: str | None = None,
    annotators: Sequence[str] = (),
    items: Sequence[str] = (),
    question: str | None = None,
    separator: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    format: str | None = None,  # noqa: A002  (as in read_table)
) -> Dataset:
    r"""Read a table of ratings.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, JSON lines, Arrow or a workbook.
    item : str, optional
        The column that names the item. Not given: the first of ``item``, ``task_id``,
        ``instance_id``, ``image_id``, ``photo``, ``id``, …; of a table with a row an item, the
        row's number where no such column tells the rows apart.
    annotator, answer : str, optional
        Of one row an answer: who gave it, and what it is. Not given: the first of ``annotator``,
        ``rater``, ``worker``, ``completed_by``, …, and of ``answer``, ``label``, ``rating``, ….
    annotators : sequence of str
        Of one row an item: the columns with the answers. Not given: ``rater_1``, ``rater_2``, ….
    items : sequence of str
        Of one row an annotator: the columns with the answers. Not given: all others, where a
        column is named as those of annotators are, and none as items or answers.
    question : str, optional
        Of a table with a column ``question``, as ``isolux curate answers --out`` writes it: the one
        whose answers are read.
    separator : str, optional
        What parts several values in one cell of a column that is neither of these.
    sheet : str, optional
        Of a workbook: the sheet.
    header_row : int, optional
        Of a workbook: the row with the columns' names, from 1.
    format : str, optional
        As ``read_table`` takes it; by suffix where not given.

    Returns
    -------
    Dataset
        Items are its instances, their columns ``attributes``; ``outputs`` are the answers:
        ``instance_id, annotator, label`` and what is said of the annotators.

    Raises
    ------
    FileError, TableError, SpecError, UnknownNameError
        A file that cannot be read; no columns of ratings; an answer without an item or annotator;
        an answer, or an item of a wide table, that stands there twice; answers to several
        questions about one item.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("photo,tone,rater,region,label\na,3,x,Asia,adult\n"
    ...                         "a,3,y,Africa,child\nb,9,x,Asia,adult\nb,9,y,Africa,adult\n")
    ...     found = load(file)
    >>> found.outputs.select("instance_id", "annotator", "label", "region").row(1)
    ('a', 'y', 'child', 'Africa')
    >>> found.attributes.select("unit_id", "attribute", "value").rows()
    [('a', 'tone', '3'), ('b', 'tone', '9')]
    """
    where = str(path)
    frame = read_table(path, format=format, sheet=sheet, header_row=header_row)
    told: list[str] = []
    if not item and not answer and not annotators:
        told, frame, (item, annotator, answer) = _turned(frame, annotator, items, where)
    elif items:
        raise SpecError(
            "items= is of a table with one row an annotator",
            where=where,
            expected="items=COLUMN,COLUMN, with annotator=COLUMN alone",
            found="item=, answer= or annotators= beside it",
        )
    layout = find_layout(
        frame, item=item, annotator=annotator, answer=answer, annotators=annotators, where=where
    )
    frame = of_question(frame, layout, question, where)
    outputs = answers_of(frame, layout, where)
    about, about_annotators, left = items_of(frame, layout, where)
    of_annotators = [name for name in about_annotators if name in outputs.columns[3:]]
    told += _told(layout, outputs["annotator"].n_unique(), of_annotators, left)
    told += doubts(outputs, layout.answer)
    ids = about["instance_id"]
    columns = about.drop("instance_id")
    instances = check(about.select("instance_id", image_id="instance_id"), INSTANCES, where=where)
    dataset = Dataset(
        name="ratings",
        info=INFO,
        instances=instances,
        attributes=attributes_of(columns, ids, separator=separator, where=where),
        images=images_of(instances, are_paths=False, root=None, where=where),
        inputs={where: sha256_file(path)},
        ids_are_rows=layout.item is None,
        notes=tuple(told),
        outputs=outputs.select("instance_id", "annotator", "label", *of_annotators),
        unread=left,
    )
    return with_columns_to_choose(dataset, about, where)


def _turned(
    frame: pl.DataFrame, annotator: str | None, items: Sequence[str], where: str
) -> tuple[list[str], pl.DataFrame, tuple[str | None, str | None, str | None]]:
    """Turn a table of one row an annotator; any other stays as it is."""
    found = turned(frame, annotator, items, where)
    if found is None:
        return [], frame, (None, annotator, None)
    rows, names = found
    n = rows[names["item"]].n_unique()
    said = f"One row an annotator: {n:,} columns are items. --data-option items=… names them."
    return [said], rows, (names["item"], names["annotator"], names["answer"])


def _told(
    layout: Layout, raters: int, of_annotators: list[str], left: Mapping[str, str]
) -> list[str]:
    named = "its row" if layout.item is None else repr(layout.item)
    whose = f"the columns {', '.join(map(repr, layout.annotators[:3]))}"
    if layout.annotator is not None:
        whose = f"the annotators in {layout.annotator!r}, their answers in {layout.answer!r}"
    elif len(layout.annotators) > 3:
        whose += ", …"
    notes = [f"Read: items by {named}, {whose}. {raters:,} annotator{'s' * (raters != 1)} judged."]
    if of_annotators:
        names = ", ".join(of_annotators)
        notes.append(f"Columns of the annotators, for --option annotators_by=…: {names}.")
    if left:
        notes.append(
            "Not read, since they differ between rows of one item and of one annotator, or hold"
            f" lists: {', '.join(left)}."
        )
    return notes


def doubts(answers: pl.DataFrame, column: str | None) -> list[Caution]:
    """Caution about answers that are spelt in two ways, foreign to the others', or all alike."""
    held = answers.drop_nulls("label").with_columns(pl.col("label").str.strip_chars())
    return [*_spelt_twice(held), *_foreign(held), *_all_alike(held, column)]


def _spelt_twice(held: pl.DataFrame) -> list[Caution]:
    number = pl.col("label").cast(pl.Float64, strict=False)
    key = (
        pl.when(number.is_not_null())
        .then(number.cast(pl.String))
        .otherwise(pl.col("label").str.to_lowercase())
    )
    words = held.select("label").unique().with_columns(key=key).sort("label")
    twins = (
        words.group_by("key", maintain_order=True)
        .agg("label")
        .filter(pl.col("label").list.len() > 1)
    )
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
