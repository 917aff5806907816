"""Worlds for patterns and error models: nothing matters, or what was planted does; and a run of it.

Ten photos of each subject. Tone, hair and age are a subject's, light, size and pose a photo's. A
subject has luck of their own, so photos of one are alike; nothing else makes scores.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES

PHOTOS = 10
OF_SUBJECTS = {"tone": ["light", "medium", "dark"], "hair": ["black", "blond", "grey", "red"]}
OF_PHOTOS = {"light": ["dim", "bright"], "size": ["small", "middle", "large"],
             "pose": ["standing", "sitting", "lying"]}  # fmt: skip


def a_world(rng, subjects, *, scores="right or wrong", injected=0.0, uneven=False):
    """Draw who there is and how they score.

    ``planted`` is subtracted from the rate (or mean) of small people in dim light. ``uneven``: five
    to fifteen photos of a subject.
    """
    photos = rng.integers(5, 16, subjects) if uneven else np.full(subjects, PHOTOS)
    subject = np.repeat(np.arange(subjects), photos)
    n = len(subject)
    who = {name: rng.choice(values, subjects)[subject] for name, values in OF_SUBJECTS.items()}
    who |= {name: rng.choice(values, n) for name, values in OF_PHOTOS.items()}
    who["age"] = rng.integers(18, 80, subjects)[subject].astype(str)
    hit = (who["light"] == "dim") & (who["size"] == "small")
    if scores == "right or wrong":
        rate = rng.beta(0.8 * 7 / 3, 0.2 * 7 / 3, subjects)[subject]  # correlation .3
        value = (rng.random(n) < rate - injected * hit * (rate > injected)).astype(float)
    else:
        value = np.clip(0.8 + rng.normal(0, 0.08, subjects)[subject] + rng.normal(0, 0.12, n)
                        - injected * hit, 0, 1)  # fmt: skip
    return a_run(subject, who, value)


def a_run(subject, who, value, *, metric="accuracy", task="classification", **settings):
    """Make a run's tables of arrays."""
    n = len(subject)
    unit = [f"u{i:05}" for i in range(n)]
    scores = pl.DataFrame(
        {
            "model": "m", "task": task, "metric": metric, "unit_kind": "instance", "unit_id": unit,
            "cluster_id": [f"s{s}" for s in subject], "value": value,
        }
    )  # fmt: skip
    parts = [
        pl.DataFrame({"unit_kind": "instance", "unit_id": unit, "attribute": name, "value": values})
        for name, values in who.items()
    ]
    spec = {
        "data": "made up",
        "task": task,
        "by": [*{"tone"} & set(who)],
        "cluster": "subject",
        "seed": 0,
    }
    record = {"spec": spec | settings, "task": task, "clusters": {"column": "subject"}}
    attributes = pl.concat(parts) if parts else ATTRIBUTES.empty()
    return Run(
        record, SCORES.conform(scores), ATTRIBUTES.conform(attributes), GROUP_METRICS.empty(),
        DISPARITIES.empty(), FINDINGS.empty(),
    )  # fmt: skip


def claims(findings):
    """Count the findings that say that something was found."""
    return int((findings["p_adjusted"].fill_null(1.0) <= 0.05).sum())


def published_claims(run, *, lift):
    """Mine and report on the same units, as published: is there any rule of that lift?

    FP-growth on the low-performing, then rules' lifts in the same data. The paper prints no
    thresholds: support .05 and up to three values are those of ``patterns``; ten units at least.
    """
    from isolux.stats.itemsets import count_rows_by_itemset, find_frequent_itemsets

    wide = run.attributes.filter(pl.col("attribute") != "age").pivot(
        "attribute", index="unit_id", values="value"
    )
    items = wide.drop("unit_id").to_dummies().to_numpy().astype(bool)
    value = wide.join(run.scores, on="unit_id", maintain_order="left")["value"].to_numpy()
    levels = np.unique(value)
    low = value == levels[0] if len(levels) == 2 else value <= np.quantile(value, 0.25)
    sets = find_frequent_itemsets(items[low], min_support=0.05, max_length=3)
    held = count_rows_by_itemset(items, sets.members)
    lifts = (sets.count / held) / low.mean()
    return bool((lifts[held >= 10] >= lift).any())
