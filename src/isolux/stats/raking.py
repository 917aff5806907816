"""Calibration of weights to population margins, and its effect on the variance.

With one margin, the weights of each cell are scaled to its known share (post-stratification); with
several margins, whose joint distribution is unknown, this is repeated margin by margin until all
agree (raking, iterative proportional fitting).

Calibrated weights depend on the sample. To first order an estimate varies as the sums of the
residuals of a weighted regression of its rows on the margins' cells: the residuals of cluster c are
``T_c - B M_c`` with M its weight by cell (Deville and Särndal 1992).

References
----------
.. [1] Deming, W. E. and Stephan, F. F. (1940). On a least squares adjustment of a sampled frequency
   table when the expected marginal totals are known. Annals of Mathematical Statistics 11, 427-444.
.. [2] Deville, J.-C. and Särndal, C.-E. (1992). Calibration estimators in survey sampling. Journal
   of the American Statistical Association 87(418), 376-382.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.sparse_rows import dense_to_csr, take_matrix_rows
from isolux.stats.statistic import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MAX_ROUNDS = 1000
_SHARE_TOLERANCE = 1e-10
"""Largest difference from the known shares at convergence."""
_REPLICATE_ROUNDS = 10  # replicates start near the margins: a few rounds converge


@dataclass(frozen=True, slots=True)
class Margins:
    """Population margins: the tables of cells that weights are calibrated to.

    Parameters
    ----------
    codes : tuple of [n] int
        The cell of every unit in each table, from 0.
    sizes : tuple of int
        Number of cells of each table.
    base_weight : [n] float, optional
        Weights before calibration, used in the regression of rows on cells.
    """

    codes: tuple[IntArray, ...]
    sizes: tuple[int, ...]
    base_weight: FloatArray | None = None

    @property
    def starts(self) -> tuple[int, ...]:
        """Number of the first cell of each table, in one numbering of all cells."""
        return tuple(int(x) for x in np.concatenate([[0], np.cumsum(self.sizes)[:-1]]))

    @property
    def n_cells(self) -> int:
        """Number of cells of all tables."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The regression of cluster sums on the cells of the margins.

    Parameters
    ----------
    margins : Margins
    sums_by_cell : csr_array, [n_rows, cells]
        Every cluster sum's row by cell, with base weights.
    inverse : [cells, cells] float
        Pseudo-inverse of the cells' cross products with base weights: singular, as every table has
        the same total.
    weight_by_cell : [cells, c] float
        Every cluster's weight by cell.
    cluster_index : [n] int
        Every unit's cluster.
    """

    margins: Margins
    sums_by_cell: csr_array
    inverse: FloatArray
    weight_by_cell: FloatArray
    cluster_index: IntArray

    def residuals(self, rows: csr_array, row_index: IntArray) -> csr_array:
        """Return the residuals of rows of cluster sums after regression on cells."""
        explained = (
            take_matrix_rows(self.sums_by_cell, row_index) @ self.inverse
        ) @ self.weight_by_cell
        return dense_to_csr(rows.toarray() - explained)


def fit_calibration_regression(
    margins: Margins,
    weight: FloatArray,
    cluster_index: IntArray,
    coordinate_sums: tuple[FloatArray, IntArray, IntArray, int],
) -> Calibration:
    """Fit the regression of sums on the margins' cells.

    Shapes: ``weight`` [n], ``cluster_index`` [n], ``coordinate_sums`` [m].
    """
    from scipy.sparse import coo_array, csr_array

    def sum_weights_by_cell_and_index(
        table: int, index: IntArray, size: int, weight: FloatArray
    ) -> FloatArray:
        """Sum weights by the cells of a table and another index: ``[cells, size]``."""
        n_rows = margins.sizes[table]
        sums = np.bincount(
            margins.codes[table] * size + index, weights=weight, minlength=n_rows * size
        )
        return sums.astype(np.float64).reshape(n_rows, size)

    tables, n_clusters = range(len(margins.codes)), int(cluster_index.max(initial=-1)) + 1
    base_weight = weight if margins.base_weight is None else margins.base_weight
    weight_by_cell = np.concatenate(
        [sum_weights_by_cell_and_index(t, cluster_index, n_clusters, weight) for t in tables]
    )
    # Cross products of cell indicators for all pairs of tables.
    cell_products = np.block(
        [
            [
                sum_weights_by_cell_and_index(t, margins.codes[u], margins.sizes[u], base_weight)
                for u in tables
            ]
            for t in tables
        ]
    )
    values, sum_index, unit_index, n_rows = coordinate_sums
    # The values have calibrated weights; the regression has base weights.
    values = values * (base_weight / weight)[unit_index]
    cells = [
        code[unit_index] + start for code, start in zip(margins.codes, margins.starts, strict=True)
    ]
    coordinates = np.tile(sum_index, len(cells)), np.concatenate(cells)
    sums_by_cell = coo_array(
        (np.tile(values, len(cells)), coordinates), shape=(n_rows, margins.n_cells)
    )
    inverse = np.asarray(np.linalg.pinv(cell_products, hermitian=True), dtype=np.float64)
    return Calibration(margins, csr_array(sums_by_cell), inverse, weight_by_cell, cluster_index)


def rake_weights_to_shares(
    weight: FloatArray, margins: Margins, shares: Sequence[FloatArray]
) -> tuple[FloatArray, float]:
    """Scale weights until every table's cells have their shares.

    Shapes: ``weight`` [n], ``shares`` [k]; returns ``weight`` [n].
    """
    total = float(weight.sum())
    shares_of_total, max_difference = weight / total, np.inf
    for _ in range(_MAX_ROUNDS):
        for code, size, share in zip(margins.codes, margins.sizes, shares, strict=True):
            cell_shares = np.bincount(code, weights=shares_of_total, minlength=size)
            # Iterative proportional fitting: scale each cell to its share.
            factor = np.divide(share, cell_shares, out=np.zeros(size), where=cell_shares > 0)
            shares_of_total = shares_of_total * factor[code]
        max_difference = max(
            float(np.abs(np.bincount(code, weights=shares_of_total, minlength=size) - share).max())
            for code, size, share in zip(margins.codes, margins.sizes, shares, strict=True)
        )
        # With one table, one round is exact (post-stratification).
        if max_difference < _SHARE_TOLERANCE or len(margins.codes) == 1:
            break
    return shares_of_total * total, max_difference


def rake_replicates_to_totals(
    weights: FloatArray, margins: Margins, totals: Sequence[FloatArray]
) -> FloatArray:
    """Rake replicate weights ``[n, r]`` to the tables' totals; empty cells stay empty.

    Examples
    --------
    >>> margins = Margins((np.array([0, 0, 1]),), (2,))
    >>> drawn = np.array([[2.0], [0.0], [3.0]])
    >>> rake_replicates_to_totals(drawn, margins, [np.array([1.0, 1.0])]).ravel().tolist()
    [1.0, 0.0, 1.0]
    """
    raked = weights
    rounds = 1 if len(margins.codes) == 1 else _REPLICATE_ROUNDS
    for _ in range(rounds):
        for code, size, total in zip(margins.codes, margins.sizes, totals, strict=True):
            cell_totals = np.zeros((size, raked.shape[1]))
            np.add.at(cell_totals, code, raked)
            factor = np.divide(
                total[:, None], cell_totals, out=np.ones_like(cell_totals), where=cell_totals > 0
            )
            raked = raked * factor[code]
    return raked
