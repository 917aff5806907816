"""How often a simulated model is right about whom, and answers drawn so.

The chance is logistic: a base rate and effects of attributes and of their interactions. Behind
each answer stands a standard normal variable, of which photos of one subject share a part (a
Gaussian copula). Its own distribution is the standard normal whatever the shared part, so that
every chance, and every group's mean, stays exactly as planted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux_worlds._draw import FloatArray, IntArray, stream
from isolux_worlds.photo_world.joint import network
from isolux_worlds.populations.population import hits

if TYPE_CHECKING:
    from isolux_worlds.photo_world.settings import ModelSettings
    from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["chance", "correlated", "person_codes", "rates", "right"]

BoolArray = npt.NDArray[np.bool_]


def rates(world: PhotoWorld, model: str | ModelSettings) -> FloatArray:
    """Give each person's chance that a model is right about them."""
    own = world.settings.model_named(model)
    named = {name for effect in own.effects for name in effect.where}
    values = {n.name: n.values for n in network(world.settings) if n.name in named}
    codes = person_codes(world, values)
    found = chance(own, values, codes)
    return np.broadcast_to(found, (world.people.height,)).astype(np.float64)


def right(
    world: PhotoWorld, model: str | ModelSettings, *, stream_name: str = "right"
) -> BoolArray:
    """Draw whether a model is right about each person."""
    own = world.settings.model_named(model)
    return correlated(
        rates(world, own), _subjects(world), world.subjects.height, own, world.seed, stream_name
    )


def correlated(
    rate: FloatArray,
    subject: IntArray,
    subjects: int,
    model: ModelSettings,
    seed: int,
    stream_name: str = "right",
) -> BoolArray:
    """Draw answers of given chances, alike within subjects.

    ``rate``: [people] float, 0 to 1; ``subject``: [people] int.
    """
    from scipy.special import ndtri

    own = stream(seed, "model", model.name, stream_name).standard_normal(len(rate))
    if model.correlation:
        shared = stream(seed, "difficulty").standard_normal(subjects)[subject]
        own = np.sqrt(model.correlation) * shared + np.sqrt(1 - model.correlation) * own
    return np.asarray(own < ndtri(rate))


def chance(
    model: ModelSettings,
    values: Mapping[str, tuple[str, ...]],
    codes: Mapping[str, npt.NDArray[np.integer]],
) -> FloatArray:
    """Chance of being right, of people or of cells whose values are given as numbers."""
    total: FloatArray = np.asarray(np.log(model.base_rate / (1.0 - model.base_rate)))
    for effect in model.effects:
        total = total + effect.size * hits(effect.where, values, codes)
    return np.asarray(1.0 / (1.0 + np.exp(-total)), dtype=np.float64)


def person_codes(
    world: PhotoWorld, values: Mapping[str, tuple[str, ...]]
) -> dict[str, npt.NDArray[np.int16]]:
    """Find the place in ``values`` of each person's values."""
    places = {name: {word: k for k, word in enumerate(words)} for name, words in values.items()}
    rows = world.people.select(
        pl.col(name).replace_strict(words, return_dtype=pl.Int16) for name, words in places.items()
    )
    return {column.name: column.to_numpy() for column in rows}


def _subjects(world: PhotoWorld) -> IntArray:
    """Row of each person's subject."""
    subjects = world.subjects["subject_id"]
    rows = world.people["subject_id"].replace_strict(subjects, np.arange(len(subjects)))
    return np.asarray(rows.to_numpy())
