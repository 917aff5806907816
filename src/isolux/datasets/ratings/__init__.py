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

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES, check
from isolux.datasets._wide_table import (
    build_image_table_of_instances,
    cluster_by_row_and_offer_columns,
    melt_table_to_attribute_rows,
)
from isolux.datasets.ratings.answer_sets import caution_on_permuted_sets
from isolux.datasets.ratings.layout import (
    RatingColumns,
    build_answer_rows,
    build_item_table,
    find_rating_columns,
    select_answers_to_question,
    transpose_row_per_annotator,
)
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.sheets import DATASET_FLAGS

INFO = DatasetInfo(
    title="annotators' ratings",
    summary="What several annotators answered about the same items: a row an answer or an item.",
    references=(
        citations.DATASHEETS.with_location(
            "questions on composition and collection: who judged, and how"
        ),
    ),
    licence="the licence of your table",
    label_source="perceived",
    assumptions=(
        "annotators answered on their own",
        "items are independent of one another, or a cluster column says which belong together",
    ),
    task="agreement",
)
_MIN_COUNT = 10  # answers of an annotator, or items, below which chance explains it


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
        CSV, TSV, Parquet, JSON (also Label Studio's exports JSON and JSON-MIN), Arrow or a
        workbook.
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
        What parts several values in one cell. Answers of one cell are a set, whose order does not
        matter, as are choices in JSON, as Label Studio writes them.
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
    >>> found.bundled_predictions.select("instance_id", "annotator", "label", "region").row(1)
    ('a', 'y', 'child', 'Africa')
    >>> found.attributes.select("unit_id", "attribute", "value").rows()
    [('a', 'tone', '3'), ('b', 'tone', '9')]
    """
    source = str(path)
    frame = read_table(
        path, format=format, sheet=sheet, header_row=header_row, sheet_flags=DATASET_FLAGS
    )
    notes: list[str] = []
    if not item and not answer and not annotators:
        notes, frame, (item, annotator, answer) = _transpose_row_per_annotator(
            frame, annotator, items, source
        )
    elif items:
        raise SpecError(
            "items= is of a table with one row an annotator",
            where=source,
            expected="items=COLUMN,COLUMN, with annotator=COLUMN alone",
            found="item=, answer= or annotators= beside it",
        )
    layout = find_rating_columns(
        frame, item=item, annotator=annotator, answer=answer, annotators=annotators, source=source
    )
    frame = select_answers_to_question(frame, layout, question, source)
    outputs = build_answer_rows(frame, layout, source, separator)
    item_table, annotator_columns, skipped_columns = build_item_table(frame, layout, source)
    answered_columns = [name for name in annotator_columns if name in outputs.columns[3:]]
    notes += _build_rating_layout_notes(
        layout, outputs["annotator"].n_unique(), answered_columns, skipped_columns
    )
    notes += list_rating_cautions(outputs, layout.answer)
    notes += caution_on_permuted_sets(outputs["label"])
    ids = item_table["instance_id"]
    columns = item_table.drop("instance_id")
    instances = check(
        item_table.select("instance_id", image_id="instance_id"), INSTANCES, source=source
    )
    dataset = Dataset(
        name="ratings",
        info=INFO,
        instances=instances,
        attributes=melt_table_to_attribute_rows(columns, ids, separator=separator, source=source),
        images=build_image_table_of_instances(instances, are_paths=False, root=None, source=source),
        inputs={source: sha256_file(path)},
        has_row_number_ids=layout.item is None,
        notes=tuple(notes),
        bundled_predictions=outputs.select("instance_id", "annotator", "label", *answered_columns),
        skipped_columns=skipped_columns,
    )
    return cluster_by_row_and_offer_columns(dataset, item_table, source)


def _transpose_row_per_annotator(
    frame: pl.DataFrame, annotator: str | None, items: Sequence[str], source: str
) -> tuple[list[str], pl.DataFrame, tuple[str | None, str | None, str | None]]:
    """Turn a table of one row an annotator; any other stays as it is."""
    transposed = transpose_row_per_annotator(frame, annotator, items, source)
    if transposed is None:
        return [], frame, (None, annotator, None)
    rows, names = transposed
    n = rows[names["item"]].n_unique()
    note = f"One row an annotator: {n:,} columns are items. --data-option items=… names them."
    return [note], rows, (names["item"], names["annotator"], names["answer"])


def _build_rating_layout_notes(
    layout: RatingColumns,
    n_annotators: int,
    annotator_columns: list[str],
    skipped_columns: Mapping[str, str],
) -> list[str]:
    item_phrase = "its row" if layout.item is None else repr(layout.item)
    annotator_phrase = f"the columns {', '.join(map(repr, layout.annotators[:3]))}"
    if layout.annotator is not None:
        annotator_phrase = (
            f"the annotators in {layout.annotator!r}, their answers in {layout.answer!r}"
        )
    elif len(layout.annotators) > 3:
        annotator_phrase += ", …"
    annotator_count = f"{n_annotators:,} annotator{'s' * (n_annotators != 1)}"
    notes = [f"Read: items by {item_phrase}, {annotator_phrase}. {annotator_count} judged."]
    if annotator_columns:
        names = ", ".join(annotator_columns)
        notes.append(f"Columns of the annotators, for --option annotators_by=…: {names}.")
    if skipped_columns:
        notes.append(
            "Not read, since they differ between rows of one item and of one annotator, or hold"
            f" lists: {', '.join(skipped_columns)}."
        )
    return notes


def list_rating_cautions(answer_table: pl.DataFrame, column: str | None) -> list[Caution]:
    """List cautions about inconsistent spelling, unshared answers and full agreement."""
    given_answers = answer_table.drop_nulls("label").with_columns(pl.col("label").str.strip_chars())
    return [
        *_caution_on_spelling(given_answers),
        *_caution_on_unshared_answers(given_answers),
        *_caution_on_full_agreement(given_answers, column),
    ]


def _caution_on_spelling(given_answers: pl.DataFrame) -> list[Caution]:
    number = pl.col("label").cast(pl.Float64, strict=False)
    key = (
        pl.when(number.is_not_null())
        .then(number.cast(pl.String))
        .otherwise(pl.col("label").str.to_lowercase())
    )
    words = given_answers.select("label").unique().with_columns(key=key).sort("label")
    twins = (
        words.group_by("key", maintain_order=True)
        .agg("label")
        .filter(pl.col("label").list.len() > 1)
    )
    if not twins.height:
        return []
    examples = "; ".join(
        " and ".join(map(repr, spellings[:3])) for spellings in twins["label"].head(3).to_list()
    )
    ellipsis = "; …" if twins.height > 3 else ""
    return [
        Caution(
            f"Answers differ in their spelling alone: {examples}{ellipsis}. They count as two "
            f"answers."
        )
    ]


def _caution_on_unshared_answers(given_answers: pl.DataFrame) -> list[Caution]:
    """Name annotators of whose answers no other gave a single one."""
    annotators_by_label = given_answers.group_by("label").agg(
        annotators=pl.col("annotator").n_unique()
    )
    unshared = (
        given_answers.join(annotators_by_label, on="label")
        .group_by("annotator")
        .agg(n=pl.len(), shared=(pl.col("annotators") > 1).any())
        .filter(~pl.col("shared"), pl.col("n") >= _MIN_COUNT)
        .sort("annotator")
    )
    if not unshared.height or given_answers["annotator"].n_unique() < 2:
        return []
    examples = ", ".join(map(repr, unshared["annotator"].head(3).to_list()))
    return [
        Caution(
            f"No other annotator ever gave an answer of "
            f"{examples}{', …' if unshared.height > 3 else ''}:"
            " is it spelt otherwise, or another column?"
        )
    ]


def _caution_on_full_agreement(given_answers: pl.DataFrame, column: str | None) -> list[Caution]:
    """Say where annotators agree about everything, as they do in a column that is no answer."""
    items = given_answers.group_by("instance_id").agg(
        n=pl.col("annotator").n_unique(), answers=pl.col("label").n_unique()
    )
    multiply_rated = items.filter(pl.col("n") > 1)
    if multiply_rated.height < _MIN_COUNT or (multiply_rated["answers"] > 1).any():
        return []
    question_text = "did they answer on their own?"
    if column is not None:
        question_text = f"is {column!r} the column of their answers?"
    return [
        Caution(
            f"All annotators gave the same answer about each of {multiply_rated.height:,} items: "
            f"{question_text}"
        )
    ]
