"""``--only age>=20`` where ages are ranges: the condition spelled out as the ranges that pass.

A range passes where all of it does: of FairFace's nine ages six are at least 20 (section 5).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence

from isolux.containers import Dataset
from isolux.people_filter import Condition, parse_conditions

__all__ = ["spell_out_ranges"]

_N = r"(\d+(?:\.\d+)?)"
_BOTH = re.compile(rf"{_N}\s*(?:-|–|to)\s*{_N}")
_ABOVE = re.compile(rf"(?:more than|older than|over|above|at least|>=?|≥)\s*{_N}|{_N}\s*\+")
_BELOW = re.compile(rf"(?:less than|younger than|under|below|up to|<=?|≤)\s*{_N}")
_COMPARE: dict[str, tuple[int, Callable[[float, float], bool]]] = {
    # which end of a range decides, and how
    ">=": (0, operator.ge),
    ">": (0, operator.gt),
    "<=": (1, operator.le),
    "<": (1, operator.lt),
}


def spell_out_ranges(dataset: Dataset, written: Sequence[str]) -> list[str]:
    """Turn comparisons of attributes that are ranges into lists of the values that pass.

    Parameters
    ----------
    dataset : Dataset
    written : sequence of str
        Conditions as ``people_filter.parse_conditions`` reads them. Those about numbers, and
        ``=`` and ``!=``, stay as they are; so does one that no range passes.

    Returns
    -------
    list of str
        For ``people_filter.keep_only``.

    Examples
    --------
    >>> import polars as pl
    >>> from isolux.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ...     attributes=pl.DataFrame({"unit_kind": "instance", "unit_id": ["a", "b"],
    ...                              "attribute": "age", "value": ["10-19", "more than 70"]}),
    ... )
    >>> spell_out_ranges(two, ["age>=20"])
    ['age="more than 70"']
    """
    conditions = parse_conditions(written)
    return [_spelled(dataset, *pair) for pair in zip(conditions, written, strict=True)]


def _spelled(dataset: Dataset, condition: Condition, text: str) -> str:
    if condition.relation not in _COMPARE:
        return text
    rows = dataset.attributes.filter(dataset.attributes["attribute"] == condition.attribute)
    if "number" in rows.columns and rows["number"].is_not_null().any():
        return text
    ends = {v: _ends(v) for v in rows["value"].drop_nulls().unique().sort().to_list()}
    at, holds = _COMPARE[condition.relation]
    passing = [v for v, found in ends.items() if found and holds(found[at], condition.number)]
    if not passing or not any(found and found[0] < found[1] for found in ends.values()):
        return text
    return f"{condition.attribute}=" + ",".join(f'"{value}"' for value in passing)


def _ends(value: str) -> tuple[float, float] | None:
    """Read the low and high end of ``3-9``, ``70+``, ``more than 70``, ``under 18`` or ``34``."""
    text = value.strip().lower()
    if found := _BOTH.fullmatch(text):
        return float(found[1]), float(found[2])
    if found := _ABOVE.fullmatch(text):
        return float(found[1] or found[2]), math.inf
    if found := _BELOW.fullmatch(text):
        return -math.inf, float(found[1])
    return (float(text), float(text)) if re.fullmatch(_N, text) else None
