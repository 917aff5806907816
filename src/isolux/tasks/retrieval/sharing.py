"""How many entries of a database share a query's value: what its precision could be at most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.tasks.retrieval.values import Bits, Ints
from isolux.vocabulary.notes import Caution

__all__ = ["LACKING", "entries_alike", "on_rare_values"]

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
