"""Candidate lists: whom each search found, how alike, in which order.

They come from a table, as a search engine returned them, or from embeddings: the entries of the
gallery by falling cosine, exactly. Vectors are of unit length, so Euclid's distance gives the same
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.tasks._embeddings.search import nearest
from isolux.tasks._embeddings.vectors import NO_PREDICTION, Embedded
from isolux.tasks.identification.roles import Roles

__all__ = ["FAILED", "MISSING", "Candidates", "searched_by"]

FAILED = "no template could be made"
MISSING = NO_PREDICTION


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidate lists of one model.

    Parameters
    ----------
    model : str
    rows : polars.DataFrame
        ``probe, entry`` (places of units), ``order`` (lower comes first; equal: a tie) and
        ``score`` (higher is more alike; null: the list has ranks alone).
    state : polars.Series
        String, ``[n]``: of each unit to be searched for, null where it was, else ``FAILED`` or
        ``MISSING`` (the file says nothing of it).
    held : polars.Series
        The same of each unit to be enrolled; all null where nothing says it (a table of lists).
    length : int
        The most entries that a list holds.
    of_embeddings : bool
        Whether lists were made of embeddings, which say of which images there is a template.
    notes : tuple of str
    """

    model: str
    rows: pl.DataFrame
    state: pl.Series
    held: pl.Series
    length: int
    of_embeddings: bool = False
    notes: tuple[str, ...] = ()

    @property
    def scored(self) -> bool:
        """Whether lists say how alike candidates are, and not their order alone."""
        return bool(self.rows["score"].null_count() == 0)


def searched_by(embedded: Embedded, roles: Roles, length: int) -> Candidates:
    """Search the gallery for each image."""
    from isolux.tasks._embeddings.kernels import inner

    known, held = roles.person > 0, embedded.row >= 0
    probes = np.flatnonzero(roles.searched & known & held)
    entries = np.flatnonzero(roles.enrolled & known & held)
    asked, gallery = (_rows(embedded, places) for places in (probes, entries))
    length = min(length, max(len(entries), 1))
    found = nearest(asked, gallery, length, query_key=probes, entry_key=entries)
    row, place = np.nonzero(found >= 0)
    entry = found[row, place]
    score = inner(asked, gallery, row, entry) if len(row) else np.zeros(0)
    rows = pl.DataFrame(
        {
            "probe": probes[row].astype(np.uint32),
            "entry": entries[entry].astype(np.uint32),
            "order": -score,
            "score": score,
        }
    )
    reason = embedded.reason
    state = pl.select(
        pl.when(reason == MISSING).then(pl.lit(MISSING)).when(reason.is_not_null())
        .then(pl.lit(FAILED))
    ).to_series()  # fmt: skip
    return Candidates(embedded.model, rows, state, state, length, of_embeddings=True)


def _rows(embedded: Embedded, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(embedded.vectors[embedded.row[places]])
