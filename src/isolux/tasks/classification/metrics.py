"""Metrics of classification: each declared once, with its inputs, population and unit values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import polars as pl

from isolux.core import citations
from isolux.core.info import Direction, Metric, Reference
from isolux.stats.calibration import expected_calibration_error_statistic
from isolux.stats.roc import average_precision_of_scores_statistic, roc_auc_statistic
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from isolux.tasks.classification.f1 import F1, MACRO_F1

EVIDENCE = "classification"
"""Name of the evidence table."""
CLASS_EVIDENCE = "classes"
"""Name of the evidence table with rows for each positive class in turn."""

FACET = citations.FACET.with_location("section 6.1 and appendix A.5.2")
FAIRFACE = citations.FAIRFACE.with_location(
    "section 4.3.2, equation 2", url="https://arxiv.org/abs/1908.04913"
)
IMAGENET = Reference(
    "imagenet-challenge",
    "Russakovsky, O., et al. (2015). ImageNet large scale visual recognition challenge. "
    "International Journal of Computer Vision, 115, 211–252.",
    "section 4.1",
    "https://doi.org/10.1007/s11263-015-0816-y",
)
HARDT = Reference(
    "equal-opportunity",
    "Hardt, M., Price, E., & Srebro, N. (2016). Equality of opportunity in supervised learning. "
    "In Advances in Neural Information Processing Systems 29.",
    "definitions 2.1 and 2.2",
    "https://arxiv.org/abs/1610.02413",
)
VERMA = Reference(
    "fairness-definitions",
    "Verma, S., & Rubin, J. (2018). Fairness definitions explained. In Proceedings of the "
    "International Workshop on Software Fairness (FairWare).",
    "section 3",
    "https://doi.org/10.1145/3194770.3194776",
)
BRODERSEN = Reference(
    "balanced-accuracy",
    "Brodersen, K. H., Ong, C. S., Stephan, K. E., & Buhmann, J. M. (2010). The balanced accuracy "
    "and its posterior distribution. In Proceedings of the 20th International Conference on "
    "Pattern Recognition (ICPR).",
    "section 2",
    "https://doi.org/10.1109/ICPR.2010.764",
)
HANLEY = Reference(
    "roc-auc",
    "Hanley, J. A., & McNeil, B. J. (1982). The meaning and use of the area under a receiver "
    "operating characteristic (ROC) curve. Radiology, 143, 29–36.",
    "",
    "https://doi.org/10.1148/radiology.143.1.7063747",
)
GUO = Reference(
    "calibration",
    "Guo, C., Pleiss, G., Sun, Y., & Weinberger, K. Q. (2017). On calibration of modern neural "
    "networks. In Proceedings of the 34th International Conference on Machine Learning (ICML).",
    "section 2, equation 3",
    "https://arxiv.org/abs/1706.04599",
)
SU = Reference(
    "average-precision",
    "Su, W., Yuan, Y., & Zhu, M. (2015). A relationship between the average precision and the area "
    "under the ROC curve. In Proceedings of the 2015 International Conference on the Theory of "
    "Information Retrieval (ICTIR).",
    "section 2",
    "https://doi.org/10.1145/2808194.2809481",
)
NAEINI = Reference(
    "class-calibration",
    "Naeini, M. P., Cooper, G. F., & Hauskrecht, M. (2015). Obtaining well calibrated "
    "probabilities using Bayesian binning. In Proceedings of the 29th AAAI Conference on "
    "Artificial Intelligence.",
    "experimental results, expected calibration error",
    "https://doi.org/10.1609/aaai.v29i1.9602",
)
VAN_RIJSBERGEN = Reference(
    "f1",
    "van Rijsbergen, C. J. (1979). Information retrieval (2nd ed.). Butterworths.",
    "chapter 7, effectiveness with equal weights, one minus it",
    "",
)
OPITZ = Reference(
    "macro-f1",
    "Opitz, J., & Burst, S. (2019). Macro F1 and macro F1.",
    "averaged F1: the mean over classes of F1",
    "https://arxiv.org/abs/1911.03347",
)
REFERENCES = (
    FACET,
    FAIRFACE,
    IMAGENET,
    HARDT,
    VERMA,
    BRODERSEN,
    HANLEY,
    GUO,
    SU,
    NAEINI,
    VAN_RIJSBERGEN,
    OPITZ,
)


Need = Literal["answers", "detection", "positive", "score", "top_k"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """One metric: its inputs, the units it is a mean over, and the value of each unit.

    ``population`` and ``unit_value`` are evaluated on the scored units and, where the metric needs
    ``positive``, on the columns ``is_positive`` and ``is_given`` of the current positive class.
    ``by_class``: a row for each valid class of a unit. ``reason`` is the column that excludes
    units, if not that of the policy on undetected people; ``on_detected`` is the same metric
    without undetected people. ``on_request``: measured only where it is named.
    """

    metric: Metric
    needs: tuple[Need, ...]
    unit_value: pl.Expr | None = None
    population: pl.Expr = field(default_factory=lambda: pl.lit(value=True))
    by_class: bool = False
    reason: str | None = None
    on_detected: str | None = None
    on_request: bool = False


def _rate_entry(
    name: str,
    definition: str,
    reference: Reference,
    direction: Direction = "higher",
    *,
    opposite: str = "",
    meaning: str = "",
    in_people: str = "",
    **entry: Any,
) -> MetricEntry:
    """Declare a metric that is a mean of unit values."""
    metric = Metric(
        name=name,
        title=name.replace("_", " ").replace("top k", "top-k").capitalize(),
        definition=definition,
        direction=direction,
        reference=reference,
        opposite=opposite,
        meaning=meaning,
        in_people=f"Of {{people}} {in_people}" if in_people else "",
    )
    return MetricEntry(metric=metric, **entry)


def _evidence_entry(
    needs: tuple[Need, ...], *, on_request: bool = False, **metric: Any
) -> MetricEntry:
    """Declare a metric that is a statistic of the evidence."""
    declared = Metric(**{"evidence": EVIDENCE, **metric})
    return MetricEntry(metric=declared, needs=needs, on_request=on_request)


_CORRECT, _IS_GIVEN, _IS_POSITIVE = pl.col("correct"), pl.col("is_given"), pl.col("is_positive")
_class_rate_entry = partial(_rate_entry, needs=("answers", "positive"))
_class_evidence_entry = partial(_evidence_entry, ("score", "positive"))
METRIC_ENTRIES = (
    _rate_entry(
        "accuracy",
        "Share of units whose answer is one of their valid classes.",
        FAIRFACE,
        in_people="the model is right for {n}",
        needs=("answers",),
        unit_value=_CORRECT,
        on_detected="accuracy_on_detected",
    ),
    _rate_entry(
        "accuracy_on_detected",
        "Accuracy among the units that were detected, the others left out.",
        replace(FAIRFACE, location="Table 6, the rows with an asterisk"),
        needs=("detection",),
        unit_value=_CORRECT,
        reason="left_out",
    ),
    _rate_entry(
        "recall",
        "Share of the units of a class whose answer is that class, or another that is equally "
        "valid for them (R@1).",
        FACET,
        in_people="of class {label} the model finds {n}",
        needs=("answers",),
        unit_value=_CORRECT,
        by_class=True,
        on_detected="recall_on_detected",
    ),
    _rate_entry(
        "recall_on_detected",
        "Recall among the units that were detected, the others left out.",
        FACET,
        needs=("detection",),
        unit_value=_CORRECT,
        by_class=True,
        reason="left_out",
    ),
    _rate_entry(
        "top_k_accuracy",
        "Share of units with a valid class among the first k distinct answers.",
        IMAGENET,
        in_people="one of the first answers is right for {n}",
        needs=("top_k",),
        # The place of the first valid class; beyond all k where none is listed.
        unit_value=pl.col("place") <= pl.col("k"),
    ),
    _rate_entry(
        "detection_rate",
        "Share of units that the model found at all.",
        replace(FAIRFACE, location="Table 8"),
        in_people="the model detects {n}",
        needs=("detection",),
        # An unknown truth is left out: then accuracy = accuracy_on_detected * detection_rate.
        unit_value=pl.col("detected"),
        reason="unjudged",
    ),
    _evidence_entry(
        name="balanced_accuracy",
        title="Balanced accuracy",
        definition="Mean of the recalls of the classes that occur in the group.",
        direction="higher",
        statistic=BALANCED_ACCURACY,
        reference=BRODERSEN,
        needs=("answers",),
    ),
    _evidence_entry(
        name="macro_f1",
        title="Macro-F1",
        definition="Mean of the F1 of the classes that occur in the group, as truth or as answer.",
        direction="higher",
        statistic=MACRO_F1,
        reference=OPITZ,
        needs=("answers",),
        on_request=True,
    ),
    _class_rate_entry(
        "true_positive_rate",
        "Share of the units of the positive class that were predicted positive.",
        HARDT,
        in_people="of the positive class the model selects {n}",
        population=_IS_POSITIVE,
        unit_value=_IS_GIVEN,
    ),
    _class_rate_entry(
        "false_positive_rate",
        "Share of the units not of the positive class that were predicted positive.",
        HARDT,
        "lower",
        opposite="false_negative_rate",
        meaning="others taken for {label}",
        in_people="not of the positive class the model selects {n}",
        population=~_IS_POSITIVE,
        unit_value=_IS_GIVEN,
    ),
    _class_rate_entry(
        "true_negative_rate",
        "Share of the units not of the positive class that were not predicted positive.",
        HARDT,
        in_people="not of the positive class the model leaves out {n}",
        population=~_IS_POSITIVE,
        unit_value=~_IS_GIVEN,
    ),
    _class_rate_entry(
        "false_negative_rate",
        "Share of the units of the positive class that were not predicted positive.",
        HARDT,
        "lower",
        opposite="false_positive_rate",
        meaning="{label} not recognised as such",
        in_people="of the positive class the model misses {n}",
        population=_IS_POSITIVE,
        unit_value=~_IS_GIVEN,
    ),
    _class_rate_entry(
        "precision",
        "Share of the units predicted positive that are of the positive class.",
        VERMA,
        # Precision is a share of the people predicted positive, not of those who are positive.
        population=_IS_GIVEN,
        unit_value=_IS_POSITIVE,
    ),
    _class_rate_entry(
        "selection_rate",
        "Share of units that were given the positive class.",
        VERMA,
        # A rate of selection is neither better high nor low without a truth.
        "none",
        in_people="the model selects {n}",
        unit_value=_IS_GIVEN,
    ),
    _evidence_entry(
        name="f1",
        title="F1",
        definition="Harmonic mean of precision and true positive rate of the positive class: twice "
        "the true positives over the units of the class plus those predicted to be; it also moves "
        "with how common the class is in a group.",
        direction="higher",
        evidence=CLASS_EVIDENCE,
        statistic=F1,
        reference=VAN_RIJSBERGEN,
        undefined="nobody is of the class or predicted to be",
        needs=("answers", "positive"),
        on_request=True,
    ),
    _class_evidence_entry(
        name="roc_auc",
        title="Area under the ROC curve",
        definition="Chance that a unit of the positive class scores above one that is not of "
        "it; ties count half.",
        direction="higher",
        statistic=roc_auc_statistic(),
        reference=HANLEY,
    ),
    _class_evidence_entry(
        name="average_precision",
        title="Average precision",
        definition="Precision averaged over the units of the positive class as the threshold "
        "falls; it also moves with how common the class is in a group.",
        direction="higher",
        statistic=average_precision_of_scores_statistic(),
        reference=SU,
    ),
    _evidence_entry(
        name="calibration_error",
        title="Expected calibration error",
        definition="Mean gap between confidence and accuracy over bins of confidence, weighted by "
        "their units; noise alone makes it larger in a small group.",
        direction="lower",
        statistic=expected_calibration_error_statistic(),
        reference=GUO,
        # Not pooled: groups whose confidences err in opposite directions cancel in the mixture, so
        # the value of everyone may lie outside the groups' values.
        has_overall_among_groups=False,
        needs=("score",),
    ),
    _class_evidence_entry(
        name="class_calibration_error",
        title="Calibration error of the positive class",
        definition="Mean gap between the score of the positive class and the share of units "
        "that are of it, over bins of the score, weighted by their units; noise alone makes it "
        "larger in a small group.",
        direction="lower",
        statistic=expected_calibration_error_statistic(
            confidence="positive_score", correct="is_positive", bin_column="positive_score_bin"
        ),
        reference=NAEINI,
        has_overall_among_groups=False,
    ),
)
"""All metrics of classification; the lists below and the task's metrics are made from these."""
METRICS = tuple(entry.metric for entry in METRIC_ENTRIES)


def names_that_need(*needs: Need) -> tuple[str, ...]:
    """List the metrics that need all of these inputs."""
    return tuple(entry.metric.name for entry in METRIC_ENTRIES if set(needs) <= set(entry.needs))


ON_DETECTED = {e.metric.name: e.on_detected for e in METRIC_ENTRIES if e.on_detected is not None}
"""Metrics, and the same metrics among detected units only."""
