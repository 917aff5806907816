"""How far those who judged the same items agree beyond chance: statistics of sums over items.

Krippendorff's alpha compares the disagreement within items with that of all answers thrown
together; kappa compares agreeing pairs of answers with what each side's shares would give. All are
functions of what each item adds to some sums, so groups of items, clusters and replicates are
matrix products.

Sources: Krippendorff (2011), "Computing Krippendorff's alpha-reliability", University of
Pennsylvania; Cohen (1960), Educational and Psychological Measurement 20:37-46; Fleiss (1971),
Psychological Bulletin 76:378-382.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, SumStatistic

Scale = Literal["nominal", "ordinal", "interval"]
MOST_VALUES = 500
"""Distinct answers that may be counted one by one."""
MOST_ORDERED = 60
"""Distinct answers of an ordinal scale, whose pairs are counted one by one."""


def tallies(evidence: pl.DataFrame) -> FloatArray:
    """Count how often each item was given each answer.

    Returns [n, k].

    Examples
    --------
    >>> tallies(pl.DataFrame({"codes": [[0, 0, 2], [1]]})).tolist()
    [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    rows = evidence.select("codes", row=pl.int_range(pl.len())).explode("codes").drop_nulls()
    codes = rows["codes"].to_numpy()
    counts = np.zeros((evidence.height, int(codes.max()) + 1 if len(codes) else 0))
    np.add.at(counts, (rows["row"].to_numpy(), codes), 1.0)
    return counts


def _paired(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Blank the items with fewer than two answers; also give how many the others have."""
    given = counts.sum(axis=1)
    held = np.where(given[:, None] > 1, counts, 0.0)
    return held, np.where(given > 1, given, 0.0)


def _beside_commonest(counts: FloatArray) -> FloatArray:
    """Mark for each answer the items that hold another, and that two gave one other: [n, 2 k]."""
    others = counts.sum(axis=1, keepdims=True) > counts
    twice = counts >= 2
    agreed = twice.sum(axis=1, keepdims=True) > twice
    return np.hstack([others, agreed]).astype(np.float64)


def _rarest(answers: Callable[[int], int], sums: FloatArray) -> FloatArray:
    """Give as how many balanced items the answers beside the commonest are worth."""
    k = answers(sums.shape[-1])
    others, agreed = sums[..., -2 * k : -k], sums[..., -k:]
    fewest: FloatArray = np.minimum(2.0 * others, 3.0 * agreed).min(axis=-1, initial=np.inf)
    return np.asarray(np.maximum(fewest, 1.0))  # 0 would say that there is nothing to count


def alpha(scale: Scale) -> SumStatistic:
    """Make Krippendorff's alpha a statistic of an evidence table."""
    if scale == "interval":
        return SumStatistic(_interval_columns, _interval_alpha)
    if scale == "ordinal":
        return SumStatistic(_ordinal_columns, _ordinal_alpha, partial(_rarest, _of_ordinal))
    return SumStatistic(_nominal_columns, _nominal_alpha, partial(_rarest, _of_nominal))


def _of_nominal(columns: int) -> int:
    return (columns - 1) // 3


def _nominal_columns(evidence: pl.DataFrame) -> FloatArray:
    """Per item its disagreeing pairs, a share of each answer; its answers; what _rarest reads."""
    counts, given = _paired(tallies(evidence))
    pairs = given**2 - (counts**2).sum(axis=1)
    differ = np.divide(pairs, given - 1, out=np.zeros_like(given), where=given > 1)
    return np.column_stack([differ, counts, _beside_commonest(counts)])


def _nominal_alpha(sums: FloatArray) -> FloatArray:
    counts = sums[..., 1 : 1 + _of_nominal(sums.shape[-1])]
    given = counts.sum(axis=-1)
    return _one_less(sums[..., 0] * (given - 1), given**2 - (counts**2).sum(axis=-1))


def _one_less(observed: FloatArray, expected: FloatArray) -> FloatArray:
    value = np.full(np.shape(expected), np.nan)
    np.divide(observed, expected, out=value, where=expected > 1e-12)
    return np.asarray(1.0 - value)


def _of_ordinal(columns: int) -> int:
    return (math.isqrt(8 * columns + 25) - 5) // 2  # of k (k - 1) / 2 + 3 k columns: k


def _ordinal_columns(evidence: pl.DataFrame) -> FloatArray:
    """Per item the coincidences of each two answers; its answers; what _rarest reads."""
    counts, given = _paired(tallies(evidence))
    lower, upper = np.triu_indices(counts.shape[1], 1)
    share = np.divide(2.0, given - 1, out=np.zeros_like(given), where=given > 1)
    both = counts[:, lower] * counts[:, upper] * share[:, None]
    return np.column_stack([both, counts, _beside_commonest(counts)])


def _ordinal_alpha(sums: FloatArray) -> FloatArray:
    k = _of_ordinal(sums.shape[-1])
    both, counts = sums[..., : -3 * k], sums[..., -3 * k : -2 * k]
    lower, upper = np.triu_indices(k, 1)
    until = np.cumsum(counts, axis=-1)
    # Answers from c to k, the ends by half: ranks that lie between them.
    between = until[..., upper] - until[..., lower] + (counts[..., lower] - counts[..., upper]) / 2
    apart = between**2
    given = counts.sum(axis=-1)
    expected = (2 * counts[..., lower] * counts[..., upper] * apart).sum(axis=-1)
    return _one_less((both * apart).sum(axis=-1) * (given - 1), expected)


def _interval_columns(evidence: pl.DataFrame) -> FloatArray:
    """Per item its mean squared difference times its answers; how many, their sum and squares."""
    rows = evidence.select("numbers", row=pl.int_range(pl.len())).explode("numbers").drop_nulls()
    x, row = rows["numbers"].to_numpy(), rows["row"].to_numpy()
    x = x - (x.mean() if len(x) else 0.0)  # the sums of squares keep their digits
    n = evidence.height
    given, total, squares = (np.bincount(row, w, n) for w in (np.ones(len(x)), x, x * x))
    held = given > 1
    given, total, squares = (np.where(held, one, 0.0) for one in (given, total, squares))
    spread = 2 * (given * squares - total**2)
    differ = np.divide(spread, given - 1, out=np.zeros(n), where=held)
    return np.column_stack([differ, given, total, squares])


def _interval_alpha(sums: FloatArray) -> FloatArray:
    differ, given, total, squares = np.moveaxis(sums, -1, 0)
    return _one_less(differ * (given - 1), 2 * (given * squares - total**2))


def fleiss_kappa() -> SumStatistic:
    """Make Fleiss' kappa a statistic of an evidence table with ``codes``."""
    return SumStatistic(
        _fleiss_columns, partial(_kappa, _fleiss_shares), partial(_rarest, _of_fleiss)
    )


def _of_fleiss(columns: int) -> int:
    return (columns - 2) // 3


def _fleiss_columns(evidence: pl.DataFrame) -> FloatArray:
    counts, given = _paired(tallies(evidence))
    pairs = (counts**2).sum(axis=1) - given
    agree = np.divide(pairs, given * (given - 1), out=np.zeros_like(given), where=given > 1)
    held = (given > 1).astype(np.float64)
    return np.column_stack([agree, held, counts, _beside_commonest(counts)])


def _fleiss_shares(sums: FloatArray) -> FloatArray:
    counts = sums[..., 2 : 2 + _of_fleiss(sums.shape[-1])]
    given = counts.sum(axis=-1)
    chance: FloatArray = np.full(given.shape, np.nan)
    np.divide((counts**2).sum(axis=-1), given**2, out=chance, where=given > 0)
    return chance


def cohen_kappa() -> SumStatistic:
    """Make Cohen's kappa a statistic of an evidence table with ``codes`` of two annotators."""
    return SumStatistic(_cohen_columns, partial(_kappa, _cohen_shares), partial(_rarest, _of_cohen))


def _of_cohen(columns: int) -> int:
    return (columns - 2) // 4


def _cohen_columns(evidence: pl.DataFrame) -> FloatArray:
    both = evidence.select(
        pl.when(pl.col("codes").list.len() == 2).then("codes").alias("codes")
    ).select(
        one=pl.col("codes").list.get(0, null_on_oob=True),
        other=pl.col("codes").list.get(1, null_on_oob=True),
    )
    held = both["one"].is_not_null().to_numpy()
    one, other = (both[name].fill_null(0).to_numpy() for name in ("one", "other"))
    k = int(max(one.max(initial=0), other.max(initial=0))) + 1
    identity = np.eye(k)
    first, second = identity[one] * held[:, None], identity[other] * held[:, None]
    agree = (held & (one == other)).astype(np.float64)
    telling = _beside_commonest(first + second) * held[:, None]
    return np.column_stack([agree, held.astype(np.float64), first, second, telling])


def _cohen_shares(sums: FloatArray) -> FloatArray:
    k = _of_cohen(sums.shape[-1])
    first, second, n = sums[..., 2 : 2 + k], sums[..., 2 + k : 2 + 2 * k], sums[..., 1]
    chance: FloatArray = np.full(n.shape, np.nan)
    np.divide((first * second).sum(axis=-1), n**2, out=chance, where=n > 0)
    return chance


def _kappa(by_chance: Callable[[FloatArray], FloatArray], sums: FloatArray) -> FloatArray:
    """``(observed - chance) / (1 - chance)`` of sums whose first two are agreement and items."""
    chance, n = by_chance(sums), sums[..., 1]
    observed = np.divide(sums[..., 0], n, out=np.full(n.shape, np.nan), where=n > 0)
    return _one_less(1.0 - observed, 1.0 - chance)
