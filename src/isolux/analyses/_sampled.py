"""Survey weights of units and strata of their clusters, for analyses that use units themselves.

Analyses that measure by ``groups.measure_groups`` pass the table ``sample`` on instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.groups.measure.drawn import strata_of_clusters
from isolux.stats.design import IntArray
from isolux.stats.sampling import Strata
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError

FIXED = (
    "weights that were adjusted to a population are treated as fixed here: these intervals may be "
    "slightly too wide"
)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Survey weights and strata of units.

    ``weight [n]``: with mean 1; ``strata`` of the clusters, None without strata; ``calibrated``:
    whether weights were calibrated to a population.
    """

    weight: FloatArray
    strata: Strata | None
    calibrated: bool


def is_sampled(run: Run) -> bool:
    """Tell whether a run has survey weights."""
    return SAMPLE in run.evidence


def rows_of_units(run: Run, units: pl.Series) -> pl.DataFrame:
    """Return the sample's row of each unit, in the units' order."""
    table = run.evidence[SAMPLE].unique("unit_id", keep="first", maintain_order=True)
    unit_ids = pl.DataFrame({"unit_id": units.cast(pl.String)})
    return unit_ids.join(table, on="unit_id", how="left", maintain_order="left")


def refuse_two_ways(run: Run, analysis: str) -> None:
    """Refuse two-way clustering, which would be treated as one-way clustering."""
    if not is_sampled(run) or "other_cluster" not in run.evidence[SAMPLE].columns:
        return
    if run.evidence[SAMPLE]["other_cluster"].is_not_null().any():
        raise SpecError(
            f"{analysis} knows clusters one way, and this run has them both ways",
            expected="an audit with one --cluster, that of which more photos are alike",
            found="clusters both ways",
        )


def sampled_of(run: Run, units: pl.Series, cluster: IntArray, analysis: str) -> Sampled | None:
    """Read the survey sample of units; None without one.

    Shapes: ``units`` [n], ``cluster`` [n].
    """
    if not is_sampled(run):
        return None
    refuse_two_ways(run, analysis)
    sample_rows = rows_of_units(run, units)
    weight = sample_rows["weight"].to_numpy().astype(np.float64)
    scaled = weight / weight.mean() if len(weight) else weight
    return Sampled(
        scaled, strata_of_clusters(sample_rows, cluster), "base_weight" in sample_rows.columns
    )
