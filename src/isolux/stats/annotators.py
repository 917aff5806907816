"""Annotator models: the posterior of items' true classes, and each annotator's accuracy.

Dawid & Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM
algorithm", Applied Statistics 28:20-28: every annotator has a confusion matrix. Whitehill et al.
(2009), "Whose vote should count more", NIPS 22 (GLAD): every annotator has a skill and every item
a difficulty. Neither has the truth: errors that annotators share cannot be detected. EM for
Dawid & Skene is accelerated as in Varadhan & Roland (2008), "Simple and globally convergent methods
for accelerating the convergence of any EM algorithm", Scandinavian Journal of Statistics
35:335-353.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class AnnotatorLabels:
    """Labels, one row each, numbered from 0.

    Parameters
    ----------
    item_index, annotator_index, label : [m] int32
        The item, the annotator, the label.
    n_items, n_annotators, n_classes : int
        How many there are of each.
    """

    item_index: Codes
    annotator_index: Codes
    label: Codes
    n_items: int
    n_annotators: int
    n_classes: int


@dataclass(frozen=True, slots=True)
class AnnotatorModel:
    """The posterior of items' classes, and the accuracy of annotators.

    Parameters
    ----------
    posterior : [items, classes] float
        Of each class; rows sum to 1. An item without labels has the classes' proportions.
    accuracy : [annotators] float
        The expected share of an annotator's labels that are correct; NaN: no labels.
    has_converged : bool
        Whether the fit converged within the allowed iterations.
    """

    posterior: FloatArray
    accuracy: FloatArray
    has_converged: bool


def label_shares_by_item(labels: AnnotatorLabels) -> FloatArray:
    """Compute each item's share of each label; 0 where it has none."""
    votes = np.bincount(
        labels.item_index.astype(np.int64) * labels.n_classes + labels.label,
        minlength=labels.n_items * labels.n_classes,
    ).reshape(labels.n_items, labels.n_classes)
    return np.asarray(votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0))


