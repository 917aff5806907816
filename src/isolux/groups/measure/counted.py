"""Units that stand for many cases each: a table of counts, measured without laying it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.stats.design import Design, IntArray
from isolux.vocabulary.counts import COUNTS


def counted(
    design: Design, evidence: Mapping[str, pl.DataFrame], unit_ids: pl.Series, cluster_of: IntArray
) -> Design:
    """Return the design in which each unit, a cluster of its own, is as many copies as it counts.

    Shapes: ``cluster_of`` [n_units].
    """
    if COUNTS not in evidence:
        return design
    times = evidence[COUNTS].select("unit_id", "times").unique("unit_id")
    held = pl.DataFrame({"unit_id": unit_ids.cast(pl.String)}).join(
        times, on="unit_id", how="left", maintain_order="left"
    )
    of_cluster = np.zeros(len(design.distinct_of), dtype=np.int64)
    of_cluster[cluster_of] = held["times"].fill_null(1).to_numpy()
    copies = np.zeros(len(design.copies), dtype=np.int64)
    np.add.at(copies, design.distinct_of, of_cluster)
    return replace(design, copies=copies)
