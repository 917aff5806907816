"""Slices: groups of people, by up to three attributes, with the largest errors.

The input is a boolean table (who has which value) and an error of each row; the output the k slices
with the highest score. A slice is a conjunction of values of different attributes. SliceLine's
score [1]_ weights the excess of its mean error over the overall one against its size:

    score = alpha (mean error of the slice / mean error - 1) - (1 - alpha) (n / size - 1)

The overall score is 0. The search is exact: a slice is skipped only if the upper bound of its score
is too low. One difference from the paper: a slice with the same rows as one of its parts
("children" and "children at school") is not listed.

A note on the reference's code: Apache SystemDS 3 gives its upper bound the number of one-hot
columns where the formula has the number of rows. With fewer columns the bound is looser, but still
valid.

References
----------
.. [1] Sagadeeva, S. and Boehm, M. (2021). SliceLine: Fast, linear-algebra-based slice finding for
   ML model debugging. SIGMOD, 2290-2299.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import InputError, SpecError
from isolux.stats.statistic import FloatArray, IntArray

MAX_SLICE_LENGTH = 3
"""Largest number of attributes of a slice."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices with the highest score, in descending order.

    Parameters
    ----------
    members : [k, 3] int
        Columns of the conjunction, ascending, then -1.
    size, n_clusters : [k] int
        Its rows, and the clusters among them.
    error : [k] float
        Mean error of its rows.
    score : [k] float
        Above 0; higher is worse.
    n_rows : int
    mean_error : float
        Of all rows; NaN without rows.
    n_evaluated : int
        Number of slices evaluated; the bound excluded the others.
    """

    members: npt.NDArray[np.int32]
    size: IntArray
    n_clusters: IntArray
    error: FloatArray
    score: FloatArray
    n_rows: int
    mean_error: float
    n_evaluated: int


def find_worst_slices(
    has_value: npt.NDArray[np.bool_],
    attribute: IntArray,
    error: FloatArray,
    cluster: IntArray,
    *,
    max_slices: int = 4,
    alpha: float = 0.95,
    min_size: int = 1,
    min_clusters: int = 1,
    max_length: int = MAX_SLICE_LENGTH,
) -> Slices:
    """Find the slices with the highest score among all of up to three attributes.

    Shapes: ``has_value`` [n, p], ``attribute`` [p], ``error`` [n], ``cluster`` [n].
    """
    _check_slice_settings(max_slices, alpha, max_length)
    has_value, attribute_index, row_errors, cluster = _check_slice_inputs(
        has_value, attribute, error, cluster
    )
    n, p = has_value.shape
    total = float(row_errors.sum())
    members = np.full((max_slices, MAX_SLICE_LENGTH), -1, np.int32)
    ranked_slices = np.zeros((max_slices, 4))
    counts = np.zeros(2, np.int64)
    # Without errors the score is 0 / 0.
    if n and p and total > 0:
        from isolux.stats._itemset_kernels import pack_columns_into_bits
        from isolux.stats.slices.slice_kernels import find_top_slices

        # Sorted, so that clusters are counted at changes.
        order = np.argsort(cluster, kind="stable")
        bits = np.zeros((p, (n + 63) // 64), np.uint64)
        pack_columns_into_bits(np.ascontiguousarray(has_value[order]), bits)
        search_terms = np.array(
            [n, total, alpha, max(min_size, 1), max(min_clusters, 1)], np.float64
        )
        find_top_slices(
            bits,
            attribute_index,
            row_errors[order],
            cluster[order],
            max_length,
            members,
            ranked_slices,
            search_terms,
            counts,
        )
    k = int(counts[0])
    score, size, error_sums, clusters = ranked_slices[:k].T
    return Slices(
        members[:k],
        size.astype(np.int64),
        clusters.astype(np.int64),
        error_sums / np.maximum(size, 1.0),
        score.copy(),
        n,
        total / n if n else float("nan"),
        int(counts[1]),
    )


def is_row_in_slice(
    has_value: npt.NDArray[np.bool_], members: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return the membership of rows in each slice: ``[n, k]``."""
    # Column -1 is true for every row.
    with_all = np.column_stack([has_value, np.ones(len(has_value), np.bool_)])
    return np.asarray(with_all[:, members].all(axis=2), dtype=np.bool_)


def select_distinct_slices(inside: npt.NDArray[np.bool_], max_jaccard: float) -> IntArray:
    """Select slices whose overlap with earlier ones is small: indices ``[m]``, in order.

    Shapes: ``inside`` [n, k].
    """
    membership = inside.astype(np.float64)
    size = membership.sum(axis=0)
    intersection = membership.T @ membership
    union = size[:, None] + size[None, :] - intersection
    jaccard = np.divide(intersection, union, out=np.zeros_like(intersection), where=union > 0)
    selected: list[int] = []
    for j in range(inside.shape[1]):  # slices, a few hundred
        if (jaccard[j, selected] <= max_jaccard).all():
            selected.append(j)
    return np.asarray(selected, dtype=np.int64)


def _check_slice_settings(max_slices: int, alpha: float, max_length: int) -> None:
    if max_slices < 1:
        raise SpecError("no slice is asked for", expected="1 or more", found=str(max_slices))
    if not 0.0 < alpha <= 1.0:
        raise SpecError(
            "errors have no such weight", expected="alpha above 0, at most 1", found=str(alpha)
        )
    if not 1 <= max_length <= MAX_SLICE_LENGTH:
        raise SpecError(
            "no slice has that many attributes",
            expected=f"1 to {MAX_SLICE_LENGTH}",
            found=str(max_length),
        )


def _check_slice_inputs(
    rows: npt.NDArray[np.bool_], attribute: IntArray, error: FloatArray, cluster: IntArray
) -> tuple[npt.NDArray[np.bool_], IntArray, FloatArray, IntArray]:
    has_value = np.asarray(rows)
    attribute_index, errors = np.asarray(attribute, np.int64), np.asarray(error, np.float64)
    cluster_index = np.asarray(cluster, np.int64)
    shapes = (has_value.shape[-1:], has_value.shape[:1], has_value.shape[:1])
    if (
        has_value.ndim != 2
        or has_value.dtype != np.bool_
        or shapes != (attribute_index.shape, errors.shape, cluster_index.shape)
    ):
        raise InputError(
            "rows, attributes, errors and clusters do not fit one another",
            expected="true and false [n, p], [p], [n] and [n]",
            found=f"{has_value.dtype} {has_value.shape}, {attribute_index.shape}, {errors.shape} "
            f"and {cluster_index.shape}",
        )
    is_invalid = np.logical_not(errors >= 0.0) | np.isinf(errors)
    if is_invalid.any():
        raise InputError(
            "an error is negative or not a number",
            expected="0 or more",
            found=str(errors[is_invalid][0]),
        )
    return has_value, attribute_index, errors, cluster_index
