"""The evidence tables of classification, and the bins of its calibration errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.core.counts import TIMES
from isolux.core.errors import SpecError
from isolux.stats.calibration import N_BINS, Binning, assign_confidence_bins, refuse_invalid_bins
from isolux.tasks.classification.answers import Confidence
from isolux.tasks.classification.metrics import CLASS_EVIDENCE, EVIDENCE, METRICS
from isolux.tasks.classification.rates import ClassificationOutcomes, compare_with_class

_CALIBRATION_METRICS = ("calibration_error", "class_calibration_error")
_BINNED_COLUMNS = (("confidence", "correct"), ("positive_score", "is_positive"))
"""A confidence, and what it is compared with: a row with both has a bin."""


@dataclass(frozen=True, slots=True)
class CalibrationBins:
    """The bins of calibration errors: how many, and of equal width or of equal mass."""

    n_bins: int = N_BINS
    binning: Binning = "equal-width"

    def __post_init__(self) -> None:
        refuse_invalid_bins(self.n_bins)

    def choices(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Describe bins other than the default, for the record and sentences."""
        if self == CalibrationBins():
            return {}
        metrics = [name for name in names if name in _CALIBRATION_METRICS]
        if not metrics:
            raise SpecError(
                "bins of confidence would do nothing: no calibration error is measured",
                expected="scores, and no other metrics than a calibration error, or it among them",
                found=f"{self.n_bins} bins ({self.binning})",
                where="calibration_bins, calibration_binning",
            )
        binning_text = self.binning.replace("-", " ")
        return {
            "calibration_bins": {
                "number": self.n_bins,
                "binning": self.binning,
                "metrics": metrics,
                "words": f"over {self.n_bins} bins of {binning_text}",
            }
        }

    def add_columns(self, evidence: pl.DataFrame, multiplicity: pl.Series | None) -> pl.DataFrame:
        """Add the bin of each confidence; those of equal mass are of all people of a model."""
        counts = None if multiplicity is None else multiplicity.to_numpy()
        bins = {}
        for confidence, outcome in _BINNED_COLUMNS:
            codes = np.full(evidence.height, -1, dtype=np.int64)
            has_both = evidence[confidence].is_not_null() & evidence[outcome].is_not_null()
            for model in evidence["model"].unique():
                rows = (has_both & (evidence["model"] == model)).arg_true().to_numpy()
                codes[rows] = assign_confidence_bins(
                    evidence[confidence].gather(rows).to_numpy(),
                    self.n_bins,
                    self.binning,
                    None if counts is None else counts[rows],
                )
            bins[f"{confidence}_bin"] = pl.Series(codes).replace(-1, None)
        return evidence.with_columns(**bins, n_bins=pl.lit(self.n_bins, dtype=pl.Int64))


def build_evidence(
    outcomes: ClassificationOutcomes,
    confidence: Confidence,
    names: Sequence[str],
    bins: CalibrationBins,
) -> dict[str, pl.DataFrame]:
    """Build the evidence tables that the metrics read."""
    units = outcomes.units
    times = units[TIMES] if TIMES in units.columns else None
    evidence = {EVIDENCE: bins.add_columns(_build_unit_evidence(outcomes, confidence), times)}
    # As many rows as people times classes: only where a metric reads them.
    if any(metric.evidence == CLASS_EVIDENCE for metric in METRICS if metric.name in names):
        evidence[CLASS_EVIDENCE] = _build_class_evidence(outcomes)
    return evidence


def _build_unit_evidence(outcomes: ClassificationOutcomes, confidence: Confidence) -> pl.DataFrame:
    """Build the evidence: one row per model and unit, with ``correct`` under the policy.

    ``reason`` is that of a null ``correct``; where ``correct`` has a value, that of a null score.
    """
    positive = pl.lit(outcomes.positive, dtype=pl.String)
    columns = outcomes.units.with_columns(confidence.columns)
    # Only where some unit has a score is its absence a reason.
    unscored = pl.col("score").is_null() & pl.col("score").is_not_null().any()
    return columns.select(
        "model",
        "unit_id",
        "cluster_id",
        "truth",
        "prediction",
        "detected",
        correct=pl.when(pl.col(outcomes.reason).is_null()).then("correct"),
        confidence="confidence",
        positive=positive,
        positive_score="positive_score",
        is_positive=pl.col("truth").list.contains(positive)
        if outcomes.positive is not None
        else pl.lit(None, dtype=pl.Boolean),
        reason=pl.coalesce("left_out", pl.when(unscored).then(pl.lit("no score"))),
    )


def _build_class_evidence(outcomes: ClassificationOutcomes) -> pl.DataFrame:
    """Build the evidence of each positive class in turn: one row per class, model and unit.

    ``of_label`` is the class; ``is_positive`` is null where the unit is not judged.
    """
    frames = [
        compare_with_class(outcomes.units.lazy(), name).select(
            "model",
            "unit_id",
            "cluster_id",
            is_positive=pl.when(pl.col(outcomes.reason).is_null()).then("is_positive"),
            is_given="is_given",
            of_label=pl.lit(name, dtype=pl.String),
            reason=pl.col(outcomes.reason),
        )
        for name in outcomes.positive_classes
    ]
    return pl.concat(frames).collect()
