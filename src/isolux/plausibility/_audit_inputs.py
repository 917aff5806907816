"""What a check of plausibility may look at: all that an audit has read and scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.counts import COUNTS, TIMES
from isolux.groups.membership import Membership
from isolux.tasks import score

SHAPE_TASKS = (
    "detection",
    "face_detection",
    "segmentation",
    "keypoints",
    "open_vocabulary",
    "grounding",
)
"""Tasks whose predictions are boxes, masks or poses."""


@dataclass(frozen=True, slots=True)
class AuditInputs:
    """An audit between scoring and measuring.

    Parameters
    ----------
    task : str
        The task's name.
    dataset : Dataset
        The people, with their truth and attributes.
    predictions : polars.DataFrame or None
        The model's answers as the task received them; None: scores were given in memory.
    scores : Scores
        What the task made of them. ``scores.evidence`` holds truth and answer side by side.
    membership : Membership
        The groups that will be compared.
    options : mapping of str to object
        Every setting of the audit by its flag's name (``AuditSpec.flat``), and the options that the
        task's ``score`` received, by theirs.
    task_options : mapping of str to object
        Those alone that the task's ``score`` received.
    """

    task: str
    dataset: Dataset
    predictions: pl.DataFrame | None
    scores: Scores
    membership: Membership
    options: Mapping[str, Any] = field(default_factory=dict)
    task_options: Mapping[str, Any] = field(default_factory=dict)

    def add_people_counts(self, evidence: pl.DataFrame) -> pl.DataFrame:
        """Add how many people each row stands for: several, of a table in shards."""
        multiplicity = self.scores.evidence.get(COUNTS)
        if multiplicity is None:
            return evidence.with_columns(pl.lit(1, dtype=pl.Int64).alias(TIMES))
        times = multiplicity.select("model", "unit_id", TIMES)
        return evidence.join(times, on=["model", "unit_id"], maintain_order="left")

    def rescore(self, **changed_options: Any) -> Scores:
        """Score the predictions with other options: advice is tried before it is given."""
        options = {**self.task_options, **changed_options}
        return score(self.task, self.dataset, self.predictions, **options)
