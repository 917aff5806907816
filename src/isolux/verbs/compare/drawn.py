"""The sample of two runs on the same people: weights and strata must be the same in both."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import JoinError, SpecError

_SAME = 1e-9
"""Weights that differ by less, as a share, are one."""


def shared_sample(first: Run, second: Run, units_b: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the first run's sample as evidence of both; nothing where neither has one."""
    held = [run.evidence.get(SAMPLE) for run in (first, second)]
    if held[0] is None and held[1] is None:
        return {}
    a, b = held
    if a is None or b is None:
        raise SpecError(
            f"the {'first' if a is not None else 'second'} run has weights or strata, and the "
            "other has none",
            expected="the same --weight and --strata in both audits",
            found="one run with them",
        )
    ours = a.unique("unit_id", keep="first", maintain_order=True)
    theirs = b.unique("unit_id", keep="first", maintain_order=True).join(units_b, on="unit_id")
    both = ours.join(theirs, left_on="unit_id", right_on="as_first", how="inner", suffix="_b")
    # Weights that were brought to a population depend on who was scored; those before do not.
    if ("base_weight" in ours.columns) != ("base_weight" in theirs.columns):
        raise SpecError(
            "one run's weights were adjusted to a population, and the other's were not",
            expected="the same --population in both audits",
        )
    name = "base_weight" if "base_weight" in ours.columns else "weight"
    apart = (pl.col(name) - pl.col(f"{name}_b")).abs() > _SAME * pl.col(name).abs()
    other = both.filter(apart | pl.col("stratum").ne_missing(pl.col("stratum_b")))
    if other.height:
        row = other.row(0, named=True)
        raise JoinError(
            f"{other.height:,} of {both.height:,} people weigh differently in the two runs, or are "
            "of other strata",
            expected="the same weights and strata in both",
            found=f"{row['unit_id']!r}: weight {row['weight']:g} and {row['weight_b']:g}, stratum "
            f"{row['stratum']!r} and {row['stratum_b']!r}",
        )
    kept = pl.col("unit_id").is_in(both["unit_id"].implode())
    return {SAMPLE: ours.filter(kept)}
