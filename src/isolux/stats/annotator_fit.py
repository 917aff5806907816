"""Goodness of fit of Dawid and Skene's annotator model.

The model infers errors from disagreement. It needs at least three annotators, agreement beyond
chance, a majority that errs less than half of the time, and independent errors. Two annotators who
copy each other look like two without errors; a majority that exchanges the groups looks like a
minority that does. This module tests what the labels can show of that.

The fit is tested for each pair of annotators: their observed agreement against the one expected
under the model. The null distribution of the difference is a parametric bootstrap (labels drawn
from the fitted model, and refitted), since fitting reduces the difference. Three annotators of two
groups have as many degrees of freedom as the model, and always fit.

References
----------
.. [1] Dawid, A. P. & Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates
   using the EM algorithm. Applied Statistics 28(1), 20-28.
.. [2] Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall,
   section 16.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.annotators import AnnotatorLabels, fit_dawid_skene
from isolux.stats.constants import (
    MAX_COPIED_ERROR_RATIO,
    MIN_COPY_ERROR_RATE,
    MIN_PEOPLE_LABELLED_BY_BOTH,
)
from isolux.stats.statistic import FloatArray, IntArray

# Limits of cost only: the bootstrap fits the model once per draw.
_MAX_PEOPLE, _MAX_PAIRS = 3000, 300
# With 99 draws the p-value (1 + k) / 100 is a whole number of percent.
_N_DRAWS = 99
_MAX_LARGER_DRAWS = 5
"""Bootstrap draws with a larger statistic after which the bootstrap stops: p is not small."""


@dataclass(frozen=True, slots=True)
class PairFit:
    """Two annotators, their observed agreement, and that expected under the model."""

    first: int
    second: int
    n_people: int
    agreement: float
    expected_agreement: float


@dataclass(frozen=True, slots=True)
class AnnotatorFit:
    """Diagnostics of the annotator model.

    Parameters
    ----------
    annotators : int
        Annotators of people whom others have labelled too.
    labels_per_person : float
        Mean number of labels of a person with a label.
    people_per_annotator : float
        Median number of people labelled by an annotator.
    agreement_p : float
        P-value of independent labels: small where annotators agree beyond chance. NaN: no person
        has two labels.
    fit_p : float
        P-value of the model's pairwise agreement; NaN: no degrees of freedom.
    hard_people_p : float
        P-value of errors spread over people as the model says: small where some people mislead
        all annotators. NaN: no degrees of freedom.
    worst : PairFit or None
        The pair whose agreement differs most from the model's.
    accuracy : [annotators] float
        Mean over groups of the probability of the correct label; NaN: no labels.
    worse_than_chance : list of int
        Annotators with an accuracy significantly below chance.
    min_agreement : float
        The smallest agreement of a pair; NaN: no pair.
    possible_copiers : (int, int) or None
        Two of three annotators with almost no errors under the model, while the third errs: they
        may have copied.
    """

    annotators: int
    labels_per_person: float
    people_per_annotator: float
    agreement_p: float
    fit_p: float
    hard_people_p: float
    worst: PairFit | None
    accuracy: FloatArray
    worse_than_chance: list[int]
    min_agreement: float
    possible_copiers: tuple[int, int] | None


def diagnose_annotator_model(label_counts: FloatArray, seed: int = 0) -> AnnotatorFit:
    """Assess whether labels are consistent with independent errors about one truth.

    Shapes: ``label_counts`` [n, annotators, g].
    """
    rng = np.random.default_rng([seed, 29])
    scale = max(len(label_counts) / _MAX_PEOPLE, 1.0)
    if len(label_counts) > _MAX_PEOPLE:
        label_counts = label_counts[rng.choice(len(label_counts), _MAX_PEOPLE, replace=False)]
    # An annotator with tied labels of a person has no label that could agree.
    labels, has_label = (
        label_counts.argmax(axis=2),
        2.0 * label_counts.max(axis=2) > label_counts.sum(axis=2),
    )
    shared = has_label & (has_label.sum(axis=1, keepdims=True) > 1)
    pairs, groups = _list_pairs_with_common_people(has_label), label_counts.shape[2]
    model = _fit_dawid_skene_model(labels, has_label, groups)
    accuracy = np.diagonal(model.error, axis1=1, axis2=2).mean(axis=1)
    accuracy = np.where(has_label.any(axis=0), accuracy, np.nan)
    pair_fits = _compare_pair_agreement_with_model(labels, has_label, pairs, model)
    n_annotators = int(shared.any(axis=0).sum())
    # Three annotators of two groups have 2³ - 1 = 7 free cells and 1 + 3 · 2 = 7 parameters: the
    # model fits any labels, so its fit cannot be tested.
    can_tell = len(pairs) >= 3 and n_annotators >= 3 and (n_annotators, groups) != (3, 2)
    return AnnotatorFit(
        n_annotators,
        float(has_label.sum() / max(has_label.any(axis=1).sum(), 1)),
        float(np.median(has_label.sum(axis=0)[has_label.any(axis=0)])) * scale
        if has_label.any()
        else 0.0,
        _independence_p_bonferroni(labels, has_label, pairs, groups),
        *(
            _parametric_bootstrap_fit_p(rng, labels, has_label, model, pair_fits)
            if can_tell
            else (float("nan"), float("nan"))
        ),
        max(pair_fits, key=_pair_agreement_z, default=None),
        accuracy,
        _list_annotators_below_chance(model, accuracy),
        min((pair.agreement for pair in pair_fits), default=float("nan")),
        _find_possible_copying_pair(accuracy, has_label, groups),
    )


@dataclass(frozen=True, slots=True)
class _FittedAnnotators:
    """Group proportions ``[g]``, P(label | group) ``[a, g, l]``, labels by group ``[a, g]``."""

    share: FloatArray
    error: FloatArray
    answers: FloatArray


def _fit_dawid_skene_model(
    labels: IntArray, has_label: npt.NDArray[np.bool_], n_groups: int
) -> _FittedAnnotators:
    """Fit the model to one label of each annotator for each person."""
    person_index, annotator_index = (x.astype(np.int32) for x in np.nonzero(has_label))
    given_labels = labels[person_index, annotator_index].astype(np.int32)
    n, annotators = has_label.shape
    if not len(person_index):
        return _FittedAnnotators(
            np.full(n_groups, 1.0 / n_groups),
            np.full((annotators, n_groups, n_groups), 1.0 / n_groups),
            np.zeros((annotators, n_groups)),
        )
    posterior = fit_dawid_skene(
        AnnotatorLabels(person_index, annotator_index, given_labels, n, annotators, n_groups)
    ).posterior
    counts = np.zeros((annotators, n_groups, n_groups))
    np.add.at(counts.swapaxes(1, 2), (annotator_index, given_labels), posterior[person_index])
    # The count that annotators.py adds: no error rate is 0, and its logarithm is finite.
    smoothed = counts + 0.01
    error = smoothed / smoothed.sum(axis=2, keepdims=True)
    return _FittedAnnotators(
        posterior[has_label.any(axis=1)].mean(axis=0), error, counts.sum(axis=2)
    )


def _list_pairs_with_common_people(has_label: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """List the pairs with enough people labelled by both, largest first."""
    n_common = has_label.T.astype(np.int64) @ has_label
    first, second = np.nonzero(np.triu(n_common >= MIN_PEOPLE_LABELLED_BY_BOTH, 1))
    order = np.argsort(-n_common[first, second], kind="stable")[:_MAX_PAIRS]
    return list(zip(first[order].tolist(), second[order].tolist(), strict=True))


def _compare_pair_agreement_with_model(
    labels: IntArray,
    has_label: npt.NDArray[np.bool_],
    pairs: list[tuple[int, int]],
    model: _FittedAnnotators,
) -> list[PairFit]:
    pair_fits = []
    for a, b in pairs:
        has_both_labels = has_label[:, a] & has_label[:, b]
        agreement = float((labels[has_both_labels, a] == labels[has_both_labels, b]).mean())
        expected_agreement = float(model.share @ (model.error[a] * model.error[b]).sum(axis=1))
        pair_fits.append(PairFit(a, b, int(has_both_labels.sum()), agreement, expected_agreement))
    return pair_fits


def _pair_agreement_z(pair: PairFit) -> float:
    """Return how many standard errors a pair's agreement is from the expected one."""
    # Binomial variance, with p (1 - p) of at least 1 / n: at an expected agreement of 1, a single
    # disagreement would otherwise be infinitely many standard errors away.
    variance = (
        max(pair.expected_agreement * (1.0 - pair.expected_agreement), 1.0 / pair.n_people)
        / pair.n_people
    )
    return abs(pair.agreement - pair.expected_agreement) / float(np.sqrt(variance))


