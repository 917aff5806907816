"""The metrics of identification: each one's definition, direction, range and source.

Every metric is a mean of 0 and 1 over searches, or over images that were to be enrolled, so groups,
intervals, tests, weights and comparisons are those of any other share.
"""

from __future__ import annotations

from functools import partial

from isolux.core.info import Metric, Reference

HIT = "hit_rate_at_rank"
FPIR = "false_positive_identification_rate"
FNIR = "false_negative_identification_rate"
FTA = "failure_to_acquire_rate"
FTE = "failure_to_enrol_rate"
AT_THRESHOLD = (FPIR, FNIR)
"""Metrics at one threshold for every group."""
CANDIDATES, GALLERY = "candidates", "gallery"
"""Names of the evidence tables."""

ISO = Reference(
    "biometric-testing",
    "ISO/IEC 19795-1:2021. Information technology: Biometric performance testing and reporting. "
    "Part 1: Principles and framework.",
    "the terms FPIR and FNIR (3.22), as far as they are public",
    "https://nlfnorm.cz/terminologicky-slovnik/248470",
)
NIST = Reference(
    "frte-identification",
    "Grother, P., Ngan, M. and Hanaoka, K. (2019). Face recognition vendor test (FRVT) part 2: "
    "Identification. NIST Interagency Report 8271.",
    "metrics: false positive and false negative identification rates, rank, hit rate",
    "https://doi.org/10.6028/NIST.IR.8271",
)
REFERENCES = (ISO, NIST)


_share = partial(Metric, direction="lower", reference=ISO)


METRICS = (
    _share(
        name=HIT,
        title="Hit rate",
        definition="Share of searches for people who are enrolled in which their own entry is "
        "among the first k people found, at any score.",
        direction="higher",
        reference=NIST,
        # At any score: NIST reports rank-based hit rates for investigations, in which a person
        # looks at the list.
        threshold_phrase="at rank",
    ),
    _share(
        name=FPIR,
        title="False positive identification rate",
        definition="Share of searches for people who are not enrolled that return anyone at or "
        "above the threshold.",
        # A higher threshold lowers this rate and raises the other.
        opposite=FNIR,
        meaning="strangers taken for somebody enrolled",
        in_times="searches for strangers return somebody {times} as often",
    ),
    _share(
        name=FNIR,
        title="False negative identification rate",
        definition="Share of searches for people who are enrolled that do not return their own "
        "entry within the rank limit and at or above the threshold.",
        opposite=FPIR,
        meaning="enrolled people not recognised",
        in_times="searches for enrolled people fail {times} as often",
    ),
    _share(
        name=FTA,
        title="Failure to acquire rate",
        definition="Share of images to be searched for of which no template could be made.",
    ),
    _share(
        name=FTE,
        title="Failure to enrol rate",
        definition="Share of images to be enrolled of which no template could be made.",
    ),
)
