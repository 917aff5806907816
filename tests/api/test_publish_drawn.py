"""Published weighted numbers: rounded, widened, and no answer of anyone's follows from them."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.api.publish import publish
from isolux.api.publish.weighted_rounding import ROUNDING_STEPS, choose_rounding_steps
from isolux.core.errors import SpecError
from isolux.report.people_counts import compute_max_person_weight_shares
from tests.api._weighted_attack import Attack, audited, random_survey

RUNS = 60 if os.environ.get("ISOLUX_FAULTS") == "whole" else 4


def survey(n=400, **columns) -> pl.DataFrame:
    """Make people of two tones and weights 1, 2 and 3, of whom each seventh is wrong."""
    i = np.arange(n)
    return pl.DataFrame({
        "unit_id": [f"p{k}" for k in i], "a": np.where(i % 5 < 2, "dark", "light"),
        "b": np.where(i % 2 == 0, "f", "m"), "weight": 1.0 + i % 3,
        "value": (i % 7 != 0).astype(float), **columns,
    })  # fmt: skip


def shown_steps(people, shown):
    """Reckon each shown row's step as a reader who knows the weights would."""
    found = []
    for row in shown.to_dicts():
        inside = people
        names = str(row["attribute"]).split("*") if row["attribute"] else []
        for name, value in zip(names, row["values"], strict=True):
            inside = inside.filter(pl.col(name) == value)
        share = inside["weight"].max() / inside["weight"].sum()
        found.append(min(s for s in ROUNDING_STEPS if s * (1 + 1e-9) >= 2 * share))
    return found


def test_no_one_s_answer_follows_from_published_numbers():
    attacked = rows = 0
    for seed in range(RUNS):
        people = random_survey(seed)
        shown = publish(audited(people).run, 5).group_metrics.filter(pl.col("value").is_not_null())
        attack = Attack(shown, people, shown_steps(people, shown))
        assert attack.recovered() == [], seed
        attacked += people.height
        rows += shown.height
    print(f"{RUNS} surveys: {attacked:,} people attacked, {rows:,} numbers shown")
    assert rows >= 5 * RUNS


def test_numbers_with_all_their_digits_tell_who_was_wrong():
    """Of twelve people of unequal weights, one set of wrong ones alone gives .8317… to 9 digits."""
    weight = np.random.default_rng(1).lognormal(0.0, 0.8, 12)
    right = np.array([1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1])
    told = weight @ right / weight.sum()
    fits = [
        answers for answers in itertools.product((0, 1), repeat=12)
        if abs(weight @ np.array(answers) / weight.sum() - told) < 1e-9
    ]  # fmt: skip
    assert fits == [tuple(right)]


def test_the_attack_works_where_values_are_rounded_less():
    """As numbers are printed without weights, to a tenth of a point, people are found."""
    lost = 0
    for seed in range(4):
        people = random_survey(seed).head(40)
        whole = audited(people).group_metrics.filter(pl.col("value").is_not_null())
        whole = whole.with_columns(pl.col("value").round(3))
        lost += len(Attack(whole, people, [0.001] * whole.height).recovered())
    assert lost > 20


def test_each_number_is_rounded_by_its_heaviest_person():
    """Of 400 people one weighs 3 of 799: .75 % of the whole, so whole points are too fine."""
    run = audited(survey()).run
    told = (
        compute_max_person_weight_shares(run)
        .filter(pl.col("attribute").is_null())["_heaviest"]
        .item()
    )
    assert told == pytest.approx(3 / 799)
    steps = {row["group"]: row["_step"] for row in choose_rounding_steps(run).to_dicts()}
    assert steps["overall"] == 0.01
    assert steps["dark"] == 0.02
    found = publish(run, 5)
    raw = {r["group"]: r for r in run.group_metrics.to_dicts()}
    for row in found.group_metrics.to_dicts():
        step, own = steps[row["group"]], raw[row["group"]]
        assert abs(row["value"] - own["value"]) <= step / 2 + 1e-9
        assert own["low"] - step <= row["low"] <= own["low"] + 1e-9
        assert own["high"] - 1e-9 <= row["high"] <= own["high"] + step
        assert row["low"] <= row["value"] <= row["high"]
        assert row["standard_error"] is None
    assert not [c for c in found.group_metrics.columns if c.startswith("n_effective")]


