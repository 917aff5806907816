"""Adaptive country sampling: how many photos to take from which country next.

FairFace (Kärkkäinen & Joo 2021, section 3.2) annotated 7,125 faces drawn at random, estimated each
country's composition, and chose later countries so that no group dominates; the U.S. and Europe
were left out once there was enough of theirs. It prints no formula. Here the numbers are those that
bring the expected totals closest to the stated balance (least squares, none below 0, none above
what a country has), with each country's composition drawn towards everyone's by ``prior`` photos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError

FIRST = 7_125
"""Photos of the first round, drawn at random whatever their country."""
_SUM_CLOSE = 1e-6
_FIRM = 1e3  # how much more the total weighs than the balance


@dataclass(frozen=True, slots=True)
class Quotas:
    """A round's numbers.

    Parameters
    ----------
    countries : polars.DataFrame
        ``country, seen, take`` (photos of the next round; 0: left out), by ``take``.
    groups : polars.DataFrame
        ``group, have, expected`` (after the round), ``share`` (of what is expected), ``wanted``.
    """

    countries: pl.DataFrame
    groups: pl.DataFrame


def quotas(
    seen: pl.DataFrame,
    *,
    take: int,
    balance: Mapping[str, float] | None = None,
    available: Mapping[str, int] | None = None,
    most: int | None = None,
    prior: float = 5.0,
) -> Quotas:
    """Reckon how many photos to take from each country.

    Examples
    --------
    >>> seen = pl.DataFrame({"country": ["US"] * 80 + ["Kenya"] * 20,
    ...                      "group": ["a"] * 75 + ["b"] * 5 + ["b"] * 20})
    >>> quotas(seen, take=100).countries.select("country", "take").rows()
    [('Kenya', 87), ('US', 13)]
    """
    for name in ("country", "group"):
        if name not in seen.columns:
            raise UnknownNameError("column", name, seen.columns)
    held = seen.drop_nulls(["country", "group"])
    if held.is_empty() or take < 1 or (most is not None and most < 1):
        raise SpecError(
            "there is nothing to compute from", expected="annotated photos, and some to take",
            found=f"{held.height:,} photos, take {take:,}",
        )  # fmt: skip
    groups = held["group"].unique().sort().to_list()
    countries = held["country"].unique().sort().to_list()
    wanted = _wanted(groups, balance)
    counts = _counts(held, countries, groups)
    share = counts.sum(axis=0) / counts.sum()
    mix = (counts + prior * share) / (counts.sum(axis=1, keepdims=True) + prior)
    cap = take if most is None else min(most, take)
    limit = np.array([min((available or {}).get(c, cap), cap) for c in countries], dtype=float)
    number = _nearest(mix, counts.sum(axis=0), wanted, take, limit)
    after = counts.sum(axis=0) + mix.T @ number
    table = pl.DataFrame({"country": countries, "seen": counts.sum(axis=1).astype(int),
                          "take": number.astype(int)})  # fmt: skip
    told = pl.DataFrame({"group": groups, "have": counts.sum(axis=0).astype(int),
                         "expected": after.round(1), "share": after / after.sum(),
                         "wanted": wanted})  # fmt: skip
    return Quotas(table.sort("take", "country", descending=[True, False]), told)


def _wanted(groups: list[str], balance: Mapping[str, float] | None) -> FloatArray:
    if balance is None:
        return np.full(len(groups), 1 / len(groups))
    for name in balance:
        if name not in groups:
            raise UnknownNameError("group", name, groups)
    total = sum(balance.values())
    if abs(total - 1) > _SUM_CLOSE or min(balance.values()) < 0:
        raise SpecError(
            "the shares of a balance sum to 1", expected="shares from 0 to 1",
            found=f"a sum of {total:g}",
        )  # fmt: skip
    return np.array([balance.get(name, 0.0) for name in groups])


def _counts(held: pl.DataFrame, countries: list[str], groups: list[str]) -> FloatArray:
    table = np.zeros((len(countries), len(groups)))
    row, column = {c: k for k, c in enumerate(countries)}, {g: k for k, g in enumerate(groups)}
    for country, group, number in held.group_by("country", "group").agg(n=pl.len()).iter_rows():
        table[row[country], column[group]] = number
    return table


def _nearest(
    mix: FloatArray, have: FloatArray, wanted: FloatArray, take: int, limit: FloatArray
) -> FloatArray:
    """Find whole numbers whose expected totals are nearest to the balance."""
    from scipy.optimize import lsq_linear

    if limit.sum() < take:
        raise TableError(
            "the countries do not have that many photos", expected=f"at most {int(limit.sum()):,}",
            found=f"{take:,} to take",
        )  # fmt: skip
    aim = wanted * (have.sum() + take) - have
    sides = np.vstack([mix.T, np.full((1, len(mix)), _FIRM)])
    ends = np.append(aim, _FIRM * take)
    found = lsq_linear(sides, ends, bounds=(0, np.maximum(limit, 1e-9)), tol=1e-12).x
    whole = np.minimum(np.floor(found + 1e-6), limit)
    for at in np.argsort(whole - found, kind="stable"):  # the largest remainders first
        step = min(take - whole.sum(), 1.0, limit[at] - whole[at])
        whole[at] += max(step, 0.0)
    while (lacking := take - whole.sum()) > 0:
        at = int(np.argmax(limit - whole))
        whole[at] += min(lacking, limit[at] - whole[at])
    return np.asarray(whole)
