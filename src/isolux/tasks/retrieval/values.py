"""What queries and database entries share: values of an attribute, and what bars a comparison.

Several values of one unit are a set of bits, so "any value in common" is one operation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.errors import SpecError

__all__ = ["EXCLUDED", "Bits", "Exclude", "Ints", "exclusion_keys", "share_value", "value_bits"]

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
            where="database_target",
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
