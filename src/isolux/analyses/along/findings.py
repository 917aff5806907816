"""Whether a score differs between the two ends of a number, in sentences. For ``along``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._contrasts import Contrasts, adjusted_p, cluster_sums, contrast
from isolux.analyses._judged import Judged, findings_table
from isolux.analyses.along.bins import Numbered
from isolux.statements.numbers import interval, points
from isolux.statements.words import Words, level_of, lowered
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status


@dataclass(frozen=True, slots=True)
class Ends:
    """The lowest and the highest bin of one attribute, for one model."""

    judged: Judged
    numbered: Numbered
    ends: Contrasts


def ends_of(judged: Judged, numbered: Numbered) -> Ends:
    """Compare the lowest bin with the highest."""
    last = len(numbered.labels) - 1
    inside = np.column_stack([numbered.code == 0, numbered.code == last])
    sums = cluster_sums(judged.value, inside, judged.cluster, judged.n_clusters)
    found = contrast(sums.at(np.array([0])), sums.at(np.array([1])))
    return Ends(judged, numbered, found)


def findings_of(told: Sequence[Ends], words: Words, spec: Statistics) -> pl.DataFrame:
    """Say of each model and attribute whether the two ends differ: table ``findings``."""
    large = np.array([_is_large(one.ends, spec) for one in told])
    p = _adjusted(told, large, spec)
    rows = [
        _row(one, words, spec, p[k] if np.isfinite(p[k]) else None, large=bool(large[k]))
        for k, one in enumerate(told)
    ]
    rows.sort(key=lambda row: (row["p_adjusted"] is None, row["p_adjusted"] or 0.0))
    return findings_table(rows)


def _is_large(ends: Contrasts, spec: Statistics) -> bool:
    enough = min(ends.n[0], ends.n_other[0]) >= spec.min_units
    clusters = min(ends.n_clusters[0], ends.n_clusters_other[0])
    return bool(enough and clusters >= spec.min_clusters)


def _adjusted(told: Sequence[Ends], large: FloatArray, spec: Statistics) -> FloatArray:
    """Adjust over all attributes and models: models were asked about the same clusters or not."""
    p = np.full(len(told), np.nan)
    models = list(dict.fromkeys(one.judged.model for one in told))
    for model in models:
        own = np.array([k for k, one in enumerate(told) if one.judged.model == model])
        parts = [told[k].ends for k in own]
        found = adjusted_p(
            parts, replicates=spec.replicates, seed=spec.seed, one_sided=False,
            tested=large[own].astype(np.bool_),
        )  # fmt: skip
        p[own] = np.minimum(found * len(models), 1.0)  # Bonferroni between models
    return p


def _row(
    one: Ends, words: Words, spec: Statistics, p: float | None, *, large: bool
) -> dict[str, Any]:
    low, high = (float(end[0]) for end in one.ends.interval(spec.level))
    known = large and np.isfinite(low)
    status = Status.OK if known else Status.INSUFFICIENT_UNITS
    if large and not known:
        status = Status.BOUNDARY
    ends = (low, high) if known else (None, None)
    labels = one.numbered.labels
    claim = words.start(one.judged.model, _claim(one, words, spec, ends, p, large=large))
    row = one.judged.finding(
        "along",
        claim,
        reference="fairface",
        n=int(one.ends.n[0] + one.ends.n_other[0]),
        effect=float(one.ends.difference[0]) if large else None,
        low=ends[0],
        high=ends[1],
    )
    named = {"attribute": one.numbered.name, "group_a": labels[0], "group_b": labels[-1]}
    return row | named | {"status": status.value, "p_adjusted": p}


def _claim(
    one: Ends,
    words: Words,
    spec: Statistics,
    ends: tuple[float | None, float | None],
    p: float | None,
    *,
    large: bool,
) -> str:
    labels, unit = one.numbered.labels, words.unit(one.judged.row)
    measure, title = words.measure(one.judged.row), words.title(one.numbered.name)
    n = f"n = {one.ends.n[0]:,.0f} and {one.ends.n_other[0]:,.0f}"
    where = f"the lowest bin of {title} ({labels[0]}) and the highest ({labels[-1]})"
    if not large:
        return f"{measure}: {where} have too few people to be compared; {n}."
    value = float(one.ends.difference[0])
    if ends[0] is None or ends[1] is None:
        range_text = "no interval"
    else:
        low, high = (-ends[1], -ends[0]) if value < 0 else (ends[0], ends[1])
        range_text = f"{level_of(words)} interval {interval(low, high, unit, value)}"
    if p is None or p > 1.0 - spec.level:
        return (
            f"no difference in {lowered(measure)} was found between {where}: "
            f"{points(value, unit)} ({range_text}; {words.p(p)}; {n})."
        )
    way = "lower" if value < 0 else "higher"
    return (
        f"{measure} is {points(value, unit)} {way} ({range_text}) in the lowest bin of {title} "
        f"({labels[0]}) than in the highest ({labels[-1]}); {words.p(p)}; {n}. "
        "The table shows whether groups differ within the bins."
    )
