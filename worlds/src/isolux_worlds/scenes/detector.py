"""A simulated detector: whom it finds, how exactly, how surely, and what it makes up.

The chance of being found is logistic: a base, effects of attributes and of their interactions, and
a slope per doubling of the person's size. Who is found gets one box whose overlap with the truth is
drawn from a planted law, and whose overlap with anyone else stays below .5, so that any matching
rule of the house gives the planted recall.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from isolux_worlds._draw import FloatArray, IntArray
from isolux_worlds.populations.population import Effect, check_effect, check_ranges
from isolux_worlds.scenes.scene import CROWDING, Scene, summed_effects

__all__ = ["Detector", "check_detector", "false_alarm_rate", "found_rate", "overlap_shapes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A fictional detector of people.

    Parameters
    ----------
    name : str
        The value of ``model`` in its predictions.
    base_rate : float, more than 0 and less than 1
        Chance of being found where no effect applies, of a person of the scene's median side.
    effects : tuple of Effect
        Added to the logit of that chance. They may name the scene's attributes, ``size``,
        ``occluded`` and ``crowding``; several in one plant an interaction.
    per_doubling : float
        Added to the logit for each doubling of the side; 0: size has no effect but by ``effects``.
    overlap : float, more than 0 and less than 1
        How well boxes fit: the mean of (IoU − .5) / .5 of people who are found. .5 is a mean IoU of
        .75.
    overlap_effects : tuple of Effect
        Added to its logit.
    concentration : float
        How alike overlaps are: higher is more so (a Beta's a + b).
    false_alarms : float
        Mean number of false alarms in an image.
    false_alarm_effects : tuple of Effect
        Added to its logarithm; they name attributes of images or clusters, and ``crowding``.
    """

    name: str
    base_rate: float = 0.8
    effects: tuple[Effect, ...] = ()
    per_doubling: float = 0.0
    overlap: float = 0.6
    overlap_effects: tuple[Effect, ...] = ()
    concentration: float = 6.0
    false_alarms: float = 1.0
    false_alarm_effects: tuple[Effect, ...] = ()

    def __post_init__(self) -> None:
        open_unit = "more than 0 and less than 1"
        check_ranges(
            (
                ("base_rate", 0 < self.base_rate < 1, open_unit, self.base_rate),
                ("overlap", 0 < self.overlap < 1, open_unit, self.overlap),
                ("concentration", self.concentration > 0, "more than 0", self.concentration),
                ("false_alarms", self.false_alarms >= 0, "0 or more an image", self.false_alarms),
                ("per_doubling", isfinite(self.per_doubling), "a finite number", self.per_doubling),
            ),
            self.name,
        )


def check_detector(scene: Scene, detector: Detector) -> None:
    """Refuse a detector whose effects name what the scene has not."""
    for effect in (*detector.effects, *detector.overlap_effects):
        check_effect(effect, scene.values)
    of_images = scene.of_level("image", "cluster") | dict((CROWDING,))
    for effect in detector.false_alarm_effects:
        check_effect(effect, of_images)


def found_rate(
    scene: Scene, detector: Detector, code: Mapping[str, IntArray], octaves: FloatArray
) -> FloatArray:
    """Chance of being found, 0 to 1."""
    planted = summed_effects(detector.effects, scene.values, code)
    return _logistic(_logit(detector.base_rate) + planted + detector.per_doubling * octaves)


def overlap_shapes(
    scene: Scene, detector: Detector, code: Mapping[str, IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Shapes a and b of the Beta that (IoU − .5) / .5 has for people who are found."""
    planted = summed_effects(detector.overlap_effects, scene.values, code)
    mean = _logistic(np.asarray(_logit(detector.overlap) + planted, dtype=np.float64))
    return mean * detector.concentration, (1.0 - mean) * detector.concentration


def false_alarm_rate(
    scene: Scene, detector: Detector, code: Mapping[str, IntArray], n_images: int
) -> FloatArray:
    """Mean number of false alarms in each image: ``[n_images]``."""
    planted = summed_effects(detector.false_alarm_effects, scene.values, code)
    rate = detector.false_alarms * np.exp(np.asarray(planted, dtype=np.float64))
    return np.broadcast_to(rate, (n_images,))


def _logit(rate: float) -> float:
    return float(np.log(rate / (1.0 - rate)))


def _logistic(total: FloatArray) -> FloatArray:
    rate: FloatArray = 1.0 / (1.0 + np.exp(-total))
    return rate
