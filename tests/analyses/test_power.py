"""What could be seen and whom to add: sums by hand, and the error that the added people leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.analyses import power
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.tables import (
    ATTRIBUTES,
    COMPARISONS,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    check,
)

RECORD = {
    "spec": {"level": 0.95, "min_units": 50, "min_clusters": 10},
    "clusters": {"column": "subject"},
}
LINE = {"model": "m", "task": "classification", "metric": "accuracy", "attribute": "tone"}


def run_of(se_a, n_a, se_b, n_b, detectable):
    groups = [
        {**LINE, "group": g, "values": [g], "standard_error": se, "n_units": n, "value": 0.5,
         "n_clusters": n // 2, "status": "ok"}
        for g, se, n in (("dark", se_a, n_a), ("light", se_b, n_b))
    ]  # fmt: skip
    groups.append({**LINE, "group": "pale", "values": ["pale"], "n_units": 12, "n_clusters": 12,
                   "status": "insufficient units", "reason": "12 units"})  # fmt: skip
    pair = {**LINE, "kind": "difference", "group_a": "dark", "group_b": "light", "value": 0.0,
            "detectable": detectable, "n_units_a": n_a, "n_units_b": n_b, "n_clusters_a": n_a // 2,
            "n_clusters_b": n_b // 2, "status": "ok"}  # fmt: skip
    return Run(
        RECORD,
        SCORES.empty(),
        ATTRIBUTES.empty(),
        GROUP_METRICS.conform(pl.DataFrame(groups, infer_schema_length=None)),
        DISPARITIES.conform(pl.DataFrame([pair])),
        FINDINGS.empty(),
    )


def needs(run, target):
    found = power.explain(run, targets=[target])
    (table,) = (t for name, t in found.tables.items() if name.startswith("Whom"))
    return table.row(0, named=True)


def test_two_groups_alike_grow_alike():
    # Half the difference asks for a quarter of the variance: four times as many of each, 300 more.
    row = needs(run_of(0.05, 100, 0.05, 100, 0.2), 0.1)
    assert (row["units to add"], row["other units to add"]) == (300, 300)
    assert (row["clusters to add"], row["other clusters to add"]) == (150, 150)


def test_the_small_group_grows_alone_while_that_is_cheapest():
    # v = 1 each (.1² x 100, .02² x 2500). Target .2 of .25: W = (.01 + .0004) x .64 = .006656.
    # Neyman's n = 1 x 2 / W = 300.5 of each: light has 2,500 already, so dark grows alone to
    # 1 / (.006656 - .0004) = 159.85: 60 more.
    row = needs(run_of(0.1, 100, 0.02, 2500, 0.25), 0.2)
    assert (row["group"], row["units to add"], row["other units to add"]) == ("dark", 60, 0)


def test_the_group_with_the_larger_error_comes_first():
    row = needs(run_of(0.02, 2500, 0.1, 100, 0.25), 0.2)
    assert (row["group"], row["units"], row["units to add"]) == ("light", 100, 60)


def test_what_is_seen_already_needs_nobody():
    found = power.explain(run_of(0.05, 100, 0.05, 100, 0.2), targets=[0.25])
    assert found.findings["claim"][0].endswith("That is enough for one of 25.0 points.")
    assert found.tables[next(iter(found.tables))]["units to add"].to_list() == [0]


def test_the_worst_measured_class_speaks_for_all_classes_after_everyone():
    """Two attributes, recall of two classes and accuracy: four findings, the table has six rows."""
    runs = []
    for attribute, worse in (("tone", 0.4), ("age", 0.3)):
        for label, seen in ((None, 0.1), ("cook", worse - 0.2), ("nurse", worse)):
            one = run_of(0.05, 100, 0.05, 100, seen)
            named = {"attribute": pl.lit(attribute), "label": pl.lit(label, pl.String)}
            named["metric"] = pl.lit("recall" if label else "accuracy")
            runs.append((one.group_metrics.with_columns(**named),
                         one.disparities.with_columns(**named)))  # fmt: skip
    metrics, disparities = (pl.concat(parts) for parts in zip(*runs, strict=True))
    run = Run(RECORD, SCORES.empty(), ATTRIBUTES.empty(), metrics, disparities, FINDINGS.empty())
    found = power.explain(run, targets=[0.05])
    assert found.findings.select("label", "attribute", "effect").rows() == [
        (None, "tone", 0.1), (None, "age", 0.1), ("nurse", "tone", 0.4), ("nurse", "age", 0.3),
    ]  # fmt: skip
    assert found.findings["claim"][2].startswith(
        "Recall of nurse by tone, the least precise of 2 classes: this audit could have detected"
    )
    assert "classes" not in found.findings["claim"][0]
    table = next(t for name, t in found.tables.items() if name.startswith("Whom"))
    assert table.height == 6


def test_the_finding_says_it():
    found = power.explain(run_of(0.05, 100, 0.05, 100, 0.2), targets=[0.1]).findings
    assert check(found, FINDINGS).select("analysis", "effect", "n", "group_a").rows() == [
        ("power", 0.2, 200, "dark")
    ]
    assert found["claim"][0] == (
        "Accuracy by tone: this audit could have detected (power 0.8) a difference of 20.0 points "
        "between dark and light, its least precise pair. To detect one of 10.0 points, 300 more "
        "of dark (150 clusters) and 300 more of light (150 clusters) are enough."
    )


def test_groups_below_the_minimum_are_counted():
    tables = power.explain(run_of(0.05, 100, 0.05, 100, 0.2)).tables
    (small,) = (t for name, t in tables.items() if name.startswith("Groups below"))
    assert small.rows() == [("tone", "pale", 12, 12, 38, 0)]


def test_groups_without_an_error_are_as_uncertain_as_their_intervals():
    # Nobody differed, so no standard error; intervals of .1 and .3: the second group's is three
    # times the first's, as are the numbers that are to be added: n_a : n_b = error_a : error_b.
    run = run_of(0.0, 100, 0.0, 100, 0.2)
    low = pl.Series("low", [0.7, 0.9, None])
    flawless = run.group_metrics.with_columns(low, high=pl.Series([1.0, 1.0, None]))
    row = needs(replace(run, group_metrics=flawless), 0.1)
    assert (row["group"], row["units"], row["other units"]) == ("dark", 100, 100)
    added = 100 + row["units to add"], 100 + row["other units to add"]
    # Variances .3^2 + .1^2 have to fall to a quarter: s_a (s_a + s_b) / (.1 / 4) x 100 and so on.
    assert added == pytest.approx((480, 160), abs=1)


def test_an_audit_in_which_a_class_is_always_recalled_is_explained():
    rng = np.random.default_rng(3)
    truth = rng.choice(["cat", "dog"], 900)
    scores = pl.DataFrame({
        "unit_id": [f"p{i}" for i in range(900)],
        "metric": "recall",
        "label": truth,
        "value": (truth == "dog") | (rng.random(900) > 0.2),  # a dog is never missed
    }).with_columns(pl.col("value").cast(float), cluster_id="unit_id")  # fmt: skip
    who = scores.select("unit_id", tone=pl.Series(rng.choice(["dark", "light"], 900)))
    run = isolux.audit(scores, who, by="tone").run
    found = power.explain(run, targets=[0.01])
    (table,) = (t for name, t in found.tables.items() if name.startswith("Whom"))
    assert {"recall of cat", "recall of dog"} == {m.lower() for m in table["metric"]}
    assert (table["units to add"] > 0).all()


@pytest.mark.parametrize("detectable", [None, float("inf"), 0.0])
def test_a_pair_whose_error_is_not_known_says_nothing(detectable):
    assert power.explain(run_of(0.05, 100, 0.05, 100, detectable)).findings.is_empty()


def test_a_comparison_of_models_has_none():
    run = run_of(0.05, 100, 0.05, 100, 0.2)
    other = Run(run.record, run.scores, run.attributes, run.group_metrics, COMPARISONS.empty(),
                FINDINGS.empty())  # fmt: skip
    assert power.explain(other).findings.is_empty()


@pytest.mark.parametrize("targets", [[], [0.0], [0.1, -0.1]])
def test_a_target_that_is_no_difference_is_refused(targets):
    with pytest.raises(SpecError, match="a target has to be a difference"):
        power.explain(run_of(0.05, 100, 0.05, 100, 0.2), targets=targets)


def audited(n_a, n_b, seed):
    """Two groups with rates .7 and .8 and three photographs of each subject."""
    rng = np.random.default_rng(seed)
    tone = np.repeat(["a", "b"], [3 * n_a, 3 * n_b])
    own = np.repeat(rng.beta(3, 3, n_a + n_b) - 0.5, 3) * 0.3
    right = rng.random(tone.size) < np.where(tone == "a", 0.7, 0.8) + own
    unit = [f"u{i}" for i in range(tone.size)]
    scores = pl.DataFrame({"unit_id": unit, "value": right.astype(float),
                           "cluster_id": [f"s{i // 3}" for i in range(tone.size)]})  # fmt: skip
    who = pl.DataFrame({"unit_id": unit, "tone": tone})
    return isolux.audit(scores, who, by="tone", cluster="subject", replicates=500, seed=seed).run


def test_with_the_people_it_asks_for_the_target_is_what_can_be_seen():
    run = audited(60, 400, 1)
    row = needs(run, 0.08)
    grown = audited(60 + row["clusters to add"], 400 + row["other clusters to add"], 2)
    seen = grown.disparities.filter(kind="difference")["detectable"][0]
    # Its error is estimated twice, each time to some 6 % (subjects, and 500 replicates).
    assert seen == pytest.approx(0.08, rel=0.15)
