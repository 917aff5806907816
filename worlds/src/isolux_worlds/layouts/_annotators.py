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

__all__ = ["compute_annotator_error_rates", "draw_majority_labels", "draw_tone_votes"]


def compute_annotator_error_rates(world: PhotoWorld, people: pl.DataFrame) -> FloatArray:
    """Give the chance that an annotator is wrong about each of these people: ``[people]``."""
    settings = world.settings.annotators
    error = np.full(people.height, settings.error, dtype=np.float64)
    for special in reversed(settings.errors):
        fits = np.ones(people.height, dtype=bool)
        for name, values in special.where.items():
            fits &= people[name].is_in(list(values)).fill_null(value=False).to_numpy()
        error[fits] = special.error
    return error


def draw_tone_votes(
    tones: IntArray,
    *,
    n_annotators: int,
    error_rate: float | FloatArray,
    rng: np.random.Generator,
    n_tones: int = 10,
) -> IntArray:
    """Count the votes for each tone: ``[people, scale]``, every row sums to 2 × annotators.

    ``tones``: [people] int.
    """
    n = len(tones)
    is_wrong = rng.random((n, n_annotators)) < np.reshape(error_rate, (-1, 1))
    wrong_tone = 1 + (tones[:, None] - 1 + rng.integers(1, n_tones, (n, n_annotators))) % n_tones
    labels = np.where(is_wrong, wrong_tone, tones[:, None])
    # Up, down, up, … from a start of their own: never all the same way.
    turn = rng.integers(0, 2, (n, 1)) + np.arange(n_annotators)[None, :]
    step = np.where(turn % 2, 1, -1)
    step = np.where(labels == 1, 1, np.where(labels == n_tones, -1, step))
    votes = np.zeros((n, n_tones), dtype=np.int64)
    rows = np.repeat(np.arange(n), n_annotators)
    np.add.at(votes, (rows, (labels - 1).ravel()), 1)
    np.add.at(votes, (rows, (labels - 1 + step).ravel()), 1)
    return votes


def draw_majority_labels(
    true_labels: pl.Series,
    label_names: Sequence[str],
    *,
    n_annotators: int,
    error_rate: float | FloatArray,
    rng: np.random.Generator,
) -> pl.Series:
    """Give the label that more than half of the annotators chose; null where no label did."""
    index_by_label = {label: i for i, label in enumerate(label_names)}
    true = true_labels.replace_strict(
        index_by_label, default=-1, return_dtype=pl.Int64
    ).to_numpy()  # [n]
    n, k = len(true), len(label_names)
    is_wrong = rng.random((n, n_annotators)) < np.reshape(error_rate, (-1, 1))
    shift = rng.integers(1, max(k, 2), (n, n_annotators))
    labels = np.where(is_wrong, (true[:, None] + shift) % k, true[:, None])
    counts: npt.NDArray[np.int64] = (labels[:, :, None] == np.arange(k)).sum(axis=1)  # [n, k]
    best = counts.argmax(axis=1)
    has_majority = (2 * counts[np.arange(n), best] > n_annotators) & (true >= 0)
    words = pl.Series(list(label_names), dtype=pl.String).gather(best)
    return words.set(pl.Series(~has_majority), None).alias(true_labels.name)
