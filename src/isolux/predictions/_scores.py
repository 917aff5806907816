"""Scores without answers, on any scale: from a column of the people's table, or from a file."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl

from isolux.io.cells import as_numbers, as_text
from isolux.io.frames import read_table
from isolux.io.ids import ID_COLUMNS, ids_of
from isolux.predictions._detections import model_name
from isolux.predictions._labels.reading import LABEL_COLUMNS
from isolux.predictions._seen import look_at_table, table_format
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, place

__all__ = ["holds_scores_alone", "read_scores", "scores_from_attributes"]


def holds_scores_alone(path: str | Path, form: str | None = None) -> bool:
    """Tell a table without any column that is known to hold answers.

    Parameters
    ----------
    path : str or Path
    form : str, optional
        Its format; by suffix where not given.
    """
    file = Path(path).expanduser()
    known = form or table_format(file)
    if known is None:
        return False
    columns = look_at_table(file, known).columns
    return bool(columns) and not set(LABEL_COLUMNS) & set(columns)


def scores_from_attributes(
    dataset: Dataset, column: str, *, scale: float = 1.0, model: str | None = None
) -> pl.DataFrame:
    """Take a model's scores from an attribute of the dataset.

    Parameters
    ----------
    dataset : Dataset
    column : str
        The attribute with the score, one a person.
    scale : float
        What scores are divided by.
    model : str, optional
        The model's name; not given: the attribute's.

    Returns
    -------
    polars.DataFrame
        ``model, instance_id, score`` (null: none).

    Raises
    ------
    UnknownNameError, TableError
        No such attribute, several values of one person, a value that is no finite number.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> people = Dataset(
    ...     name="x",
    ...     info=DatasetInfo(title="x", summary="x", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["a"]}),
    ...     attributes=pl.DataFrame({"unit_id": ["a"], "attribute": ["logit"], "value": ["-2.5"]}),
    ... )
    >>> scores_from_attributes(people, "logit").rows()
    [('logit', 'a', -2.5)]
    """
    where = next(iter(dataset.inputs), dataset.name)
    rows = dataset.values_of(column)
    twice = rows.filter(pl.col("unit_id").is_duplicated())
    if twice.height:
        raise TableError(
            f"a person has several values of {column!r}",
            expected="one score a person",
            found=repr(twice["unit_id"][0]),
            where=where,
        )
    wide = dataset.instances.select("instance_id").join(
        rows.select(instance_id="unit_id", value="value"),
        on="instance_id", how="left", maintain_order="left",
    )  # fmt: skip
    return _table(wide["instance_id"], wide["value"], scale, where, column, model or column)


def read_scores(
    path: str | Path,
    *,
    column: str,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    scale: float = 1.0,
    model: str | None = None,
    form: str | None = None,
) -> pl.DataFrame:
    """Read a model's scores from a file with a row a person.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, Parquet, JSON lines or Arrow.
    column : str
        The column with the score.
    id : str, optional
        The column of ids; not given: the first known one.
    scale : float
        What scores are divided by.
    model : str, optional
        The model's name; not given: the column ``model``, else the file's name.
    form : str, optional
        Its format; by suffix where not given.

    Returns
    -------
    polars.DataFrame
        ``model, instance_id, score`` (null: none).
    """
    file = Path(path).expanduser()
    where = str(path)
    frame = read_table(file, format=form)
    named = id or next((name for name in ID_COLUMNS if name in frame.columns), None)
    if named is None:
        raise SpecError(
            "no column says whom a score is about",
            expected="one of " + ", ".join(ID_COLUMNS),
            found="columns " + ", ".join(map(repr, frame.columns[:20])),
            where=where,
            hint="name it with --prediction-id",
        )
    if column not in frame.columns:
        raise UnknownNameError("column", column, frame.columns, where=where)
    ids, called = ids_of(frame, named, where), model or model_name(file)
    table = _table(ids, frame[column], scale, where, column, called)
    if model is None and "model" in frame.columns:
        own = as_text(frame["model"]).fill_null(called).alias("model")
        table = table.with_columns(own)
    return table


def _table(
    ids: pl.Series, cells: pl.Series, scale: float, where: str, column: str, model: str
) -> pl.DataFrame:
    if not (math.isfinite(scale) and scale > 0):
        raise SpecError(
            "the scale of the scores cannot be used", expected="a number above 0", found=str(scale)
        )
    numbers = as_numbers(cells, where=where, column=column).fill_nan(None)
    endless = numbers.is_infinite().fill_null(value=False)
    if endless.any():
        row = int(endless.arg_true()[0])
        raise TableError(
            f"{endless.sum():,} score(s) are infinite",
            expected="finite numbers on any scale, or nothing where there is no score",
            found=str(numbers[row]),
            where=place(where, row + 1, column),
        )
    return pl.DataFrame({"instance_id": ids.cast(pl.String), "score": numbers / scale}).select(
        pl.lit(model).alias("model"), "instance_id", "score"
    )
