"""Images with people in them, as boxes and attributes: the specification, without pixels.

``Scene`` says how many people there are, how they share images and clusters, what attributes they
have, how large they are and how often they are occluded, all of which may hang on their attributes.
``Detector`` (``scenes/detector.py``) says who is found. ``simulate_scene``
(``scenes/scene_world.py``) draws a world, ``planted_detection`` (``scenes/planted_boxes.py``)
gives the true recall of every group.

A size that hangs on a sensitive attribute is a confounder: with a detector that finds the small
less often, groups differ although the attribute has no effect of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.spec import crossed
from isolux_worlds._draw import FloatArray, IntArray
from isolux_worlds.populations.population import (
    Effect,
    check_effect,
    check_ranges,
    check_shares,
    hits,
    range_of,
)

__all__ = [
    "CROWDING",
    "DERIVED",
    "OCCLUDED",
    "SIDE_PX",
    "SIZE",
    "SIZE_EDGES_PX",
    "Level",
    "Scene",
    "SceneAttribute",
    "summed_effects",
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
            expected, found = "person, image or cluster", repr(self.varies)
            raise SpecError(f"{self.name!r} cannot vary so", expected=expected, found=found)


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
        each answer, so that every mean stays as planted.
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
        _check_counts(self)
        low, high = SIDE_PX
        check_ranges(
            (
                (
                    "side_px",
                    low <= self.side_px <= high,
                    f"{low:g} to {high:g} pixels",
                    self.side_px,
                ),
                ("side_spread", self.side_spread > 0, "more than 0 octaves", self.side_spread),
                ("occluded", 0 < self.occluded < 1, "more than 0 and less than 1", self.occluded),
                (
                    "correlation",
                    0 <= self.correlation < 1,
                    "0 or more and less than 1",
                    self.correlation,
                ),
            )
        )
        names = [a.name for a in self.attributes]
        twice = sorted({n for n in names if names.count(n) > 1 or n in DERIVED})
        if twice:
            expected = f"every name once, and none of {', '.join(DERIVED)}"
            problem = "the attributes of a scene need unique names"
            raise SpecError(problem, expected=expected, found=", ".join(twice))
        own = {a.name: tuple(a.shares) for a in self.attributes}
        for effect in (*self.size_effects, *self.occlusion_effects):
            check_effect(effect, own)
        for name in (n for entry in self.by for n in crossed(entry)):
            if name not in self.values:
                raise UnknownNameError("attribute", name, self.values)

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Attribute to its values, those that every scene has among them."""
        return {a.name: tuple(a.shares) for a in self.attributes} | DERIVED

    @property
    def groupings(self) -> tuple[str, ...]:
        """Return ``by``, or what it stands for when it is empty."""
        return tuple("*".join(crossed(entry)) for entry in self.by) or tuple(self.values)

    def of_level(self, *levels: Level) -> dict[str, tuple[str, ...]]:
        """Attributes of those levels and their values."""
        return {a.name: tuple(a.shares) for a in self.attributes if a.varies in levels}


def summed_effects(
    effects: Sequence[Effect], values: Mapping[str, tuple[str, ...]], code: Mapping[str, IntArray]
) -> FloatArray | float:
    """Add up effects for people (or cells) whose values are given as numbers."""
    total: FloatArray | float = 0.0
    for effect in effects:
        held = hits({name: effect.values(name) for name in effect.where}, values, code)
        total = total + effect.size * np.asarray(held, dtype=np.float64)
    return total


def _check_counts(scene: Scene) -> None:
    for name, number in (("images", scene.images), ("people", scene.people)):
        low, high = range_of(number)
        if low < 1 or high < low:
            expected = "1 or more, the range's lower end first"
            raise SpecError(f"a scene needs {name}", expected=expected, found=repr(number))
    if scene.clusters < 1:
        raise SpecError("a scene needs clusters", expected="1 or more", found=repr(scene.clusters))
