"""A number of each picture: a network's own, or the expectation over classes that are numbers.

An age network often has a class for each year, or for each decade, and answers with the mean of the
classes' numbers, weighted by their probabilities (DEX: Rothe, Timofte & Van Gool 2018, section 3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.models._classes import to_probabilities

_NUMBER = r"-?\d+(?:\.\d+)?"
_CLASS_NUMBER = re.compile(rf"\s*({_NUMBER})(?:\s*(?:-|–|to)\s*({_NUMBER}))?\s*")
_MAX_LISTED = 3


def parse_class_numbers(names: Sequence[str]) -> tuple[float, ...]:
    """Read the number that each class's name is, or the middle of the range that it is.

    Examples
    --------
    >>> parse_class_numbers(["0-2", "3 to 9", "10"])
    (1.0, 6.0, 10.0)
    >>> parse_class_numbers(["0-2", "more than 70"])
    Traceback (most recent call last):
        ...
    isolux.core.errors.SpecError: classes have names that are no numbers
      expected: names such as 25 or 20-29, or --model-option values=NUMBER,NUMBER
      found: 'more than 70'
    """
    matches = {name: _CLASS_NUMBER.fullmatch(name) for name in names}
    if unreadable := [name for name, match in matches.items() if match is None]:
        raise SpecError(
            "classes have names that are no numbers",
            expected="names such as 25 or 20-29, or --model-option values=NUMBER,NUMBER",
            found=", ".join(map(repr, unreadable[:_MAX_LISTED])),
        )
    bounds = [matches[name].groups() for name in names]  # type: ignore[union-attr]
    return tuple((float(low) + float(high or low)) / 2 for low, high in bounds)


def parse_values(values: str | Sequence[float]) -> tuple[float, ...]:
    """Read the number of each class; a text ``LOW-HIGH`` is each whole number from one to another.

    Examples
    --------
    >>> parse_values("0-3"), parse_values("10, 20.5")
    ((0.0, 1.0, 2.0, 3.0), (10.0, 20.5))
    """
    if not isinstance(values, str):
        return tuple(map(float, values))
    match = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", values)
    if match is not None and int(match[1]) < int(match[2]):
        return tuple(map(float, range(int(match[1]), int(match[2]) + 1)))
    try:
        return tuple(float(text) for text in values.split(","))
    except ValueError:
        raise SpecError(
            "these are not the numbers that classes stand for",
            expected="values=LOW-HIGH, such as 0-100, or values=NUMBER,NUMBER",
            found=f"values={values}",
        ) from None


def compute_numbers(
    outputs: npt.NDArray[Any], values: Sequence[float], activation: str, *, source: str
) -> npt.NDArray[np.float64]:
    """Compute a number of each row ``[n, c]``: the only one, or the expectation of ``values``."""
    n_columns = outputs.shape[1]
    if n_columns == 1 and not values:
        return np.asarray(outputs[:, 0], dtype=np.float64)
    if len(values) != n_columns:
        raise SpecError(
            "the network does not answer with one number for each picture",
            expected=f"the number of each of its {n_columns:,} classes: --model-option"
            " values=NUMBER,NUMBER, or labels such as 20-29",
            found=f"{len(values):,} values",
            where=source,
        )
    probabilities = to_probabilities(outputs, activation)
    return np.asarray(probabilities @ np.asarray(values) / probabilities.sum(axis=1))


def build_number_table(numbers: npt.NDArray[np.float64]) -> pl.DataFrame:
    """Make a row of each picture's number."""
    return pl.DataFrame({"picture": pl.int_range(len(numbers), eager=True), "value": numbers})
