"""Tasks: one file each, with ``INFO`` and ``score(dataset, predictions, ...) -> Scores``."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import polars as pl

from isolux.core import registry
from isolux.core.arguments import normalise_argument
from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.formatting import list_literal_choices
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.notes import Caution
from isolux.core.plugin_options import Option, list_keyword_options
from isolux.core.schema import to_polars

# Any of these may hold a prediction; a task reads some and ignores the others.
_PREDICTION_COLUMNS = (
    "label",
    "score",
    "value",
    "embedding",
    "detected",
    "box_x",
    "mask_counts",
    "keypoints_x",
)
# A caution from this many people, where this share of them has no prediction.
_MIN_PEOPLE, _MAX_MISSING_SHARE = 20, 0.1
_MISSING_REASONS = ("no prediction", "no value was given")
_SHAPE_COLUMNS = {"box_x", "mask_counts", "keypoints_x"}


def score(task: str, dataset: Dataset, predictions: object, **options: Any) -> Scores:
    """Score predictions by the task of that name: one row per unit and metric, and the evidence.

    Parameters
    ----------
    task : str
        A name that ``isolux list tasks`` shows, such as ``"classification"``.
    dataset : Dataset
        People, with their truth.
    predictions : frame
        The model's answers, in the columns that the task asks for; ``instance_id`` are the
        dataset's. Any narwhals-compatible frame.
    **options
        The task's own options, the keyword arguments of ``isolux.tasks.<task>.score``.

    Returns
    -------
    Scores
        ``units`` (table ``scores``; a null value has a reason), ``evidence`` by name, ``info``
        (the metrics that were measured, with direction and range) and ``notes``.

    Raises
    ------
    UnknownNameError
        There is no such task.
    SpecError
        The task has no such option, or an option cannot be used; no one has an answer, though
        there are rows of predictions.

    Examples
    --------
    >>> import polars as pl
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="three people",
    ...     info=DatasetInfo(title="Three people", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a", "b", "c"],
    ...             "image_id": ["a", "b", "c"],
    ...             "classes": [["nurse"], ["nurse", "doctor"], ["painter"]],
    ...         }
    ...     ),
    ... )
    >>> answers = pl.DataFrame(
    ...     {
    ...         "model": "m",
    ...         "instance_id": ["a", "b", "c"],
    ...         "label": ["nurse", "doctor", "nurse"],
    ...         "score": None,
    ...         "rank": 1,
    ...     }
    ... )
    >>> score("classification", people, answers, metrics=["accuracy"]).units["value"].to_list()
    [1.0, 1.0, 0.0]
    """
    if not isinstance(dataset, Dataset):
        raise SpecError(
            "people to be judged are a Dataset",
            expected="what isolux.load returns",
            found=type(dataset).__name__,
            hint="arrays and frames in memory go to isolux.metric_frame, or as scores to"
            " isolux.audit(scores, people, by=…)",
        )
    # Options are checked here, because a plugin may not: a misspelt option would have no effect.
    plugin = registry.load("tasks", task)
    options_by_name = list_keyword_options(plugin.score)
    for name in options:
        if name not in options_by_name:
            similar_names = difflib.get_close_matches(name, options_by_name, n=1, cutoff=0.5)
            raise SpecError(
                f"the task {task!r} has no option {name!r}",
                expected="one of " + ", ".join(options_by_name),
                hint=f"did you mean {similar_names[0]!r}?" if similar_names else None,
            )
    parameters = inspect.signature(plugin.score).parameters
    converted_options = {
        # Options of a TypedDict (**box) are no parameters of the signature: there is no type to
        # convert to.
        name: normalise_argument(task, parameters[name], value) if name in parameters else value
        for name, value in options.items()
    }
    for name, value in converted_options.items():
        _check_option_choice(options_by_name[name], value)
    # A task's own words for unknown count as missing predictions too.
    unknown_values: Any = converted_options.get("unknown_values", UNKNOWN_VALUES)
    _check_any_prediction(predictions, unknown_values)
    scores = cast("Scores", plugin.score(dataset, predictions, **converted_options))
    # The cautions come before the task's own notes, since they limit whom every number is about.
    cautions = (
        *_caution_on_missing_predictions(scores),
        *_caution_on_non_finite_scores(predictions),
    )
    return replace(scores, task=task, notes=(*cautions, *scores.notes))


def _check_option_choice(option: Option, value: object) -> None:
    """Refuse a value that is not among the choices of an option."""
    words = list_literal_choices(option.type_hint)
    # A default of None is allowed, though it is not among the words.
    if words and value not in (*words, option.default):
        raise SpecError(
            f"{option.name} is not known", expected="one of " + ", ".join(words), found=repr(value)
        )


def _check_any_prediction(predictions: object, unknown: Sequence[str]) -> None:
    """Refuse rows without any prediction: equal zeros in all groups would read as no difference.

    A table of shapes without rows is a model that detected no one, and is scored as that.
    """
    rows = to_polars(predictions)
    present_columns = [name for name in _PREDICTION_COLUMNS if name in rows.columns]
    # A column that none of the tasks knows may hold predictions of a plugin's own kind.
    if not present_columns or (rows.is_empty() and _SHAPE_COLUMNS & set(rows.columns)):
        return
    if rows.is_empty():
        raise SpecError(
            "there are no predictions",
            expected=f"a row for each answer ({' or '.join(present_columns)})",
            found="a table without rows",
            hint="check that the file was written completely",
        )
    floats = [name for name in present_columns if rows.schema[name].is_float()]
    rows = rows.with_columns(pl.col(floats).fill_nan(None))
    # A score is no answer where labels are: it says how sure one is.
    answers = [n for n in present_columns if not (n == "score" and "label" in rows.columns)]
    if any(rows[n].null_count() == 0 for n in answers if rows.schema[n] != pl.String):
        return  # null counts are stored with a column, so that no row is read
    unknown_words = [word.lower() for word in unknown]
    is_unknown_by_column = [
        pl.col(name).is_null()
        if rows.schema[name] != pl.String
        else pl.col(name)
        .str.strip_chars()
        .str.to_lowercase()
        .is_in(unknown_words)
        .fill_null(value=True)
        for name in answers
    ]
    model = pl.col("model") if "model" in rows.columns else pl.lit("the model")
    # Model by model: one complete model would hide another whose column is empty.
    is_empty_by_model = rows.group_by(model=model, maintain_order=True).agg(
        pl.all_horizontal(is_unknown_by_column).all()
    )
    for name in is_empty_by_model.filter(is_empty_by_model.to_series(1))["model"]:
        raise SpecError(
            f"nobody has an answer from {name!r}",
            expected=f"at least one value ({' or '.join(answers)})",
            found="an empty cell, or a word for unknown, in every row",
            hint="check that the file was written completely; if the model found nobody, say so "
            "with --option detected_column=COLUMN",
        )


def _caution_on_missing_predictions(scores: Scores) -> list[Caution]:
    """Caution where many people have no prediction: the others may not represent them."""
    is_missing = pl.col("reason").is_in(_MISSING_REASONS).fill_null(value=False)
    if not scores.units.select(is_missing.any()).item():
        return []
    units = scores.units.group_by("model", "unit_id").agg(
        # A person whom one metric excludes for another reason does have a prediction.
        missing=is_missing.all()
    )
    counts = units.group_by("model").agg(n=pl.col("missing").sum(), every=pl.len()).sort("model")
    return [
        Caution(
            f"{n:,} of {n_people:,} people have no prediction of {model!r}: every number is about"
            " the others alone. Is the file whole?"
        )
        for model, n, n_people in counts.select("model", "n", "every").iter_rows()
        if n_people >= _MIN_PEOPLE and n >= _MAX_MISSING_SHARE * n_people
    ]


def _caution_on_non_finite_scores(predictions: object) -> list[Caution]:
    """Caution where scores are NaN or infinite: no threshold and no rank is right for them."""
    rows = to_polars(predictions)
    if "score" not in rows.columns or not rows.schema["score"].is_float():
        return []
    n = rows.select((~pl.col("score").is_finite()).sum()).item()
    text = f"{n:,} of {rows.height:,} scores are NaN or infinite, and count as no score."
    return [Caution(f"{text} Did a computation fail? Write a number, or leave the cell empty.")] * (
        n > 0
    )
