"""Scores without answers, on any scale: from a column of the people's table, or from a file."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError, format_columns
from isolux.io.cell_parsing import as_numbers
from isolux.io.frames import read_table
from isolux.io.ids import choose_id_column, read_ids
from isolux.io.refusals import refuse_cells, require_columns
from isolux.io.sheets import PREDICTION_FLAGS
from isolux.predictions._attributes import read_single_values
from isolux.predictions._detections import model_name_from_path
from isolux.predictions._file_probe import probe_table, table_format
from isolux.predictions._labels.confidences import to_confidences
from isolux.predictions._labels.reading import LABEL_COLUMNS, read_row_models

_SCORE_COLUMNS = ("score", "confidence", "probability", "prob")


def has_only_scores(path: str | Path, requested_format: str | None = None) -> bool:
    """Tell a table without any column that is known to hold answers."""
    file = Path(path).expanduser()
    table_form = requested_format or table_format(file)
    if table_form is None:
        return False
    columns = probe_table(file, table_form).columns
    return bool(columns) and not set(LABEL_COLUMNS) & set(columns)


def scores_from_attributes(
    dataset: Dataset, column: str, *, scale: float = 1.0, model: str | None = None
) -> pl.DataFrame:
    """Take a model's scores from an attribute of the dataset."""
    wide = read_single_values(dataset, column)
    return _build_score_table(
        wide["instance_id"], wide["value"], scale, dataset.row_source, column, model or column
    )


def read_scores(
    path: str | Path,
    *,
    column: str | None = None,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    scale: float = 1.0,
    model_column: str | None = None,
    format_name: str | None = None,
    sheet: str | None = None,
) -> pl.DataFrame:
    """Read a model's scores from a file with a row a person."""
    file = Path(path).expanduser()
    source = str(path)
    frame = read_table(file, format=format_name, sheet=sheet, sheet_flags=PREDICTION_FLAGS)
    id_column_name = choose_id_column(frame, id, source, description="a score")
    column = column or next((name for name in _SCORE_COLUMNS if name in frame.columns), None)
    if column is None:
        raise SpecError(
            "no column is known to hold the confidence",
            expected="one of " + ", ".join(_SCORE_COLUMNS),
            found=format_columns(frame.columns),
            where=source,
            hint="name it with --score-column (column=…)",
        )
    require_columns(frame, (column,), source)
    ids, model_label = read_ids(frame, id_column_name, source), model_name_from_path(file)
    table = _build_score_table(ids, frame[column], scale, source, column, model_label)
    models = read_row_models(frame, model_column, None, source)
    if models is not None:
        table = table.with_columns(model=models.fill_null(model_label))
    return table


def join_scores(answers: pl.DataFrame, scores: pl.DataFrame, source: str) -> pl.DataFrame:
    """Put confidences from a file of their own beside answers."""
    if answers["score"].is_not_null().any():
        raise SpecError(
            "there are confidences both beside the answers and in a separate file",
            expected="one of the two",
            found=f"scores={source}, and scores in the table of answers",
        )
    has_multiple_models = scores["model"].n_unique() > 1
    key = ["model", "instance_id"] if has_multiple_models else ["instance_id"]
    if has_multiple_models and not set(scores["model"]) & set(answers["model"]):
        raise SpecError(
            "the scores are of other models than the answers",
            expected=", ".join(map(repr, answers["model"].unique().sort())),
            found=", ".join(map(repr, scores["model"].unique().sort())),
            where=source,
        )
    for table, keys, table_name in (
        (answers, ["model", "instance_id"], "answers"),
        (scores, key, "scores"),
    ):
        is_repeated = table.select(keys).is_duplicated()
        if is_repeated.any():
            raise TableError(
                f"a person has several {table_name}",
                expected="one answer and one score per person, if they are in two files",
                found=repr(table["instance_id"].filter(is_repeated)[0]),
                where=source if table_name == "scores" else "predictions",
            )
    rows = pl.int_range(scores.height, eager=True)
    scaled = to_confidences(scores["score"], rows, 1.0, source, "score")
    score_rows = scores.select(key).with_columns(_score=scaled)
    with_score = answers.join(score_rows, on=key, how="left", maintain_order="left")
    return with_score.with_columns(score="_score").drop("_score")


def _build_score_table(
    ids: pl.Series, cells: pl.Series, scale: float, source: str, column: str, model: str
) -> pl.DataFrame:
    if not (math.isfinite(scale) and scale > 0):
        raise SpecError(
            "the scale of the scores cannot be used", expected="a number above 0", found=str(scale)
        )
    numbers = as_numbers(cells, source=source, column=column).fill_nan(None)
    problem = "{n} score(s) are infinite"
    expected = "finite numbers on any scale, or empty if there is no score"
    refuse_cells(numbers.is_infinite(), numbers, problem, expected, source, column=column)
    return pl.DataFrame({"instance_id": ids.cast(pl.String), "score": numbers / scale}).select(
        pl.lit(model).alias("model"), "instance_id", "score"
    )
