"""Find the columns of a user's table that hold predictions, and so do not describe people.

Such a table may hold the predictions of several models as well as attributes. With the truth known
a prediction is the error itself, and another model's confidence mostly shows that an image was
easy: neither is an attribute by which to explain errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from isolux.core.spec import Predictions

_COLUMN_SETTINGS = ("prediction_column", "score_column", "detected_column")


def find_prediction_columns(
    settings: Predictions, present_columns: Iterable[str]
) -> tuple[str, ...]:
    """Find the columns of predictions: those in the settings, and other models' like them.

    Examples
    --------
    >>> settings = Predictions(prediction_column="said_a", model_name="a")
    >>> find_prediction_columns(
    ...     settings,
    ...     ["tone", "said_a", "said_b", "sure_a", "sure_b", "sure_light"],
    ... )
    ('said_a', 'said_b', 'sure_a', 'sure_b')
    """
    columns = list(dict.fromkeys(present_columns))
    configured = {getattr(settings, name) for name in _COLUMN_SETTINGS}
    models = _find_models_with_sibling_columns(settings, columns)
    prediction_columns = {name for name in columns if name in configured}
    if len(models) > 1:
        for name in columns:
            siblings = _find_sibling_columns(name, models, columns)
            prediction_columns |= siblings if len(siblings) == len(models) else set()
    return tuple(name for name in columns if name in prediction_columns)


def _find_models_with_sibling_columns(settings: Predictions, columns: Sequence[str]) -> list[str]:
    """Find the models whose predictions are in columns of the same pattern, this one's first."""
    column, model = settings.prediction_column, settings.model_name
    affixes = _split_column_at_model_name(column, model) if column and model else None
    if affixes is None:
        return []
    prefix, suffix = affixes
    model_names = [
        name[len(prefix) : len(name) - len(suffix)]
        for name in columns
        if name.startswith(prefix) and name.endswith(suffix) and name != column
    ]
    return [str(model), *(name for name in model_names if name)]


def _split_column_at_model_name(column: str, model: str) -> tuple[str, str] | None:
    """Split a column's name at the model's, which must be a word in it; None where it is not."""
    position = re.search(rf"(?<![^\W_]){re.escape(model)}(?![^\W_])", column)
    if position is None or position.group() == column:
        return None
    return column[: position.start()], column[position.end() :]


def _find_sibling_columns(name: str, models: Sequence[str], columns: Sequence[str]) -> set[str]:
    """Find the columns that differ from this one in the model's name only."""
    for model in models:
        affixes = _split_column_at_model_name(name, model)
        if affixes is not None:
            return {f"{affixes[0]}{other_model}{affixes[1]}" for other_model in models} & set(
                columns
            )
    return set()
