"""Formats of model output: one file each, ``INFO``, ``misfit(seen)`` and ``read(path, ...)``.

From what a model said to the table predictions, one row an answer. ``read_predictions`` reads
any kind of output, ``read_labels`` labels from a file of their own, ``from_attributes`` takes
answers that stand in the dataset's table, and ``join`` brings predictions to the dataset's ids.

To add a format, write ``predictions/<name>.py``: ``INFO`` (a ``FormatInfo``) says what its files
are called, ``misfit(seen: Seen) -> str | None`` says why a file of such a name is none of its own
(None: it is), and ``read(path, *, model=None, …)`` gives one of the tables of predictions. A format
of labels takes the named arguments of ``read_predictions``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import polars as pl

from isolux.io.ids import IdFrom
from isolux.io.paths import as_path
from isolux.predictions._attributes import from_attributes
from isolux.predictions._detected import (
    detected_from_attributes,
    found_or_missed,
    read_detected,
)
from isolux.predictions._image_ids import image_sizes, of_everyone_shown, with_own_image_ids
from isolux.predictions._join import join
from isolux.predictions._labels.reading import QUESTION_COLUMNS, refuse_no_question
from isolux.predictions._models import models_in, of_model
from isolux.predictions._outputs import labels_of_images, read_outputs, reads_labels
from isolux.predictions._recognise import output_format
from isolux.predictions._scores import (
    holds_scores_alone,
    read_scores,
    scores_from_attributes,
    with_scores,
)
from isolux.predictions._seen import Seen, look_at_table, table_format
from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.tables import LABEL_PREDICTIONS, check

__all__ = [
    "QUESTION_COLUMNS",
    "Seen",
    "detected_from_attributes",
    "found_or_missed",
    "from_attributes",
    "holds_scores_alone",
    "image_sizes",
    "join",
    "labels_of_images",
    "look_at_table",
    "models_in",
    "of_everyone_shown",
    "of_model",
    "output_format",
    "read_detected",
    "read_labels",
    "read_outputs",
    "read_predictions",
    "read_scores",
    "refuse_no_question",
    "scores_from_attributes",
    "table_format",
    "with_own_image_ids",
    "with_scores",
]


def read_predictions(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (the flag is called --format)
    model: str | None = None,
    **settings: Any,
) -> pl.DataFrame:
    r"""Read what a model gave, of any kind: labels, boxes, masks, keypoints, embeddings, pictures.

    Parameters
    ----------
    path : str or Path
        A file or folder of any of ``isolux list formats``. Tables (CSV, Parquet, …) with a
        model's boxes, masks or keypoints are read as such, those with vectors as embeddings,
        those with ``uri`` as pictures, and others as labels; ``column`` asks for labels.
    format : str, optional
        One of ``isolux list formats``; default: by the name, and of JSON by its first bytes.
    model : str, optional
        The model's name; default: the name in the file, or else the file's name.
    **settings
        What the format's own ``read`` takes (``isolux list formats NAME``): of labels ``id``,
        ``id_from``, ``column``, ``score``, ``scale``, ``detected``, ``separator``; ``kind`` and
        ``categories`` of COCO results, ….

    Returns
    -------
    polars.DataFrame
        One of the tables predictions of ``isolux.vocabulary.tables``.

    Raises
    ------
    FileError, TableError, UnknownNameError
        A file, a value or a column that cannot be read.
    SpecError
        A setting that the format does not take.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("file,gender,sure\nval/1.jpg,Male,93\n")
    ...     read_predictions(file, column="gender", score="sure", scale=100).rows()
    [('net', 'val/1.jpg', 'Male', 0.93, 1, None)]
    """
    as_path(
        path,
        "a file of answers",
        instead="a table in memory goes to isolux.score as it is: model, instance_id, label, rank",
    )
    return read_outputs(path, format=format, model=model, **settings)


def read_labels(
    path: str | Path,
    *,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    id_from: IdFrom = "column",
    column: str | None = None,
    score: str | None = None,
    scale: float = 1.0,
    detected: str | None = None,
    separator: str | None = None,
    model: str | None = None,
    model_column: str | None = None,
    sheet: str | None = None,
    format: str | None = None,  # noqa: A002  (as in read_table)
    question: str | None = None,
    questions: bool = False,
) -> pl.DataFrame:
    r"""Read a model's answers, labels with or without a confidence, from a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("file,gender,sure\nval/1.jpg,Male,93\n")
    ...     read_labels(file, column="gender", score="sure", scale=100).rows()
    [('net', 'val/1.jpg', 'Male', 0.93, 1, None)]
    """
    chosen = format or table_format(Path(path)) or output_format(path)
    plugin = registry.load("predictions", chosen)
    rarer = {"model_column": model_column, "sheet": sheet, "question": question,
             "questions": questions or None}  # fmt: skip
    if plugin.INFO.of_images:
        columns = {"id": id, "column": column, "score": score, "detected": detected,
                   "separator": separator, **rarer, "questions": None}  # fmt: skip
        _refuse_columns(columns, chosen, path)
        return check(plugin.read(path, model=model), LABEL_PREDICTIONS, where=path)
    if not reads_labels(plugin):
        raise SpecError(
            "this format holds no labels of people",
            expected="a table with one row per answer: CSV, Parquet, …",
            found=chosen,
            where=str(path),
            hint="boxes, masks, keypoints and embeddings are for the tasks that judge those",
        )
    frame = plugin.read(
        path,
        **{name: value for name, value in rarer.items() if value is not None},
        id=id,
        id_from=id_from,
        column=column,
        score=score,
        scale=scale,
        detected=detected,
        separator=separator,
        model=model,
    )
    return check(cast("pl.DataFrame", frame), LABEL_PREDICTIONS, where=path)


def _refuse_columns(given: dict[str, Any], form: str, path: str | Path) -> None:
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise SpecError(
            f"the format {form} is not a table, and has no {named[0]} to name",
            expected="its own fields, as `isolux list formats` says them",
            found=f"{named[0]}={given[named[0]]!r}",
            where=str(path),
        )
