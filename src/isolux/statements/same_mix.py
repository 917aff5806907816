"""How far two groups are apart at the same mix of the other attributes: description, no test.

Two groups may differ because one has more young people. At the same mix of ages the gap is another
one; neither is the true one, and neither says why. Exploratory: no α is spent on it, it has no p,
and an audit by a published protocol does not compute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from isolux.groups.regrouping import can_regroup, regroup, weigh_units
from isolux.groups.unknown import KNOWN_SUFFIX, UNKNOWN
from isolux.statements.lines import LINE
from isolux.statements.numbers import interval, value_text
from isolux.statements.words import Words
from isolux.stats.confounding import standardise_gap
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import crossed
from isolux.vocabulary.words import listed

_MIN_SHARE = 0.5
"""Of either group's people: with fewer in strata that both have, nothing is said."""
_WHOLE = 0.995
_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys((*LINE, "attribute", "group_a", "group_b"), pl.String()),
    **dict.fromkeys(("threshold", "gap", "low", "high", "share"), pl.Float64()),
    "others": pl.List(pl.String), "n_strata": pl.Int64(),
}  # fmt: skip


def same_mix(run: Run, pairs: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Compare pairs of groups at the same mix of all other attributes of the audit."""
    spec = run.record.get("spec") or {}
    by = [name for entry in spec.get("by") or () for name in crossed(entry)]
    rows = []
    if not spec.get("protocol") and can_regroup(run):
        level = float(spec.get("level") or 0.95)
        for pair in pairs:
            own = [part.removesuffix(KNOWN_SUFFIX) for part in crossed(pair["attribute"])]
            others = [name for name in dict.fromkeys(by) if name not in own]
            rows += list(_compare(run, pair, others, level)) if others else []
    return pl.DataFrame(rows, schema=_SCHEMA)


def _compare(
    run: Run, pair: Mapping[str, Any], others: list[str], level: float
) -> Iterator[dict[str, Any]]:
    """Compute one pair's row, if there is one."""
    from scipy.special import ndtri

    scores = run.scores.filter(
        *(pl.col(name).eq_missing(pl.lit(pair[name])) for name in LINE),
        pl.col("value").is_not_null(),
    ).select(pl.col("unit_id").cast(pl.String), "cluster_id", "value")
    if scores.is_empty():
        return
    own = "*".join(part.removesuffix(KNOWN_SUFFIX) for part in crossed(pair["attribute"]))
    members = regroup(run, [own, *others]).frame
    groups = pl.DataFrame({"group": [pair["group_a"], pair["group_b"]], "side": [0, 1]})
    sides = members.filter(pl.col("attribute") == pair["attribute"]).join(groups, on="group")
    known = members.join(sides, on="unit_id", how="semi").filter(
        pl.col("attribute").is_in(others), ~pl.col("values").list.contains(UNKNOWN)
    )
    # Whoever has several values of an attribute is in a stratum of those together.
    strata = (
        known.sort("attribute", "group")
        .group_by("unit_id")
        .agg(pl.struct("attribute", "group").alias("stratum"), n=pl.col("attribute").n_unique())
        .filter(pl.col("n") == len(others))
        .drop("n")
    )
    every = weigh_units(run, sides.join(scores, on="unit_id"))
    rows = every.join(strata, on="unit_id")
    if rows.is_empty():
        return
    cluster = pl.coalesce(pl.col("cluster_id").cast(pl.String), pl.col("unit_id"))
    coded = rows.with_columns(
        pl.col("stratum").hash().rank("dense") - 1, cluster=cluster.rank("dense") - 1
    )
    numbers = [coded[name].cast(pl.Int64).to_numpy() for name in ("side", "stratum", "cluster")]
    values, weights, n = (
        coded[name].cast(pl.Float64).to_numpy() for name in ("value", "weight", "n")
    )
    found = standardise_gap(values, weights, numbers[0], numbers[1], numbers[2], n)
    if found is None:
        return
    inside = np.array([found.weight_a, found.weight_b])
    total = np.array([every.filter(side=side)["weight"].sum() for side in (0, 1)])
    if (inside < _MIN_SHARE * total).any():
        return
    reach = float(ndtri(0.5 + level / 2.0)) * found.standard_error
    ends = (found.gap - reach, found.gap + reach) if np.isfinite(reach) else (None, None)
    yield {
        **{name: pair[name] for name in (*LINE, "attribute", "group_a", "group_b")},
        "others": others, "gap": found.gap, "low": ends[0], "high": ends[1],
        "share": float(inside.sum() / total.sum()),
        "n_strata": found.n_strata,
    }  # fmt: skip


def describe_same_mix(row: Mapping[str, Any], gap: float, unit: str, words: Words) -> str:
    """Say a pair's gap at the same mix of the others, as a part of a sentence.

    Examples
    --------
    >>> row = {"others": ["age"], "gap": -0.045, "low": -0.069, "high": -0.021, "share": 1.0}
    >>> describe_same_mix(row, -0.14, "fraction", Words())
    'at the same mix of age: 4.5 (2.1 to 6.9; exploratory)'
    >>> describe_same_mix(row | {"share": 0.8}, 0.14, "fraction", Words())
    'at the same mix of age: −4.5 (−6.9 to −2.1; 80 % of both groups; exploratory)'
    """
    sign = -1.0 if gap < 0 else 1.0
    low, high = row["low"], row["high"]
    value = sign * row["gap"]
    notes = ["exploratory"]
    if row["share"] < _WHOLE:
        notes.insert(0, f"{100 * row['share']:.0f} % of both groups")
    told = value_text(value, unit)
    if low is not None and high is not None:
        ends = sorted((sign * low, sign * high))
        told = value_text(value, unit, ends)
        notes.insert(0, interval(ends[0], ends[1], unit, value))
    others = listed([words.title(name) for name in row["others"]], last="and")
    return f"at the same mix of {others}: {told} ({'; '.join(notes)})"
