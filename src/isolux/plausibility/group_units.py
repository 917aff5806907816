"""One group whose numbers are in another unit: months for years, percent for fractions.

Such a group is 12 or 100 times as far off as any other, and reads as the one that is served worst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.numeric_statistics import weighted_spearman
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import PlausibilityInfo
from isolux.vocabulary.notes import Caution

_FACTORS = {
    12.0: "months for years",
    100.0: "percent for fractions",
    255.0: "0 to 255 for 0 to 1",
    365.25: "days for years",
    1000.0: "thousandths",
}
"""What a factor most likely is."""
_FACTORS_WITHOUT_TRUTH = (100.0, 255.0, 1000.0)
# Groups may honestly differ twelvefold in a number that nothing is held against (the area of a
# face); that four quantiles differ by the same round factor is no property of people.
_QUANTILES = (0.25, 0.5, 0.75, 0.9)
_TOLERANCE_WITH_TRUTH, _TOLERANCE = 1.5, 1.3
# The ratio of a median and a spread among 20 people is known to about a third.
_MIN_PEOPLE = 20
_MIN_RATIO = 5.0  # below, no factor is looked for
_MIN_CORRELATION = 0.3  # a group's answers follow its truth, whatever their unit

INFO = PlausibilityInfo(
    title="A group in another unit",
    summary="The size and spread of each group's numbers against those of all others, held against "
    "the truth where there is one.",
    rule="Warns where both differ by one round factor (12, 100, 255, 365.25, 1000 or its inverse), "
    "from 20 people in the group and outside it on; without a truth where four quantiles differ by "
    "100, 255 or 1000.",
)


@dataclass(frozen=True, slots=True)
class _ModelNumbers:
    """Numbers of units, of one model: ``truth`` where they are predictions of one."""

    model: str
    unit_ids: pl.Series
    values: FloatArray
    truth: FloatArray | None


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on each group whose numbers are a round factor larger or smaller than all others."""
    membership = inputs.membership
    positions = pl.DataFrame({"unit_id": membership.units}).with_row_index("unit")
    cautions: list[Caution] = []
    for numbers in _read_numbers(inputs):
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


def _describe(numbers: _ModelNumbers, group: str, factor: float) -> Caution:
    size = max(factor, 1 / factor)
    comparison = "larger" if factor > 1 else "smaller"
    standard = "" if numbers.truth is None else ", held against the truth,"
    return Caution(
        f"The numbers of {numbers.model!r} for people of {group}{standard} are about {size:g} times"
        f" {comparison} than those for all others, and so is their spread: are they in another unit"
        f" ({_FACTORS[size]})?"
    )


def _read_numbers(inputs: AuditInputs) -> Iterator[_ModelNumbers]:
    """Read what is measured of people, model by model: predicted numbers, scores, similarities."""
    evidence = inputs.scores.evidence
    tables = (
        ("errors", "prediction", "truth"),
        ("numbers", "value", None),
        ("classification", "positive_score", None),
    )
    for name, column, truth in tables:
        if name not in evidence:
            continue
        known_rows = evidence[name].drop_nulls([c for c in (column, truth) if c is not None])
        for (model,), rows in known_rows.group_by(["model"], maintain_order=True):
            truths = None if truth is None else rows[truth].cast(pl.Float64).to_numpy()
            values = rows[column].cast(pl.Float64).to_numpy()
            yield _ModelNumbers(str(model), rows["unit_id"], values, truths)
    pairs = inputs.predictions
    if inputs.task == "face_verification" and pairs is not None and "score" in pairs.columns:
        known_rows = pairs.with_columns(pl.col("score").cast(pl.Float64).fill_nan(None))
        for (model,), rows in known_rows.drop_nulls("score").group_by(
            ["model"], maintain_order=True
        ):
            yield _ModelNumbers(str(model), rows["instance_id"], rows["score"].to_numpy(), None)


def _find_factor(numbers: _ModelNumbers, is_inside: npt.NDArray[np.bool_]) -> float | None:
    """Find the factor by which a group's numbers are larger than those of all others."""
    n_inside = int(is_inside.sum())
    if min(n_inside, len(is_inside) - n_inside) < _MIN_PEOPLE:
        return None
    inside, outside = numbers.values[is_inside], numbers.values[~is_inside]
    if numbers.truth is None:
        ratios = _divide(_abs_quantiles(inside), _abs_quantiles(outside))
        return _match_factor(ratios, _FACTORS_WITHOUT_TRUTH, _TOLERANCE)
    truth_inside, truth_outside = numbers.truth[is_inside], numbers.truth[~is_inside]
    ratios = _divide(
        _divide(_size_and_spread(inside), _size_and_spread(truth_inside)),
        _divide(_size_and_spread(outside), _size_and_spread(truth_outside)),
    )
    factor = _match_factor(ratios, tuple(_FACTORS), _TOLERANCE_WITH_TRUTH)
    if factor is None:
        return None
    correlation = float(weighted_spearman(truth_inside, inside, np.ones(n_inside)))
    return factor if correlation >= _MIN_CORRELATION else None


def _abs_quantiles(values: FloatArray) -> FloatArray:
    return np.quantile(np.abs(values), _QUANTILES)


def _size_and_spread(values: FloatArray) -> FloatArray:
    """Return the median size and the distance of the quartiles."""
    low, high = np.quantile(values, (0.25, 0.75))
    return np.array([np.median(np.abs(values)), high - low])


def _divide(a: FloatArray, b: FloatArray) -> FloatArray:
    """Divide; NaN where the divisor is 0."""
    quotients: FloatArray = np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0)
    return quotients


def _match_factor(ratios: FloatArray, factors: tuple[float, ...], tolerance: float) -> float | None:
    """Return the factor, or inverse of one, that all ratios are near to."""
    if np.isnan(ratios).any() or (ratios <= 0).any():
        return None
    size = np.log(ratios)
    if np.abs(size).min() < np.log(_MIN_RATIO):
        return None
    candidates = [f for factor in factors for f in (factor, 1 / factor)]
    distances = [float(np.abs(size - np.log(f)).max()) for f in candidates]
    best = int(np.argmin(distances))
    return candidates[best] if distances[best] <= np.log(tolerance) else None
