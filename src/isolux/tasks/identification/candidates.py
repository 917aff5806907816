"""Roles of units (enrolled, searched for), and the candidate lists of each model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.tasks._embeddings.vectors import NO_PREDICTION, ModelEmbeddings, find_nearest
from isolux.tasks._threshold import caution_on_leakage, select_by_value, select_threshold_sample
from isolux.tasks._truth import units_with_identity

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SearchRoles:
    """Units in the order of their ids, with the role of each.

    Parameters
    ----------
    units : polars.DataFrame
        ``unit_id, cluster_id, identity`` (null: unknown).
    is_enrolled, is_searched : [n] bool
        Whose images are in the gallery, and whose are searched for in it.
    is_threshold_sample : [n] bool
        Those on whose searches the threshold is set and who are then not evaluated.
    is_all_to_all : bool
        Every image is searched for among all others, so that both parts are everyone's.
    sample_description : str
        What ``is_threshold_sample`` are called.
    cautions : tuple of Caution
        Of people on both sides of ``is_threshold_sample``.
    """

    units: pl.DataFrame
    is_enrolled: Flags
    is_searched: Flags
    is_threshold_sample: Flags
    is_all_to_all: bool
    sample_description: str = ""
    cautions: tuple[Caution, ...] = ()

    @property
    def person(self) -> npt.NDArray[np.int64]:
        """Number of each unit's person, from 1; 0: unknown."""
        code = self.units["identity"].rank("dense").fill_null(0)
        return code.to_numpy().astype(np.int64)


def read_roles_or_all_to_all(
    dataset: Dataset,
    *,
    enrolled: str | None,
    threshold_on: float | str | None,
    identity: str | None,
    seed: int,
) -> SearchRoles:
    """Read which units are enrolled, searched for, and used to set the threshold."""
    units = units_with_identity(dataset, identity).sort("unit_id")
    n = units.height
    all_units = np.ones(n, dtype=np.bool_)
    # Without a declared gallery each image is searched for among all others.
    is_enrolled, is_searched = all_units, all_units
    if enrolled is not None and n:
        is_enrolled, description = select_by_value(
            enrolled,
            dataset,
            units["unit_id"],
            setting="enrolled",
            expected="ATTRIBUTE=VALUE, such as role=gallery",
        )
        # An enrolled image is not searched for: it would find itself.
        is_searched = ~is_enrolled
        if not is_searched.any():
            raise SpecError(
                "every image is enrolled, and none is searched for",
                expected="some images that are not enrolled, or no --enrolled: each image is then"
                " searched for among all others",
                found=description,
                where="enrolled",
            )
    if threshold_on is None or not n:
        return SearchRoles(
            units, is_enrolled, is_searched, np.zeros(n, dtype=np.bool_), enrolled is None
        )
    searched_units = units.filter(pl.Series(is_searched))
    is_sample, description = select_threshold_sample(threshold_on, dataset, searched_units, seed)
    is_threshold_sample = np.zeros(n, dtype=np.bool_)
    is_threshold_sample[is_searched] = is_sample
    # Only among searches: a person in the gallery and in a search is what identification is about.
    shared = caution_on_leakage(dataset, searched_units, is_sample, description)
    return SearchRoles(
        units,
        is_enrolled,
        is_searched,
        is_threshold_sample,
        enrolled is None,
        description,
        tuple(shared),
    )


FAILED = "no template could be made"
MISSING = NO_PREDICTION


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidate lists of one model.

    Parameters
    ----------
    model : str
    rows : polars.DataFrame
        ``probe, entry`` (row numbers of units), ``order`` (lower comes first; equal: a tie) and
        ``score`` (higher is more similar; null: the list has ranks alone).
    search_failure : polars.Series
        String, ``[n]``: of each unit to be searched for, null where it was, else ``FAILED`` or
        ``MISSING`` (the file says nothing of it).
    enrolment_failure : polars.Series
        The same of each unit to be enrolled; all null where nothing says it (a table of lists).
    length : int
        The most entries that a list holds.
    is_from_embeddings : bool
        Whether lists were made of embeddings, which say of which images there is a template.
    notes : tuple of str
    """

    model: str
    rows: pl.DataFrame
    search_failure: pl.Series
    enrolment_failure: pl.Series
    length: int
    is_from_embeddings: bool = False
    notes: tuple[str, ...] = ()

    @property
    def has_scores(self) -> bool:
        """Whether candidates have scores, and not ranks alone."""
        return bool(self.rows["score"].null_count() == 0)


def search_gallery(embedded: ModelEmbeddings, roles: SearchRoles, length: int) -> Candidates:
    """Search the gallery for each image by the cosine of embeddings."""
    from isolux.tasks._embeddings.search_kernels import inner_products

    # An entry of an unknown person could be anyone's mate, so it is not in the gallery.
    is_known, has_vector = roles.person > 0, embedded.row_index >= 0
    probes = np.flatnonzero(roles.is_searched & is_known & has_vector)
    entries = np.flatnonzero(roles.is_enrolled & is_known & has_vector)
    query_vectors, entry_vectors = (
        _take_vectors(embedded, unit_rows) for unit_rows in (probes, entries)
    )
    length = min(length, max(len(entries), 1))
    neighbours = find_nearest(
        query_vectors, entry_vectors, length, query_key=probes, entry_key=entries
    )
    row, rank_index = np.nonzero(neighbours >= 0)
    entry = neighbours[row, rank_index]
    # In double precision, so that equal vectors tie exactly and ties can be counted.
    score = inner_products(query_vectors, entry_vectors, row, entry) if len(row) else np.zeros(0)
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
        pl.when(reason == MISSING)
        .then(pl.lit(MISSING))
        .when(reason.is_not_null())
        .then(pl.lit(FAILED))
    ).to_series()
    # The same embeddings serve searches and gallery, so both have the same failures.
    return Candidates(embedded.model, rows, state, state, length, is_from_embeddings=True)


def _take_vectors(
    embedded: ModelEmbeddings, unit_rows: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(embedded.vectors[embedded.row_index[unit_rows]])
