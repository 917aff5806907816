"""Ten pictures that are tried before the rest: a model that answers all of them alike is said.

Mean and std on another scale than the pixels, or channels in another order, leave a network in a
corner of its inputs: it gives one answer to everyone, and without an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isolux.engine.inference import ModelResponse
from isolux.engine.shards import Shard
from isolux.engine.source_images import SourceImage

_N_TRIED = 10
_MIN_IMAGES = 50  # of a run: fewer are done as soon as the warning is read
_RELATIVE_TOLERANCE = 1e-3  # by which numbers that are as good as equal may differ


def choose_trial_images(shards: Sequence[Shard]) -> list[SourceImage]:
    """Choose ten evenly spaced images, as folders hold one class after another; of few, none."""
    images = [image for shard in shards for image in shard.images]
    if len(images) < _MIN_IMAGES:
        return []
    return [images[k] for k in np.linspace(0, len(images) - 1, _N_TRIED).round().astype(int)]


def describe_uniform_answers(
    responses: Sequence[ModelResponse], prediction_type: str, n_images: int
) -> str | None:
    """Say that all pictures that were tried got the same answer; None: they did not.

    Examples
    --------
    >>> same = [ModelResponse([{"label": "man", "score": 0.5, "rank": 1}])] * 10
    >>> describe_uniform_answers(same, "labels", 900)
    "10 of 900 pictures were tried first, and all got the label 'man' (confidence 0.5 to 0.5)."
    """
    answers = [response.predictions for response in responses if response.predictions is not None]
    if 2 * len(answers) <= _N_TRIED:
        return None
    subject = f"{len(answers)} of {n_images:,} pictures were tried first, and"
    if prediction_type == "labels":
        return _describe_uniform_labels(answers, subject)
    if prediction_type in ("boxes", "masks", "keypoints"):
        is_empty = not any(answers)
        return f"{subject} there are no {prediction_type} in any of them." if is_empty else None
    if prediction_type == "images":
        is_uniform = len({row["png"] for rows in answers for row in rows}) == 1
    else:
        column = "value" if prediction_type == "numbers" else "embedding"
        values = [row[column] for rows in answers for row in rows if row[column] is not None]
        numbers = np.asarray(values, dtype=np.float64)
        spread = np.abs(numbers - numbers.mean(axis=0)).max(initial=0.0)
        is_uniform = bool(spread <= _RELATIVE_TOLERANCE * np.abs(numbers).max(initial=0.0))
    nouns = {"numbers": "number", "embeddings": "embedding", "images": "picture"}
    return f"{subject} all got the same {nouns[prediction_type]}." if is_uniform else None


def _describe_uniform_labels(answers: Sequence[list[dict[str, Any]]], subject: str) -> str | None:
    first_rows = [[row for row in rows if row["rank"] == 1] for rows in answers]
    labels = {tuple(row["label"] for row in rows) for rows in first_rows}
    if len(labels) > 1 or len(first_rows[0]) != 1:  # several questions have several answers
        return None
    scores = [row["score"] for rows in first_rows for row in rows if row["score"] is not None]
    confidence = f" (confidence {min(scores):.3g} to {max(scores):.3g})" if scores else ""
    return f"{subject} all got the label {first_rows[0][0]['label']!r}{confidence}."
