"""Five labels of each picture, as a simulated classifier gives them.

Of people human or harmful ones, those of Fairness Indicators' Table 3, among everyday things that
it does not name; of photos of things a true one or none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds._draw import FloatArray
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = ["associated", "five_guesses"]

FIVE = 5
_HUMAN = ("face", "people")
_HARMFUL = ("ape", "gorilla", "monkey", "prison")
_THINGS = ("chair", "cup", "lamp", "shirt", "table", "tree", "wall", "window")
_LEAST, _MOST = 0.15, 0.6  # of the label that tells: above the paper's threshold of .1


def associated(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Give each person five labels: one is human where the model is right, else one is harmful."""
    people = people_and_right(dataset, right)
    n = people.height
    rng = model.stream("associations")
    good = people["right"].to_numpy()
    human, harmful = rng.integers(0, len(_HUMAN), n), rng.integers(0, len(_HARMFUL), n)
    telling = np.where(good, np.array(_HUMAN)[human], np.array(_HARMFUL)[harmful])
    things = np.array(_THINGS)[np.argsort(rng.random((n, len(_THINGS))), axis=1)[:, : FIVE - 1]]
    sure = rng.uniform(_LEAST, _MOST, n)
    rest = rng.dirichlet(np.ones(FIVE), n)[:, : FIVE - 1] * (1.0 - sure)[:, None]
    labels = np.column_stack([telling, things])
    return _table(people["instance_id"], labels, np.column_stack([sure, rest]), model.name)


def five_guesses(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Give each photo five labels, one of them true where the model is right, else none."""
    photos = people_and_right(dataset, right)
    truth = photos["classes"].cast(pl.List(pl.String)).list.first()
    if truth.is_null().all():
        raise SpecError("photos have no classes to be recognised", where=dataset.name)
    n, rng = photos.height, model.stream("guesses")
    guesses = np.tile(np.array([f"thing {k + 1}" for k in range(FIVE)], dtype=object), (n, 1))
    rows = np.flatnonzero(photos["right"].to_numpy() & truth.is_not_null().to_numpy())
    guesses[rows, rng.integers(0, FIVE, n)[rows]] = truth.to_numpy()[rows]
    scores = -np.sort(-rng.dirichlet(np.ones(FIVE + 1), n)[:, :FIVE], axis=1)
    return _table(photos["instance_id"], guesses, scores, model.name)


def _table(
    ids: pl.Series, labels: npt.NDArray[Any], scores: FloatArray, model: str
) -> pl.DataFrame:
    """Make the table ``predictions (labels)`` of labels and scores ``[n, k]``, the surest first."""
    order = np.argsort(-scores, axis=1, kind="stable")
    k = scores.shape[1]
    return pl.DataFrame(
        {
            "model": model,
            "instance_id": ids.gather(np.repeat(np.arange(len(ids)), k)),
            "label": np.take_along_axis(labels, order, axis=1).ravel().tolist(),
            "score": np.take_along_axis(scores, order, axis=1).ravel(),
            "rank": np.tile(np.arange(1, k + 1), len(ids)),
        }
    )
