"""Small synthetic runs in which dim light is to blame: what each analysis is asked to look at.

600 subjects, two photographs each. In dim light a model errs more often the darker the skin tone;
in bright light errors do not depend on tone. A detector misses people in dim light.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

import isolux
from isolux.core.containers import Dataset, Run
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import ATTRIBUTES, BOX_PREDICTIONS, INSTANCES, LABEL_PREDICTIONS

N = 1200
CLASSES = ("drummer", "guard", "nurse")
INFO = DatasetInfo(
    title="People in dim light",
    summary="Synthetic people.",
    references=(Reference(key="none", citation="Made in tests/contracts/_runs.py."),),
)


@cache
def _drawn() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    tone, light = rng.integers(1, 11, N), rng.random(N)
    dim = light < 0.4
    return pl.DataFrame(
        {
            "id": [f"p{i:04}" for i in range(N)],
            "class": [CLASSES[k] for k in rng.integers(0, 3, N)],
            "tone": ["light" if t < 4 else "medium" if t < 8 else "dark" for t in tone],
            "light": np.where(dim, "dim", "bright"),
            "setting": rng.choice(["home", "street"], N),
            "size": rng.lognormal(4.0, 0.6, N),
            "wrong": rng.random(N) < 0.08 + 0.03 * tone * dim,
            "better": rng.random(N) < 0.08 + 0.01 * tone * dim,
            "sure": rng.normal(0.0, 0.1, N),
            "found": rng.random(N) < np.where(dim, 0.6, 0.9),
            "off": rng.uniform(0.0, 6.0, N),
        }
    )


def people() -> Dataset:
    """Give the people, with boxes of 40 by 80 pixels, one in a picture."""
    drawn = _drawn()
    numbers = range(N)
    instances = pl.DataFrame(
        {
            "instance_id": drawn["id"],
            "image_id": [f"i{i:04}" for i in numbers],
            "cluster_id": [f"s{i // 2:04}" for i in numbers],
            "classes": [[one] for one in drawn["class"]],
            "box_x": [10.0] * N, "box_y": [10.0] * N, "box_w": [40.0] * N, "box_h": [80.0] * N,
        }
    )  # fmt: skip
    words = drawn.unpivot(["class", "tone", "light", "setting"], index="id", variable_name="name")
    sizes = drawn.select("id", name=pl.lit("size"), value=pl.col("size").round(2).cast(pl.String),
                         number="size")  # fmt: skip
    together = pl.concat([words, sizes], how="diagonal").rename(
        {"id": "unit_id", "name": "attribute"}
    )
    return Dataset(
        name="dim light",
        info=INFO,
        instances=INSTANCES.conform(instances),
        attributes=ATTRIBUTES.conform(together.with_columns(unit_kind=pl.lit("instance"))),
    )


def _answers(column: str, model: str) -> pl.DataFrame:
    drawn = _drawn()
    place = drawn["class"].replace_strict(list(CLASSES), range(3), return_dtype=pl.Int64)
    said = ((place + drawn[column].cast(pl.Int64)) % 3).to_list()
    sure = (0.85 - 0.3 * drawn[column].cast(pl.Float64) + drawn["sure"]).clip(0.01, 0.99)
    return LABEL_PREDICTIONS.conform(
        pl.DataFrame({"instance_id": drawn["id"], "label": [CLASSES[k] for k in said],
                      "score": sure, "rank": 1, "model": model})
    )  # fmt: skip


@cache
def _audited(column: str, model: str) -> isolux.Audit:
    scores = isolux.score("classification", people(), _answers(column, model), target="class",
                          positive="nurse", score_of="answer")  # fmt: skip
    return isolux.audit(scores, people(), by=["tone", "light"], replicates=200, seed=3,
                        metric=["accuracy", "true_positive_rate"])  # fmt: skip


def labels() -> Run:
    """Give the audit of the model that errs in dim light."""
    return _audited("wrong", "net").run


def comparison() -> Run:
    """Give its comparison with a model that errs less there."""
    return isolux.compare(_audited("wrong", "net"), _audited("better", "newer")).run


@cache
def boxes() -> Run:
    """Give the audit of a detector that misses people in dim light."""
    drawn = _drawn().with_row_index().filter("found")
    found = pl.DataFrame(
        {
            "image_id": [f"i{i:04}" for i in drawn["index"]],
            "box_x": 10.0 + drawn["off"], "box_y": 10.0, "box_w": 40.0, "box_h": 80.0,
            "score": 0.7 + drawn["sure"] / 2, "label": None, "model": "detector",
        }
    )  # fmt: skip
    scores = isolux.score("detection", people(), BOX_PREDICTIONS.conform(found))
    return isolux.audit(scores, people(), by=["light"], replicates=200, seed=3).run


@cache
def associations() -> Run:
    """Give the audit of a classifier that gives harmful labels in dim light."""
    drawn = _drawn()
    dim = drawn["light"] == "dim"
    label = np.where(drawn["wrong"] & dim, "ape", np.where(drawn["found"], "face", "wall"))
    sure = (0.4 + drawn["sure"]).clip(0.01, 0.99)
    said = pl.DataFrame({"instance_id": drawn["id"], "label": label.tolist(), "score": sure,
                         "rank": 1, "model": "net"})  # fmt: skip
    scores = isolux.score("label_association", people(), LABEL_PREDICTIONS.conform(said),
                          taxonomy="miap", top_k=1)  # fmt: skip
    return isolux.audit(scores, people(), by=["light"], replicates=200, seed=3).run


@cache
def answers() -> Run:
    """Give the audit of a model that calls people a guard more often in dim light."""
    drawn = _drawn()
    dim = drawn["light"] == "dim"
    label = np.where(
        drawn["wrong"] & dim, "a guard", np.where(drawn["better"], "a nurse", "a chef")
    )
    said = pl.DataFrame({"instance_id": drawn["id"], "label": label.tolist(), "rank": 1,
                         "model": "net"})  # fmt: skip
    scores = isolux.score("answers", people(), LABEL_PREDICTIONS.conform(said), read=["occupation"])
    return isolux.audit(scores, people(), by=["light"], replicates=200, seed=3).run


@cache
def searches() -> Run:
    """Give the audit of a search engine that often finds the wrong person in dim light."""
    drawn, whole = _drawn(), people()
    gallery = [i % 4 == 0 for i in range(N)]  # of every other subject, one of the two photographs
    role = pl.DataFrame({"unit_kind": "instance", "unit_id": drawn["id"], "attribute": "role",
                         "value": ["gallery" if g else "probe" for g in gallery]})  # fmt: skip
    known = pl.concat([whole.attributes, ATTRIBUTES.conform(role)])
    rows = []
    for i, wrong in enumerate(drawn["wrong"]):
        if gallery[i]:
            continue
        own = 4 * (i // 4)
        entry = (own + 4 * (1 + i % 7)) % N if wrong or i % 4 > 1 else own
        alike = 0.6 + drawn["sure"][i] + (0.2 if entry == own else 0.2 * wrong)
        rows.append((drawn["id"][i], drawn["id"][entry], alike))
    lists = pl.DataFrame(rows, schema=["instance_id", "other_id", "score"], orient="row")
    scores = isolux.score(
        "identification", replace(whole, attributes=known), lists.with_columns(model=pl.lit("net")),
        enrolled="role=gallery", threshold=0.7, identity="cluster_id",
    )  # fmt: skip
    return isolux.audit(
        scores, replace(whole, attributes=known), by=["light"], replicates=200, seed=3
    ).run