def test_comparisons_follow_from_the_rounded_values():
    found = publish(audited(survey()).run, 5)
    value = {r["group"]: r["value"] for r in found.group_metrics.to_dicts()}
    pairs = found.disparities.filter(kind="difference").to_dicts()
    assert pairs
    for row in pairs:
        apart = value[row["group_a"]] - value[row["group_b"]]
        assert abs(row["value"] - apart) <= 0.05 + 1e-9
        assert row["simultaneous_low"] <= row["low"] <= row["value"] <= row["high"]
        assert row["high"] <= row["simultaneous_high"]
        for end in ("low", "high", "simultaneous_low", "simultaneous_high"):
            assert row[end] == pytest.approx(round(row[end], 2)), "no finer than the value"
        assert row["p_value"] == pytest.approx(round(row["p_value"], 2))
        assert 0.01 <= row["p_value"] <= 1.0
    assert set(found.disparities["kind"]) <= {"difference", "difference_to_overall",
                                              "omnibus_test"}  # fmt: skip


def test_a_comparison_without_an_interval_has_none_when_it_is_published():
    run = audited(survey()).run
    ends = ("low", "high", "simultaneous_low", "simultaneous_high")
    bare = run.disparities.with_columns(pl.lit(None, pl.Float64).alias(end) for end in ends)
    pairs = publish(replace(run, disparities=bare), 5).disparities.filter(kind="difference")
    assert pairs.height > 0
    assert pairs["value"].null_count() == 0
    assert all(pairs[end].null_count() == pairs.height for end in ends)


def test_a_group_that_one_person_weighs_down_is_hidden_and_protected():
    heavy = pl.when(pl.int_range(pl.len()) == 0).then(40.0).otherwise(pl.col("weight"))
    people = survey().with_columns(weight=heavy)  # 40 of 360 of the dark: 11 %
    found = publish(audited(people).run, 5)
    groups = found.group_metrics.filter(attribute="a")["group"].to_list()
    assert groups == []  # the light alone would be everyone less the dark
    assert "overall" in found.group_metrics["group"]


def test_a_person_with_many_photos_weighs_all_of_them():
    people = survey(person=[f"s{k // 4}" for k in range(400)])
    run = audited(people).run
    told = (
        compute_max_person_weight_shares(run)
        .filter(pl.col("attribute").is_null())["_heaviest"]
        .item()
    )
    assert told == pytest.approx(9 / 799)  # 3 + 1 + 2 + 3
    assert choose_rounding_steps(run).filter(group="overall")["_step"].item() == 0.05


def test_what_is_said_names_no_sum_of_weights():
    found = publish(audited(survey()).run, 5)
    assert found.record["sample"]["said"] == "Every rate is weighted by 'weight'."
    assert "n_effective" not in found.record["sample"]
    assert found.record["spec"]["population"] is None
    assert "rounded so that nobody's answer can be worked out from them" in found.record["notes"][0]


def test_what_cannot_be_published_is_refused():
    run = audited(survey()).run
    with pytest.raises(SpecError, match=r"(?s)two models are about the same people.*2 runs"):
        publish(run, 5, other_runs=[run, audited(survey(n=300)).run])
    heavy = pl.when(pl.int_range(pl.len()) == 0).then(400.0).otherwise(pl.col("weight"))
    with pytest.raises(SpecError, match="one person's weight tells too much of everyone's number"):
        publish(audited(survey().with_columns(weight=heavy)).run, 5)


def test_strata_alone_are_published_as_without_them():
    from isolux.api.audit import audit

    people = survey(stratum=np.array(["x", "y"])[np.arange(400) % 2])
    found = audit(people.select("unit_id", "value"), people.drop("value"), by="a",
                  strata="stratum", replicates=100)  # fmt: skip
    shown = publish(found.run, 5).group_metrics
    assert shown["value"].to_list() == found.group_metrics["value"].to_list()
