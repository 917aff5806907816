"""A table in memory that holds people, their truth and a model's answers, side by side.

It is read as the same table in a file would be; only its types are richer than text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.given import IN_MEMORY, is_frame, kind_of, to_polars
from isolux.vocabulary.notes import Caution

_ANSWERS = (
    "target", "prediction_column", "score_column", "detected_column", "predictions", "model",
    "found", "missed",
)  # fmt: skip
"""Settings that say where truth or answers are: a table of scores needs none of them."""


@dataclass(frozen=True, slots=True)
class Held:
    """A table of people, and what must be said of it."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def plain_numbers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, numbers of numpy as Python's own: ``min_units=counts.min()``."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}


def holds_answers(table: object, settings: Mapping[str, Any]) -> bool:
    """Tell whether settings speak of a table's truth and answers, not of finished scores."""
    return is_frame(table) and any(settings.get(name) is not None for name in _ANSWERS)


def held_people(table: object, attributes: object, settings: Mapping[str, Any]) -> Held:
    """Read a table of people and answers; classes of unlike types are told or made alike."""
    if attributes is not None:
        raise SpecError(
            "a table with truth and answers says itself who is who",
            expected="one table with one row per person: groups, truth and answer are its columns",
            found=f"a second argument: {type(attributes).__name__}",
            hint="join the two by the person's id first",
        )
    frame = to_polars(table)
    truth, answer = (settings.get(n) for n in ("target", "prediction_column"))
    for name in (truth, answer, settings.get("score_column"), settings.get("detected_column")):
        if isinstance(name, str) and settings.get("predictions") is None:
            _refuse_unknown(name, frame)
    if not (isinstance(truth, str) and isinstance(answer, str)):
        return Held(frame)
    if not {truth, answer} <= set(frame.columns):
        return Held(frame)
    kinds = kind_of(frame[truth]), kind_of(frame[answer])
    if set(kinds) == {"yes or no", "numbers"}:
        return Held(frame.with_columns(pl.col(truth, answer).cast(pl.Float64)))
    if len(set(kinds)) == 1:
        return Held(frame)
    return Held(frame, (_of_two_kinds((truth, kinds[0]), (answer, kinds[1])),))


def _refuse_unknown(name: str, frame: pl.DataFrame) -> None:
    if name not in frame.columns:
        raise UnknownNameError("column", name, frame.columns, where=IN_MEMORY)


def _of_two_kinds(truth: tuple[str, str], answer: tuple[str, str]) -> Caution:
    return Caution(
        f"The truth {truth[0]!r} holds {truth[1]} and the answers {answer[0]!r} hold {answer[1]}: "
        "they were compared as text, so that '1' and 1 are one class. Are they of one code?"
    )
