"""Looks at samples with weights: clusters are kept by weight, and those kept are the population's.

A bet needs differences whose mean is the population's gap. Of clusters that were drawn with unequal
chances each is therefore kept with a chance of its weight over the heaviest there can be (rejection
sampling; von Neumann 1951): those that are kept were drawn alike, and everything that holds of a
sample without weights holds of them. The chances must not depend on scores, nor on weights that are
still to come, so the heaviest weight is known beforehand: as the design has it, or from the first
look. Weights that were brought to a population by cells alone need no such bound, since those of a
look follow from how many of each cell were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from isolux.stats.sequences import thinned
from isolux.verbs.monitor.looks import Look
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError

_SAME = 1e-9
"""Weights that differ by less, as a share, are one."""
_SLACK = 1e-9
"""A weight above the heaviest by less, as a share, is rounding."""


def kept_by_weight(
    looks: Sequence[Look], heaviest: float | None, seed: int
) -> tuple[list[Look], tuple[str, ...]]:
    """Keep each look's clusters by their weights, and say how many are kept."""
    drawn = dict(looks[0].run.record.get("sample") or {})
    by_cells = bool(drawn.get("population"))
    if not (drawn.get("weight") or by_cells):
        _refuse_ways(looks)
        if heaviest is not None:
            raise SpecError(
                "these runs have no weights",
                expected="runs of audits with --weight",
                found=f"--heaviest {heaviest:g}",
            )
        return list(looks), ()
    _refuse_ways(looks)
    _refuse_both(drawn, heaviest)
    most, kept, of, left = heaviest, [], 0, 0
    for t, look in enumerate(looks):
        weights = _of_clusters(look)
        largest = float(weights["weight"].max() or 0.0)  # type: ignore[arg-type]
        if by_cells:
            most = largest
        most = largest if most is None else most
        if largest > most * (1.0 + _SLACK):
            raise _too_heavy(look, largest, most, looks[0], given=heaviest is not None)
        rng = np.random.default_rng([seed, t, 1])
        own = weights.filter(pl.Series(thinned(rng, weights["weight"].to_numpy(), most)))
        units = _clusters(look).join(own, on="cluster", how="semi")["unit_id"]
        scores = look.run.scores.filter(pl.col("unit_id").is_in(units.implode()))
        kept.append(Look(look.name, look.at, replace(look.run, scores=scores)))
        of, left = of + weights.height, left + own.height
    bound = "" if by_cells else f" ({most:g})"
    note = (
        f"weighted: each cluster is kept with a chance of its weight over the heaviest{bound}, so "
        f"that those kept stand for the population; {left:,} of {of:,} clusters are"
    )
    return kept, (note,)


def _clusters(look: Look) -> pl.DataFrame:
    cluster = pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id"))
    return look.run.scores.select(pl.col("unit_id").cast(pl.String), cluster=cluster).unique()


def _of_clusters(look: Look) -> pl.DataFrame:
    """Return each cluster's weight, by name, so that the order of rows moves nothing."""
    table = look.run.evidence[SAMPLE].unique("unit_id", keep="first").select("unit_id", "weight")
    held = _clusters(look).join(table, on="unit_id", how="left").group_by("cluster")
    found = held.agg(pl.col("weight").max(), least=pl.col("weight").min()).sort("cluster")
    torn = found.filter(pl.col("least") < pl.col("weight") * (1.0 - _SAME))
    if torn.height:
        row = torn.row(0, named=True)
        raise SpecError(
            f"weights differ within {torn.height:,} of {found.height:,} clusters, and a cluster "
            "counts once: its units' weights do not tell how often it was drawn",
            expected="one weight for all units of a cluster",
            found=f"{row['least']:g} and {row['weight']:g} in {row['cluster'][2:]!r}",
            where=look.name,
            hint="audit with clusters that were drawn as a whole, or without --cluster where units "
            "were drawn one by one",
        )
    return found


def _refuse_ways(looks: Sequence[Look]) -> None:
    for look in looks:
        if (look.run.record.get("sample") or {}).get("other_way"):
            raise SpecError(
                "two-way clusters cannot be monitored: a bet needs independent clusters, and "
                "photos by one photographer are in many",
                expected="an audit with one --cluster, that of which more photos are alike",
                found="clusters both ways",
                where=look.name,
            )


def _refuse_both(drawn: dict[str, Any], heaviest: float | None) -> None:
    if drawn.get("population") and (drawn.get("weight") or heaviest is not None):
        raise SpecError(
            "design weights that were adjusted to a population have no largest value known before "
            "a look",
            expected="--weight (with --heaviest), or --population, in the audits",
            found="--population with " + ("--weight" if drawn.get("weight") else "--heaviest"),
        )


def _too_heavy(look: Look, largest: float, most: float, first: Look, *, given: bool) -> SpecError:
    bound = "--heaviest" if given else f"the largest weight of {first.name}"
    return SpecError(
        "a cluster weighs more than the heaviest there can be, so that chances of being kept "
        "cannot be set",
        expected=f"at most {most:g}, {bound}",
        found=f"{largest:g}",
        where=look.name,
        hint="--heaviest names the largest weight that the design can give: one over the smallest "
        "chance of being drawn",
    )
