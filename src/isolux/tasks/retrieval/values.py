"""What queries and database entries share, what bars a comparison, and entries equally near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

Bits = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Exclude = Literal["self", "image", "cluster", "nothing"]
EXCLUDED = {"self": "instance_id", "image": "image_id", "cluster": "cluster_id", "nothing": ""}
"""The column that a query and an entry must not share."""


def value_bits(queries: pl.DataFrame, entries: pl.DataFrame) -> tuple[Bits, Bits]:
    """Set one bit for each value that is true of a unit: ``[n, words]``, for queries and entries.

    Raises
    ------
    SpecError
        When queries and entries have no value in common.
    """
    both = [side["truth"].explode().drop_nulls().unique().sort() for side in (queries, entries)]
    every = pl.concat(both).unique().sort()
    shared = both[0].is_in(both[1].implode()).any()
    if len(both[0]) and len(both[1]) and not shared:
        raise SpecError(
            "queries and database have no value of the target in common",
            expected="values such as " + ", ".join(map(repr, both[0][:3])),
            found=", ".join(map(repr, both[1][:3])),
            where="target",
        )
    number = {value: i for i, value in enumerate(every)}
    words = len(every) // 64 + 1
    out = []
    for side in (queries, entries):
        bits = np.zeros((side.height, words), dtype=np.uint64)
        rows = side.select("truth").with_row_index("row").explode("truth").drop_nulls()
        code = rows["truth"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
        code = code.astype(np.int64)  # no rows come as floats
        at = rows["row"].to_numpy().astype(np.int64)
        np.bitwise_or.at(bits, (at, code // 64), np.uint64(1) << (code % 64).astype(np.uint64))
        out.append(bits)
    return out[0], out[1]


def exclusion_keys(
    queries: pl.DataFrame, entries: pl.DataFrame, exclude: Exclude
) -> tuple[Ints, Ints]:
    """Give a number to what a query and an entry must not share; −1 and −2: nothing is."""
    if exclude == "nothing":
        return np.full(queries.height, -1), np.full(entries.height, -2)
    column = EXCLUDED[exclude]
    # A unit of unknown cluster is a cluster of its own.
    named = [
        side.select(
            pl.coalesce(pl.format("of\x1f{}", column), pl.format("own\x1f{}", "instance_id"))
        ).to_series()
        for side in (queries, entries)
    ]
    code = pl.concat(named).rank("dense").cast(pl.Int64).to_numpy()
    return code[: queries.height], code[queries.height :]


def share_value(queries: Bits, entries: Bits, found: Ints) -> npt.NDArray[np.bool_]:
    """Tell which of the entries ``found [q, k]`` share a value with their query; −1: none."""
    alike = np.zeros(found.shape, dtype=np.bool_)
    for word in range(queries.shape[1] if len(entries) else 0):
        alike |= (queries[:, word][:, None] & entries[:, word][found]) != 0
    return alike & (found >= 0)


LACKING = "no entry to compare with has its value"
"""The reason of a query that could find nothing: 0 would be the database's fault."""
_SHOWN = 4


def entries_alike(queries: Bits, entries: Bits, query_key: Ints, entry_key: Ints) -> Ints:
    """Count, for each query, the entries that share a value and that it is compared with.

    Shapes: ``query_key, entry_key`` [q].

    Examples
    --------
    >>> one = np.array([[1], [2], [3]], dtype=np.uint64)
    >>> entries_alike(one, one, np.arange(3), np.arange(3)).tolist()
    [1, 1, 2]
    """
    kinds, kind = np.unique(queries, axis=0, return_inverse=True)
    held, of_entry, times = np.unique(entries, axis=0, return_inverse=True, return_counts=True)
    both = kinds[:, None, :] & held[None, :, :]
    alike = np.asarray((both != 0).any(axis=2))  # [kinds of query, kinds of entry]
    kind, of_entry = kind.ravel(), of_entry.ravel()
    counts = (alike @ times)[kind]
    asked = pl.DataFrame({"key": query_key, "kind": kind}).with_row_index("query")
    barred = asked.join(pl.DataFrame({"key": entry_key, "held": of_entry}), on="key")
    same = alike[barred["kind"].to_numpy(), barred["held"].to_numpy()]
    fewer = np.bincount(barred["query"].to_numpy()[same], minlength=len(queries))
    return np.asarray(counts - fewer, dtype=np.int64)


