"""One order of runs, however they are given: so that B against A mirrors A against B.

Random draws go to the distinct columns of a design, and their order follows the order in which
models were laid out. Laid out by what they hold, two runs get the same draws in either order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from isolux.vocabulary.containers import Run, Scores

_SORTED = ["metric", "label", "threshold", "unit_id"]


def in_one_order(runs: Sequence[Run]) -> list[int]:
    """Give the places of runs in an order that only what they hold decides."""
    sums = [float(run.scores["value"].sum()) for run in runs]
    if len(set(sums)) == len(runs):
        return sorted(range(len(runs)), key=sums.__getitem__)
    marks = [_mark(run) for run in runs]
    return sorted(range(len(runs)), key=lambda k: (sums[k], marks[k]))


def laid_out(scores: Scores, models: Sequence[str]) -> Scores:
    """Return the scores with their models in this order; rows of one model keep theirs."""

    def ordered(table: pl.DataFrame) -> pl.DataFrame:
        if "model" not in table.columns:
            return table
        parts = [table.filter(pl.col("model") == name) for name in models]
        return pl.concat(parts) if sum(part.height for part in parts) == table.height else table

    evidence = {name: ordered(table) for name, table in scores.evidence.items()}
    return replace(scores, units=ordered(scores.units), evidence=evidence)


def _mark(run: Run) -> str:
    """Digest scores and evidence, each by its rows' ids."""
    found = hashlib.sha256(run.scores.sort(_SORTED)["value"].fill_null(-1.0).to_numpy().tobytes())
    for name in sorted(run.evidence):
        table = run.evidence[name]
        held = table.select(sorted(set(table.columns) - {"model", "cluster_id"}))
        if "unit_id" in held.columns:
            held = held.sort("unit_id", maintain_order=True)
        found.update(name.encode() + held.write_json().encode())
    return found.hexdigest()
