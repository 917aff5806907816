"""What agreement of annotators measures: each metric's definition, range and source."""

from __future__ import annotations

from isolux.stats.agreement import Scale, alpha, cohen_kappa, fleiss_kappa
from isolux.stats.statistic import SumStatistic
from isolux.vocabulary.info import Metric, Reference

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
REFERENCES = (KRIPPENDORFF, COHEN, FLEISS, JACCARD)


def _share(name: str, title: str, definition: str, reference: Reference) -> Metric:
    return Metric(
        name=name, title=title, definition=definition, direction="higher", reference=reference
    )


def _beyond_chance(
    name: str, title: str, definition: str, reference: Reference, statistic: SumStatistic
) -> Metric:
    return Metric(
        name=name, title=title, definition=definition, direction="higher", low=None, high=1.0,
        unit="own unit",  # none: a pure number, as a run says
        reference=reference, evidence=EVIDENCE, statistic=statistic,
    )  # fmt: skip


_APART: dict[Scale, str] = {
    "nominal": "two answers are alike or not",
    "ordinal": "the distance of two answers is the number of answers between them",
    "interval": "the distance of two answers is the square of their difference",
}
METRICS: tuple[Metric, ...] = (
    *(
        _beyond_chance(
            f"alpha_{scale}",
            f"Agreement beyond chance (alpha, {scale})",
            "Krippendorff's alpha: one minus the disagreement within items over that expected by "
            f"chance; {apart}. 1: they always agree, 0: as expected by chance.",
            KRIPPENDORFF,
            alpha(scale),
        )
        for scale, apart in _APART.items()
    ),
    _share(
        "pairwise_agreement",
        "Pairwise agreement",
        "Share of the pairs of annotators of an item who give the same answer, averaged over "
        "items; it is higher by chance alone if one answer is common.",
        FLEISS,
    ),
    _share(
        "unanimous",
        "Unanimous items",
        "Share of the items to which all their annotators give the same answer.",
        FLEISS,
    ),
    _share(
        "mean_jaccard",
        "Mean pairwise Jaccard index",
        "Number of answers that two annotators of an item share, divided by those that either "
        "gives, averaged over pairs and items.",
        JACCARD,
    ),
    _beyond_chance(
        "fleiss_kappa",
        "Agreement beyond chance (Fleiss' kappa)",
        (
            "Agreement beyond chance divided by its maximum; every item has the same number of "
            "answers."
        ),
        FLEISS,
        fleiss_kappa(),
    ),
    _beyond_chance(
        "cohen_kappa",
        "Agreement beyond chance (Cohen's kappa)",
        "Agreement of two annotators beyond chance, divided by its maximum.",
        COHEN,
        cohen_kappa(),
    ),
)