def fit_dawid_skene(
    labels: AnnotatorLabels,
    *,
    item_weights: FloatArray | None = None,
    start_posterior: FloatArray | None = None,
    max_rounds: int = 2000,
    tolerance: float = 1e-6,
) -> AnnotatorModel:
    """Fit annotators' confusion matrices by EM, with the posterior of each item's class.

    Shapes: ``item_weights`` [items], ``start_posterior`` [items, classes].
    """
    item_weights = np.ones(labels.n_items) if item_weights is None else item_weights
    posterior = np.array(
        label_shares_by_item(labels) if start_posterior is None else start_posterior
    )
    step = _build_dawid_skene_step(labels, item_weights, posterior)
    point = _EmPoint(
        _weighted_confusion_counts(labels, item_weights, posterior), item_weights @ posterior
    )
    has_converged = False
    # A round is up to three EM steps: two plain ones, and one after the extrapolation.
    for _ in range(max_rounds // 3 + 1):
        first_step, _, _ = step(point)
        second_step, max_change, likelihood = step(first_step)
        if max_change < tolerance:
            has_converged = True
            break
        point = _extrapolate_squarem(point, first_step, second_step, likelihood, step)
    return AnnotatorModel(
        posterior, _expected_annotator_accuracy(labels, posterior, item_weights), has_converged
    )


@dataclass(frozen=True, slots=True)
class _EmPoint:
    """Parameters of EM: expected counts ``[annotators × classes, classes]``, and class weights."""

    counts: FloatArray
    share: FloatArray

    def add(
        self, first: _EmPoint, first_factor: float, second: _EmPoint, second_factor: float
    ) -> _EmPoint:
        return _EmPoint(
            self.counts + first_factor * first.counts + second_factor * second.counts,
            self.share + first_factor * first.share + second_factor * second.share,
        )

    def length(self) -> float:
        return float(np.sqrt((self.counts**2).sum() + (self.share**2).sum()))


_SMOOTHING_COUNT = 0.01  # of a label, added to every cell of a confusion matrix: no error rate is 0
_MAX_LEAP = 64.0  # largest extrapolation, in EM steps
_EmStep = Callable[[_EmPoint], tuple[_EmPoint, float, float]]


def _weighted_confusion_counts(
    labels: AnnotatorLabels, item_weights: FloatArray, posterior: FloatArray
) -> FloatArray:
    from isolux.stats._annotator_kernels import add_posterior_confusion_counts

    starts, cell = _sort_labels_by_item(labels)
    counts = np.full((labels.n_annotators * labels.n_classes, labels.n_classes), _SMOOTHING_COUNT)
    add_posterior_confusion_counts(posterior, starts, cell, item_weights, counts)
    return counts


def _sort_labels_by_item(
    labels: AnnotatorLabels,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    n_labels = np.bincount(labels.item_index, minlength=labels.n_items)
    starts = np.concatenate([[0], np.cumsum(n_labels)]).astype(np.int32)
    cell = labels.annotator_index * np.int32(labels.n_classes) + labels.label
    if (np.diff(labels.item_index) < 0).any():
        cell = cell[np.argsort(labels.item_index, kind="stable")]
    return starts, cell


def _build_dawid_skene_step(
    labels: AnnotatorLabels, item_weights: FloatArray, posterior: FloatArray
) -> _EmStep:
    """Build one EM step: from a point to the next, the change of the posterior, the likelihood.

    ``posterior`` is written anew by each round.
    """
    from isolux.stats._annotator_kernels import update_posteriors_em

    starts, cell = _sort_labels_by_item(labels)

    def em_step(point: _EmPoint) -> tuple[_EmPoint, float, float]:
        confusion_counts = point.counts.reshape(
            labels.n_annotators, labels.n_classes, labels.n_classes
        )
        total = confusion_counts.sum(axis=1, keepdims=True)
        error = np.divide(
            confusion_counts, total, out=np.zeros_like(confusion_counts), where=total > 0
        )
        # At least 1e-300: a log of 0 would make differences of two logs NaN.
        log_share = np.log(np.maximum(point.share / point.share.sum(), 1e-300))
        log_error = np.log(np.maximum(error, 1e-300)).reshape(point.counts.shape)
        counts = np.full_like(point.counts, _SMOOTHING_COUNT)
        max_change, log_likelihood = update_posteriors_em(
            log_share, log_error, starts, cell, item_weights, posterior, counts
        )
        return (
            _EmPoint(counts, item_weights @ posterior),
            max_change,
            # Adding c to each cell maximises the likelihood times a Dirichlet prior with exponent
            # c, so a gain must be measured on that product.
            log_likelihood + _SMOOTHING_COUNT * float(log_error.sum()),
        )

    return em_step


def _extrapolate_squarem(
    point: _EmPoint, first_step: _EmPoint, second_step: _EmPoint, likelihood: float, step: _EmStep
) -> _EmPoint:
    """Extrapolate two EM steps (SQUAREM, third scheme: Varadhan & Roland 2008).

    An EM step follows; without a gain in likelihood the second plain step is returned.
    """
    first = first_step.add(point, -1.0, point, 0.0)
    second = second_step.add(first_step, -2.0, point, 1.0)
    step_length, curvature = first.length(), second.length()
    # Step length |r| / |v|; 1 or less is no extrapolation.
    length = min(step_length / curvature, _MAX_LEAP) if curvature > 0 else 1.0
    if length <= 1:
        return second_step
    leap = point.add(first, 2 * length, second, length**2)
    # An extrapolation may leave the parameter space: counts and proportions stay above 0.
    leap = _EmPoint(np.maximum(leap.counts, _SMOOTHING_COUNT), np.maximum(leap.share, 1e-9))
    landing, _, leap_likelihood = step(leap)
    return landing if leap_likelihood >= likelihood else second_step


def _expected_annotator_accuracy(
    labels: AnnotatorLabels, posterior: FloatArray, item_weights: FloatArray
) -> FloatArray:
    weight = item_weights[labels.item_index]
    correct_weight = np.bincount(
        labels.annotator_index,
        posterior[labels.item_index, labels.label] * weight,
        labels.n_annotators,
    )
    label_weight = np.bincount(labels.annotator_index, weight, labels.n_annotators)
    shares: FloatArray = np.full(labels.n_annotators, np.nan)
    np.divide(correct_weight, label_weight, out=shares, where=label_weight > 0)
    return shares


def fit_glad(
    labels: AnnotatorLabels,
    *,
    item_weights: FloatArray | None = None,
    start_posterior: FloatArray | None = None,
    max_rounds: int = 100,
    tolerance: float = 1e-4,
) -> AnnotatorModel:
    """Fit a skill of every annotator and a difficulty of every item (GLAD).

    Shapes: ``item_weights`` [items], ``start_posterior`` [items, classes].
    Both have normal priors, skills with mean 1 and log eases with mean 1, each with variance 1 (as
    in the paper's section 3).
    """
    item_weights = np.ones(labels.n_items) if item_weights is None else item_weights
    posterior = label_shares_by_item(labels) if start_posterior is None else start_posterior
    parameters = np.ones(
        labels.n_annotators + labels.n_items
    )  # skills, then log eases, at their prior means
    has_converged = False
    for _ in range(max_rounds):
        parameters = _maximise_skills_and_eases(labels, posterior, item_weights, parameters)
        probability_correct = _glad_probability_correct(labels, parameters)
        log_error = np.log(
            np.maximum(1 - probability_correct, 1e-300) / max(labels.n_classes - 1, 1)
        )
        share = item_weights @ posterior
        logs = np.tile(np.log(np.maximum(share / share.sum(), 1e-300)), (labels.n_items, 1))
        # GLAD: an incorrect label is uniform over the other classes.
        logs += np.bincount(labels.item_index, log_error, labels.n_items)[:, None]
        index = labels.item_index.astype(np.int64) * labels.n_classes + labels.label
        gain = np.log(np.maximum(probability_correct, 1e-300)) - log_error
        logs += np.bincount(index, gain, logs.size).reshape(logs.shape)
        new_posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        new_posterior /= new_posterior.sum(axis=1, keepdims=True)
        max_change = float(np.abs(new_posterior - posterior).max(initial=0.0))
        posterior = new_posterior
        if max_change < tolerance:
            has_converged = True
            break
    return AnnotatorModel(
        posterior, _expected_annotator_accuracy(labels, posterior, item_weights), has_converged
    )


def _glad_probability_correct(labels: AnnotatorLabels, parameters: FloatArray) -> FloatArray:
    skill, ease = (
        parameters[: labels.n_annotators],
        # The logistic function is 0 or 1 in floating point long before: this prevents overflow.
        np.exp(np.minimum(parameters[labels.n_annotators :], 10.0)),
    )
    return np.asarray(
        1 / (1 + np.exp(-np.clip(skill[labels.annotator_index] * ease[labels.item_index], -30, 30)))
    )


def _maximise_skills_and_eases(
    labels: AnnotatorLabels, posterior: FloatArray, item_weights: FloatArray, parameters: FloatArray
) -> FloatArray:
    """Maximise the expected log posterior of skills and eases (M step of GLAD)."""
    from scipy.optimize import minimize

    posterior_of_label = posterior[labels.item_index, labels.label]
    weight = item_weights[labels.item_index]
    n = labels.n_annotators

    def loss_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        probability_correct = _glad_probability_correct(labels, x)
        ease = np.exp(np.minimum(x[n:], 10.0))
        # At most 1 - 1e-15: log1p(-1) would be -inf where the logistic function rounds to 1.
        per_row = posterior_of_label * np.log(probability_correct) + (
            1 - posterior_of_label
        ) * np.log1p(-np.minimum(probability_correct, 1 - 1e-15))
        slope = weight * (posterior_of_label - probability_correct)
        gradient = np.concatenate(
            [
                np.bincount(labels.annotator_index, slope * ease[labels.item_index], n),
                np.bincount(labels.item_index, slope * x[labels.annotator_index], labels.n_items)
                * ease,
            ]
        )
        # An item of weight w represents w items, each with its own prior.
        prior = 0.5 * ((x[:n] - 1) ** 2).sum() + 0.5 * (item_weights * (x[n:] - 1) ** 2).sum()
        prior_gradient = np.concatenate([x[:n] - 1, item_weights * (x[n:] - 1)])
        return float(prior - (weight * per_row).sum()), prior_gradient - gradient

    # EM needs an increase in each M step, not the maximum (generalised EM).
    optimum = minimize(
        loss_and_gradient, parameters, jac=True, method="L-BFGS-B", options={"maxiter": 25}
    )
    return np.asarray(optimum.x)