def _independence_p_bonferroni(
    labels: IntArray, has_label: npt.NDArray[np.bool_], pairs: list[tuple[int, int]], n_groups: int
) -> float:
    """Test independence of labels: all pairs, the strongest pair, and all people (Bonferroni)."""
    from scipy.stats import chi2

    crowd_p = _independence_p_by_person(labels, has_label, n_groups)
    if not pairs:
        return crowd_p
    min_p, total, total_dof = 1.0, 0.0, 0
    for a, b in pairs:
        has_both_labels = has_label[:, a] & has_label[:, b]
        cell = labels[has_both_labels, a] * n_groups + labels[has_both_labels, b]
        table = (
            np.bincount(cell, minlength=n_groups * n_groups)
            .reshape(n_groups, n_groups)
            .astype(float)
        )
        # A label that nobody gave has an expected count of 0: chi-squared would divide by it.
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) < 2:
            continue
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        statistic = float(((table - expected) ** 2 / expected).sum())
        dof = (table.shape[0] - 1) * (table.shape[1] - 1)
        total, total_dof = total + statistic, total_dof + dof
        min_p = min(min_p, float(chi2.sf(statistic, dof)) * len(pairs))
    total_p = float(chi2.sf(total, total_dof)) if total_dof else 1.0
    # Bonferroni's correction for the three tests.
    return min(3.0 * min(min_p, total_p, crowd_p), 1.0)


