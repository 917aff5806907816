"""The sample that a run's people are: how much each unit weighs, and where its cluster was drawn.

For analyses that reckon with units themselves. Those that measure by ``groups.measure_groups`` pass
the table ``sample`` on instead.
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
    """How units were drawn.

    ``weight [n]``: for how many each stands, 1 in the mean; ``strata`` of the clusters, None where
    all were drawn together; ``calibrated``: whether weights were brought to a population.
    """

    weight: FloatArray
    strata: Strata | None
    calibrated: bool


def is_sampled(run: Run) -> bool:
    """Tell whether a run's people stand for a population."""
    return SAMPLE in run.evidence


def rows_of_units(run: Run, units: pl.Series) -> pl.DataFrame:
    """Return the sample's row of each unit, in the units' order."""
    table = run.evidence[SAMPLE].unique("unit_id", keep="first", maintain_order=True)
    named = pl.DataFrame({"unit_id": units.cast(pl.String)})
    return named.join(table, on="unit_id", how="left", maintain_order="left")


def refuse_two_ways(run: Run, what: str) -> None:
    """Refuse clusters both ways, which would be taken for clusters one way."""
    if not is_sampled(run) or "other_cluster" not in run.evidence[SAMPLE].columns:
        return
    if run.evidence[SAMPLE]["other_cluster"].is_not_null().any():
        raise SpecError(
            f"{what} knows clusters one way, and this run has them both ways",
            expected="an audit with one --cluster, that of which more photos are alike",
            found="clusters both ways",
        )


def sampled_of(run: Run, units: pl.Series, cluster: IntArray, what: str) -> Sampled | None:
    """Read how units were drawn; None where every one counts once.

    Shapes: ``units`` [n], ``cluster`` [n].
    """
    if not is_sampled(run):
        return None
    refuse_two_ways(run, what)
    held = rows_of_units(run, units)
    weight = held["weight"].to_numpy().astype(np.float64)
    scaled = weight / weight.mean() if len(weight) else weight
    return Sampled(scaled, strata_of_clusters(held, cluster), "base_weight" in held.columns)