def on_rare_values(truth: pl.Series, alike: Ints, ks: Sequence[int], model: str) -> list[Caution]:
    """Caution where the database holds nobody of a query's value, or fewer than k entries.

    Shapes: ``alike`` [q].
    """
    notes = []
    every = pl.DataFrame({"truth": truth.list.join(", "), "n": alike})
    none, held = every.filter(pl.col("n") == 0), every.filter(pl.col("n") > 0)
    if none.height:
        values = none["truth"].value_counts(sort=True, name="n").sort("n", "truth", descending=True)
        told = ", ".join(f"{value!r} {n:,}" for value, n in values.head(_SHOWN).rows())
        notes.append(
            Caution(
                f"For {none.height:,} of {every.height:,} queries of {model!r} the database holds"
                f" nobody of their value ({told}): they are not scored, as nothing could be found."
            )
        )
    for k in ks:
        few = held.filter(pl.col("n") < k)
        if not few.height:
            continue
        values = few.group_by("truth").agg(pl.col("n").max()).sort("n", "truth").head(_SHOWN)
        told = ", ".join(f"{value!r} {n:,}" for value, n in values.rows())
        notes.append(
            Caution(
                f"For {few.height:,} of {held.height:,} queries of {model!r} the database holds"
                f" fewer than {k} entries of their value ({told}): their precision at {k} is below"
                " 1 however good the model is. Compare groups at a smaller K (--top-k)."
            )
        )
    return notes


_MANY, _LEAST = 0.1, 10
"""Share and number of queries from which ties are told: two copies of a photo are no news."""
_SAME = 1e-9
"""Cosines that differ by less are one: vectors that are the same, in another order of sums."""


def nearness(queries: FloatArray, entries: FloatArray, found: IntArray) -> FloatArray:
    """Give the cosine of each query and each entry that it found; NaN: none was found.

    Shapes: ``queries`` [q, d], ``entries`` [e, d], ``found`` [q, k].

    Examples
    --------
    >>> nearness(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[0, 1, -1]]))
    array([[ 1.,  0., nan]])
    """
    level = np.full(found.shape, np.nan)
    for j in range(found.shape[1]):  # a column at a time: [q, k, d] would not fit into memory
        there = np.flatnonzero(found[:, j] >= 0)
        one, two = (np.asarray(x, np.float64) for x in (queries[there], entries[found[there, j]]))
        sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        level[there, j] = np.einsum("qd,qd->q", one, two) / np.where(sizes > 0, sizes, 1.0)
    return level


def mostly_tied(level: FloatArray, k: int) -> npt.NDArray[np.bool_]:
    """Tell of which queries more than half of the first k places are shared with others after k.

    Examples
    --------
    Two of the first three are as near as the fourth; one of three is.

    >>> mostly_tied(np.array([[0.9, 0.5, 0.5, 0.5], [0.9, 0.8, 0.5, 0.5]]), 3).tolist()
    [True, False]
    """
    if level.shape[1] <= k:
        return np.zeros(len(level), dtype=bool)
    last = level[:, k - 1 : k]
    with np.errstate(invalid="ignore"):
        beyond = np.abs(level[:, k : k + 1] - last) <= _SAME
        inside = (np.abs(level[:, :k] - last) <= _SAME).sum(axis=1)
    return np.asarray(beyond[:, 0] & (2 * inside > k))


def on_ties(tied: npt.NDArray[np.bool_], k: int, model: str) -> list[Caution]:
    """Caution where the order of the file chose for many queries."""
    n = int(tied.sum())
    if n < max(_LEAST, _MANY * len(tied)):
        return []
    return [
        Caution(
            f"For {n:,} of {len(tied):,} queries of {model!r} most of the first {k} are no nearer"
            " than others that come after: the order of the file chose them, and a difference"
            " between groups may be its own. Are embeddings rounded, or the same for many?"
        )
    ]
