"""F1 and macro-F1 by group, beside scikit-learn and a linearised standard error."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import f1_score, precision_score

from isolux.core.spec import Statistics
from isolux.core.tables import MEMBERSHIP
from isolux.groups.measure import measure_groups
from isolux.tasks.classification import score
from tests.tasks._people import answers, people

CLASSES = ["cat", "dog", "elk"]


def drawn(n=900, seed=5):
    """Truth, answers (a fourth class is true of nobody) and groups that differ."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(CLASSES, n, p=[0.5, 0.3, 0.2])
    group = rng.choice(["a", "b"], n)
    right = rng.random(n) < np.where(group == "a", 0.85, 0.65)
    return truth, np.where(right, truth, rng.choice([*CLASSES, "fox"], n)), group


def measured(truth, said, group, metrics, **options):
    """Measure by group: the table of group metrics."""
    ids = [f"p{i}" for i in range(len(truth))]
    given = answers(dict(zip(ids, said, strict=True)))
    scores = score(people(dict(zip(ids, truth, strict=True))), given, target="job",
                   metrics=metrics, **options)  # fmt: skip
    members = pl.DataFrame({"unit_id": ids, "attribute": "g", "group": group})
    members = members.with_columns(values=pl.concat_list("group")).sort("group")
    estimates = measure_groups(scores, MEMBERSHIP.conform(members), Statistics(replicates=4_000))
    return estimates.to_table()


@pytest.fixture(scope="module")
def table():
    return measured(*drawn(), ["f1", "macro_f1", "precision"], one_vs_rest=True)


@pytest.mark.parametrize("name", ["a", "b"])
def test_values_are_those_of_scikit_learn(table, name):
    truth, said, _ = (column[drawn()[2] == name] for column in drawn())
    own = table.filter(group=name)
    for metric, function in (("f1", f1_score), ("precision", precision_score)):
        expected = function(truth, said, labels=CLASSES, average=None)
        rows = own.filter(metric=metric).sort("label")
        assert rows["label"].to_list() == CLASSES
        assert rows["value"].to_list() == pytest.approx(expected.tolist(), abs=1e-12)
    expected = f1_score(truth, said, labels=CLASSES, average="macro")
    assert own.filter(metric="macro_f1")["value"].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["a", "b"])
def test_standard_errors_are_those_of_the_linearised_ratio(table, name):
    truth, said, _ = (column[drawn()[2] == name] for column in drawn())
    # F1 = 2 TP / D with D = (of the class) + (given it). One unit's part in the error of this
    # ratio is (2 hit - F1 d) / D, and the variance is the sum of squares of these parts.
    parts = []
    for label in CLASSES:
        hit, d = (truth == label) & (said == label), (truth == label) * 1.0 + (said == label)
        parts.append((2.0 * hit - 2.0 * hit.sum() / d.sum() * d) / d.sum())
    own = table.filter(group=name)
    found = own.filter(metric="f1").sort("label")["standard_error"].to_list()
    # 4,000 replicates: a standard error has an error of its own of 1 / sqrt(8,000) = 1.1 %.
    assert found == pytest.approx([np.sqrt((p**2).sum()) for p in parts], rel=0.06)
    macro = np.mean(parts, axis=0)
    found = own.filter(metric="macro_f1")["standard_error"].item()
    assert found == pytest.approx(np.sqrt((macro**2).sum()), rel=0.06)
    assert (own["low"] < own["value"]).all()
    assert (own["value"] < own["high"]).all()


def test_one_positive_class_is_that_row_of_every_class(table):
    alone = measured(*drawn(), ["f1"], positive="dog")
    of_all = table.filter(metric="f1", label="dog")
    assert alone["value"].to_list() == of_all["value"].to_list()
    # 900 people less those who neither are a dog nor were taken for one.
    truth, said, _ = drawn()
    assert alone["n_units"][0] == ((truth == "dog") | (said == "dog")).sum()


def test_a_group_without_one_of_the_classes_is_not_compared():
    truth, said, group = drawn()
    kept = (group == "b") | ((truth != "elk") & (said != "elk"))
    row = measured(truth[kept], said[kept], group[kept], ["macro_f1"]).filter(group="a")
    assert row["value"].item() is None
    assert row["status"].item() == "insufficient units"
    assert row["reason"].item() == "fewer than 50 units of one class: 0"


def test_f1_of_nobody_is_undefined_and_not_zero():
    # Of group b, nobody is a dog and nobody was taken for one: 0 / 0.
    truth = np.array(["dog", "cat"] * 100 + ["cat"] * 100)
    group = np.array(["a"] * 200 + ["b"] * 100)
    row = measured(truth, truth, group, ["f1"], positive="dog").filter(group="b")
    assert row["value"].item() is None


def test_people_who_were_not_detected_are_mistakes_or_left_out():
    # 100 dogs, 60 of them found and right: F1 = 2 60 / (100 + 60) = .75; left out: 1.
    ids = [f"p{i}" for i in range(200)]
    truth = dict(zip(ids, ["dog"] * 100 + ["cat"] * 100, strict=True))
    said = {unit: None if 60 <= i < 100 else truth[unit] for i, unit in enumerate(ids)}
    members = pl.DataFrame({"unit_id": ids, "attribute": "g", "group": "all"})
    membership = MEMBERSHIP.conform(members.with_columns(values=pl.concat_list("group")))
    values = {}
    for undetected in ("mistake", "leave-out"):
        scores = score(people(truth), answers(said), target="job", positive="dog",
                       metrics=["f1"], undetected=undetected)  # fmt: skip
        estimates = measure_groups(scores, membership, Statistics(replicates=100))
        values[undetected] = estimates.to_table()["value"][0]
    assert values == {"mistake": pytest.approx(0.75), "leave-out": pytest.approx(1.0)}
