"""Formats of model output: one file each, ``INFO``, ``mismatch(probe)`` and ``read(path, ...)``.

From what a model said to the table predictions, one row an answer. ``read_predictions`` reads
any kind of output, ``read_labels`` labels from a file of their own, ``labels_from_attributes``
takes answers that stand in the dataset's table, and ``join`` brings predictions to the dataset's
ids.

To add a format, write ``predictions/<name>.py``: ``INFO`` (a ``FormatInfo``) says what its files
are called, ``mismatch(probe: FileProbe) -> str | None`` says why a file of such a name is none of
its own (None: it is), and ``read(path, *, model=None, …)`` gives one of the tables of predictions.
A format of labels takes the named arguments of ``read_predictions``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import polars as pl

from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError, TableError, refuse_unknown_names
from isolux.core.notes import Caution
from isolux.core.tables import LABEL_PREDICTIONS, check
from isolux.io.frames import FORMATS, open_bytes, read_table
from isolux.io.ids import IdFrom, choose_id_column, read_ids, read_names
from isolux.io.paths import to_path
from isolux.io.refusals import require_columns
from isolux.io.sheets import PREDICTION_FLAGS
from isolux.io.text import check_utf8
from isolux.predictions._attributes import (
    labels_from_attributes,
    note_answers_of_images,
    read_single_values,
)
from isolux.predictions._detections import model_name_from_path
from isolux.predictions._file_probe import FileProbe, probe_table, table_format
from isolux.predictions._format_detection import detect_output_format
from isolux.predictions._id_join import join_predictions
from isolux.predictions._image_ids import (
    give_image_labels_to_people,
    list_image_sizes,
    match_image_ids,
)
from isolux.predictions._labels.confidences import read_is_detected
from isolux.predictions._labels.reading import (
    QUESTION_COLUMNS,
    read_row_models,
    refuse_unasked_question,
)
from isolux.predictions._outputs import has_image_labels, is_label_format, read_outputs
from isolux.predictions._scores import (
    has_only_scores,
    join_scores,
    read_scores,
    scores_from_attributes,
)

__all__ = [
    "QUESTION_COLUMNS",
    "FileProbe",
    "detect_output_format",
    "detected_from_attributes",
    "give_image_labels_to_people",
    "has_image_labels",
    "has_only_scores",
    "join_predictions",
    "join_scores",
    "labels_from_attributes",
    "list_image_sizes",
    "list_models",
    "match_image_ids",
    "note_answers_of_images",
    "probe_table",
    "read_detected_column",
    "read_detected_list",
    "read_labels",
    "read_outputs",
    "read_predictions",
    "read_scores",
    "refuse_unasked_question",
    "scores_from_attributes",
    "select_model",
    "table_format",
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
        One of the tables predictions of ``isolux.core.tables``.

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
    to_path(
        path,
        "a file of answers",
        hint="a table in memory goes to isolux.score as it is: model, instance_id, label, rank",
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
    format_name = format or table_format(Path(path)) or detect_output_format(path)
    plugin = registry.load("predictions", format_name)
    further_settings = {
        "model_column": model_column,
        "sheet": sheet,
        "question": question,
        "questions": questions or None,
    }
    if plugin.INFO.is_keyed_by_image:
        columns = {
            "id": id,
            "column": column,
            "score": score,
            "detected": detected,
            "separator": separator,
            **further_settings,
            "questions": None,
        }
        _refuse_column_settings(columns, format_name, path)
        return check(plugin.read(path, model=model), LABEL_PREDICTIONS, source=path)
    if not is_label_format(plugin):
        raise SpecError(
            "this format holds no labels of people",
            expected="a table with one row per answer: CSV, Parquet, …",
            found=format_name,
            where=str(path),
            hint="boxes, masks, keypoints and embeddings are for the tasks that judge those",
        )
    frame = plugin.read(
        path,
        **{name: setting for name, setting in further_settings.items() if setting is not None},
        id=id,
        id_from=id_from,
        column=column,
        score=score,
        scale=scale,
        detected=detected,
        separator=separator,
        model=model,
    )
    return check(cast("pl.DataFrame", frame), LABEL_PREDICTIONS, source=path)


def _refuse_column_settings(settings: dict[str, Any], format_name: str, path: str | Path) -> None:
    given_names = [name for name, setting in settings.items() if setting is not None]
    if given_names:
        raise SpecError(
            f"the format {format_name} is not a table, and has no {given_names[0]} to name",
            expected="its own fields, as `isolux list formats` says them",
            found=f"{given_names[0]}={settings[given_names[0]]!r}",
            where=str(path),
        )


# Whether each person was found, and nothing else: a column, or a list of who was found or missed.

_COLUMNS = ("model", "instance_id", "detected")


def detected_from_attributes(
    dataset: Dataset, column: str, *, model: str | None = None
) -> pl.DataFrame:
    """Take whether people were found from an attribute of the dataset."""
    wide = read_single_values(dataset, column)
    is_detected = read_is_detected(wide["value"].alias(column), dataset.row_source)
    return _build_detected_table(wide["instance_id"], is_detected, model or column)


def read_detected_column(
    path: str | Path,
    column: str,
    *,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    model_column: str | None = None,
    sheet: str | None = None,
    format: str | None = None,  # noqa: A002
) -> pl.DataFrame:
    """Read from a file with a row a person whether each was found."""
    frame = read_table(path, format=format, sheet=sheet, sheet_flags=PREDICTION_FLAGS)
    require_columns(frame, (column,), str(path))
    ids = read_ids(
        frame, choose_id_column(frame, id, str(path), description="an answer"), str(path)
    )
    table = _build_detected_table(
        ids, read_is_detected(frame[column], str(path)), _name_model_of_list(path)
    )
    models = read_row_models(frame, model_column, None, str(path))
    if models is not None:
        table = table.with_columns(model=models.fill_null(_name_model_of_list(path)))
    is_repeated = table.select("model", "instance_id").is_duplicated()
    if is_repeated.any():
        raise TableError(
            "a person is in several rows",
            expected="one row a person",
            found=repr(ids.filter(is_repeated)[0]),
            where=str(path),
        )
    return table


def read_detected_list(
    dataset: Dataset,
    path: str | Path,
    *,
    lists_detected: bool,
    id: str | None = None,  # noqa: A002
    id_from: IdFrom = "column",
    model: str | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Take a list of the people whom a model found, or missed; the others are the opposite."""
    ids = _read_id_list(path, id).unique(maintain_order=True)
    model_label = model or _name_model_of_list(path)
    matched, notes = join_predictions(
        dataset,
        _build_detected_table(ids, pl.Series([lists_detected] * len(ids)), model_label),
        id_from=id_from,
    )
    unmatched_notes = [Caution(note) for note in notes if "have no person" in note]
    people = dataset.instances["instance_id"].cast(pl.String)
    if ids.name in people:
        raise TableError(
            "the first row of this list is a person, and not the column's name",
            expected="a column with a name, such as id",
            found=repr(ids.name),
            where=str(path),
            hint="give the column a name; a list without one is a text file (.txt) with one id "
            "per line",
        )
    is_listed = people.is_in(matched["instance_id"].implode())
    word, other_word = ("found", "missed") if lists_detected else ("missed", "found")
    list_note = (
        f"{int(is_listed.sum()):,} of {len(people):,} people are on the list of {word} people; the "
        f"others count as {other_word}."
    )
    return _build_detected_table(
        people, is_listed if lists_detected else ~is_listed, model_label
    ), (
        list_note,
        *unmatched_notes,
    )


