"""Sampling of whole clusters within quotas: the compiled loop, imported only where it runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Ints = npt.NDArray[np.int64]


@njit()
def select_whole_clusters_within_quotas(
    order: _Ints, starts: _Ints, cells: _Ints, remaining_quotas: _Ints
) -> npt.NDArray[np.bool_]:
    """Select clusters in order, each completely and only if all of its rows fit the quotas."""
    is_taken = np.zeros(len(starts) - 1, dtype=np.bool_)
    for k in order:
        fits = True
        for row in range(starts[k], starts[k + 1]):
            # Rows of one cluster may share a quota, so each is taken before the next is checked.
            remaining_quotas[cells[row]] -= 1
            fits = fits and remaining_quotas[cells[row]] >= 0
        is_taken[k] = fits
        if not fits:
            for row in range(starts[k], starts[k + 1]):
                remaining_quotas[cells[row]] += 1
    return is_taken
