"""Survey weights and strata, and multiplicities, applied to cluster sums.

The evidence table ``sample`` has weights and strata, the table ``counts`` the multiplicity of
identical rows; without them the cluster sums are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.core.counts import COUNTS
from isolux.core.errors import SpecError
from isolux.core.spec import Statistics
from isolux.core.survey_sample import SAMPLE
from isolux.groups.measure.score_matrix import ScoreMatrix
from isolux.stats.cluster_sums import ClusterSums, build_cluster_sums
from isolux.stats.raking import Margins
from isolux.stats.sampling import Strata
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import (
    MAX_CENSUS_FRACTION,
    add_second_clustering,
    build_survey_cluster_sums,
)


def apply_multiplicity(
    cluster_sums: ClusterSums,
    evidence: Mapping[str, pl.DataFrame],
    unit_ids: pl.Series,
    cluster_index: IntArray,
) -> ClusterSums:
    """Set the multiplicity of each unit, which must be its own cluster.

    Shapes: ``cluster_index`` [n_units].
    """
    if COUNTS not in evidence:
        return cluster_sums
    counts = evidence[COUNTS].select("unit_id", "times").unique("unit_id")
    unit_counts = pl.DataFrame({"unit_id": unit_ids.cast(pl.String)}).join(
        counts, on="unit_id", how="left", maintain_order="left"
    )
    cluster_multiplicity = np.zeros(len(cluster_sums.distinct_index), dtype=np.int64)
    cluster_multiplicity[cluster_index] = unit_counts["times"].fill_null(1).to_numpy()
    multiplicity = np.zeros(len(cluster_sums.multiplicity), dtype=np.int64)
    # Identical clusters were merged into one column, so their multiplicities add up.
    np.add.at(multiplicity, cluster_sums.distinct_index, cluster_multiplicity)
    return replace(cluster_sums, multiplicity=multiplicity)


def apply_survey_weights(
    cluster_sums: ClusterSums,
    score_matrix: ScoreMatrix,
    entries: tuple[IntArray, IntArray],
    evidence: Mapping[str, pl.DataFrame],
    spec: Statistics,
) -> ClusterSums:
    """Apply weights and strata to cluster sums; unchanged without a survey sample.

    Shapes: ``entries`` [n].
    """
    if SAMPLE not in evidence:
        return cluster_sums
    _refuse_unweightable(score_matrix, spec)
    table = evidence[SAMPLE].unique("unit_id", keep="first", maintain_order=True)
    unit_sample = pl.DataFrame({"unit_id": score_matrix.unit_ids.cast(pl.String)}).join(
        table, on="unit_id", how="left", maintain_order="left"
    )
    weight = unit_sample["weight"].to_numpy().astype(np.float64)
    # With mean 1, weighted counts are comparable with numbers of units.
    scaled = weight / weight.mean() if len(weight) else weight
    strata = index_strata(unit_sample, score_matrix.cluster_index)
    rows = score_matrix.columns[score_matrix.row_index]
    margins = _read_margins(unit_sample)
    survey_sums = build_survey_cluster_sums(
        rows, score_matrix.cluster_index, entries, cluster_sums, scaled, strata, margins
    )
    if "other_cluster" not in unit_sample.columns or unit_sample["other_cluster"].is_null().all():
        return survey_sums
    second_clusters = (unit_sample["other_cluster"].rank("dense") - 1).to_numpy().astype(np.int64)
    groups = cluster_sums.n_groups
    unweighted = build_cluster_sums(
        score_matrix.columns, second_clusters, *entries, groups, score_matrix.row_index
    )
    return add_second_clustering(
        survey_sums,
        rows,
        (score_matrix.cluster_index, second_clusters),
        entries,
        unweighted,
        margins,
    )


def _read_margins(unit_sample: pl.DataFrame) -> Margins | None:
    """Read the population margins that weights are calibrated to; None: there are none."""
    codes = [
        unit_sample[name].to_numpy().astype(np.int64)
        for name in unit_sample.columns
        if name.startswith("margin_")
    ]
    sizes = tuple(int(code.max(initial=-1)) + 1 for code in codes)
    if not codes:
        return None
    return Margins(tuple(codes), sizes, unit_sample["base_weight"].to_numpy().astype(np.float64))


def _refuse_unweightable(score_matrix: ScoreMatrix, spec: Statistics) -> None:
    """Refuse metrics and settings that do not support weights."""
    names = [str(score_matrix.measures[j][2]) for j in score_matrix.detection_measures]
    if names:
        weightable = [
            str(measure_parts[2])
            for measure_parts in score_matrix.measures
            if str(measure_parts[2]) not in names
        ]
        raise SpecError(
            f"{', '.join(dict.fromkeys(names))} takes no weights and no strata: a false alarm "
            "does not represent a person, so no weight applies to it",
            expected="metrics that are of people: --metric "
            + (" --metric ".join(dict.fromkeys(weightable)) or "with another task"),
            found="--weight or --strata",
        )
    if spec.interval == "bca" or spec.weights == "poisson":
        raise SpecError(
            "a sample with weights or strata has no such bootstrap",
            expected="--interval score, logit-t, percentile, wilson or clopper-pearson, and "
            "weights multinomial",
            found=f"--interval {spec.interval} weights {spec.weights}",
        )


def index_strata(unit_sample: pl.DataFrame, cluster_index: IntArray) -> Strata | None:
    """Index strata, and clusters by stratum; None: the sample has no strata.

    Shapes: ``cluster_index`` [n].
    """
    is_finite = (
        "stratum_size" in unit_sample.columns and unit_sample["stratum_size"].is_not_null().any()
    )
    if unit_sample["stratum"].is_null().all() and not is_finite:
        return None
    # With a population size but no strata, all clusters are one stratum.
    code = (unit_sample["stratum"].fill_null("").rank("dense") - 1).to_numpy().astype(np.int64)
    stratum_index = np.zeros(int(cluster_index.max(initial=-1)) + 1, dtype=np.int64)
    stratum_index[cluster_index] = code
    counts = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.int64)
    # Decision 21: a stratum has as many clusters as were sampled, also those that --only excludes.
    counts[code] = unit_sample["stratum_clusters"].to_numpy()
    return Strata(stratum_index, counts, _unsampled_fraction(unit_sample, code, counts))


def _unsampled_fraction(
    unit_sample: pl.DataFrame, code: IntArray, n_sampled: IntArray
) -> FloatArray | None:
    """Return each stratum's fraction of clusters not sampled; None: sizes are unknown."""
    if "stratum_size" not in unit_sample.columns or unit_sample["stratum_size"].is_null().all():
        return None
    size = np.ones(len(n_sampled))
    size[code] = unit_sample["stratum_size"].to_numpy()
    # Above 0, as variances are divided by it.
    return np.maximum(1.0 - n_sampled / size, MAX_CENSUS_FRACTION)
