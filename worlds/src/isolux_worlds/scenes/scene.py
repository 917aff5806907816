"""Images with people in them, as boxes and attributes: the specification, without pixels.

``Scene`` says how many people there are, how they share images and clusters, what attributes they
have, how large they are and how often they are occluded, all of which may hang on their attributes.
``Detector`` (``scenes/detector.py``) says who is found. ``simulate_scene``
(``scenes/scene_world.py``) draws a world, ``injected_detection`` (``scenes/true_recall.py``)
gives the true recall of every group.

A size that hangs on a sensitive attribute is a confounder: with a detector that finds the small
less often, groups differ although the attribute has no effect of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import split_intersection
from isolux_worlds._random_streams import FloatArray, IntArray
from isolux_worlds.populations.population import (
    Effect,
    check_effect_groups_exist,
    check_settings_in_range,
    check_shares,
    matches_conditions,
    to_range,
)

__all__ = [
    "CROWDING",
    "OCCLUDED",
    "SIDE_PX",
    "SIZE",
    "SIZE_EDGES_PX",
    "Detector",
    "Level",
    "Scene",
    "SceneAttribute",
    "check_detector_effects_exist",
    "compute_detection_rate",
    "compute_false_positive_rate",
    "compute_iou_beta_parameters",
    "confounded_scene",
    "sum_effects",
]

Level = Literal["person", "image", "cluster"]

SIZE = ("size", ("small", "medium", "large"))
OCCLUDED = ("occluded", ("false", "true"))
CROWDING = ("crowding", ("alone", "few", "many"))
"""Alone in the image; two or three people in it; four or more."""
DERIVED: dict[str, tuple[str, ...]] = dict((SIZE, OCCLUDED, CROWDING))
"""Attributes that every scene has, and their values."""

SIZE_EDGES_PX = (32.0, 96.0)
"""COCO's: small is an area below 32² square pixels, large one above 96²."""
SIDE_PX = (8.0, 512.0)
"""The smallest and the largest side that a person's box has, the side being √area."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneAttribute:
    """An attribute of people, of images or of clusters, its values and their shares.

    Parameters
    ----------
    name : str
        Of neither ``size``, ``occluded`` nor ``crowding``, which every scene has.
    shares : mapping of str to float
        Value to share, in the order of the values; they sum to 1.
    varies : {"person", "image", "cluster"}
        Who has its own value: each person (a perceived age), each image (its light), or each
        cluster (a video's place, or a subject's ancestry).
    """

    name: str
    shares: Mapping[str, float]
    varies: Level = "person"

    def __post_init__(self) -> None:
        check_shares(self.name, self.shares)
        if self.varies not in ("person", "image", "cluster"):
            expected, description = "person, image or cluster", repr(self.varies)
            raise SpecError(f"{self.name!r} cannot vary so", expected=expected, found=description)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """How people stand in images, and what they look like to a detector.

    Parameters
    ----------
    clusters : int
        Independent ones: videos, subjects, or images where each has one image.
    images : int or (int, int)
        Images of each cluster: a number, or a range drawn from uniformly, ends included.
    people : int or (int, int)
        People in each image, likewise. Their number decides ``crowding``.
    attributes : tuple of SceneAttribute
        Independent of one another.
    side_px, side_spread : float
        Median of √(box area) in pixels, and its standard deviation in octaves (powers of 2).
        Sides are cut off at ``SIDE_PX``.
    size_effects : tuple of Effect
        What is added to the side, in octaves: −1 halves it. They name attributes of the scene.
    occluded : float, more than 0 and less than 1
        Share of people that are occluded where no effect applies.
    occlusion_effects : tuple of Effect
        Added to its logit; they name attributes of the scene.
    correlation : float, 0 to below 1
        Between people of one cluster, of what makes them hard to find: a normal variable behind
        each answer, so that every mean stays as injected.
    by : tuple of str
        Attributes and intersections (``"tone*size"``) whose truth is wanted. Empty: each attribute,
        size, occlusion and crowding.
    """

    clusters: int
    images: int | tuple[int, int] = 1
    people: int | tuple[int, int] = (1, 5)
    attributes: tuple[SceneAttribute, ...] = ()
    side_px: float = 64.0
    side_spread: float = 1.0
    size_effects: tuple[Effect, ...] = ()
    occluded: float = 0.2
    occlusion_effects: tuple[Effect, ...] = ()
    correlation: float = 0.0
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_scene_counts(self)
        low, high = SIDE_PX
        check_settings_in_range(
            self,
            side_px=(low <= self.side_px <= high, f"{low:g} to {high:g} pixels"),
            side_spread=(self.side_spread > 0, "more than 0 octaves"),
            occluded=(0 < self.occluded < 1, "more than 0 and less than 1"),
            correlation=(0 <= self.correlation < 1, "0 or more and less than 1"),
        )
        names = [a.name for a in self.attributes]
        invalid_names = sorted({n for n in names if names.count(n) > 1 or n in DERIVED})
        if invalid_names:
            expected = f"every name once, and none of {', '.join(DERIVED)}"
            problem = "the attributes of a scene need unique names"
            raise SpecError(problem, expected=expected, found=", ".join(invalid_names))
        values_by_attribute = {a.name: tuple(a.shares) for a in self.attributes}
        for effect in (*self.size_effects, *self.occlusion_effects):
            check_effect_groups_exist(effect, values_by_attribute)
        for name in (n for entry in self.by for n in split_intersection(entry)):
            if name not in self.values:
                raise UnknownNameError("attribute", name, self.values)

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Attribute to its values, those that every scene has among them."""
        return {a.name: tuple(a.shares) for a in self.attributes} | DERIVED

    @property
    def groupings(self) -> tuple[str, ...]:
        """Return ``by``, or what it stands for when it is empty."""
        return tuple("*".join(split_intersection(entry)) for entry in self.by) or tuple(self.values)

    def of_level(self, *levels: Level) -> dict[str, tuple[str, ...]]:
        """Attributes of those levels and their values."""
        return {a.name: tuple(a.shares) for a in self.attributes if a.varies in levels}


