"""The z statistics of an audit's contrasts, by test inversion.

Attributes with few groups are compared in batches: their clusters are summed and their intervals
inverted once, with the same results as one at a time.

Also whether groups can be compared with the overall value, and with their complement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isolux.core.spec import ComparisonSettings
from isolux.disparity.comparisons import (
    Comparisons,
    build_comparisons,
    build_comparisons_of_attributes,
)
from isolux.groups.estimates import Estimates
from isolux.stats.intervals import two_sided_normal_quantile
from isolux.stats.null_distribution import COMPLEMENT
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.test_inversion import z_statistics_by_test_inversion

_MAX_PRODUCTS = 1e7
"""Multiplications up to which attributes are compared in one batch: some milliseconds."""

Key = tuple[str, int]
"""An attribute and a measure."""
Plan = tuple[IntArray, IntArray]
"""The comparable groups ``[g]``, and the contrasts ``[h, 2]`` among them."""
Plans = dict[Key, Plan]


def compute_contrast_z(
    comparisons: Comparisons, plans: Sequence[Plan], spec: ComparisonSettings, *extra_z: float
) -> list[FloatArray]:
    """Return each plan's z statistics ``[h]``, with the sign of a − b."""
    # At these z the interval is computed, not interpolated, so that p agrees with the printed one.
    exact = (two_sided_normal_quantile(spec.level), *extra_z)
    first = np.concatenate([members[contrasts[:, 0]] for members, contrasts in plans])
    # COMPLEMENT (-1) indexes an arbitrary row here, which the mask below excludes.
    second = np.concatenate([members[contrasts[:, 1]] for members, contrasts in plans])
    is_complement = np.concatenate([contrasts[:, 1] == COMPLEMENT for _, contrasts in plans])
    z = np.full(len(first), np.nan)
    z[~is_complement] = z_statistics_by_test_inversion(
        comparisons.compare_pairs(first[~is_complement], second[~is_complement]),
        exact,
    )
    if is_complement.any():
        z[is_complement] = z_statistics_by_test_inversion(
            comparisons.compare_with_complement(first[is_complement]), exact
        )
    return np.split(z, np.cumsum([len(contrasts) for _, contrasts in plans])[:-1])


def batch_small_attributes(estimates: Estimates, keys: list[Key]) -> list[list[Key]]:
    """Batch attributes with few groups, those of one measure and one domain."""
    # The moments of k groups are products of 2 k rows with each other, over all clusters.
    max_groups = int(np.sqrt(_MAX_PRODUCTS / max(estimates.cluster_sums.matrix.shape[1], 1)) / 2.0)
    key_batches: list[list[Key]] = []
    open_: dict[tuple[int, int], tuple[list[Key], int]] = {}
    for key in keys:
        batch_key, n_new_groups = (
            (key[1], estimates.domain_rows[key[0]]),
            len(estimates.attribute_rows(key[0])),
        )
        # Without a batch so far the number is at its limit, so that any attribute begins one.
        batch, n_groups = open_.get(batch_key, ([], max_groups))
        if n_groups + n_new_groups > max_groups:
            batch, n_groups = [], 0
            key_batches.append(batch)
        batch.append(key)
        open_[batch_key] = batch, n_groups + n_new_groups
    return key_batches


def compare_batch(
    estimates: Estimates, plans: Plans, keys: list[Key], spec: ComparisonSettings
) -> Iterator[tuple[Key, tuple[Comparisons, FloatArray]]]:
    """Compare the groups of a batch of attributes; those that share a comparison at once."""
    if len(keys) == 1:
        comparisons = [build_comparisons(estimates, *key) for key in keys]
    else:
        comparisons = build_comparisons_of_attributes(
            estimates, [attribute for attribute, _ in keys], keys[0][1]
        )
    indices_by_comparison: dict[int, list[int]] = {}
    for index, comparison in enumerate(comparisons):
        indices_by_comparison.setdefault(id(comparison), []).append(index)
    for indices in indices_by_comparison.values():
        comparison = comparisons[indices[0]]
        z = compute_contrast_z(comparison, [plans[keys[index]] for index in indices], spec)
        yield from (
            (keys[index], (comparison, contrast_z))
            for index, contrast_z in zip(indices, z, strict=True)
        )


_EQUALITY_TOLERANCE = 1e-9
"""Values that differ by less are the same."""


def is_overall_among_groups(estimates: Estimates, attribute: str, j: int) -> bool:
    """Tell whether groups can be compared with overall: its value lies among theirs.

    For a mean as the metric's info says; for other statistics by the values themselves.
    """
    # An overall mean is a mixture of the groups' means; other overall values may be outside theirs,
    # as of an AUC (decision 31).
    if (
        estimates.measures[j].mean is not None
        or not estimates.measures[j].info.has_overall_among_groups
    ):
        return estimates.measures[j].info.has_overall_among_groups
    group_values = estimates.value[estimates.attribute_rows(attribute), j]
    differences = group_values[np.isfinite(group_values)] - estimates.value[0, j]
    return bool(
        (differences <= _EQUALITY_TOLERANCE).any() and (differences >= -_EQUALITY_TOLERANCE).any()
    )


def count_complement_units(estimates: Estimates, rows: IntArray, j: int) -> IntArray:
    """Count the units of each group's complement ``[g]``; 0 where the group is everyone."""
    return np.asarray(estimates.n_units[0, j] - estimates.n_units[rows, j])
