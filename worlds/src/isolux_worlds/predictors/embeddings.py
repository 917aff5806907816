"""Embeddings as a simulated face recogniser or encoder gives them.

Each person's identity (or class) is a random direction; a right answer lies near it, a wrong one
near a direction of its own, as if the picture were of another person.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds._draw import FloatArray
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = ["encoded", "recognised"]

_LENGTH = 128  # of the vectors


def recognised(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Give each picture of a face a vector: near its subject's if right, else near no one's."""
    people = people_and_right(dataset, right)
    if people["subject_id"].is_null().any():
        raise SpecError(
            "identities need subjects",
            expected="a subject_id for everyone",
            found=f"none for {people['subject_id'].null_count():,}",
            where=dataset.name,
        )
    return _near(people, people["subject_id"], model)


def encoded(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Give each picture a vector: near those of its class if right, else near none."""
    people = people_and_right(dataset, right)
    kind = people["classes"].cast(pl.List(pl.String)).list.first()
    if kind.is_null().all():
        raise SpecError("nobody has a class to be near to", where=dataset.name)
    return _near(people, kind, model)


def _near(people: pl.DataFrame, centre: pl.Series, model: Simulated) -> pl.DataFrame:
    rng = model.stream("embeddings")
    codes = centre.fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    centres = _directions(rng, int(codes.max(initial=-1)) + 1)
    own = _directions(rng, people.height)
    noise = 2 * model.jitter * rng.standard_normal(own.shape) / _LENGTH**0.5
    lies = people["right"].to_numpy() & centre.is_not_null().to_numpy()
    vectors = np.where(lies[:, None], centres[codes], own) + noise
    rows = pl.Series(vectors.astype(np.float32), dtype=pl.Array(pl.Float32, _LENGTH))
    embedding = rows.cast(pl.List(pl.Float32))
    return people.select(pl.lit(model.name).alias("model"), "instance_id", embedding=embedding)


def _directions(rng: np.random.Generator, n: int) -> FloatArray:
    drawn = rng.standard_normal((n, _LENGTH))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))
