"""One group whose numbers are in another unit: months for years, percent for fractions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._model_numbers import (
    FACTORS,
    ModelNumbers,
    divide,
    match_factor,
    read_numbers,
)
from isolux.stats.numeric_statistics import weighted_spearman
from isolux.stats.statistic import FloatArray

_FACTORS_WITHOUT_TRUTH = (100.0, 255.0, 1000.0)
# Groups may honestly differ twelvefold in a number that nothing is held against (the area of a
# face); that three quantiles differ by the same round factor is no property of people.
_QUANTILES = (0.5, 0.75, 0.9)
_TOLERANCE_WITH_TRUTH, _TOLERANCE = 1.5, 1.4
# The ratio of a median and a spread among 20 people is known to about a third.
_MIN_PEOPLE = 20
_MIN_CORRELATION = 0.3  # a group's answers follow its truth, whatever their unit


def caution_on_groups_in_other_units(inputs: AuditInputs) -> list[Caution]:
    """Caution on each group whose numbers are a round factor larger or smaller than all others."""
    membership = inputs.membership
    positions = pl.DataFrame({"unit_id": membership.units}).with_row_index("unit")
    cautions: list[Caution] = []
    for numbers in read_numbers(inputs):
        unit = numbers.unit_ids.cast(pl.String).to_frame("unit_id")
        units = unit.join(positions, on="unit_id", how="left", maintain_order="left")["unit"]
        unit_of_row = units.cast(pl.Int64).fill_null(-1).to_numpy()
        for intersection in membership.intersections:
            if any(len(values) > 1 for values in intersection.cells):
                continue
            for cell, values in enumerate(intersection.cells):
                is_member = np.zeros(len(membership.units) + 1, bool)
                is_member[intersection.unit[intersection.cell == cell]] = True
                factor = _find_factor(numbers, is_member[unit_of_row])
                if factor is not None:
                    group = f"{intersection.handle} {values[0]!r}"
                    cautions.append(_describe(numbers, group, factor))
                    break  # of two groups, either is the other's multiple
    return cautions


def _describe(numbers: ModelNumbers, group: str, factor: float) -> Caution:
    size = max(factor, 1 / factor)
    comparison = "larger" if factor > 1 else "smaller"
    standard = "" if numbers.truth is None else ", held against the truth,"
    return Caution(
        f"The numbers of {numbers.model!r} for people of {group}{standard} are about {size:g} times"
        f" {comparison} than those for all others, and so is their spread: are they in another unit"
        f" ({FACTORS[size]})?"
    )


def _find_factor(numbers: ModelNumbers, is_inside: npt.NDArray[np.bool_]) -> float | None:
    """Find the factor by which a group's numbers are larger than those of all others."""
    n_inside = int(is_inside.sum())
    if min(n_inside, len(is_inside) - n_inside) < _MIN_PEOPLE:
        return None
    inside, outside = numbers.values[is_inside], numbers.values[~is_inside]
    if numbers.truth is None:
        ratios = divide(_abs_quantiles(inside), _abs_quantiles(outside))
        return match_factor(ratios, _either_way(_FACTORS_WITHOUT_TRUTH), _TOLERANCE)
    truth_inside, truth_outside = numbers.truth[is_inside], numbers.truth[~is_inside]
    ratios = divide(
        divide(_size_and_spread(inside), _size_and_spread(truth_inside)),
        divide(_size_and_spread(outside), _size_and_spread(truth_outside)),
    )
    factor = match_factor(ratios, _either_way(tuple(FACTORS)), _TOLERANCE_WITH_TRUTH)
    if factor is None:
        return None
    correlation = float(weighted_spearman(truth_inside, inside, np.ones(n_inside)))
    return factor if correlation >= _MIN_CORRELATION else None


def _either_way(factors: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(f for factor in factors for f in (factor, 1 / factor))


def _abs_quantiles(values: FloatArray) -> FloatArray:
    return np.quantile(np.abs(values), _QUANTILES)


def _size_and_spread(values: FloatArray) -> FloatArray:
    """Return the median size and the distance of the quartiles."""
    low, high = np.quantile(values, (0.25, 0.75))
    return np.array([np.median(np.abs(values)), high - low])
