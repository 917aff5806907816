"""Populations whose audits are published: some groups and classes of a few people."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.api.audit import audit
from isolux.core.containers import Dataset, Run
from isolux.core.info import DatasetInfo
from isolux.tasks import score

RACES = ["Aleut"] * 4 + ["Basque"] * 30 + ["Corsican"] * 90 + ["Dutch"] * 176


def people(seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    draw = np.random.default_rng(seed)
    ids = [f"p{i}" for i in range(len(RACES))]
    who = pl.DataFrame({"unit_id": ids, "race": RACES, "light": ["day", "dusk", "night"] * 100})
    scored = pl.DataFrame({"unit_id": ids, "value": (draw.random(len(ids)) < 0.7) * 1.0})
    return scored, who


def parts_of(run) -> dict[str, object]:
    return {name: getattr(run, name) for name in run.__dataclass_fields__}


def people_of(truth: list[str], race: list[str]) -> Dataset:
    ids = [f"p{i}" for i in range(len(truth))]
    rows = {"unit_kind": "instance", "unit_id": ids, "attribute": "race", "value": race}
    held = {"instance_id": ids, "image_id": ids, "classes": [[t] for t in truth]}
    info = DatasetInfo(title="Made", summary="Synthetic.", references=())
    return Dataset("made", info, pl.DataFrame(held), pl.DataFrame(rows))


def audited(people: Dataset, predictions: dict[str, object], **settings: object) -> Run:
    ids = people.instances["instance_id"]
    kinds = {"score": pl.Float64, "rank": pl.Int64}
    kinds = {name: kind for name, kind in kinds.items() if name in predictions}
    table = pl.DataFrame({"instance_id": ids, "model": "m"} | predictions, schema_overrides=kinds)
    scores = score("classification", people, table, **settings)
    return audit(scores, people, by="race", replicates=100, min_units=1, min_clusters=1).run


def binary(sizes: dict[str, tuple[int, int]]) -> tuple[list[str], list[str]]:
    """List the truth and the race of groups of so many people of class "yes" and "no"."""
    truth = [t for a, b in sizes.values() for t in ["yes"] * a + ["no"] * b]
    return truth, [g for g, (a, b) in sizes.items() for _ in range(a + b)]


def a_fifth_wrong(truth: list[str]) -> dict[str, object]:
    other = {"yes": "no", "no": "yes", "cat": "dog", "dog": "cat", "owl": "dog"}
    answer = [other[t] if i % 5 == 0 else t for i, t in enumerate(truth)]
    return {"label": answer, "score": None, "rank": 1}


def shown_of(run: Run, group: str) -> set[str]:
    return set(run.group_metrics.filter(group=group)["metric"])
