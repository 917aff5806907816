"""Attribute values of queries and entries, excluded comparisons, and ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray

Bits = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Exclude = Literal["self", "image", "cluster", "nothing"]
EXCLUDED = {"self": "instance_id", "image": "image_id", "cluster": "cluster_id", "nothing": ""}
"""The column that a query and an entry must not share."""


def value_bits(queries: pl.DataFrame, entries: pl.DataFrame) -> tuple[Bits, Bits]:
    """Encode the values of queries and entries as bits: ``[n, words]`` each.

    Raises
    ------
    SpecError
        When queries and entries have no value in common.
    """
    value_sets = [
        units["truth"].explode().drop_nulls().unique().sort() for units in (queries, entries)
    ]
    all_values = pl.concat(value_sets).unique().sort()
    shared = value_sets[0].is_in(value_sets[1].implode()).any()
    # "F" and "female" never match: every precision would be 0, for all groups.
    if len(value_sets[0]) and len(value_sets[1]) and not shared:
        raise SpecError(
            "queries and database have no value of the target in common",
            expected="values such as " + ", ".join(map(repr, value_sets[0][:3])),
            found=", ".join(map(repr, value_sets[1][:3])),
            where="target",
        )
    bit_by_value = {attribute_value: i for i, attribute_value in enumerate(all_values)}
    # One bit a value, in words of 64: units may have several values, and a shared one is a bitwise
    # and.
    n_words = len(all_values) // 64 + 1
    bit_matrices = []
    for units in (queries, entries):
        bits = np.zeros((units.height, n_words), dtype=np.uint64)
        rows = units.select("truth").with_row_index("row").explode("truth").drop_nulls()
        code = rows["truth"].replace_strict(bit_by_value, return_dtype=pl.Int64).to_numpy()
        code = code.astype(np.int64)  # without rows polars returns floats
        unit_rows = rows["row"].to_numpy().astype(np.int64)
        np.bitwise_or.at(
            bits, (unit_rows, code // 64), np.uint64(1) << (code % 64).astype(np.uint64)
        )
        bit_matrices.append(bits)
    return bit_matrices[0], bit_matrices[1]


def exclusion_keys(
    queries: pl.DataFrame, entries: pl.DataFrame, exclude: Exclude
) -> tuple[Ints, Ints]:
    """Encode what a query and an entry must not share; −1 and −2: nothing is excluded."""
    if exclude == "nothing":
        # Different numbers, so that no query shares a key with an entry.
        return np.full(queries.height, -1), np.full(entries.height, -2)
    column = EXCLUDED[exclude]
    # A unit of unknown cluster is a cluster of its own.
    key_labels = [
        units.select(
            # The prefixes and the separator keep a cluster's name from meeting an instance's id.
            pl.coalesce(pl.format("of\x1f{}", column), pl.format("own\x1f{}", "instance_id"))
        ).to_series()
        for units in (queries, entries)
    ]
    code = pl.concat(key_labels).rank("dense").cast(pl.Int64).to_numpy()
    return code[: queries.height], code[queries.height :]


def flag_shared_values(queries: Bits, entries: Bits, neighbours: Ints) -> npt.NDArray[np.bool_]:
    """Flag the neighbours ``[q, k]`` that share a value with their query; −1: no entry."""
    is_shared = np.zeros(neighbours.shape, dtype=np.bool_)
    for word in range(queries.shape[1] if len(entries) else 0):
        is_shared |= (queries[:, word][:, None] & entries[:, word][neighbours]) != 0
    # Index -1 reads the last entry, so a missing neighbour is masked afterwards.
    return is_shared & (neighbours >= 0)


NO_MATCHING_ENTRY = "no entry to compare with has its value"
"""The reason of a query without any matching entry: a 0 would say nothing of the model."""
_MAX_LISTED = 4


def count_matching_entries(queries: Bits, entries: Bits, query_key: Ints, entry_key: Ints) -> Ints:
    """Count, for each query, the entries that share a value and are not excluded.

    Shapes: ``query_key, entry_key`` [q].

    Examples
    --------
    >>> one = np.array([[1], [2], [3]], dtype=np.uint64)
    >>> count_matching_entries(one, one, np.arange(3), np.arange(3)).tolist()
    [1, 1, 2]
    """
    # Distinct patterns of values are few: patterns are compared, and units counted by pattern.
    query_patterns, pattern_index = np.unique(queries, axis=0, return_inverse=True)
    entry_patterns, of_entry, pattern_counts = np.unique(
        entries, axis=0, return_inverse=True, return_counts=True
    )
    shared_bits = query_patterns[:, None, :] & entry_patterns[None, :, :]
    is_match = np.asarray((shared_bits != 0).any(axis=2))  # [query patterns, entry patterns]
    pattern_index, of_entry = pattern_index.ravel(), of_entry.ravel()
    counts = (is_match @ pattern_counts)[pattern_index]
    query_table = pl.DataFrame({"key": query_key, "kind": pattern_index}).with_row_index("query")
    # Matches that the exclusion key forbids are subtracted.
    excluded_pairs = query_table.join(pl.DataFrame({"key": entry_key, "held": of_entry}), on="key")
    is_excluded_match = is_match[
        excluded_pairs["kind"].to_numpy(), excluded_pairs["held"].to_numpy()
    ]
    n_excluded = np.bincount(
        excluded_pairs["query"].to_numpy()[is_excluded_match], minlength=len(queries)
    )
    return np.asarray(counts - n_excluded, dtype=np.int64)


def caution_on_rare_values(
    truth: pl.Series, n_matching: Ints, ks: Sequence[int], model: str
) -> list[Caution]:
    """Caution where the database has no entry of a query's value, or fewer than k.

    Shapes: ``n_matching`` [q].
    """
    notes = []
    query_counts = pl.DataFrame({"truth": truth.list.join(", "), "n": n_matching})
    without_entries = query_counts.filter(n=0)
    with_entries = query_counts.filter(pl.col("n") > 0)
    if without_entries.height:
        values = (
            without_entries["truth"]
            .value_counts(sort=True, name="n")
            .sort("n", "truth", descending=True)
        )
        value_list = ", ".join(
            f"{attribute_value!r} {n:,}" for attribute_value, n in values.head(_MAX_LISTED).rows()
        )
        notes.append(
            Caution(
                f"For {without_entries.height:,} of {query_counts.height:,} queries of {model!r}"
                f" the database holds nobody of their value ({value_list}): they are not scored, as"
                " nothing could be found."
            )
        )
    # With fewer than k entries of its value a query cannot reach a precision of 1.
    for k in ks:
        with_few_entries = with_entries.filter(pl.col("n") < k)
        if not with_few_entries.height:
            continue
        values = (
            with_few_entries.group_by("truth")
            .agg(pl.col("n").max())
            .sort("n", "truth")
            .head(_MAX_LISTED)
        )
        value_list = ", ".join(f"{attribute_value!r} {n:,}" for attribute_value, n in values.rows())
        notes.append(
            Caution(
                f"For {with_few_entries.height:,} of {with_entries.height:,} queries of {model!r}"
                f" the database holds fewer than {k} entries of their value ({value_list}): their"
                f" precision at {k} is below 1 however good the model is. Compare groups at a"
                " smaller K (--top-k)."
            )
        )
    return notes


_CAUTION_SHARE, _MIN_CAUTION_QUERIES = 0.1, 10
"""Share and number of queries from which ties are reported: a few copied photos are normal."""
_COSINE_TOLERANCE = 1e-9
"""Cosines that differ by less are equal: identical vectors summed in another order."""


def neighbour_cosines(queries: FloatArray, entries: FloatArray, neighbours: IntArray) -> FloatArray:
    """Compute the cosine of each query and its neighbours; NaN: no neighbour.

    Shapes: ``queries`` [q, d], ``entries`` [e, d], ``neighbours`` [q, k].

    Examples
    --------
    >>> neighbour_cosines(
    ...     np.array([[2.0, 0.0]]),
    ...     np.array([[1.0, 0.0], [0.0, 3.0]]),
    ...     np.array([[0, 1, -1]]),
    ... )
    array([[ 1.,  0., nan]])
    """
    cosines = np.full(neighbours.shape, np.nan)
    for j in range(neighbours.shape[1]):  # a column at a time: [q, k, d] would not fit into memory
        rows = np.flatnonzero(neighbours[:, j] >= 0)
        query_vectors, entry_vectors = (
            np.asarray(x, np.float64) for x in (queries[rows], entries[neighbours[rows, j]])
        )
        sizes = np.linalg.norm(query_vectors, axis=1) * np.linalg.norm(entry_vectors, axis=1)
        cosines[rows, j] = np.einsum("qd,qd->q", query_vectors, entry_vectors) / np.where(
            sizes > 0, sizes, 1.0
        )
    return cosines


def is_mostly_tied(cosines: FloatArray, k: int) -> npt.NDArray[np.bool_]:
    """Flag the queries of which ties across rank k hold more than half of the first k places.

    Examples
    --------
    Two of the first three are as near as the fourth; one of three is.

    >>> is_mostly_tied(np.array([[0.9, 0.5, 0.5, 0.5], [0.9, 0.8, 0.5, 0.5]]), 3).tolist()
    [True, False]
    """
    if cosines.shape[1] <= k:
        return np.zeros(len(cosines), dtype=bool)
    kth_cosine = cosines[:, k - 1 : k]
    with np.errstate(invalid="ignore"):
        # Only a tie across rank k matters: inside the first k the order changes nothing.
        is_tie_beyond = np.abs(cosines[:, k : k + 1] - kth_cosine) <= _COSINE_TOLERANCE
        n_tied = (np.abs(cosines[:, :k] - kth_cosine) <= _COSINE_TOLERANCE).sum(axis=1)
    return np.asarray(is_tie_beyond[:, 0] & (2 * n_tied > k))


def caution_on_ties(is_tied: npt.NDArray[np.bool_], k: int, model: str) -> list[Caution]:
    """Caution where the order of the file decided the neighbours of many queries."""
    n = int(is_tied.sum())
    if n < max(_MIN_CAUTION_QUERIES, _CAUTION_SHARE * len(is_tied)):
        return []
    return [
        Caution(
            f"For {n:,} of {len(is_tied):,} queries of {model!r} most of the first {k} are no"
            " nearer"
            " than others that come after: the order of the file chose them, and a difference"
            " between groups may be its own. Are embeddings rounded, or the same for many?"
        )
    ]
