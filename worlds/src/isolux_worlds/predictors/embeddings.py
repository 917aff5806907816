"""Embeddings as a simulated face recogniser or encoder gives them.

Each person's identity (or class) is a random direction; a right answer lies near it, a wrong one
near a direction of its own, as if the picture were of another person.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = ["encoded", "recognised"]


def recognised(
    dataset: Dataset, right: pl.DataFrame, model: Simulated, *, dimensions: int = 128
) -> pl.DataFrame:
    """Give each picture of a face a vector: near its subject's if right, else near no one's."""
    people = people_and_right(dataset, right)
    if people["subject_id"].is_null().any():
        raise SpecError(
            "identities need subjects",
            expected="a subject_id for everyone",
            found=f"none for {people['subject_id'].null_count():,}",
            where=dataset.name,
        )
    return _near(people, people["subject_id"], model, dimensions)


def encoded(
    dataset: Dataset,
    right: pl.DataFrame,
    model: Simulated,
    *,
    target: str | None = None,
    dimensions: int = 128,
) -> pl.DataFrame:
    """Give each picture a vector: near those of its class if right, else near none."""
    people = people_and_right(dataset, right)
    if target is None:
        kind = people["classes"].cast(pl.List(pl.String)).list.first()
    else:
        dataset.values_of(target)
        rows = dataset.instance_attributes().filter(pl.col("attribute") == target)
        first = rows.unique("unit_id", keep="first", maintain_order=True)
        kind = people.select(unit_id="instance_id").join(
            first.select("unit_id", "value"), on="unit_id", how="left", maintain_order="left"
        )["value"]
    if kind.is_null().all():
        raise SpecError("nobody has a class to be near to", where=dataset.name)
    return _near(people, kind, model, dimensions)


def _near(
    people: pl.DataFrame, centre: pl.Series, model: Simulated, dimensions: int
) -> pl.DataFrame:
    rng = model.stream("embeddings")
    codes = centre.fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    centres = _directions(rng, int(codes.max(initial=-1)) + 1, dimensions)
    own = _directions(rng, people.height, dimensions)
    noise = 2 * model.jitter * rng.standard_normal((people.height, dimensions)) / dimensions**0.5
    lies = people["right"].to_numpy() & centre.is_not_null().to_numpy()
    vectors = np.where(lies[:, None], centres[codes], own) + noise
    return pl.DataFrame(
        {
            "model": pl.repeat(model.name, people.height, eager=True),
            "instance_id": people["instance_id"],
            "embedding": pl.Series(
                vectors.astype(np.float32), dtype=pl.Array(pl.Float32, dimensions)
            ).cast(pl.List(pl.Float32)),
        }
    )


def _directions(
    rng: np.random.Generator, n: int, dimensions: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    drawn = rng.standard_normal((n, dimensions))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))
