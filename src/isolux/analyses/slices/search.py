"""The two halves of ``slices``: candidates are found on one and tested on the other.

The worst of thousands of slices is bad even where nothing differs. So clusters are split at random;
slices are chosen on one half alone, and measured on the other by the audit's own intervals and null
tests (``groups.measure``, ``disparity.disparity_table``), each slice against everyone else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._features import Features
from isolux.analyses._survey_sample import SurveySample
from isolux.analyses._unit_scores import UnitScores
from isolux.core.containers import Scores
from isolux.core.errors import SpecError
from isolux.core.info import Metric, TaskInfo
from isolux.core.spec import ComparisonSettings
from isolux.core.survey_sample import SAMPLE
from isolux.core.tables import MEMBERSHIP
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.stats.cluster_sums import IntArray
from isolux.stats.sampling import Strata
from isolux.stats.slices import (
    MAX_SLICE_LENGTH,
    Slices,
    find_worst_slices,
    is_row_in_slice,
    select_distinct_slices,
)
from isolux.stats.statistic import FloatArray

_BoolArray = npt.NDArray[np.bool_]
_SEED_STREAM = 67
_MIN_STRATUM_CLUSTERS = 2
"""Fewest clusters of a stratum for a variance."""
_MAX_CANDIDATES = 256
"""Slices listed before those that share their people with a worse one are excluded."""
_MAX_JACCARD = 0.5
"""Overlap of people (Jaccard) with a worse slice above which a slice is excluded."""
_ALPHA = 0.95
"""SliceLine's weight of the error against the size."""
_HELD_OUT_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class CandidateSlices:
    """Candidate slices of the first half.

    ``slices`` are the selected slices, ``value [k]`` their mean scores, ``share [k]`` their shares
    of the half's units, ``inside [n, k]`` the members in both halves, ``second [n]`` the rows of
    the second half.
    """

    slices: Slices
    means: FloatArray
    share: FloatArray
    is_member: _BoolArray
    is_second_half: _BoolArray


def is_in_held_out_clusters(
    cluster: IntArray, share: float, seed: int, strata: Strata | None = None
) -> _BoolArray:
    """Choose at random the clusters of the second half, and return the mask of their rows ``[n]``.

    Examples
    --------
    >>> is_in_held_out_clusters(np.array([0, 0, 1, 2, 3]), 0.5, 0).tolist()
    [True, True, True, False, False]
    """
    n = int(cluster.max(initial=-1)) + 1
    order = np.random.default_rng(np.random.SeedSequence([seed, _SEED_STREAM])).permutation(n)
    is_held_out = np.zeros(n, dtype=np.bool_)
    if strata is None:
        is_held_out[order[: round(n * share)]] = True
    else:
        for h in range(len(strata.n_sampled)):
            stratum_clusters = order[strata.stratum_index[order] == h]
            is_held_out[
                stratum_clusters[
                    : min(max(round(len(stratum_clusters) * share), 2), len(stratum_clusters) - 2)
                ]
            ] = True
    rows: _BoolArray = is_held_out[cluster]
    return rows


def find_candidate_slices(
    scores: UnitScores,
    items: Features,
    metric: Metric,
    max_slices: int,
    min_support: float,
    spec: ComparisonSettings,
    survey_sample: SurveySample | None = None,
) -> CandidateSlices:
    """Find the worst slices of one half of the clusters."""
    strata = None if survey_sample is None else survey_sample.strata
    _check_strata_can_be_halved(strata)
    is_second_half = is_in_held_out_clusters(scores.cluster, _HELD_OUT_SHARE, spec.seed, strata)
    clusters = [len(np.unique(scores.cluster[half])) for half in (~is_second_half, is_second_half)]
    if min(clusters) < 2 * spec.min_clusters:
        raise SpecError(
            "there are too few clusters to choose slices on some and test them on others",
            expected=f"{2 * spec.min_clusters} clusters or more in either half",
            found=f"{clusters[0]} and {clusters[1]}",
            where="the analysis slices",
            hint="give it more subjects",
        )
    rows, first_values = items.matrix.astype(np.bool_), scores.value[~is_second_half]
    worst = find_worst_slices(
        rows[~is_second_half],
        _encode_attributes(items.attribute),
        _scores_to_errors(first_values, metric, higher_is_better=scores.higher_is_better),
        scores.cluster[~is_second_half],
        max_slices=_MAX_CANDIDATES,
        alpha=_ALPHA,
        min_size=max(spec.min_units, ceil(min_support * len(first_values))),
        min_clusters=spec.min_clusters,
        max_length=MAX_SLICE_LENGTH,
    )
    selected = select_distinct_slices(
        is_row_in_slice(rows[~is_second_half], worst.members), _MAX_JACCARD
    )[:max_slices]
    slices = Slices(
        worst.members[selected],
        worst.size[selected],
        worst.n_clusters[selected],
        worst.error[selected],
        worst.score[selected],
        worst.n_rows,
        worst.mean_error,
        worst.n_evaluated,
    )
    is_member = is_row_in_slice(rows, slices.members)
    sums = np.where(is_member[~is_second_half], first_values[:, None], 0.0).sum(axis=0)
    return CandidateSlices(
        slices,
        sums / np.maximum(slices.size, 1),
        slices.size / max(len(first_values), 1),
        is_member,
        is_second_half,
    )


