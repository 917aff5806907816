"""Frequent itemsets: items that occur together, and how often.

Input is a boolean table ``rows [n, p]``: row i has item j. FP-growth (Han, Pei & Yin 2000), Apriori
and Eclat have the same result, the sets of items in enough rows; this module computes it exactly by
AND and population counts of bit columns, about a thousand times faster than a tree of Python
objects. Redundant sets follow from the counts alone.

References
----------
.. [1] Agrawal, R. and Srikant, R. (1994). Fast algorithms for mining association rules. VLDB.
.. [2] Han, J., Pei, J. and Yin, Y. (2000). Mining frequent patterns without candidate generation.
   SIGMOD.
.. [3] Zaki, M. J. (2000). Scalable algorithms for association mining. IEEE Transactions on
   Knowledge and Data Engineering 12(3), 372-390.
.. [4] Bayardo, R. J., Agrawal, R. and Gunopulos, D. (2000). Constraint-based rule mining in large,
   dense databases. Data Mining and Knowledge Discovery 4, 217-240: minimum improvement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import InputError, SpecError
from isolux.stats.statistic import FloatArray, IntArray

_INITIAL_CAPACITY = 1 << 17
"""Itemsets that memory is allocated for at first; with more, the search is repeated."""


@dataclass(frozen=True, slots=True)
class Itemsets:
    """Sets of items, and the number of rows with each.

    ``members [k, max_length]`` lists each set's items, ascending, then -1; ``count [k]`` are rows,
    out of ``n_rows``. Sets are in depth-first order: {0}, {1}, …, {0, 1}, {0, 2}, …
    """

    members: npt.NDArray[np.int32]
    count: IntArray
    n_rows: int

    @property
    def size(self) -> IntArray:
        """Number of items of each set ``[k]``."""
        return np.asarray((self.members >= 0).sum(axis=1), dtype=np.int64)

    @property
    def support(self) -> FloatArray:
        """Fraction of the rows with each set ``[k]``, 0 to 1."""
        return self.count / self.n_rows


def min_rows_for_support(n_rows: int, min_support: float) -> int:
    """Return the fewest rows whose share is ``min_support`` or more; at least one."""
    # From one below, as the product may be rounded up; the quotient decides.
    near = max(int(np.floor(min_support * n_rows)) - 1, 1)
    while near / n_rows < min_support:
        near += 1
    return near


def find_frequent_itemsets(
    has_item: npt.NDArray[np.bool_], *, min_support: float, max_length: int = 4
) -> Itemsets:
    """List every set of up to ``max_length`` items with at least this support.

    Shapes: ``has_item`` [n, p].
    """
    if not 0.0 < min_support <= 1.0:
        raise SpecError(
            "no set of items has such a support",
            expected="a share above 0, at most 1",
            found=str(min_support),
        )
    if max_length < 1:
        raise SpecError(
            "no set of items is so short", expected="a length of 1 or more", found=str(max_length)
        )
    has_item = _check_boolean_matrix(has_item)
    n, p = has_item.shape
    if not n or not p:
        return Itemsets(np.empty((0, max_length), np.int32), np.empty(0, np.int64), n)
    from isolux.stats._itemset_kernels import enumerate_frequent_itemsets

    bits = _pack_boolean_columns(has_item)
    max_set_length = min(max_length, p)
    capacity, n_found = 0, _INITIAL_CAPACITY
    while n_found > capacity:
        capacity = n_found
        members = np.full((capacity, max_length), -1, np.int32)
        count = np.empty(capacity, np.int64)
        n_found = enumerate_frequent_itemsets(
            bits,
            min_rows_for_support(n, min_support),
            np.empty((max_set_length, bits.shape[1]), np.uint64),
            np.empty((max_set_length, p), np.int32),
            np.zeros(max_set_length, np.int64),
            np.zeros(max_set_length, np.int64),
            np.zeros(max_set_length, np.int32),
            members,
            count,
        )
    return Itemsets(members[:n_found], count[:n_found], n)


def count_rows_by_itemset(
    has_item: npt.NDArray[np.bool_], members: npt.NDArray[np.int32]
) -> IntArray:
    """Count the rows of another table with each set of items.

    Shapes: ``has_item`` [n, p], ``members`` [k, length]; returns [k].
    """
    has_item = _check_boolean_matrix(has_item)
    count = np.zeros(len(members), np.int64)
    if has_item.shape[0]:
        from isolux.stats._itemset_kernels import count_rows_with_itemsets

        n_last_bits = has_item.shape[0] % 64
        last_word_mask = np.uint64((1 << n_last_bits) - 1) if n_last_bits else ~np.uint64(0)
        count_rows_with_itemsets(
            _pack_boolean_columns(has_item),
            last_word_mask,
            np.ascontiguousarray(members, np.int32),
            count,
        )
    return count


def max_value_of_proper_subsets(
    itemsets: Itemsets, set_values: FloatArray, empty_value: float
) -> FloatArray:
    """Find the highest value among the proper subsets of each set, with the empty set.

    Shapes: ``set_values`` [k]; returns [k].
    """
    best = np.full(len(set_values), empty_value)
    positions, size = _ItemsetPositions(itemsets.members), itemsets.size
    # By rising length: the best value of each subset is then known.
    for length in range(2, int(size.max(initial=0)) + 1):
        set_index = np.flatnonzero(size == length)
        members = itemsets.members[set_index, :length]
        for excluded in range(length):
            subset_index = positions.find_positions(np.delete(members, excluded, axis=1))
            best[set_index] = np.maximum(
                best[set_index], np.maximum(set_values[subset_index], best[subset_index])
            )
    return best


class _ItemsetPositions:
    """Index of each set of items: sets as sorted numbers in base p + 1."""

    def __init__(self, members: npt.NDArray[np.int32]) -> None:
        self._base = int(members.max(initial=-1)) + 2
        self._length = members.shape[1] if members.ndim == 2 else 0
        # A set is a number in base p + 1, which must fit into 64 bits.
        if self._base ** max(self._length, 1) >= 2**63:
            raise SpecError(
                "the sets of items are too many to be told apart",
                expected="fewer items, or shorter sets",
                found=f"{self._base - 1:,} items, sets of up to {self._length}",
            )
        key = self._encode_itemsets(members)
        self._order = np.argsort(key, kind="stable")
        self._sorted = key[self._order]

    def _encode_itemsets(self, members: npt.NDArray[np.int32]) -> IntArray:
        key = np.zeros(len(members), np.int64)
        for d in range(self._length):
            # Plus 1, so that the padding (-1) is digit 0.
            digit = members[:, d].astype(np.int64) + 1 if d < members.shape[1] else 0
            key = key * self._base + digit
        return key

    def find_positions(self, members: npt.NDArray[np.int32]) -> IntArray:
        """Return the indices of sets, all of which must be listed: ``[k]``."""
        key = self._encode_itemsets(members)
        positions = np.minimum(np.searchsorted(self._sorted, key), len(self._sorted) - 1)
        if len(key) and not np.array_equal(self._sorted[positions], key):
            raise InputError(
                "an itemset is listed without its parts",
                expected="every subset of every set, as frequent_itemsets gives them",
            )
        return self._order[positions]


def _check_boolean_matrix(rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    table = np.asarray(rows)
    if table.ndim != 2 or table.dtype != np.bool_:
        raise InputError(
            "the rows are not a table of items",
            expected="true and false, [rows, items]",
            found=f"{table.dtype}, shape {table.shape}",
        )
    return np.ascontiguousarray(table)


def _pack_boolean_columns(rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    from isolux.stats._itemset_kernels import pack_columns_into_bits

    n, p = rows.shape
    bits = np.zeros((p, (n + 63) // 64), np.uint64)
    pack_columns_into_bits(rows, bits)
    return bits
