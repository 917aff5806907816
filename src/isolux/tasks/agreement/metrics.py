"""What agreement of annotators measures: each metric's definition, range and source."""

from __future__ import annotations

from functools import partial

from isolux.stats.agreement import Scale, alpha, cohen_kappa, fleiss_kappa
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


_share = partial(Metric, direction="higher")


_beyond_chance = partial(
    Metric,
    direction="higher",
    low=None,
    unit="own unit",  # none: a pure number, as a run says
    evidence=EVIDENCE,
)


_APART: dict[Scale, str] = {
    "nominal": "two answers are alike or not",
    "ordinal": "the distance of two answers is the number of answers between them",
    "interval": "the distance of two answers is the square of their difference",
}
METRICS: tuple[Metric, ...] = (
    *(
        _beyond_chance(
            name=f"alpha_{scale}",
            title=f"Agreement beyond chance (alpha, {scale})",
            definition="Krippendorff's alpha: one minus the disagreement within items over that "
            f"expected by chance; {apart}. 1: they always agree, 0: as expected by chance.",
            reference=KRIPPENDORFF,
            statistic=alpha(scale),
        )
        for scale, apart in _APART.items()
    ),
    _share(
        name="pairwise_agreement",
        title="Pairwise agreement",
        definition="Share of the pairs of annotators of an item who give the same answer, averaged "
        "over items; it is higher by chance alone if one answer is common.",
        reference=FLEISS,
    ),
    _share(
        name="unanimous",
        title="Unanimous items",
        definition="Share of the items to which all their annotators give the same answer.",
        reference=FLEISS,
    ),
    _share(
        name="mean_jaccard",
        title="Mean pairwise Jaccard index",
        definition="Number of answers that two annotators of an item share, divided by those that "
        "either gives, averaged over pairs and items.",
        reference=JACCARD,
    ),
    _beyond_chance(
        name="fleiss_kappa",
        title="Agreement beyond chance (Fleiss' kappa)",
        definition="Agreement beyond chance divided by its maximum; every item has the same number "
        "of answers.",
        reference=FLEISS,
        statistic=fleiss_kappa(),
    ),
    _beyond_chance(
        name="cohen_kappa",
        title="Agreement beyond chance (Cohen's kappa)",
        definition="Agreement of two annotators beyond chance, divided by its maximum.",
        reference=COHEN,
        statistic=cohen_kappa(),
    ),
)