def _check_strata_can_be_halved(strata: Strata | None) -> None:
    if strata is None:
        return
    n_clusters = np.bincount(strata.stratum_index, minlength=len(strata.n_sampled))
    if (n_clusters < 2 * _MIN_STRATUM_CLUSTERS).any():
        raise SpecError(
            f"{int((n_clusters < 2 * _MIN_STRATUM_CLUSTERS).sum()):,} strata have too few "
            "clusters to be parted into two halves",
            expected=f"{2 * _MIN_STRATUM_CLUSTERS} clusters or more in every stratum",
            found=f"{int(n_clusters.min())}",
            where="the analysis slices",
            hint="join small strata with their neighbours before the audit",
        )


def build_survey_sample_of_half(
    sample_rows: pl.DataFrame, cluster: IntArray, is_second_half: _BoolArray
) -> pl.DataFrame:
    """Build the table ``sample`` of one half, with its share of each stratum's sampled clusters.

    Shapes: ``cluster`` [n], ``is_second_half`` [n].
    """
    names = [n for n in sample_rows.columns if n.startswith("margin_") or n == "base_weight"]
    split_rows = sample_rows.drop(names).with_columns(
        _of=pl.Series(cluster), _in=pl.Series(is_second_half)
    )
    n_half_clusters = pl.col("_of").filter("_in").n_unique().over("stratum")
    n_clusters = pl.col("_of").n_unique().over("stratum")
    # Sampled clusters without scored units are split in the same proportion as the others.
    stratum_clusters = (
        (pl.col("stratum_clusters") * n_half_clusters / n_clusters).round().cast(pl.Int64)
    )
    return (
        split_rows.with_columns(stratum_clusters=stratum_clusters).filter("_in").drop("_of", "_in")
    )


def compare_slices_with_complement(
    model_scores: UnitScores,
    candidates: CandidateSlices,
    metric: Metric,
    task: str,
    spec: ComparisonSettings,
    sample_rows: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Test each slice against everyone else on the second half."""
    names = [f"slice {k}" for k in range(len(candidates.slices.score))]
    is_second_half = candidates.is_second_half
    units = model_scores.units.filter(pl.Series(is_second_half))
    score_table = model_scores.to_scores(task, is_second_half)
    members = _build_slice_membership(names, candidates.is_member[is_second_half], units)
    task_info = TaskInfo(title=task, summary=task, references=(), metrics=(metric,))
    sample = (
        {}
        if sample_rows is None
        else {
            SAMPLE: build_survey_sample_of_half(sample_rows, model_scores.cluster, is_second_half)
        }
    )
    estimates = measure_groups(Scores(score_table, task_info, sample, task=task), members, spec)
    disparities = measure_disparities(estimates, spec, dict.fromkeys(names, "others")).table
    keys = pl.DataFrame({"attribute": names}, schema={"attribute": pl.String})
    groups = estimates.to_table()
    slice_rows = groups.filter(group="slice").select(
        "attribute", "value", n="n_units", n_clusters="n_clusters", status="status", reason="reason"
    )
    complement_rows = groups.filter(group="others").select("attribute", others="value")
    gaps = disparities.filter(kind="difference").select(
        "attribute", "low", "high", "p_value", difference="value", told="status"
    )
    results = keys
    for columns in (slice_rows, complement_rows, gaps):
        results = results.join(columns, on="attribute", how="left", maintain_order="left")
    return results.with_columns(status=pl.coalesce("told", "status", pl.lit("not scored"))).drop(
        "told"
    )


def _build_slice_membership(
    names: Sequence[str], is_member: _BoolArray, units: pl.Series
) -> pl.DataFrame:
    frames = [
        pl.DataFrame({"unit_id": units, "in": pl.Series(is_member[:, k])}).select(
            attribute=pl.lit(name),
            group=pl.when("in").then(pl.lit("slice")).otherwise(pl.lit("others")),
            unit_id="unit_id",
        )
        for k, name in enumerate(names)
    ]
    if not frames:
        return MEMBERSHIP.empty()
    frame = pl.concat(frames).with_columns(values=pl.concat_list("group"))
    return MEMBERSHIP.conform(frame.sort("attribute", "group", descending=[False, True]))


def _encode_attributes(names: Sequence[str]) -> IntArray:
    """Assign a number to each attribute; its columns share it."""
    number_by_name = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.asarray([number_by_name[name] for name in names], dtype=np.int64)


def _scores_to_errors(scores: FloatArray, metric: Metric, *, higher_is_better: bool) -> FloatArray:
    """Convert scores to errors: distances from the best possible, else the best observed score."""
    if higher_is_better:
        best = metric.high if metric.high is not None else scores.max(initial=-np.inf)
        return np.maximum(best - scores, 0.0)
    best = metric.low if metric.low is not None else scores.min(initial=np.inf)
    return np.maximum(scores - best, 0.0)