def sum_effects(
    effects: Sequence[Effect], values: Mapping[str, tuple[str, ...]], code: Mapping[str, IntArray]
) -> FloatArray | float:
    """Add up effects for people (or cells) whose values are given as numbers."""
    total: FloatArray | float = 0.0
    for effect in effects:
        is_match = matches_conditions(
            {name: effect.values(name) for name in effect.where}, values, code
        )
        total = total + effect.size * np.asarray(is_match, dtype=np.float64)
    return total


def _check_scene_counts(scene: Scene) -> None:
    for name, number in (("images", scene.images), ("people", scene.people)):
        low, high = to_range(number)
        if low < 1 or high < low:
            expected = "1 or more, the range's lower end first"
            raise SpecError(f"a scene needs {name}", expected=expected, found=repr(number))
    if scene.clusters < 1:
        raise SpecError("a scene needs clusters", expected="1 or more", found=repr(scene.clusters))


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
        ``occluded`` and ``crowding``; several in one make an interaction.
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
        check_settings_in_range(
            self,
            self.name,
            base_rate=(0 < self.base_rate < 1, open_unit),
            overlap=(0 < self.overlap < 1, open_unit),
            concentration=(self.concentration > 0, "more than 0"),
            false_alarms=(self.false_alarms >= 0, "0 or more an image"),
            per_doubling=(isfinite(self.per_doubling), "a finite number"),
        )


def check_detector_effects_exist(scene: Scene, detector: Detector) -> None:
    """Refuse a detector whose effects name attributes or values that the scene lacks."""
    for effect in (*detector.effects, *detector.overlap_effects):
        check_effect_groups_exist(effect, scene.values)
    of_images = scene.of_level("image", "cluster") | dict((CROWDING,))
    for effect in detector.false_alarm_effects:
        check_effect_groups_exist(effect, of_images)


def compute_detection_rate(
    scene: Scene, detector: Detector, code: Mapping[str, IntArray], octaves: FloatArray
) -> FloatArray:
    """Probability of being detected, 0 to 1."""
    effect_sum = sum_effects(detector.effects, scene.values, code)
    return _logistic(
        _logit_of_rate(detector.base_rate) + effect_sum + detector.per_doubling * octaves
    )


