"""The metrics of face verification: each one's definition, direction, range and source."""

from __future__ import annotations

from functools import partial

from isolux.core import citations
from isolux.core.info import Metric, Reference
from isolux.stats.verification import (
    equal_error_rate_statistic,
    false_match_rate_statistic,
    false_non_match_rate_statistic,
    generalised_false_accept_rate_statistic,
    generalised_false_reject_rate_statistic,
    pairs_roc_auc_statistic,
    tar_at_far_statistic,
    true_match_rate_statistic,
)

EVIDENCE = "pairs"
"""Name of the evidence table."""
FAILURE = "failure_rate"
FTE, FTA = "failure_to_enrol_rate", "failure_to_acquire_rate"
AT_THRESHOLD = (
    "true_match_rate",
    "false_match_rate",
    "false_non_match_rate",
    "generalised_false_accept_rate",
    "generalised_false_reject_rate",
)
"""Metrics at one threshold for every group."""
_ACCEPTED = "strangers accepted as the same person"
_REFUSED = "people refused as somebody else"

FHIBE = citations.FHIBE.with_location("Methods, narrow model evaluation metrics")
ISO = Reference(
    "biometric-testing",
    "ISO/IEC 19795-1:2021. Information technology: Biometric performance testing and reporting. "
    "Part 1: Principles and framework.",
)
SUMMARIES = (
    Reference(
        "fairness-discrepancy-rate",
        "de Freitas Pereira, T. and Marcel, S. (2022). Fairness in biometrics: a figure of merit "
        "to assess biometric verification systems. IEEE Transactions on Biometrics, Behavior, and "
        "Identity Science 4(1), 19-29.",
        "the fairness discrepancy rate of both error rates",
        "https://arxiv.org/abs/2011.02395",
    ),
    Reference(
        "inequity-rate",
        "Grother, P. (2021). Demographic differentials in face recognition algorithms. EAB virtual "
        "event on demographic fairness in biometric systems.",
        "the inequity rate, as given by Howard et al. (2022)",
    ),
    Reference(
        "garbe",
        "Howard, J. J., Laird, E. J., Rubin, R. E., Sirotin, Y. B., Tipton, J. L. and Vemury, A. R."
        " (2022). Evaluating proposed fairness models for face recognition algorithms.",
        "the Gini aggregation rate for biometric equitability",
        "https://arxiv.org/abs/2203.05051",
    ),
    Reference(
        "skewed-error-ratio",
        "Wang, M. and Deng, W. (2020). Mitigating bias in face recognition using skewness-aware "
        "reinforcement learning. CVPR.",
        "the skewed error ratio of the groups' error rates",
        "https://arxiv.org/abs/1911.10692",
    ),
)
"""Cited where the two error rates at one threshold are measured: ``disparity`` sums them up."""


# Rates of pairs have no value of a single person: a pair belongs to two.
_of_pairs = partial(Metric, direction="lower", evidence=EVIDENCE, reference=ISO)


METRICS = (
    _of_pairs(
        name="tar_at_far",
        title="True accept rate at a false accept rate",
        definition="Share of the group's genuine pairs accepted at the threshold that accepts at "
        "most the given share of the group's own impostor pairs.",
        # FHIBE sets the threshold within each subgroup, so groups are compared at different
        # thresholds.
        direction="higher",
        statistic=tar_at_far_statistic(),
        reference=FHIBE,
        threshold_phrase="of",
    ),
    _of_pairs(
        name="true_match_rate",
        title="True match rate",
        definition="Share of genuine pairs accepted at one threshold for every group.",
        direction="higher",
        statistic=true_match_rate_statistic(),
    ),
    _of_pairs(
        name="false_match_rate",
        title="False match rate",
        definition="Share of impostor pairs accepted at one threshold for every group.",
        statistic=false_match_rate_statistic(),
        opposite="false_non_match_rate",
        meaning=_ACCEPTED,
        in_times="strangers are accepted {times} as often",
    ),
    _of_pairs(
        name="false_non_match_rate",
        title="False non-match rate",
        definition="Share of genuine pairs refused at one threshold for every group.",
        statistic=false_non_match_rate_statistic(),
        opposite="false_match_rate",
        meaning=_REFUSED,
        in_times="people are not recognised as themselves {times} as often",
    ),
    _of_pairs(
        name="verification_auc",
        title="Area under the ROC curve of pairs",
        definition="Chance that a genuine pair is more alike than an impostor pair; ties count "
        "half.",
        direction="higher",
        statistic=pairs_roc_auc_statistic(),
    ),
    _of_pairs(
        # The curve has steps; straight lines between its points give the crossing a defined
        # position.
        name="equal_error_rate",
        title="Equal error rate",
        definition="Error rate at the threshold where false matches and false non-matches are "
        "equally frequent, on the ROC curve drawn with straight lines.",
        statistic=equal_error_rate_statistic(),
    ),
    _of_pairs(
        # ISO/IEC 19795-1: a failed comparison counts as a rejection (docs/methods/biometrics.md).
        name="generalised_false_accept_rate",
        title="Generalised false accept rate",
        definition="Share of all impostor comparisons accepted at one threshold for every group, "
        "those of which no template could be made among them.",
        statistic=generalised_false_accept_rate_statistic(),
        opposite="generalised_false_reject_rate",
        meaning=_ACCEPTED,
    ),
    _of_pairs(
        name="generalised_false_reject_rate",
        title="Generalised false reject rate",
        definition="Share of all genuine comparisons refused at one threshold for every group, "
        "those of which no template could be made among them.",
        statistic=generalised_false_reject_rate_statistic(),
        opposite="generalised_false_accept_rate",
        meaning=_REFUSED,
    ),
    Metric(
        name=FAILURE,
        title="Failure rate",
        definition="Share of a person's comparisons that gave no similarity; with embeddings, "
        "whether no template could be made.",
        direction="lower",
        reference=ISO,
    ),
    Metric(
        name=FTE,
        title="Failure to enrol rate",
        definition="Share of images to be enrolled of which no template could be made.",
        direction="lower",
        reference=ISO,
    ),
    Metric(
        name=FTA,
        title="Failure to acquire rate",
        definition="Share of images to be compared with enrolled ones of which no template could "
        "be made.",
        direction="lower",
        reference=ISO,
    ),
)
REFERENCES = (FHIBE, ISO)
