"""Annotators who look at a synthetic world: votes for skin tones, and labels with mistakes.

A world sets how often an annotator is wrong. Each annotator of a skin tone names two tones next
to one another, the one they see and a neighbour, as FACET's do. Directions differ among the three,
so that without mistakes the true tone has more votes than any other, but for the ends of the
scale: everyone who sees tone 1 names 1 and 2, who sees tone 10 names 9 and 10.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux_worlds._random_streams import FloatArray, IntArray
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["error_of", "majority_labels", "tone_votes"]


def error_of(world: PhotoWorld, people: pl.DataFrame) -> FloatArray:
    """Give the chance that an annotator is wrong about each of these people: ``[people]``."""
    settings = world.settings.annotators
    error = np.full(people.height, settings.error, dtype=np.float64)
    for special in reversed(settings.errors):
        fits = np.ones(people.height, dtype=bool)
        for name, values in special.where.items():
            fits &= people[name].is_in(list(values)).fill_null(value=False).to_numpy()
        error[fits] = special.error
    return error


def tone_votes(
    tones: IntArray,
    *,
    annotators: int,
    error: float | FloatArray,
    random: np.random.Generator,
    scale: int = 10,
) -> IntArray:
    """Count the votes for each tone: ``[people, scale]``, every row sums to 2 × annotators.

    ``tones``: [people] int.
    """
    n = len(tones)
    is_wrong = random.random((n, annotators)) < np.reshape(error, (-1, 1))
    wrong_tone = 1 + (tones[:, None] - 1 + random.integers(1, scale, (n, annotators))) % scale
    labels = np.where(is_wrong, wrong_tone, tones[:, None])
    # Up, down, up, … from a start of their own: never all the same way.
    turn = random.integers(0, 2, (n, 1)) + np.arange(annotators)[None, :]
    step = np.where(turn % 2, 1, -1)
    step = np.where(labels == 1, 1, np.where(labels == scale, -1, step))
    votes = np.zeros((n, scale), dtype=np.int64)
    rows = np.repeat(np.arange(n), annotators)
    np.add.at(votes, (rows, (labels - 1).ravel()), 1)
    np.add.at(votes, (rows, (labels - 1 + step).ravel()), 1)
    return votes


def majority_labels(
    values: pl.Series,
    label_names: Sequence[str],
    *,
    annotators: int,
    error: float | FloatArray,
    random: np.random.Generator,
) -> pl.Series:
    """Give the label that more than half of the annotators chose; null where no label did."""
    index_by_label = {label: i for i, label in enumerate(label_names)}
    true = values.replace_strict(
        index_by_label, default=-1, return_dtype=pl.Int64
    ).to_numpy()  # [n]
    n, k = len(true), len(label_names)
    is_wrong = random.random((n, annotators)) < np.reshape(error, (-1, 1))
    shift = random.integers(1, max(k, 2), (n, annotators))
    labels = np.where(is_wrong, (true[:, None] + shift) % k, true[:, None])
    counts: npt.NDArray[np.int64] = (labels[:, :, None] == np.arange(k)).sum(axis=1)  # [n, k]
    best = counts.argmax(axis=1)
    has_majority = (2 * counts[np.arange(n), best] > annotators) & (true >= 0)
    words = pl.Series(list(label_names), dtype=pl.String).gather(best)
    return words.set(pl.Series(~has_majority), None).alias(values.name)
