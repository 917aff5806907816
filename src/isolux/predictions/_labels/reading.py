"""From a wide frame of a model's answers to one row an answer, ranked and with checked scores.

Shared by every format of labels: a format reads a frame, this file gives it its meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import polars as pl

from isolux.io.cells import as_labels, as_lists, as_numbers, as_text, filled, row_of
from isolux.io.frames import read_table
from isolux.io.ids import IdFrom, id_column, ids_of
from isolux.io.refusals import refuse_cells, require_columns
from isolux.predictions._detections import model_name
from isolux.predictions._id_parts import shortened
from isolux.predictions._labels.confidences import confidences, whether_detected
from isolux.vocabulary.errors import SpecError, TableError, columns_shown, place
from isolux.vocabulary.places import is_unrepeated
from isolux.vocabulary.tables import LABEL_PREDICTIONS

LABEL_COLUMNS = ("label", "prediction", "predicted", "predicted_label", "answer")
QUESTION_COLUMNS = ("question", "prompt")
QUESTION = "question"
_TEXTS = ("answer", "response")  # of a task whose answers are texts
_WHO = ("model", "instance_id")
_TWO = 2


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
class Answers:
    """Which columns hold the answers, and how they are to be read."""

    column: str
    score: str | None = None
    scale: float = 1.0
    detected: str | None = None
    separator: str | None = None
    model: str
    question: str | None = None


def read_labels(path: str | Path, form: str, options: LabelOptions) -> pl.DataFrame:
    """Read a file of that format and give the table predictions."""
    where = str(path)
    frame = read_table(path, format=form, sheet=options.get("sheet"))
    named = id_column(frame, options.get("id"), where, what="an answer")
    ids = shortened(ids_of(frame, named, where), options.get("id_from", "column"), where)
    column, score = options.get("column"), options.get("score")
    if column is None:
        column = _answer_column(frame, where, _TEXTS if options.get("questions") else ())
        if score is None and column == "label" and "score" in frame.columns:
            score = "score"
    answers = Answers(
        column=column,
        score=score,
        scale=options.get("scale", 1.0),
        detected=options.get("detected"),
        separator=options.get("separator"),
        model=options.get("model") or model_name(path),
        question=_question_column(frame, ids, options, column, where),
    )
    models = models_of_rows(frame, options.get("model_column"), options.get("model"), where)
    models = None if models is None else models.fill_null(answers.model)
    return label_rows(frame, ids, answers, where, models=models)


def models_of_rows(
    frame: pl.DataFrame, column: str | None, named: str | None, where: str
) -> pl.Series | None:
    """Say which model each row is of, as text; None where the table does not say."""
    require_columns(frame, (column,), where)
    own = column or ("model" if "model" in frame.columns else None)
    models = None if own is None else as_text(frame[own])
    if models is None or named is None:
        return models
    several = models.drop_nulls().unique(maintain_order=True).to_list()
    if len(several) > 1:
        raise SpecError(
            f"{named!r} cannot be the name of several models",
            expected="the name of one of them, which is then judged alone",
            found=f"{len(several)} in the column {own!r}: " + ", ".join(map(repr, several[:12])),
            where=where,
            hint=f"--model-name {several[0]!r} judges that one",
        )
    return None


def label_rows(
    frame: pl.DataFrame,
    ids: pl.Series,
    answers: Answers,
    where: str,
    *,
    models: pl.Series | None = None,
) -> pl.DataFrame:
    """Give one row an answer, in the order of the rows and of rank within a row."""
    if not (math.isfinite(answers.scale) and answers.scale > 0):
        raise SpecError(
            "the scale of the scores cannot be used",
            expected="a number above 0: scores run from 0 to it",
            found=str(answers.scale),
        )
    named = (answers.column, answers.score, answers.detected, answers.question)
    require_columns(frame, named, where)
    who = pl.DataFrame(
        {
            "model": pl.repeat(answers.model, frame.height, eager=True)
            if models is None
            else models,
            "instance_id": ids,
            "detected": pl.repeat(None, frame.height, dtype=pl.Boolean, eager=True)
            if answers.detected is None
            else whether_detected(frame[answers.detected], where),
        }
    )
    if answers.question is not None:
        return _to_questions(frame, who, answers)
    several = _holds_several(frame[answers.column], answers.separator)
    rows = (_from_lists if several else _from_cells)(frame, who, answers, where)
    return LABEL_PREDICTIONS.conform(rows.select(LABEL_PREDICTIONS.schema.keys()))


def _answer_column(frame: pl.DataFrame, where: str, more: tuple[str, ...] = ()) -> str:
    names = (*more, *LABEL_COLUMNS)
    found = next((name for name in names if name in frame.columns), None)
    if found is None:
        raise SpecError(
            "no column is known to hold the model's answer",
            expected="one of " + ", ".join(names),
            found=columns_shown(frame.columns),
            where=where,
            hint="name it with --prediction-column (column=…); scores alone, for --threshold or the"
            " area under the curve, with --score-column",
        )
    return found


def _question_column(
    frame: pl.DataFrame, ids: pl.Series, options: LabelOptions, column: str, where: str
) -> str | None:
    """Name the column with the questions: as it is named, or found where a task takes questions."""
    if options.get("question") or not options.get("questions"):
        return options.get("question")
    found = next((n for n in QUESTION_COLUMNS if n in frame.columns and n != column), None)
    if found is not None:
        refuse_no_question(found, frame[found], ids, where)
    return found


def refuse_no_question(name: str, values: pl.Series, ids: pl.Series, where: str) -> None:
    """Refuse a column ``prompt`` that was found, and that need not be what a model was asked."""
    several = values.drop_nulls().n_unique()
    if name == QUESTION or several < _TWO or ids.is_duplicated().any():
        return
    first = ", ".join(map(repr, as_text(values).drop_nulls().unique(maintain_order=True).head(3)))
    raise SpecError(
        f"nothing says whether the column {name!r} is what the model was asked",
        expected="each question asked of everyone, or the column named",
        found=f"{several:,} values ({first}), and one row of each person",
        where=where,
        hint=f"if it was asked, --option question_column={name}; if not, give the column another "
        "name",
    )


def _to_questions(frame: pl.DataFrame, who: pl.DataFrame, answers: Answers) -> pl.DataFrame:
    """One answer a row to the question of that row, ranked in the order of the rows."""
    rows = who.with_columns(
        as_labels(frame[answers.column]).alias("label"),
        as_text(frame[str(answers.question)]).str.strip_chars().alias(QUESTION),
        score=pl.lit(None, dtype=pl.Float64),
    ).with_columns(rank=pl.int_range(1, pl.len() + 1).over(_WHO))
    return LABEL_PREDICTIONS.conform(rows)


def _holds_several(cells: pl.Series, separator: str | None) -> bool:
    if isinstance(cells.dtype, pl.List | pl.Array):
        return True
    if not separator or cells.dtype != pl.String:
        return False
    return bool(cells.str.contains(separator, literal=True).any())


def _from_cells(
    frame: pl.DataFrame, who: pl.DataFrame, answers: Answers, where: str
) -> pl.DataFrame:
    """One answer a row; several rows of one person are ranked by falling score."""
    if answers.score is None:
        score = pl.repeat(None, frame.height, dtype=pl.Float64, eager=True)
    else:
        numbers = as_numbers(frame[answers.score], where=where, column=answers.score)
        rows = pl.int_range(frame.height, eager=True)
        score = confidences(numbers, rows, answers.scale, where, answers.score)
    table = who.with_columns(label=as_labels(frame[answers.column]), score=score)
    if is_unrepeated(table.select(_WHO)):
        return table.with_columns(rank=pl.lit(1, dtype=pl.Int64))
    again = table.select(_WHO).is_duplicated()
    _refuse_unranked(table, again, where, answers.score)
    rank = pl.col("score").rank("ordinal", descending=True).over(_WHO).cast(pl.Int64)
    # A lone answer needs no score to be the first.
    return table.with_columns(rank=rank.fill_null(1))


def _refuse_unranked(table: pl.DataFrame, again: pl.Series, where: str, score: str | None) -> None:
    unranked = again & table["score"].is_null()
    if not unranked.any():
        return
    row = row_of(unranked)
    same = (table["instance_id"] == table["instance_id"][row]) & (
        table["model"] == table["model"][row]
    )
    rows = [int(i) + 1 for i in same.arg_true()[:2]]
    raise TableError(
        "a person has several answers and nothing says which comes first",
        expected="one row a person, or a score in each of their rows",
        found=f"{table['instance_id'][row]!r} in rows {rows[0]} and {rows[1]}"
        + (f", without a {score!r}" if score else ""),
        where=place(where, rows[1]),
        hint="name the column of scores with --score-column (score=…), or keep one row a person",
    )


def _from_lists(
    frame: pl.DataFrame, who: pl.DataFrame, answers: Answers, where: str
) -> pl.DataFrame:
    """Several answers a row, ranked as they stand; scores run in parallel."""
    again = who.select(_WHO).is_duplicated()
    if again.any():
        row = int(again.arg_true()[1])
        raise TableError(
            "a person has several rows, and several answers in a row",
            expected="several answers in one row, or several rows of one answer",
            found=repr(who["instance_id"][row]),
            where=place(where, row + 1),
        )
    labels = filled(as_lists(frame[answers.column], answers.separator, keep_empty=True))
    lengths = labels.list.len()
    lists = who.with_columns(label=labels, row=pl.int_range(frame.height, eager=True))
    lists = lists.with_columns(rank=pl.int_ranges(1, lengths.cast(pl.Int64) + 1, eager=True))
    if answers.score is None:
        table = lists.explode("label", "rank")
        return table.with_columns(as_labels(table["label"]), score=pl.lit(None, dtype=pl.Float64))
    scores = _score_lists(frame[answers.score], answers.separator)
    _refuse_unequal(lengths, scores.list.len(), where, answers.score)
    table = lists.with_columns(score=scores).explode("label", "rank", "score")
    numbers = as_numbers(table["score"], where=where, column=answers.score)
    return table.with_columns(
        as_labels(table["label"]),
        score=confidences(numbers, table["row"], answers.scale, where, answers.score),
    )


def _score_lists(cells: pl.Series, separator: str | None) -> pl.Series:
    """Give scores as lists; numbers stay numbers, so that NaN is seen and refused."""
    dtype = cells.dtype
    if isinstance(dtype, pl.Array):
        cells, dtype = cells.arr.to_list(), pl.List(dtype.inner)
    if dtype.is_numeric():
        one = cells.cast(pl.Float64).to_frame("cell").select(pl.concat_list("cell"))
        return one["cell"]
    if isinstance(dtype, pl.List) and dtype.inner.is_numeric():
        return filled(cells.cast(pl.List(pl.Float64)))
    return filled(as_lists(cells, separator, keep_empty=True))


def _refuse_unequal(labels: pl.Series, scores: pl.Series, where: str, column: str) -> None:
    refuse_cells(
        labels != scores,
        scores,
        "{n} row(s) have more or fewer scores than answers",
        "a score for each answer, in the same order",
        where,
        column=column,
        found=lambda row: f"{labels[row]} answer(s) and {scores[row]} score(s)",
    )
