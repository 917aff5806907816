"""From a wide frame of a model's answers to one row an answer, ranked and with checked scores.

Shared by every format of labels: a format reads a frame, this file gives it its meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import polars as pl

from isolux.core.errors import SpecError, TableError, format_columns, format_location
from isolux.core.tables import LABEL_PREDICTIONS
from isolux.core.unit_index import has_no_duplicates
from isolux.io.cell_parsing import (
    as_labels,
    as_lists,
    as_numbers,
    as_text,
    fill_empty_lists,
    first_true_row,
)
from isolux.io.frames import read_table
from isolux.io.ids import IdFrom, choose_id_column, read_ids, read_names
from isolux.io.refusals import refuse_cells, require_columns
from isolux.io.sheets import PREDICTION_FLAGS
from isolux.predictions._detections import model_name_from_path
from isolux.predictions._id_parts import shorten_ids
from isolux.predictions._labels.confidences import read_is_detected, to_confidences

LABEL_COLUMNS = ("label", "prediction", "predicted", "predicted_label", "answer")
QUESTION_COLUMNS = ("question", "prompt")
QUESTION = "question"
_TEXT_ANSWER_COLUMNS = ("answer", "response")  # of a task whose answers are texts
_PERSON_KEY = ("model", "instance_id")
_MIN_QUESTIONS = 2


class LabelOptions(TypedDict, total=False):
    """What a format of labels takes; the meanings stand at ``read_predictions``."""

    id: str | None
    id_from: IdFrom
    column: str | None
    score: str | None
    scale: float
    detected: str | None
    separator: str | None
    model: str | None
    model_column: str | None
    sheet: str | None
    question: str | None
    questions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelColumns:
    """Which columns hold the answers, and how they are to be read."""

    column: str
    score: str | None = None
    scale: float = 1.0
    detected: str | None = None
    separator: str | None = None
    model: str
    question: str | None = None


def read_label_file(path: str | Path, format_name: str, options: LabelOptions) -> pl.DataFrame:
    """Read a file of that format and give the table predictions."""
    source = str(path)
    frame = read_table(
        path, format=format_name, sheet=options.get("sheet"), sheet_flags=PREDICTION_FLAGS
    )
    id_column_name = choose_id_column(frame, options.get("id"), source, description="an answer")
    ids = shorten_ids(
        read_ids(frame, id_column_name, source), options.get("id_from", "column"), source
    )
    column, score = options.get("column"), options.get("score")
    if column is None:
        column = _choose_answer_column(
            frame, source, _TEXT_ANSWER_COLUMNS if options.get("questions") else ()
        )
        if score is None and column == "label" and "score" in frame.columns:
            score = "score"
    elif column not in frame.columns:
        frame, has_confidences = rank_scored_answers(frame, column, options.get("scale", 1.0))
        score = score or (f"{column}.score" if has_confidences else None)
    label_columns = LabelColumns(
        column=column,
        score=score,
        scale=options.get("scale", 1.0),
        detected=options.get("detected"),
        separator=options.get("separator"),
        model=options.get("model") or model_name_from_path(path),
        question=_choose_question_column(frame, ids, options, column, source),
    )
    models = read_row_models(frame, options.get("model_column"), options.get("model"), source)
    models = None if models is None else models.fill_null(label_columns.model)
    return build_label_rows(frame, ids, label_columns, source, models=models)


def rank_scored_answers(
    frame: pl.DataFrame, column: str, scale: float
) -> tuple[pl.DataFrame, bool]:
    """Rank an object of answers and numbers (``column.his``, ``column.her``), highest first.

    The numbers are confidences if all are from 0 to ``scale``; else (logits) they only rank.
    """
    prefix = f"{column}."
    names = [name for name in frame.columns if name.startswith(prefix)]
    dtypes = [frame.schema[name] for name in names]
    if not names or not all(dtype.is_numeric() or dtype == pl.Null for dtype in dtypes):
        return frame, False
    cells = [
        pl.struct(label=pl.lit(name.removeprefix(prefix)), score=pl.col(name).cast(pl.Float64))
        for name in names
    ]
    number = pl.element().struct.field("score")
    ranked = frame.select(
        pl.concat_list(cells)
        .list.eval(pl.element().filter(number.is_not_null()))
        .list.eval(pl.element().sort_by(number, descending=True, maintain_order=True))
    ).to_series()
    score_lists = ranked.list.eval(number).alias(f"{column}.score")
    scores = score_lists.explode().drop_nulls()
    has_confidences = bool(((scores >= 0) & (scores <= scale)).all())
    label_lists = ranked.list.eval(pl.element().struct.field("label")).alias(column)
    return frame.drop(names).with_columns(label_lists, score_lists), has_confidences


def read_row_models(
    frame: pl.DataFrame, column: str | None, model: str | None, source: str
) -> pl.Series | None:
    """Say which model each row is of, as text; None where the table does not say."""
    require_columns(frame, (column,), source)
    model_column = column or ("model" if "model" in frame.columns else None)
    models = None if model_column is None else read_names(frame, model_column, source, noun="model")
    if models is None or model is None:
        return models
    model_names = models.drop_nulls().unique(maintain_order=True).to_list()
    if len(model_names) > 1:
        raise SpecError(
            f"{model!r} cannot be the name of several models",
            expected="the name of one of them, which is then judged alone",
            found=f"{len(model_names)} in the column {model_column!r}: "
            + ", ".join(map(repr, model_names[:12])),
            where=source,
            hint=f"--model-name {model_names[0]!r} judges that one",
        )
    return None


def build_label_rows(
    frame: pl.DataFrame,
    ids: pl.Series,
    label_columns: LabelColumns,
    source: str,
    *,
    models: pl.Series | None = None,
) -> pl.DataFrame:
    """Give one row an answer, in the order of the rows and of rank within a row."""
    if not (math.isfinite(label_columns.scale) and label_columns.scale > 0):
        raise SpecError(
            "the scale of the scores cannot be used",
            expected="a number above 0: scores run from 0 to it",
            found=str(label_columns.scale),
        )
    columns = (
        label_columns.column,
        label_columns.score,
        label_columns.detected,
        label_columns.question,
    )
    require_columns(frame, columns, source)
    people = pl.DataFrame(
        {
            "model": pl.repeat(label_columns.model, frame.height, eager=True)
            if models is None
            else models,
            "instance_id": ids,
            "detected": pl.repeat(None, frame.height, dtype=pl.Boolean, eager=True)
            if label_columns.detected is None
            else read_is_detected(frame[label_columns.detected], source),
        }
    )
    if label_columns.question is not None:
        return _build_rows_with_questions(frame, people, label_columns)
    is_multiple = _has_multiple_answers(frame[label_columns.column], label_columns.separator)
    rows = (_build_rows_from_lists if is_multiple else _build_rows_from_cells)(
        frame, people, label_columns, source
    )
    return LABEL_PREDICTIONS.conform(rows.select(LABEL_PREDICTIONS.schema.keys()))


def _choose_answer_column(
    frame: pl.DataFrame, source: str, further_names: tuple[str, ...] = ()
) -> str:
    names = (*further_names, *LABEL_COLUMNS)
    column = next((name for name in names if name in frame.columns), None)
    if column is None:
        raise SpecError(
            "no column is known to hold the model's answer",
            expected="one of " + ", ".join(names),
            found=format_columns(frame.columns),
            where=source,
            hint="name it with --prediction-column (column=…); scores alone, for --threshold or the"
            " area under the curve, with --score-column",
        )
    return column


def _choose_question_column(
    frame: pl.DataFrame, ids: pl.Series, options: LabelOptions, column: str, source: str
) -> str | None:
    """Name the column with the questions: as it is named, or found where a task takes questions."""
    if options.get("question") or not options.get("questions"):
        return options.get("question")
    question_column = next(
        (n for n in QUESTION_COLUMNS if n in frame.columns and n != column), None
    )
    if question_column is not None:
        refuse_unasked_question(question_column, frame[question_column], ids, source)
    return question_column


def refuse_unasked_question(name: str, values: pl.Series, ids: pl.Series, source: str) -> None:
    """Refuse a column ``prompt`` that was found, and that need not be what a model was asked."""
    n_questions = values.drop_nulls().n_unique()
    if name == QUESTION or n_questions < _MIN_QUESTIONS or ids.is_duplicated().any():
        return
    first = ", ".join(map(repr, as_text(values).drop_nulls().unique(maintain_order=True).head(3)))
    raise SpecError(
        f"nothing says whether the column {name!r} is what the model was asked",
        expected="each question asked of everyone, or the column named",
        found=f"{n_questions:,} values ({first}), and one row of each person",
        where=source,
        hint=f"if it was asked, --option question_column={name}; if not, give the column another "
        "name",
    )


def _build_rows_with_questions(
    frame: pl.DataFrame, people: pl.DataFrame, label_columns: LabelColumns
) -> pl.DataFrame:
    """One answer a row to the question of that row, ranked in the order of the rows."""
    rows = people.with_columns(
        as_labels(frame[label_columns.column]).alias("label"),
        as_text(frame[str(label_columns.question)]).str.strip_chars().alias(QUESTION),
        score=pl.lit(None, dtype=pl.Float64),
    ).with_columns(rank=pl.int_range(1, pl.len() + 1).over(_PERSON_KEY))
    return LABEL_PREDICTIONS.conform(rows)


def _has_multiple_answers(cells: pl.Series, separator: str | None) -> bool:
    if isinstance(cells.dtype, pl.List | pl.Array):
        return True
    if not separator or cells.dtype != pl.String:
        return False
    return bool(cells.str.contains(separator, literal=True).any())


def _build_rows_from_cells(
    frame: pl.DataFrame, people: pl.DataFrame, label_columns: LabelColumns, source: str
) -> pl.DataFrame:
    """One answer a row; several rows of one person are ranked by falling score, then by label."""
    if label_columns.score is None:
        score = pl.repeat(None, frame.height, dtype=pl.Float64, eager=True)
    else:
        numbers = as_numbers(frame[label_columns.score], source=source, column=label_columns.score)
        rows = pl.int_range(frame.height, eager=True)
        score = to_confidences(numbers, rows, label_columns.scale, source, label_columns.score)
    table = people.with_columns(label=as_labels(frame[label_columns.column]), score=score)
    if has_no_duplicates(table.select(_PERSON_KEY)):
        return table.with_columns(rank=pl.lit(1, dtype=pl.Int64))
    is_repeated = table.select(_PERSON_KEY).is_duplicated()
    _refuse_unranked(table, is_repeated, source, label_columns.score)
    # By label, so that the order of rows does not decide the answer; classification cautions on it.
    order = pl.struct(-pl.col("score"), "label").rank("ordinal")
    rank = pl.when(pl.col("score").is_not_null()).then(order.over(_PERSON_KEY)).cast(pl.Int64)
    # A lone answer needs no score to be the first.
    return table.with_columns(rank=rank.fill_null(1))


def _refuse_unranked(
    table: pl.DataFrame, is_repeated: pl.Series, source: str, score: str | None
) -> None:
    unranked = is_repeated & table["score"].is_null()
    if not unranked.any():
        return
    row = first_true_row(unranked)
    is_same_person = (table["instance_id"] == table["instance_id"][row]) & (
        table["model"] == table["model"][row]
    )
    rows = [int(i) + 1 for i in is_same_person.arg_true()[:2]]
    raise TableError(
        "a person has several answers and nothing says which comes first",
        expected="one row a person, or a score in each of their rows",
        found=f"{table['instance_id'][row]!r} in rows {rows[0]} and {rows[1]}"
        + (f", without a {score!r}" if score else ""),
        where=format_location(source, rows[1]),
        hint="name the column of scores with --score-column (score=…), or keep one row a person",
    )


def _build_rows_from_lists(
    frame: pl.DataFrame, people: pl.DataFrame, label_columns: LabelColumns, source: str
) -> pl.DataFrame:
    """Several answers a row, ranked as they stand; scores run in parallel."""
    is_repeated = people.select(_PERSON_KEY).is_duplicated()
    if is_repeated.any():
        row = int(is_repeated.arg_true()[1])
        raise TableError(
            "a person has several rows, and several answers in a row",
            expected="several answers in one row, or several rows of one answer",
            found=repr(people["instance_id"][row]),
            where=format_location(source, row + 1),
        )
    labels = fill_empty_lists(
        as_lists(frame[label_columns.column], label_columns.separator, keep_empty=True)
    )
    lengths = labels.list.len()
    lists = people.with_columns(label=labels, row=pl.int_range(frame.height, eager=True))
    lists = lists.with_columns(rank=pl.int_ranges(1, lengths.cast(pl.Int64) + 1, eager=True))
    if label_columns.score is None:
        table = lists.explode("label", "rank")
        return table.with_columns(as_labels(table["label"]), score=pl.lit(None, dtype=pl.Float64))
    scores = _to_score_lists(frame[label_columns.score], label_columns.separator)
    _refuse_unequal(lengths, scores.list.len(), source, label_columns.score)
    table = lists.with_columns(score=scores).explode("label", "rank", "score")
    numbers = as_numbers(table["score"], source=source, column=label_columns.score)
    return table.with_columns(
        as_labels(table["label"]),
        score=to_confidences(
            numbers, table["row"], label_columns.scale, source, label_columns.score
        ),
    )


def _to_score_lists(cells: pl.Series, separator: str | None) -> pl.Series:
    """Give scores as lists; numbers stay numbers, so that NaN is seen and refused."""
    dtype = cells.dtype
    if isinstance(dtype, pl.Array):
        cells, dtype = cells.arr.to_list(), pl.List(dtype.inner)
    if dtype.is_numeric():
        wrapped = cells.cast(pl.Float64).to_frame("cell").select(pl.concat_list("cell"))
        return wrapped["cell"]
    if isinstance(dtype, pl.List) and dtype.inner.is_numeric():
        return fill_empty_lists(cells.cast(pl.List(pl.Float64)))
    return fill_empty_lists(as_lists(cells, separator, keep_empty=True))


def _refuse_unequal(labels: pl.Series, scores: pl.Series, source: str, column: str) -> None:
    refuse_cells(
        labels != scores,
        scores,
        "{n} row(s) have more or fewer scores than answers",
        "a score for each answer, in the same order",
        source,
        column=column,
        format_found=lambda row: f"{labels[row]} answer(s) and {scores[row]} score(s)",
    )
