"""Agreement of annotators beyond chance: alpha and kappa as statistics of sums over items.

Krippendorff's alpha compares the disagreement within items with that of all labels pooled; kappa
compares agreeing pairs of labels with those expected from marginal proportions. All are functions
of sums over items, so groups of items, clusters and replicates are matrix products.

Sources: Krippendorff (2011), "Computing Krippendorff's alpha-reliability", University of
Pennsylvania; Cohen (1960), Educational and Psychological Measurement 20:37-46; Fleiss (1971),
Psychological Bulletin 76:378-382; Cohen (1968), Psychological Bulletin 70:213-220 (weighted kappa).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, IntArray, SumStatistic

Scale = Literal["nominal", "ordinal", "interval"]
MAX_VALUES = 500
"""Most distinct labels of a nominal scale."""
MAX_ORDINAL_VALUES = 60
"""Most distinct labels of an ordinal scale, whose pairs are counted."""


def count_labels_by_item(evidence: pl.DataFrame) -> FloatArray:
    """Count the labels of each item by value.

    Returns [n, k].

    Examples
    --------
    >>> count_labels_by_item(pl.DataFrame({"codes": [[0, 0, 2], [1]]})).tolist()
    [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    rows = evidence.select("codes", row=pl.int_range(pl.len())).explode("codes").drop_nulls()
    codes = rows["codes"].to_numpy()
    counts = np.zeros((evidence.height, int(codes.max()) + 1 if len(codes) else 0))
    np.add.at(counts, (rows["row"].to_numpy(), codes), 1.0)
    return counts


def _zero_items_with_one_label(label_counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Set items with fewer than two labels to 0; also return the numbers of labels."""
    n_labels = label_counts.sum(axis=1)
    paired_counts = np.where(n_labels[:, None] > 1, label_counts, 0.0)
    return paired_counts, np.where(n_labels > 1, n_labels, 0.0)


def _indicate_minority_labels(label_counts: FloatArray) -> FloatArray:
    """Mark, for each label, items with another label, and with two equal other labels: [n, 2 k]."""
    has_other_label = label_counts.sum(axis=1, keepdims=True) > label_counts
    has_two = label_counts >= 2
    has_other_agreement = has_two.sum(axis=1, keepdims=True) > has_two
    return np.hstack([has_other_label, has_other_agreement]).astype(np.float64)


def _n_effective_balanced_items(
    n_labels_from_columns: Callable[[int], int], sums: FloatArray
) -> FloatArray:
    """Return the effective number of balanced items of the labels other than the commonest."""
    k = n_labels_from_columns(sums.shape[-1])
    n_other, n_agreed = sums[..., -2 * k : -k], sums[..., -k:]
    # With the minimum of 50 units: 25 items with another label, and 17 on which two annotators
    # agree; with fewer, intervals covered as few as 35 in 100 (docs/methods/agreement.md).
    n_balanced: FloatArray = np.minimum(2.0 * n_other, 3.0 * n_agreed).min(axis=-1, initial=np.inf)
    return np.asarray(np.maximum(n_balanced, 1.0))  # 0 would mean an undefined value


def krippendorff_alpha_statistic(scale: Scale) -> SumStatistic:
    """Make Krippendorff's alpha a statistic of an evidence table."""
    if scale == "interval":
        return SumStatistic(_interval_alpha_columns, _interval_alpha_from_sums)
    if scale == "ordinal":
        return SumStatistic(
            _ordinal_alpha_columns,
            _ordinal_alpha_from_sums,
            partial(_n_effective_balanced_items, _n_labels_from_ordinal_columns),
        )
    return SumStatistic(
        _nominal_alpha_columns,
        _nominal_alpha_from_sums,
        partial(_n_effective_balanced_items, _n_labels_from_nominal_columns),
    )


def _n_labels_from_nominal_columns(n_columns: int) -> int:
    return (n_columns - 1) // 3


def _nominal_alpha_columns(evidence: pl.DataFrame) -> FloatArray:
    """Per item its disagreeing pairs per label, its labels, and minority indicators."""
    counts, n_labels = _zero_items_with_one_label(count_labels_by_item(evidence))
    pairs = n_labels**2 - (counts**2).sum(axis=1)
    # Krippendorff: each item's pairs are weighted by 1 / (labels - 1).
    differ = np.divide(pairs, n_labels - 1, out=np.zeros_like(n_labels), where=n_labels > 1)
    return np.column_stack([differ, counts, _indicate_minority_labels(counts)])


def _nominal_alpha_from_sums(sums: FloatArray) -> FloatArray:
    counts = sums[..., 1 : 1 + _n_labels_from_nominal_columns(sums.shape[-1])]
    n_labels = counts.sum(axis=-1)
    # Krippendorff (2011): n - 1, because a label is not paired with itself.
    return _one_minus_ratio_or_nan(
        sums[..., 0] * (n_labels - 1), n_labels**2 - (counts**2).sum(axis=-1)
    )


def _one_minus_ratio_or_nan(
    observed_disagreement: FloatArray, expected_disagreement: FloatArray
) -> FloatArray:
    # Where all labels are equal, observed and expected disagreement are 0: alpha is undefined.
    ratio = np.full(np.shape(expected_disagreement), np.nan)
    np.divide(
        observed_disagreement, expected_disagreement, out=ratio, where=expected_disagreement > 1e-12
    )
    return np.asarray(1.0 - ratio)


def _n_labels_from_ordinal_columns(n_columns: int) -> int:
    return (math.isqrt(8 * n_columns + 25) - 5) // 2  # solves columns = k (k - 1) / 2 + 3 k


def _ordinal_alpha_columns(evidence: pl.DataFrame) -> FloatArray:
    """Per item the coincidences of each pair of labels, its labels, and minority indicators."""
    counts, n_labels = _zero_items_with_one_label(count_labels_by_item(evidence))
    lower, upper = np.triu_indices(counts.shape[1], 1)
    # Each pair of labels counts in both orders, over n - 1: Krippendorff's coincidences.
    share = np.divide(2.0, n_labels - 1, out=np.zeros_like(n_labels), where=n_labels > 1)
    coincidences = counts[:, lower] * counts[:, upper] * share[:, None]
    return np.column_stack([coincidences, counts, _indicate_minority_labels(counts)])


def _ordinal_alpha_from_sums(sums: FloatArray) -> FloatArray:
    k = _n_labels_from_ordinal_columns(sums.shape[-1])
    coincidences, counts = sums[..., : -3 * k], sums[..., -3 * k : -2 * k]
    lower, upper = np.triu_indices(k, 1)
    cumulative = np.cumsum(counts, axis=-1)
    # Krippendorff (2011), ordinal metric: the labels between c and k, and half of those at c and k.
    rank_distance = (
        cumulative[..., upper]
        - cumulative[..., lower]
        + (counts[..., lower] - counts[..., upper]) / 2
    )
    squared_distance = rank_distance**2
    n_labels = counts.sum(axis=-1)
    expected = (2 * counts[..., lower] * counts[..., upper] * squared_distance).sum(axis=-1)
    return _one_minus_ratio_or_nan(
        (coincidences * squared_distance).sum(axis=-1) * (n_labels - 1), expected
    )


def _interval_alpha_columns(evidence: pl.DataFrame) -> FloatArray:
    """Per item its mean squared difference times its labels; their number, sum and squares."""
    rows = evidence.select("numbers", row=pl.int_range(pl.len())).explode("numbers").drop_nulls()
    x, row = rows["numbers"].to_numpy(), rows["row"].to_numpy()
    x = x - (x.mean() if len(x) else 0.0)  # centred, so that sums of squares keep their digits
    n = evidence.height
    n_labels, total, squares = (np.bincount(row, w, n) for w in (np.ones(len(x)), x, x * x))
    is_paired = n_labels > 1
    n_labels, total, squares = (
        np.where(is_paired, sums, 0.0) for sums in (n_labels, total, squares)
    )
    squared_difference = 2 * (n_labels * squares - total**2)
    differ = np.divide(squared_difference, n_labels - 1, out=np.zeros(n), where=is_paired)
    return np.column_stack([differ, n_labels, total, squares])


def _interval_alpha_from_sums(sums: FloatArray) -> FloatArray:
    differ, n_labels, total, squares = np.moveaxis(sums, -1, 0)
    return _one_minus_ratio_or_nan(differ * (n_labels - 1), 2 * (n_labels * squares - total**2))


def fleiss_kappa_statistic() -> SumStatistic:
    """Make Fleiss' kappa a statistic of an evidence table with ``codes``."""
    return SumStatistic(
        _fleiss_kappa_columns,
        partial(_kappa_from_sums, _fleiss_chance_agreement),
        partial(_n_effective_balanced_items, _n_labels_from_fleiss_columns),
    )


def _n_labels_from_fleiss_columns(n_columns: int) -> int:
    return (n_columns - 2) // 3


def _fleiss_kappa_columns(evidence: pl.DataFrame) -> FloatArray:
    counts, n_labels = _zero_items_with_one_label(count_labels_by_item(evidence))
    # Fleiss (1971): ordered pairs of equal labels, over all n (n - 1) ordered pairs of an item.
    pairs = (counts**2).sum(axis=1) - n_labels
    agree = np.divide(
        pairs, n_labels * (n_labels - 1), out=np.zeros_like(n_labels), where=n_labels > 1
    )
    is_paired = (n_labels > 1).astype(np.float64)
    return np.column_stack([agree, is_paired, counts, _indicate_minority_labels(counts)])


def _fleiss_chance_agreement(sums: FloatArray) -> FloatArray:
    # Fleiss pools the annotators' proportions, because items may have different annotators.
    counts = sums[..., 2 : 2 + _n_labels_from_fleiss_columns(sums.shape[-1])]
    n_labels = counts.sum(axis=-1)
    chance: FloatArray = np.full(n_labels.shape, np.nan)
    np.divide((counts**2).sum(axis=-1), n_labels**2, out=chance, where=n_labels > 0)
    return chance


def cohen_kappa_statistic() -> SumStatistic:
    """Make Cohen's kappa a statistic of an evidence table with ``codes`` of two annotators."""
    return SumStatistic(
        _cohen_kappa_columns,
        partial(_kappa_from_sums, _cohen_chance_agreement),
        partial(_n_effective_balanced_items, _n_labels_from_cohen_columns),
    )


def _n_labels_from_cohen_columns(n_columns: int) -> int:
    return (n_columns - 2) // 4


def _read_label_pairs(evidence: pl.DataFrame) -> tuple[FloatArray, IntArray, IntArray]:
    """Return whether each item has a pair of labels (0 or 1), and the codes of both."""
    label_pairs = evidence.select(
        # Cohen's kappa is defined for two annotators: other items have no pair.
        pl.when(pl.col("codes").list.len() == 2).then("codes").alias("codes")
    ).select(
        one=pl.col("codes").list.get(0, null_on_oob=True),
        other=pl.col("codes").list.get(1, null_on_oob=True),
    )
    is_paired = label_pairs["one"].is_not_null().to_numpy()
    first_label, second_label = (
        label_pairs[name].fill_null(0).to_numpy() for name in ("one", "other")
    )
    return is_paired.astype(np.float64), first_label, second_label


def _indicate_labels(
    is_paired: FloatArray, first_label: IntArray, second_label: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each annotator's labels as 0/1 by code, and the minority indicators."""
    k = int(max(first_label.max(initial=0), second_label.max(initial=0))) + 1
    identity = np.eye(k)
    first, second = (identity[label] * is_paired[:, None] for label in (first_label, second_label))
    return first, second, _indicate_minority_labels(first + second) * is_paired[:, None]


def _cohen_kappa_columns(evidence: pl.DataFrame) -> FloatArray:
    is_paired, first_label, second_label = _read_label_pairs(evidence)
    first, second, minority = _indicate_labels(is_paired, first_label, second_label)
    agree = is_paired * (first_label == second_label)
    return np.column_stack([agree, is_paired, first, second, minority])


def _cohen_chance_agreement(sums: FloatArray) -> FloatArray:
    k = _n_labels_from_cohen_columns(sums.shape[-1])
    first, second, n = sums[..., 2 : 2 + k], sums[..., 2 + k : 2 + 2 * k], sums[..., 1]
    # Cohen multiplies the two annotators' own marginal proportions, which may differ.
    chance: FloatArray = np.full(n.shape, np.nan)
    np.divide((first * second).sum(axis=-1), n**2, out=chance, where=n > 0)
    return chance


def _kappa_from_sums(
    chance_agreement_from_sums: Callable[[FloatArray], FloatArray], sums: FloatArray
) -> FloatArray:
    """``(observed - chance) / (1 - chance)`` of sums whose first two are agreement and items."""
    chance, n = chance_agreement_from_sums(sums), sums[..., 1]
    observed = np.divide(sums[..., 0], n, out=np.full(n.shape, np.nan), where=n > 0)
    return _one_minus_ratio_or_nan(1.0 - observed, 1.0 - chance)


def weighted_kappa_statistic(weights: Literal["linear", "quadratic"]) -> SumStatistic:
    """Make weighted kappa a statistic of ``codes`` and ``positions`` of two annotators.

    One minus the distance of the two labels over that expected by chance, from each annotator's own
    shares; the distance is the difference of positions (linear) or its square (quadratic).
    """
    if weights == "quadratic":
        return SumStatistic(
            _quadratic_kappa_columns,
            _quadratic_kappa_from_sums,
            partial(_n_effective_balanced_items, lambda n_columns: (n_columns - 5) // 2),
        )
    return SumStatistic(
        _linear_kappa_columns,
        _linear_kappa_from_sums,
        partial(_n_effective_balanced_items, _n_labels_from_linear_columns),
    )


def _position_of_code(evidence: pl.DataFrame, k: int) -> FloatArray:
    """Return the position of each code, centred; a code that does not occur has the one below."""
    labels = evidence.select("codes", "positions").explode("codes", "positions").drop_nulls()
    positions = np.full(k, -np.inf)
    is_used = labels["codes"].to_numpy() < k
    positions[labels["codes"].to_numpy()[is_used]] = labels["positions"].to_numpy()[is_used]
    known_positions = positions[np.isfinite(positions)]
    positions = np.maximum.accumulate(np.maximum(positions, known_positions.min(initial=np.inf)))
    # Centred, so that sums of squares keep their digits; without any label all is 0.
    return positions - known_positions.mean() if len(known_positions) else np.zeros(k)


def _quadratic_kappa_columns(evidence: pl.DataFrame) -> FloatArray:
    is_paired, first_label, second_label = _read_label_pairs(evidence)
    first, _, minority = _indicate_labels(is_paired, first_label, second_label)
    positions = _position_of_code(evidence, first.shape[1])
    x, y = (positions[label] * is_paired for label in (first_label, second_label))
    return np.column_stack([(x - y) ** 2, is_paired, x, y, x**2 + y**2, minority])


def _quadratic_kappa_from_sums(sums: FloatArray) -> FloatArray:
    distance, n, x, y, squares = np.moveaxis(sums[..., :5], -1, 0)
    # E (X - Y)² of independent X and Y, times n²: n Σ x² + n Σ y² - 2 Σ x Σ y.
    return _one_minus_ratio_or_nan(distance * n, n * squares - 2.0 * x * y)


def _n_labels_from_linear_columns(n_columns: int) -> int:
    return (n_columns + 1) // 5  # solves columns = 2 + 3 (k - 1) + 2 k


def _linear_kappa_columns(evidence: pl.DataFrame) -> FloatArray:
    """Per item its distance, and for each gap between positions who is beyond it."""
    is_paired, first_label, second_label = _read_label_pairs(evidence)
    first, second, minority = _indicate_labels(is_paired, first_label, second_label)
    positions = _position_of_code(evidence, first.shape[1])
    x, y = (positions[label] * is_paired for label in (first_label, second_label))
    # Roots of the gaps: the products of two sums below then have the gap as their weight.
    root = np.sqrt(np.diff(positions)) * is_paired[:, None]
    beyond_gaps = [root * (1.0 - np.cumsum(labels, axis=1)[:, :-1]) for labels in (first, second)]
    return np.column_stack([np.abs(x - y), is_paired, *beyond_gaps, root, minority])


def _linear_kappa_from_sums(sums: FloatArray) -> FloatArray:
    k = _n_labels_from_linear_columns(sums.shape[-1])
    distance, n = sums[..., 0], sums[..., 1]
    first, second, all_items = (
        sums[..., 2 + j * (k - 1) : 2 + (j + 1) * (k - 1)] for j in range(3)
    )
    # E |X - Y| = Σ gap (P(X beyond) P(Y not) + P(Y beyond) P(X not)) of independent X and Y.
    expected = first * (all_items - second) + second * (all_items - first)
    return _one_minus_ratio_or_nan(distance * n, expected.sum(axis=-1))
