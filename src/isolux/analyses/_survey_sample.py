"""Survey weights of units and strata of their clusters, for analyses that use units themselves.

Analyses that measure by ``groups.measure_groups`` pass the table ``sample`` on instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.survey_sample import SAMPLE
from isolux.groups.measure.survey_weights import index_strata
from isolux.stats.cluster_sums import IntArray
from isolux.stats.sampling import Strata
from isolux.stats.statistic import FloatArray

FIXED_WEIGHTS_NOTE = (
    "weights that were adjusted to a population are treated as fixed here: these intervals may be "
    "slightly too wide"
)


@dataclass(frozen=True, slots=True)
class SurveySample:
    """Survey weights and strata of units.

    ``weight [n]``: with mean 1; ``strata`` of the clusters, None without strata; ``is_calibrated``:
    whether weights were calibrated to a population.
    """

    weight: FloatArray
    strata: Strata | None
    is_calibrated: bool


def has_survey_sample(run: Run) -> bool:
    """Tell whether a run has survey weights."""
    return SAMPLE in run.evidence


def select_sample_rows_by_unit(run: Run, units: pl.Series) -> pl.DataFrame:
    """Return the sample's row of each unit, in the units' order."""
    table = run.evidence[SAMPLE].unique("unit_id", keep="first", maintain_order=True)
    unit_ids = pl.DataFrame({"unit_id": units.cast(pl.String)})
    return unit_ids.join(table, on="unit_id", how="left", maintain_order="left")


def check_no_two_way_clusters(run: Run, analysis: str) -> None:
    """Refuse two-way clustering, which would be treated as one-way clustering."""
    if not has_survey_sample(run) or "other_cluster" not in run.evidence[SAMPLE].columns:
        return
    if run.evidence[SAMPLE]["other_cluster"].is_not_null().any():
        raise SpecError(
            f"{analysis} knows clusters one way, and this run has them both ways",
            expected="an audit with one --cluster, that of which more photos are alike",
            found="clusters both ways",
        )


def read_survey_sample_or_none(
    run: Run, units: pl.Series, cluster: IntArray, analysis: str
) -> SurveySample | None:
    """Read the survey sample of units; None without one.

    Shapes: ``units`` [n], ``cluster`` [n].
    """
    if not has_survey_sample(run):
        return None
    check_no_two_way_clusters(run, analysis)
    sample_rows = select_sample_rows_by_unit(run, units)
    weight = sample_rows["weight"].to_numpy().astype(np.float64)
    scaled = weight / weight.mean() if len(weight) else weight
    return SurveySample(
        scaled, index_strata(sample_rows, cluster), "base_weight" in sample_rows.columns
    )
