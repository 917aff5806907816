"""Metrics of agreement: each declared once, with its definition, range and reference."""

from __future__ import annotations

from functools import partial
from typing import Literal

from isolux.core.info import Metric, Reference
from isolux.stats.agreement import (
    Scale,
    cohen_kappa_statistic,
    fleiss_kappa_statistic,
    krippendorff_alpha_statistic,
    weighted_kappa_statistic,
)

EVIDENCE = "answers"
"""Name of the evidence table."""
KRIPPENDORFF = Reference(
    "krippendorff-alpha",
    "Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of "
    "Pennsylvania, Annenberg School for Communication.",
    "sections C to E",
    "https://repository.upenn.edu/handle/20.500.14332/2089",
)
COHEN = Reference(
    "cohen-kappa",
    "Cohen, J. (1960). A coefficient of agreement for nominal scales. Educational and "
    "Psychological Measurement, 20, 37–46.",
    "",
    "https://doi.org/10.1177/001316446002000104",
)
COHEN_WEIGHTED = Reference(
    "weighted-kappa",
    "Cohen, J. (1968). Weighted kappa: Nominal scale agreement with provision for scaled "
    "disagreement or partial credit. Psychological Bulletin, 70, 213–220.",
    "",
    "https://doi.org/10.1037/h0026256",
)
FLEISS = Reference(
    "fleiss-kappa",
    "Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological "
    "Bulletin, 76, 378–382.",
    "",
    "https://doi.org/10.1037/h0031619",
)
JACCARD = Reference(
    "jaccard-index",
    "Jaccard, P. (1912). The distribution of the flora in the alpine zone. New Phytologist, 11, "
    "37–50.",
    "",
    "https://doi.org/10.1111/j.1469-8137.1912.tb05611.x",
)
REFERENCES = (KRIPPENDORFF, COHEN, COHEN_WEIGHTED, FLEISS, JACCARD)


_share_metric = partial(Metric, direction="higher")


_chance_corrected_metric = partial(
    Metric,
    direction="higher",
    # Agreement below chance is negative, without a common lower bound.
    low=None,
    unit="own unit",  # none: a pure number, as a run says
    evidence=EVIDENCE,
)


_DISTANCE_TEXTS: dict[Scale, str] = {
    "nominal": "two answers are alike or not",
    "ordinal": "the distance of two answers is the number of answers between them",
    "interval": "the distance of two answers is the square of their difference",
}
_KAPPA_DISTANCES: dict[Literal["linear", "quadratic"], str] = {
    "linear": "mean distance",
    "quadratic": "mean squared distance",
}
METRICS: tuple[Metric, ...] = (
    *(
        _chance_corrected_metric(
            name=f"alpha_{scale}",
            title=f"Agreement beyond chance (alpha, {scale})",
            definition="Krippendorff's alpha: one minus the disagreement within items over that "
            f"expected by chance; {distance}. 1: they always agree, 0: as expected by chance.",
            reference=KRIPPENDORFF,
            statistic=krippendorff_alpha_statistic(scale),
        )
        for scale, distance in _DISTANCE_TEXTS.items()
    ),
    _share_metric(
        name="pairwise_agreement",
        title="Pairwise agreement",
        definition="Share of the pairs of annotators of an item who give the same answer, averaged "
        "over items; it is higher by chance alone if one answer is common.",
        reference=FLEISS,
    ),
    _share_metric(
        name="unanimity_rate",
        title="Unanimous items",
        definition="Share of the items to which all their annotators give the same answer.",
        reference=FLEISS,
    ),
    _share_metric(
        name="within_one",
        title="Agreement within one",
        definition="Share of the pairs of annotators of an item whose answers, as numbers, differ "
        "by at most 1, averaged over items; by chance alone it is higher than exact agreement.",
        reference=FLEISS,
    ),
    _share_metric(
        name="mean_jaccard",
        title="Mean pairwise Jaccard index",
        definition="Number of answers that two annotators of an item share, divided by those that "
        "either gives, averaged over pairs and items.",
        reference=JACCARD,
    ),
    _chance_corrected_metric(
        name="fleiss_kappa",
        title="Agreement beyond chance (Fleiss' kappa)",
        definition="Agreement beyond chance divided by its maximum; every item has the same number "
        "of answers.",
        reference=FLEISS,
        statistic=fleiss_kappa_statistic(),
    ),
    _chance_corrected_metric(
        name="cohen_kappa",
        title="Agreement beyond chance (Cohen's kappa)",
        definition="Agreement of two annotators beyond chance, divided by its maximum.",
        reference=COHEN,
        statistic=cohen_kappa_statistic(),
    ),
    *(
        _chance_corrected_metric(
            name=f"{weights}_weighted_kappa",
            title=f"Agreement beyond chance (kappa, {weights} weights)",
            definition=f"One minus the {distance} of two annotators' answers over that expected by "
            "chance; on an ordinal scale the distance counts the answers between them.",
            reference=COHEN_WEIGHTED,
            statistic=weighted_kappa_statistic(weights),
        )
        for weights, distance in _KAPPA_DISTANCES.items()
    ),
)
WEIGHTED_KAPPAS = {f"{weights}_weighted_kappa" for weights in _KAPPA_DISTANCES}
SCALED_METRICS = WEIGHTED_KAPPAS | {"within_one"}
"""Metrics of answers that are numbers."""
NOMINAL_KAPPAS = {"fleiss_kappa", "cohen_kappa"}
