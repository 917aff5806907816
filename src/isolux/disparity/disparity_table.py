"""From estimates to the table ``disparities``: pairs, groups against overall, attributes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.core.spec import ComparisonSettings
from isolux.disparity.attribute_measures import (
    build_attribute_measure_rows,
    build_equalized_odds_rows,
)
from isolux.disparity.equivalence import build_equivalence_rows
from isolux.disparity.family import ComparisonFamily, run_family_tests
from isolux.disparity.pairwise_differences import (
    build_pair_disparity_rows,
    build_untested_group_rows,
)
from isolux.disparity.rows import stack_rows
from isolux.disparity.verification_measures import build_verification_notes, build_verification_rows
from isolux.groups.estimates import Estimates
from isolux.io.threads import release_free_memory


@dataclass(frozen=True, slots=True)
class Disparities:
    """The table, its family of tests, and notes that the report must print."""

    table: pl.DataFrame
    family: ComparisonFamily
    notes: tuple[str, ...] = ()


def measure_disparities(
    estimates: Estimates,
    spec: ComparisonSettings,
    references: dict[str, str] | None = None,
    *,
    share: float = 1.0,
) -> Disparities:
    """Compare all groups on all metrics."""
    family = run_family_tests(estimates, spec, references or {}, share=share)
    rows = [
        *build_attribute_measure_rows(estimates, family, spec),
        *build_equivalence_rows(estimates, family, spec),
        *build_pair_disparity_rows(estimates, family, spec),
        *build_untested_group_rows(estimates, spec),
        *build_verification_rows(estimates, family, spec),
    ]
    release_free_memory()
    table = stack_rows(rows)
    del rows
    release_free_memory()  # the memory of the rows and of intermediate arrays
    notes = build_verification_notes(estimates)
    return Disparities(pl.concat([table, build_equalized_odds_rows(table)]), family, notes)
