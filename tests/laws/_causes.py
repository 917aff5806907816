"""Worlds whose counts are alike and whose causes are not, through the analysis ``confounders``.

In ``collider`` the light follows from the tone and from being right (photos are brightened
afterwards, more often those of b and those with a right answer); tone and score have nothing to do
with each other. In ``masked`` the light came first: people of tone b are photographed in good
light more often, and are served worse at any light, by as much as hides it. In ``mediated`` all of
the gap goes by way of light.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.analyses import confounders
from isolux.core import registry
from isolux.core.containers import Scores
from isolux.core.tables import ATTRIBUTES, SCORES
from tests.laws._measured import measured

DARK_GIVEN = np.array([[0.85, 0.15], [0.5, 0.02]])
"""Of the collider: P(dark | tone, right)."""


def drawn(world, rng, subjects, photos):
    """Draw tone (of a subject), light and score of every photo: arrays of ``[n]``."""
    tone = np.repeat(rng.permutation(subjects) % 2, photos)
    n = len(tone)
    subject = np.repeat(rng.normal(0, 0.05, subjects), photos)
    if world == "collider":
        right = rng.random(n) < np.clip(0.8 + subject, 0, 1)
        dark = rng.random(n) < DARK_GIVEN[tone, right.astype(int)]
        return tone, dark, right
    if world == "masked":
        # At one light tone b is .15 worse; good light gives .3, and b has .5 more of it.
        dark = rng.random(n) < np.where(tone == 1, 0.2, 0.7)
        right = rng.random(n) < 0.9 - 0.15 * tone - 0.3 * dark + subject
        return tone, dark, right
    if world == "mediated":
        dark = rng.random(n) < np.where(tone == 1, 0.7, 0.2)
        right = rng.random(n) < 0.9 - 0.3 * dark + subject
        return tone, dark, right
    raise ValueError(world)


def run_of(world, seed, *, subjects=120, photos=10, replicates=199):
    """Draw a world, and compare its tones as an audit does."""
    tone, dark, right = drawn(world, np.random.default_rng(seed), subjects, photos)
    n = len(tone)
    ids = [f"p{i}" for i in range(n)]
    units = pl.DataFrame(
        {"model": "m", "task": "classification", "metric": "accuracy", "unit_kind": "instance",
         "unit_id": ids, "cluster_id": [f"s{i // photos}" for i in range(n)],
         "value": right.astype(float)}
    )  # fmt: skip
    rows = [
        {"unit_kind": "instance", "unit_id": u, "attribute": name, "value": value}
        for name, code, words in (("tone", tone, "ab"), ("light", dark, ("bright", "dark")))
        for u, value in zip(ids, (words[int(c)] for c in code), strict=True)
    ]
    info = registry.task_info("classification")
    scores = Scores(SCORES.conform(units), info, task="classification")
    people = ATTRIBUTES.conform(pl.DataFrame(rows, infer_schema_length=None))
    return measured(scores, people, by=("tone",), replicates=replicates, seed=seed)


def claimed(world, roles, *, worlds, replicates, **settings):
    """Count worlds in which a gap at an equal mix of light is found: a row a role of light."""
    gaps = {role: [] for role in roles}
    for seed in range(worlds):
        run = run_of(world, 50_000 + seed, replicates=replicates, **settings)
        for role in roles:
            said = {} if role == "unknown" else {"light": role}
            told = confounders.explain(run, explanatory=("light",), roles=said, regression=False)
            (gap,) = told.findings.filter(reference="keiding-clayton-2014").to_dicts()
            gaps[role].append(gap)
    return [_counted(world, role, rows) for role, rows in gaps.items()]


def _counted(world, role, gaps):
    found = [gap["p_adjusted"] is not None and gap["p_adjusted"] <= 0.05 for gap in gaps]
    named = ["no finding of a gap" in gap["claim"].lower() for gap in gaps]
    sizes = [gap["effect"] if gap["group_a"] == "b" else -gap["effect"] for gap in gaps]
    return {
        "world": world, "role of light": role, "gap at an equal mix": float(np.mean(sizes)),
        "a gap is found, %": float(np.mean(found)), "said to be none, %": float(np.mean(named)),
    }  # fmt: skip