def compute_iou_beta_parameters(
    scene: Scene, detector: Detector, code: Mapping[str, IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Shapes a and b of the Beta that (IoU − .5) / .5 has for people who are found."""
    effect_sum = sum_effects(detector.overlap_effects, scene.values, code)
    mean = _logistic(np.asarray(_logit_of_rate(detector.overlap) + effect_sum, dtype=np.float64))
    return mean * detector.concentration, (1.0 - mean) * detector.concentration


def compute_false_positive_rate(
    scene: Scene, detector: Detector, code: Mapping[str, IntArray], n_images: int
) -> FloatArray:
    """Mean number of false positives in each image: ``[n_images]``."""
    effect_sum = sum_effects(detector.false_alarm_effects, scene.values, code)
    rate = detector.false_alarms * np.exp(np.asarray(effect_sum, dtype=np.float64))
    return np.broadcast_to(rate, (n_images,))


def _logit_of_rate(rate: float) -> float:
    return float(np.log(rate / (1.0 - rate)))


def _logistic(total: FloatArray) -> FloatArray:
    rate: FloatArray = 1.0 / (1.0 + np.exp(-total))
    return rate


_CONFOUNDING_TYPES = ("nothing", "size", "attribute", "both")


def confounded_scene(
    matters: Literal["nothing", "size", "attribute", "both"],
    *,
    clusters: int = 500,
    images: int | tuple[int, int] = 2,
    people: int | tuple[int, int] = (1, 5),
    varies: Level = "person",
    correlation: float = 0.2,
) -> tuple[Scene, Detector]:
    """Return people of tones a and b, and a detector for which one thing, both or nothing matters.

    Whatever matters, people of tone b are smaller (a median side of 45 pixels, of tone a 64), more
    often occluded, and as often in dim light as those of tone a. Where size matters the detector
    gains with every doubling of it; where the attribute matters it loses with tone b.

    Parameters
    ----------
    matters : {"nothing", "size", "attribute", "both"}
        ``size``: the tones differ in recall, but not at equal size. ``attribute``: they differ at
        equal size, and size alone changes nothing. ``nothing``: recall is .7 for everyone.
    clusters, images, people, correlation
        As in ``Scene``.
    varies : {"person", "image", "cluster"}
        Who has a tone: each person, or all people of an image or cluster one.

    Returns
    -------
    (Scene, Detector)
        For ``simulate_scene``, ``injected_detection`` and ``injected_detection_record``.

    Raises
    ------
    SpecError
        Another word.

    Examples
    --------
    >>> from isolux_worlds import injected_recall
    >>> for matters in ("nothing", "size", "attribute", "both"):
    ...     truth = injected_recall(*confounded_scene(matters)).filter(metric="recall_at_iou")
    ...     print(matters, truth.filter(attribute="tone")["value"].round(2).to_list())
    nothing [0.7, 0.7]
    size [0.69, 0.62]
    attribute [0.7, 0.56]
    both [0.69, 0.49]
    """
    if matters not in _CONFOUNDING_TYPES:
        raise SpecError(
            "that cannot be injected", expected=", ".join(_CONFOUNDING_TYPES), found=repr(matters)
        )
    smaller = {"tone": "b"}
    scene = Scene(
        clusters=clusters,
        images=images,
        people=people,
        attributes=(
            SceneAttribute(name="tone", shares={"a": 0.6, "b": 0.4}, varies=varies),
            SceneAttribute(name="light", shares={"bright": 0.7, "dim": 0.3}, varies="image"),
        ),
        size_effects=(Effect(smaller, -0.5),),
        occlusion_effects=(Effect(smaller, 0.4),),
        correlation=correlation,
        by=("tone", "size", "occluded", "light", "tone*size"),
    )
    detector = Detector(
        name=f"matters_{matters}",
        base_rate=0.7,
        per_doubling=0.6 if matters in ("size", "both") else 0.0,
        effects=(Effect(smaller, -0.6),) if matters in ("attribute", "both") else (),
    )
    return scene, detector
