"""From estimates to the table ``disparities``: pairs, groups against overall, attributes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from isolux.disparity.family import Family, test_family
from isolux.disparity.pairs import pair_rows, unjudged_rows
from isolux.disparity.rows import table_of
from isolux.disparity.verification import verification_notes, verification_rows
from isolux.disparity.whole import odds_rows, whole_rows
from isolux.disparity.within import within_rows
from isolux.groups.estimates import Estimates
from isolux.io.threads import give_back
from isolux.vocabulary.spec import Comparing


@dataclass(frozen=True, slots=True)
class Disparities:
    """The table, its family of tests, and notes that the report must print."""

    table: pl.DataFrame
    family: Family
    notes: tuple[str, ...] = ()


def measure_disparities(
    estimates: Estimates,
    spec: Comparing,
    references: dict[str, str] | None = None,
    *,
    share: float = 1.0,
) -> Disparities:
    """Compare all groups on all metrics."""
    family = test_family(estimates, spec, references or {}, share=share)
    rows = [
        *whole_rows(estimates, family, spec),
        *within_rows(estimates, family, spec),
        *pair_rows(estimates, family, spec),
        *unjudged_rows(estimates, spec),
        *verification_rows(estimates, family, spec),
    ]
    give_back()
    table = table_of(rows)
    del rows
    give_back()  # the memory of the rows and of intermediate arrays
    notes = verification_notes(estimates)
    return Disparities(pl.concat([table, odds_rows(table)]), family, notes)
