"""Audits in which labels of groups, or truths, are missing at random or not."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.groups.membership import build_membership
from isolux.plausibility import AuditInputs
from isolux.tasks import score
from tests.plausibility._inputs import make_dataset


def draw_world(
    seed: int,
    n: int,
    missing: str,
    *,
    share: float = 0.1,
    accuracy: tuple[float, float, float] = (0.9, 0.9, 0.9),
    sizes: tuple[float, float, float] = (0.5, 0.4, 0.1),
    shares_of_classes: tuple[float, ...] = (0.5, 0.5),
    photos: int = 1,
    n_attributes: int = 1,
    lost_if_wrong: float | None = None,
) -> AuditInputs:
    """Draw people; ``missing`` ("race", "truth") is lost at random, of a subject's photos at once.

    ``lost_if_wrong``: in place of that, of the wrong answers of group B, and of no others.
    """
    rng = np.random.default_rng(seed)
    subject = np.arange(n) // photos
    race = rng.choice(3, n // photos, p=sizes)[subject]
    n_classes = len(shares_of_classes)
    truth = rng.choice(n_classes, n, p=shares_of_classes)
    is_right = rng.random(n) < np.array(accuracy)[race]
    answer = np.where(is_right, truth, (truth + rng.integers(1, n_classes, n)) % n_classes)
    is_lost = rng.random(n // photos)[subject] < share
    if lost_if_wrong is not None:
        is_lost = (race == 1) & ~is_right & (rng.random(n) < lost_if_wrong)
    attributes = {"truth": [f"c{k}" for k in truth], "race": [f"{'ABC'[k]}" for k in race]}
    attributes |= {
        f"a{j}": [f"v{k}" for k in rng.integers(0, 4, n)] for j in range(n_attributes - 1)
    }
    attributes[missing] = [
        None if lost else value for lost, value in zip(is_lost, attributes[missing], strict=True)
    ]
    clusters = {"cluster_id": [f"s{k}" for k in subject]} if photos > 1 else None
    dataset = make_dataset(attributes, clusters)
    predictions = pl.DataFrame(
        {"model": "m", "instance_id": [f"p{i}" for i in range(n)],
         "label": [f"c{k}" for k in answer], "score": None, "rank": 1},
        schema_overrides={"score": pl.Float64, "rank": pl.Int64},
    )  # fmt: skip
    scores = score("classification", dataset, predictions, target="truth")
    by = [name for name in attributes if name != "truth"]
    members = build_membership(dataset.instance_attributes(), by, units=scores.evaluated_units())
    return AuditInputs("classification", dataset, predictions, scores, members, {"target": "truth"})


SOUND = {
    "20 people": {"n": 20, "share": 0.2},
    "600": {"n": 600},
    "groups that differ": {"n": 600, "accuracy": (0.95, 0.9, 0.45)},
    "rare classes": {"n": 600, "shares_of_classes": (0.6, 0.3, 0.08, 0.01, 0.01)},
    "a poor model": {"n": 600, "accuracy": (0.2, 0.2, 0.2)},
    "six attributes": {"n": 600, "n_attributes": 6},
    "ten photos a subject": {"n": 1000, "photos": 10},
}
"""Labels missing at random: an alarm is false."""
