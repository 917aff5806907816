"""Which columns of a table of one's own hold what models said, and so do not describe people.

Such a table may hold the answers of several models as well as attributes. With the truth at hand an
answer is the error itself, and another model's confidence says little else of a person than that
the photo was easy: neither is anything to look for people by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from isolux.vocabulary.spec import Predictions

_NAMED = ("prediction_column", "score_column", "detected_column")


def answer_columns(answers: Predictions, known: Iterable[str]) -> tuple[str, ...]:
    """Find the columns of answers: those that the settings name, and other models' like them.

    Examples
    --------
    >>> settings = Predictions(prediction_column="said_a", model_name="a")
    >>> answer_columns(settings, ["tone", "said_a", "said_b", "sure_a", "sure_b", "sure_light"])
    ('said_a', 'said_b', 'sure_a', 'sure_b')
    """
    columns = list(dict.fromkeys(known))
    named = {getattr(answers, name) for name in _NAMED}
    models = _models(answers, columns)
    told = {name for name in columns if name in named}
    if len(models) > 1:
        for name in columns:
            family = _family(name, models, columns)
            told |= family if len(family) == len(models) else set()
    return tuple(name for name in columns if name in told)


def _models(answers: Predictions, columns: Sequence[str]) -> list[str]:
    """Name the models whose answers stand in columns that are called alike, this one's first."""
    column, model = answers.prediction_column, answers.model_name
    around = _around(column, model) if column and model else None
    if around is None:
        return []
    before, after = around
    others = [
        name[len(before) : len(name) - len(after)]
        for name in columns
        if name.startswith(before) and name.endswith(after) and name != column
    ]
    return [str(model), *(name for name in others if name)]


def _around(column: str, model: str) -> tuple[str, str] | None:
    """Part a column's name at a model's, which must be a word in it; None where it is not."""
    found = re.search(rf"(?<![^\W_]){re.escape(model)}(?![^\W_])", column)
    if found is None or found.group() == column:
        return None
    return column[: found.start()], column[found.end() :]


def _family(name: str, models: Sequence[str], columns: Sequence[str]) -> set[str]:
    """Collect the columns that differ from this one in the model's name only."""
    for model in models:
        around = _around(name, model)
        if around is not None:
            return {f"{around[0]}{one}{around[1]}" for one in models} & set(columns)
    return set()
