"""Columns that may not be weights: row numbers, ids, or one weight that outweighs all others."""

from __future__ import annotations

import polars as pl

from isolux.core.notes import Caution
from isolux.stats.sampling import kish_effective_size

_MIN_ROWS = 20
"""How many different whole numbers in order cannot be an accident."""
# Kish's effective sample size (stats.sampling.kish) below which weights are cautioned on.
_MIN_EFFECTIVE_UNITS = 10.0
_MIN_EFFECTIVE_SHARE = 0.05  # of the units


def caution_on_id_like_weights(weight: pl.Series, name: str | None) -> list[str]:
    """Caution where weights look like numbers of rows or ids."""
    if name is None or len(weight) < _MIN_ROWS or weight.n_unique() < len(weight):
        return []
    if not (weight == weight.round()).all():
        return []
    rises = bool((weight.diff().drop_nulls() > 0).all())
    smallest, largest = weight.sort()[0], weight.sort()[-1]
    if not rises and largest - smallest != len(weight) - 1:
        return []
    return [
        Caution(
            f"{name!r} looks like row numbers or ids: {len(weight):,} weights that are all "
            f"different whole numbers, {smallest:g} to {largest:g}. A weight says how many people "
            "one person represents. Is --weight the right column?"
        )
    ]


def caution_on_dominant_weights(weight: pl.Series) -> list[str]:
    """Caution where a few large weights make the effective sample size very small."""
    values = weight.to_numpy().astype("float64")
    n, n_effective = len(values), kish_effective_size(values)
    if n_effective >= _MIN_EFFECTIVE_SHARE * n and (
        n_effective >= _MIN_EFFECTIVE_UNITS or n < 2.0 * _MIN_EFFECTIVE_UNITS
    ):
        return []
    share = min(100.0 * float(values.max()) / float(values.sum()), 99.99)
    return [
        Caution(
            f"{n:,} units are worth {n_effective:,.0f} of equal weight: the largest weight alone "
            f"is "
            f"{share:.4g} % of the sum. Check it."
        )
    ]


def caution_on_zero_weight_values(
    attributes: pl.DataFrame, before: pl.Series, after: pl.Series
) -> list[str]:
    """Caution on attribute values whose people all have weight 0 and would vanish from tables."""
    unit = pl.col("unit_id").cast(pl.String)
    units_before, units_after = (units.cast(pl.String).implode() for units in (before, after))
    value_units = attributes.filter(unit.is_in(units_before)).with_columns(
        kept=unit.is_in(units_after)
    )
    value_units = value_units.group_by("attribute", "value", maintain_order=True).agg(
        pl.col("unit_id").n_unique(), pl.col("kept").any()
    )
    return [
        Caution(
            f"{name}: all {n:,} units of {attribute_value!r} weigh 0, so it is no group here, and "
            f"nothing "
            "is said of it."
        )
        for name, attribute_value, n, has_units in value_units.rows()
        if not has_units
    ]