def _independence_p_by_person(
    labels: IntArray, has_label: npt.NDArray[np.bool_], n_groups: int
) -> float:
    """Test independence without annotator pairs, for many annotators with few people in common.

    Compares agreeing label pairs within people with those expected if each annotator's labels were
    independent of the person.
    """
    from scipy.stats import norm

    answers = np.eye(n_groups)[labels] * has_label[:, :, None]  # [n, a, l]
    counts = answers.sum(axis=1)
    share = answers.sum(axis=0) / np.maximum(has_label.sum(axis=0), 1)[:, None]
    pairs = (has_label.sum(axis=1) * (has_label.sum(axis=1) - 1) / 2.0).sum()
    if pairs == 0:
        return float("nan")
    n_agreeing = float((counts * (counts - 1.0) / 2.0).sum())
    # The sum of p_a p_b over annotator pairs is ((sum of p)² - sum of p²) / 2: no list of pairs.
    expected_agreeing = ((has_label @ share) ** 2).sum() / 2.0 - (
        has_label @ (share**2)
    ).sum() / 2.0
    variance = max(expected_agreeing * (1.0 - expected_agreeing / pairs), 1e-12)
    return float(norm.sf((n_agreeing - expected_agreeing) / np.sqrt(variance)))


def _parametric_bootstrap_fit_p(
    rng: np.random.Generator,
    labels: IntArray,
    has_label: npt.NDArray[np.bool_],
    model: _FittedAnnotators,
    pair_fits: list[PairFit],
) -> tuple[float, float]:
    """Compare pairs' distances, and people's, with those of labels drawn from the model: p each."""
    groups, pairs = len(model.share), [(pair.first, pair.second) for pair in pair_fits]
    # Pairs share annotators, so the sum is not chi-squared: the bootstrap is its null distribution.
    observed = np.array(
        [
            sum(_pair_agreement_z(pair) ** 2 for pair in pair_fits),
            _agreement_variance_over_people(labels, has_label, groups),
        ]
    )
    n_larger, early_p = np.zeros(2), np.full(2, np.nan)
    for draw in range(1, _N_DRAWS + 1):
        true = rng.choice(groups, size=len(has_label), p=model.share)
        chances = model.error[:, true].cumsum(axis=2)[:, :, :-1]
        drawn_labels = (rng.random((*chances.shape[:2], 1)) > chances).sum(axis=2).T
        drawn_fits = _compare_pair_agreement_with_model(
            drawn_labels, has_label, pairs, _fit_dawid_skene_model(drawn_labels, has_label, groups)
        )
        drawn_statistics = [
            sum(_pair_agreement_z(pair) ** 2 for pair in drawn_fits),
            _agreement_variance_over_people(drawn_labels, has_label, groups),
        ]
        n_larger += drawn_statistics >= observed
        # Sequential Monte Carlo: with the h-th larger statistic in draw l, p is h / l.
        early_p[(n_larger >= _MAX_LARGER_DRAWS) & np.isnan(early_p)] = _MAX_LARGER_DRAWS / draw
        if np.isfinite(early_p).all():
            break
    fit_p, hard_people_p = np.where(np.isnan(early_p), (1.0 + n_larger) / (_N_DRAWS + 1.0), early_p)
    return float(fit_p), float(hard_people_p)