def _read_id_list(path: str | Path, column: str | None) -> pl.Series:
    file = Path(path).expanduser()
    if file.name.lower().endswith(tuple(s for suffixes in FORMATS.values() for s in suffixes)):
        frame = read_table(file)
        only_column = frame.columns[0] if len(frame.columns) == 1 else None
        id_column_name = (
            column or only_column or choose_id_column(frame, None, str(path), description="a line")
        )
        return read_ids(frame, id_column_name, str(path)).alias(id_column_name)
    with open_bytes(file) as stream:
        lines = check_utf8(stream.read(), str(path)).decode().splitlines()
    ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not ids:
        raise FileError("this list names nobody", expected="an id a line", where=str(path))
    return pl.Series(ids, dtype=pl.String)


def _name_model_of_list(path: str | Path) -> str:
    return model_name_from_path(path).removesuffix(".lst")


def _build_detected_table(ids: pl.Series, detected: pl.Series, model: str) -> pl.DataFrame:
    frame = pl.DataFrame({"instance_id": ids.cast(pl.String), "detected": detected})
    return frame.select(pl.lit(model).alias("model"), "instance_id", "detected").select(_COLUMNS)


# One long table of several models: which there are, and the one that is to be judged.


def list_models(
    path: str | Path,
    column: str,
    *,
    format: str | None = None,  # noqa: A002
    sheet: str | None = None,
) -> tuple[str, ...]:
    """Name the models that a table holds, in the order in which they first stand there."""
    frame = read_table(path, format=format, sheet=sheet, sheet_flags=PREDICTION_FLAGS)
    require_columns(frame, (column,), str(path))
    names = read_names(frame, column, str(path), noun="model")
    if names.null_count():
        raise SpecError(
            f"{names.null_count():,} row(s) name no model",
            expected=f"a name in every row of the column {column!r}",
            found="empty cells",
            where=str(path),
        )
    return tuple(names.unique(maintain_order=True))


def select_model(predictions: pl.DataFrame, model: str) -> pl.DataFrame:
    """Keep one model's predictions."""
    model_names = predictions["model"].unique(maintain_order=True).to_list()
    refuse_unknown_names("model", [model], model_names, where="--model-name")
    return predictions.filter(model=model)
