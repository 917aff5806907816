"""Splits and draws of training rows: held-out clusters, subsamples, balanced draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError

Ints = npt.NDArray[np.int64]


def draw_held_out_mask_by_cluster(
    clusters: Ints, held_out_share: float, seed: int
) -> npt.NDArray[np.bool_]:
    """Draw whole clusters until the held-out share of rows is reached; return the mask.

    Shapes: ``clusters`` [n]; returns [n].
    """
    names, sizes = np.unique(clusters, return_counts=True)
    if len(names) < 4:
        raise SpecError(
            "there are too few clusters to hold some out",
            expected="4 clusters or more (--cluster names what was sampled together)",
            found=str(len(names)),
        )
    order = np.random.default_rng([seed, 0]).permutation(len(names))
    n_rows_before = np.cumsum(sizes[order]) - sizes[order]
    n_held_out = held_out_share * len(clusters)
    held_out_clusters = order[
        (n_rows_before < n_held_out) & (np.arange(len(names)) < len(names) - 2)
    ]
    return np.asarray(np.isin(clusters, names[held_out_clusters]))


def sample_rows_at_most(rows: Ints, max_rows: int | None, seed: int) -> Ints:
    """Sample at most so many rows, in order; of one seed, smaller samples are nested."""
    if max_rows is None or max_rows >= len(rows):
        return rows
    order = np.random.default_rng([seed, 1]).permutation(len(rows))
    return np.sort(rows[order[:max_rows]])


def count_draws_per_cell(cell_by_row: Ints) -> int:
    """Return the draws per cell of a balanced epoch: rows over cells, at least 1.

    Examples
    --------
    >>> count_draws_per_cell(np.array([0, 0, 0, 0, 0, 1]))
    3
    """
    return max(len(cell_by_row) // max(len(np.unique(cell_by_row)), 1), 1)


def draw_rows_balanced_by_cell(cell_by_row: Ints, rng: np.random.Generator) -> Ints:
    """Draw equally many rows of each cell, in random order.

    Shapes: ``cell_by_row`` [n]; returns [m].
    """
    n_draws = count_draws_per_cell(cell_by_row)
    draws = []
    for cell in np.unique(cell_by_row):
        cell_rows = np.flatnonzero(cell_by_row == cell)
        n_repeats, n_extra = divmod(n_draws, len(cell_rows))
        draws += [np.tile(cell_rows, n_repeats), rng.permutation(cell_rows)[:n_extra]]
    return rng.permutation(np.concatenate(draws)).astype(np.int64)
