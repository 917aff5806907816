"""A simulated model: what it is called, how well it fits, what it makes up, its seed.

Which predictions are right is decided elsewhere (``photo_world/injected_effects.py``, or any table
of yours); a predictor turns that into the output that a real model would have handed in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import TableError
from isolux.core.tables import INSTANCES
from isolux_worlds._random_streams import FloatArray, build_named_rng
from isolux_worlds.populations.population import check_settings_in_range

__all__ = ["BOX", "MIN_MATCH_IOU", "SimulatedModel", "join_is_right"]

BOX = ("box_x", "box_y", "box_w", "box_h")
MIN_MATCH_IOU = 0.5
"""The IoU from which a person counts as detected."""
_CONCENTRATION = 8.0  # how alike overlaps are: a + b of their Beta
# Beta shapes of confidences; no effect is injected into them.
_BETA_WHEN_RIGHT, _BETA_WHEN_WRONG = (6.0, 2.0), (4.0, 3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedModel:
    """The settings of a simulated model."""

    name: str
    jitter: float = 0.1
    false_alarms: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        jitter = (0 <= self.jitter < 0.5, "0 or more and less than .5")
        alarms = (self.false_alarms >= 0, "0 or more an image")
        check_settings_in_range(self, self.name, jitter=jitter, false_alarms=alarms)

    def stream(self, *names: str) -> np.random.Generator:
        """Random numbers of that name, the same for the same model and seed."""
        return build_named_rng(self.seed, "predictor", self.name, *names)

    def draw_confidence(self, right: FloatArray, *names: str) -> FloatArray:
        """Draw a confidence of each prediction, 0 to 1: higher where it is right."""
        rng = self.stream("confidence", *names)
        right_scores, wrong_scores = (
            rng.beta(*_BETA_WHEN_RIGHT, len(right)),
            rng.beta(*_BETA_WHEN_WRONG, len(right)),
        )
        return np.where(right, right_scores, wrong_scores).round(4)

    def draw_iou_losses(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw what right answers lose of their overlap: 1 − IoU, ``jitter`` in the mean, to .5."""
        mean = 2 * self.jitter
        if mean <= 0:
            return np.zeros(n)
        shapes = mean * _CONCENTRATION, (1 - mean) * _CONCENTRATION
        return (1.0 - MIN_MATCH_IOU) * rng.beta(*shapes, n)


def join_is_right(dataset: Dataset, right: pl.DataFrame) -> pl.DataFrame:
    """Join a table of correct predictions to the dataset's people, as the column ``right``."""
    rows = INSTANCES.conform(dataset.instances)
    is_right_rows = right.select(
        pl.col("instance_id").cast(pl.String), pl.col("right").cast(pl.Boolean)
    )
    people = rows.join(
        is_right_rows, on="instance_id", how="left", maintain_order="left", validate="1:1"
    )
    unsaid = people.filter(pl.col("right").is_null())["instance_id"]
    if len(unsaid):
        problem = "whether the model is right is not given for everyone"
        expected = "a row for each of the dataset's instances"
        description = f"none for {len(unsaid):,} of them, such as {unsaid[0]!r}"
        raise TableError(problem, expected=expected, found=description)
    return people
