"""What the audit's own tests said of the gaps that the analysis ``confounders`` asks about.

One report shall have one p-value of one gap. So where the audit has tested a gap, whether there is
anything to explain is that test's to say, adjusted for the audit's whole family; the analysis's own
family is for what it adds (proxies, and gaps at an equal mix). A gap is the audit's where metric,
class, threshold, attribute and groups are its own and its value too: average precision that is read
otherwise here is another number, and is tested here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Run

__all__ = ["Audited", "audited", "audited_gaps"]

_KEY = ("model", "metric", "label", "threshold", "attribute")
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class Audited:
    """The audit's word on every pair of groups.

    Parameters
    ----------
    p : [p] float
        Adjusted for the audit's family; NaN where the audit has no such test.
    worst : [p] float
        Value of the worse group of each pair, turned so that lower is worse.
    gap : [p] float
        Size of the gap.
    """

    p: FloatArray
    worst: FloatArray
    gap: FloatArray

    @property
    def known(self) -> bool:
        """Whether the audit tested any of these gaps."""
        return bool(np.isfinite(self.p).any())

    @property
    def smallest(self) -> float | None:
        """The smallest p; None where the audit tested none."""
        return float(np.nanmin(self.p)) if self.known else None

    def leading(self, alpha: float) -> int:
        """Choose the pair that also speaks in ``group_gaps``: the worst group's, if any differs."""
        differs = np.isfinite(self.p) & (self.p <= alpha)
        keys = [np.where(differs, -self.worst, 0.0), differs, np.isfinite(self.p)]
        return int(np.lexsort((-np.arange(len(self.p)), self.gap, *keys))[-1])


def audited_gaps(run: Run) -> pl.DataFrame:
    """Take the tests of two groups' differences from a run's ``disparities``."""
    rows = run.disparities
    if "model" not in rows.columns:
        return pl.DataFrame()
    rows = rows.filter(pl.col("kind") == "difference").drop_nulls(["value", "p_adjusted"])
    return rows.select(*_KEY, "group_a", "group_b", "value", "p_adjusted")


def audited(
    tests: pl.DataFrame | None,
    row: Mapping[str, Any],
    attribute: str,
    groups: Sequence[str],
    pairs: IntArray,
    gap: FloatArray,
    worst: FloatArray,
) -> Audited:
    """Find the audit's tests of one metric's gaps between the judged groups.

    Shapes: ``pairs`` [p, 2], ``gap`` [p], ``worst`` [p].
    """
    p = np.full(len(pairs), np.nan)
    named = {**row, "attribute": attribute}
    if tests is not None and not tests.is_empty():
        tests = tests.filter(*(pl.col(name).eq_missing(pl.lit(named[name])) for name in _KEY))
        place = {(groups[a], groups[b]): i for i, (a, b) in enumerate(pairs.tolist())}
        columns = ("group_a", "group_b", "value", "p_adjusted")
        for a, b, value, own in tests.select(columns).iter_rows():
            i, sign = place.get((a, b)), 1.0
            if i is None:
                i, sign = place.get((b, a)), -1.0
            if i is not None and abs(sign * value - gap[i]) < _SAME:
                p[i] = own
    return Audited(p, worst, np.abs(gap))
