"""A ranking rests on its rarer class: three positives among a thousand give no area."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES

N = 400


def people(**columns):
    ids = [f"p{i:04}" for i in range(len(next(iter(columns.values()))))]
    rows = [
        ("instance", u, k, v) for k, col in columns.items() for u, v in zip(ids, col, strict=True)
    ]
    names = ("unit_kind", "unit_id", "attribute", "value")
    attributes = pl.DataFrame(rows, schema=names, orient="row")
    instances = INSTANCES.conform(pl.DataFrame({"instance_id": ids, "image_id": ids}))
    info = DatasetInfo(title="x", summary="x", references=())
    return Dataset("x", info, instances, ATTRIBUTES.conform(attributes))


@pytest.mark.parametrize(("positives", "status"), [(3, "insufficient units"), (60, "ok")])
def test_an_area_needs_as_many_of_the_rarer_class_as_a_group_needs_units(positives, status):
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], N // 2)
    truth = rng.choice(["no", "yes"], N)
    truth[: N // 2] = "no"
    truth[:positives] = "yes"
    dataset = people(group=group.tolist(), truth=truth.tolist())
    marks = np.clip(0.5 + 0.2 * (truth == "yes") + rng.normal(0, 0.15, N), 0, 1)
    given = pl.DataFrame(
        {"model": "m", "instance_id": dataset.instances["instance_id"], "score": marks,
         "label": np.where(marks > 0.6, "yes", "no"), "rank": 1}
    )  # fmt: skip
    scores = isolux.score(
        "classification", dataset, given, target="truth", positive="yes", metrics=["roc_auc"],
        score_of="positive",
    )  # fmt: skip
    found = isolux.audit(scores, dataset, by="group", replicates=200)
    rows = {r["group"]: r for r in found.group_metrics.iter_rows(named=True)}
    assert rows["b"]["status"] == "ok"
    assert rows["a"]["status"] == status
    if positives < 50:
        assert rows["a"]["value"] is None
        assert rows["a"]["reason"] == "fewer than 50 units of one class: 3"
        assert found.disparities.filter(kind="pairwise_difference")["value"].drop_nulls().is_empty()


@pytest.mark.parametrize(
    ("women", "status"), [(0, "insufficient units"), (12, "insufficient units"), (60, "ok")]
)
def test_balanced_accuracy_needs_as_many_of_each_class_as_a_group_needs_units(women, status):
    """Of 200 people of group a twelve are women: half of its balanced accuracy rests on them."""
    group = np.repeat(["a", "b"], N // 2)
    truth = np.tile(["m", "f"], N // 2)
    truth[: N // 2] = "m"
    truth[:women] = "f"
    dataset = people(group=group.tolist(), truth=truth.tolist())
    given = pl.DataFrame({
        "model": "m", "instance_id": dataset.instances["instance_id"], "label": truth, "rank": 1,
        "score": 1.0,
    })  # fmt: skip
    metrics = ["balanced_accuracy", "accuracy"]
    scores = isolux.score("classification", dataset, given, target="truth", metrics=metrics)
    found = isolux.audit(scores, dataset, by="group", replicates=200).group_metrics
    rows = {(r["metric"], r["group"]): r for r in found.iter_rows(named=True)}
    assert rows["balanced_accuracy", "b"]["status"] != "insufficient units"
    assert rows["accuracy", "a"]["value"] == 1.0  # over everyone of a, whatever their class
    one = rows["balanced_accuracy", "a"]
    assert (one["status"] == "insufficient units") == (status == "insufficient units")
    if women < 50:
        assert one["value"] is None
        assert one["reason"] == f"fewer than 50 units of one class: {women}"


def test_rates_of_pairs_need_as_many_pairs_of_the_kind_they_are_over():
    # Sixty people of group a have two photos each, of which three pairs are given; b's are all.
    ids = [(g, i, k) for g in "ab" for i in range(60) for k in range(2)]
    dataset = people(group=[g for g, _, _ in ids], who=[f"{g}{i}" for g, i, _ in ids])
    names = dict(zip(ids, dataset.instances["instance_id"], strict=True))
    rng = np.random.default_rng(1)
    rows = []
    for g in "ab":
        for i in range(60):
            if g == "b" or i < 3:
                rows.append((names[g, i, 0], names[g, i, 1], 0.8 + 0.1 * rng.random()))
            rows += [
                (names[g, i, 0], names[g, j, 1], 0.2 + 0.3 * rng.random())
                for j in range(60)
                if i != j
            ]
    pairs = pl.DataFrame(rows, schema=["instance_id", "other_id", "score"], orient="row")
    scores = isolux.score(
        "face_verification", dataset, pairs.with_columns(model=pl.lit("m")), identity="who",
        far=0.01, threshold=0.6,
        metrics=["true_match_rate", "false_match_rate", "verification_auc"],
    )  # fmt: skip
    found = isolux.audit(scores, dataset, by="group", replicates=200).group_metrics
    status = {
        (r["metric"], r["group"]): r["status"]
        for r in found.iter_rows(named=True)
        if r["attribute"]
    }
    assert status["true_match_rate", "a"] == status["verification_auc", "a"] == "insufficient units"
    assert status["false_match_rate", "a"] != "insufficient units"
    assert status["true_match_rate", "b"] not in ("insufficient units", "insufficient clusters")