def _agreement_variance_over_people(
    labels: IntArray, has_label: npt.NDArray[np.bool_], n_groups: int
) -> float:
    """Return the variance over people of the share of their label pairs that agree.

    People who mislead every annotator have their disagreements to themselves, so it is larger.
    """
    counts = (np.eye(n_groups)[labels] * has_label[:, :, None]).sum(axis=1)
    n_pairs = has_label.sum(axis=1) * (has_label.sum(axis=1) - 1.0)
    agreement = (counts * (counts - 1.0)).sum(axis=1)[n_pairs > 0] / n_pairs[n_pairs > 0]
    return float(np.var(agreement))


def _list_annotators_below_chance(model: _FittedAnnotators, accuracy: FloatArray) -> list[int]:
    """List annotators with an accuracy below chance: one-sided, 2.5 %, Bonferroni-corrected."""
    from scipy.special import ndtri

    groups = len(model.share)
    critical_z = -float(ndtri(0.025 / max(int(np.isfinite(accuracy).sum()), 1)))
    n = np.maximum(model.answers, 1.0)
    # p (1 - p) is at most 0.25, so the standard error is not underestimated.
    standard_error = (0.25 / n).sum(axis=1) ** 0.5 / groups
    return [int(a) for a in np.flatnonzero(accuracy + critical_z * standard_error < 1.0 / groups)]


def _find_possible_copying_pair(
    accuracy: FloatArray, has_label: npt.NDArray[np.bool_], n_groups: int
) -> tuple[int, int] | None:
    """Find two of three annotators of two groups who may have copied from each other."""
    annotator_index = np.flatnonzero(has_label.any(axis=0))
    # Here the fit cannot be tested (see assess_annotator_model): this is the only sign of copying.
    if len(annotator_index) != 3 or n_groups != 2:
        return None
    order = annotator_index[np.argsort(-accuracy[annotator_index], kind="stable")]
    error_rates = 1.0 - accuracy[order]
    # An error rate above one half is reported as worse than chance instead.
    if (
        not MIN_COPY_ERROR_RATE <= error_rates[2] <= 0.5
        or error_rates[1] > MAX_COPIED_ERROR_RATIO * error_rates[2]
    ):
        return None
    first, second = sorted(order[:2].tolist())
    return first, second
