"""Worlds of scored answers, for metrics that are no means: clusters shift all of their scores."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES, LABEL_PREDICTIONS
from isolux.tasks.classification import score
from tests.laws._measured import measured

INFO = DatasetInfo(title="Synthetic", summary="People drawn by a law.", references=())


def audited(rng, clusters, photos, *, correlation, apart, metrics, replicates, seed):
    """Draw two groups that do not differ, and compare them as an audit does.

    ``apart``: by how much the positive class scores higher, in standard deviations of one class.
    """
    n = sum(clusters) * photos
    subject = np.repeat(np.arange(sum(clusters)), photos)
    group = np.repeat(np.repeat(["a", "b"], clusters), photos)
    truth = rng.random(n) < 0.4
    luck = rng.normal(0, np.sqrt(correlation), sum(clusters))[subject]
    drawn = apart * truth + luck + rng.normal(0, np.sqrt(1 - correlation), n)
    sure = 1 / (1 + np.exp(apart / 2 - drawn))
    ids = [f"p{i}" for i in range(n)]
    who = {"class": np.where(truth, "yes", "no"), "group": group}
    attributes = pl.concat(
        pl.DataFrame({"unit_kind": "instance", "unit_id": ids, "attribute": name, "value": values})
        for name, values in who.items()
    )
    people = pl.DataFrame({"instance_id": ids, "image_id": ids,
                           "cluster_id": [f"s{i}" for i in subject]})  # fmt: skip
    dataset = Dataset("synthetic", INFO, INSTANCES.conform(people), ATTRIBUTES.conform(attributes))
    said = np.where(sure > 0.5, "yes", "no")
    answers = pl.DataFrame(
        {"model": "m", "instance_id": ids, "label": said, "score": sure, "rank": 1}
    )
    scores = score(dataset, LABEL_PREDICTIONS.conform(answers), target="class", positive="yes",
                   score_of="positive", metrics=metrics)  # fmt: skip
    return measured(scores, dataset, by=("group",), replicates=replicates, min_units=20,
                    seed=seed)  # fmt: skip
