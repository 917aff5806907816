"""What each unit tells of a type's quality: likeness to the mean of specialists, and of vendors.

From answers to one number a unit, 0 to 1, so that people can be resampled and grouped afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.curation.quality.alike import alike, mean_of
from isolux.curation.quality.given import SHAPES, Answers

__all__ = ["COLLECTED", "SPECIALISTS", "UNITS", "of_specialists", "of_vendors"]

COLLECTED, SPECIALISTS = "collected", "specialists"
INTRA, INTER = "intra-vendor", "inter-vendor"
UNITS = {"unit": pl.String, "part": pl.String, "vendor": pl.String, "value": pl.Float64,
         "pairs": pl.Int64}  # fmt: skip
"""``value``: mean likeness of the unit's pairs of answers, 0 to 1; null: none can be compared."""
_IntArray = npt.NDArray[np.int64]


def of_specialists(answers: Answers) -> pl.DataFrame:
    """Compare what was collected of each unit with the mean of specialists.

    Examples
    --------
    >>> from isolux.curation.quality.given import given_answers
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "q", "r"],
    ...     "vendor": ["collected", "specialists", "specialists"], "type": ["hair"] * 3,
    ...     "answer": ["red", "red", "brown"]})
    >>> of_specialists(given_answers(said, "said")["hair"])["value"].to_list()
    [0.5]
    """
    at = answers.rows.select("unit", "vendor").with_row_index("row")
    ours = at.filter(vendor=COLLECTED).select("unit", first="row")
    theirs = at.filter(vendor=SPECIALISTS).select("unit", second="row")
    other = answers
    if answers.kind in SHAPES and theirs.height:
        kept = theirs.filter(pl.col("unit").is_in(ours["unit"].implode()))
        units = kept.group_by("unit", maintain_order=True).agg("second")
        if units.height:
            groups = [np.array(rows, dtype=np.int64) for rows in units["second"]]
            other = mean_of(answers, groups)
            theirs = units.select("unit").with_row_index("second")
    pairs = ours.join(theirs, on="unit", maintain_order="left")
    return _by_unit(pairs, answers, other, part=SPECIALISTS)


def of_vendors(answers: Answers) -> pl.DataFrame:
    """Compare every two answers about a unit, within each vendor and between vendors.

    Examples
    --------
    >>> from isolux.curation.quality.given import given_answers
    >>> said = pl.DataFrame({"unit": ["a"] * 3, "annotator": ["x", "y", "z"], "type": ["hair"] * 3,
    ...     "vendor": ["v", "v", "w"], "answer": ["red", "red", "brown"]})
    >>> of_vendors(given_answers(said, "said")["hair"]).select("part", "value", "pairs").rows()
    [('inter-vendor', 0.0, 2), ('intra-vendor', 1.0, 1)]
    """
    at = answers.rows.select("unit", "vendor").with_row_index("row")
    both = at.join(at, on="unit", suffix="_2", maintain_order="left").filter(
        pl.col("row") < pl.col("row_2")
    )
    same = pl.col("vendor") == pl.col("vendor_2")
    parts = [
        _by_unit(_pairs(both.filter(test)), answers, answers, part=part, by_vendor=by_vendor)
        for part, test, by_vendor in ((INTER, ~same, False), (INTRA, same, True))
    ]
    return pl.concat(parts)


def _pairs(both: pl.DataFrame) -> pl.DataFrame:
    return both.select("unit", "vendor", first="row", second="row_2")


def _by_unit(
    pairs: pl.DataFrame, one: Answers, other: Answers, *, part: str, by_vendor: bool = False
) -> pl.DataFrame:
    """Average each unit's pairs."""
    if pairs.is_empty():
        return pl.DataFrame(schema=UNITS)
    first, second = (pairs[name].to_numpy().astype(np.int64) for name in ("first", "second"))
    value = pl.Series(_in_parts(alike, one, first, other, second)).fill_nan(None)
    vendor = pl.col("vendor") if by_vendor else pl.lit(None, dtype=pl.String)
    return (
        pairs.select("unit", vendor.alias("vendor"), part=pl.lit(part), value=value)
        .group_by("unit", "part", "vendor")
        .agg(value=pl.col("value").mean(), pairs=pl.len().cast(pl.Int64))
        .sort("unit", "vendor")
        .select(list(UNITS))
    )


_AT_ONCE = 200_000  # pairs: of 17 keypoints some 80 MB


def _in_parts(
    compare: Callable[[Answers, _IntArray, Answers, _IntArray], npt.NDArray[np.float64]],
    one: Answers, first: _IntArray, other: Answers, second: _IntArray,
) -> npt.NDArray[np.float64]:  # fmt: skip
    parts = [
        compare(one, first[at : at + _AT_ONCE], other, second[at : at + _AT_ONCE])
        for at in range(0, len(first), _AT_ONCE)
    ]
    return np.concatenate(parts)
