"""Who is learnt from: rows held out in whole clusters, a part of the rest, balanced draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.vocabulary.errors import SpecError

Ints = npt.NDArray[np.int64]


def held_out_rows(clusters: Ints, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Draw clusters until their rows are the share that is held out.

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
    before = np.cumsum(sizes[order]) - sizes[order]
    wanted = share * len(clusters)
    drawn = order[(before < wanted) & (np.arange(len(names)) < len(names) - 2)]
    return np.asarray(np.isin(clusters, names[drawn]))


def some_rows(rows: Ints, most: int | None, seed: int) -> Ints:
    """Draw so many of the rows, in their order: of one seed, fewer rows are a part of more."""
    if most is None or most >= len(rows):
        return rows
    order = np.random.default_rng([seed, 1]).permutation(len(rows))
    return np.sort(rows[order[:most]])


def draws_of_cell(cells: Ints) -> int:
    """Say how often a balanced epoch draws from each cell: the rows shared out evenly, at least 1.

    Examples
    --------
    >>> draws_of_cell(np.array([0, 0, 0, 0, 0, 1]))
    3
    """
    return max(len(cells) // max(len(np.unique(cells)), 1), 1)


def balanced_draw(cells: Ints, rng: np.random.Generator) -> Ints:
    """Draw rows so that each cell comes as often as any other, in random order.

    Shapes: ``cells`` [n]; returns [m].
    """
    wanted = draws_of_cell(cells)
    found = []
    for cell in np.unique(cells):
        own = np.flatnonzero(cells == cell)
        whole, rest = divmod(wanted, len(own))
        found += [np.tile(own, whole), rng.permutation(own)[:rest]]
    return rng.permutation(np.concatenate(found)).astype(np.int64)
