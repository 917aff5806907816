"""Patterns and error models: how often they claim what is not there, and find what is."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.analyses import error_model, patterns
from isolux.analyses.error_model.forest import Forest
from tests.laws._discovery import a_world, claims, published_claims
from tests.laws._figures import FULL, at_most, record, scaled, sized

pytestmark = pytest.mark.law

NOTHING = [("right or wrong", False), ("graded", False), ("graded", True)]
PLANTED = [("right or wrong", 0.4, 100), ("graded", 0.15, 100)]


@pytest.fixture(autouse=True)
def _smaller_forests(monkeypatch):
    """Fit 20 trees instead of 100: thousands of forests are fitted here."""
    monkeypatch.setattr(error_model, "Forest", lambda trees=20, *, seed: Forest(trees, seed=seed))


@pytest.mark.parametrize(("scores", "uneven"), NOTHING if FULL else NOTHING[:2])
def test_patterns_of_nothing_are_not_confirmed(scores, uneven):
    worlds, replicates = scaled(300, 24), sized(999, 299)
    rng = np.random.default_rng([31, len(scores), uneven])
    false = published = tested = 0
    for number in range(worlds):
        run = a_world(rng, 120, scores=scores, uneven=uneven)
        found = patterns.explain(run, replicates=replicates, seed=number)
        false += claims(found.findings) > 0
        tested += next(iter(found.tables.values())).height if found.tables else 0
        published += published_claims(run, lift=1.2)
    row = {
        "worlds": _named(scores, uneven=uneven),
        "subjects": 120,
        "a pattern confirmed, %": round(false / worlds, 4),
        "patterns asked about": round(tested / worlds, 2),
        "as published: a rule of lift 1.2 or more, %": round(published / worlds, 4),
    }
    slug = f"{scores}{' uneven' * uneven}".replace(" ", "-")
    record(f"discovery-patterns-{slug}", [row], worlds=worlds, replicates=replicates)
    assert row["a pattern confirmed, %"] <= at_most(0.05, worlds, full=0.088), row  # three errors
    assert row["as published: a rule of lift 1.2 or more, %"] > 0.5, (
        "the law must be able to see a procedure that fails"
    )


@pytest.mark.parametrize(("scores", "uneven"), NOTHING if FULL else NOTHING[:1])
def test_error_models_of_nothing_explain_nothing(scores, uneven):
    worlds, permutations = scaled(200, 10), 19  # the fewest that suffice, which the analysis draws
    rng = np.random.default_rng([32, len(scores), uneven])
    false = 0
    by_heart, shares = [], []
    for number in range(worlds):
        run = a_world(rng, 60, scores=scores, uneven=uneven)
        found = error_model.explain(run, seed=number, check_trees=10, bootstrap=200)
        false += claims(found.findings) > 0
        fitted, share = published_forest(run, number)
        by_heart.append(fitted)
        shares.append(share)
    row = {
        "worlds": _named(scores, uneven=uneven),
        "subjects": 60,
        "something to explain, %": round(false / worlds, 4),
        "as published: R² on its own people": round(float(np.mean(by_heart)), 4),
        "as published: importance of age, %": round(float(np.mean(shares)), 4),
    }
    slug = f"{scores}{' uneven' * uneven}".replace(" ", "-")
    record(f"discovery-models-{slug}", [row], worlds=worlds, replicates=permutations)
    # At .05 more than 18 of 200 come about once in 200 times.
    assert row["something to explain, %"] <= at_most(0.05, worlds, full=0.09), row
    assert row["as published: R² on its own people"] > 0.2, (
        "the law must be able to see a forest that learns by heart"
    )


@pytest.mark.parametrize(("scores", "injected", "subjects"), PLANTED if FULL else PLANTED[1:])
def test_what_is_planted_is_found(scores, injected, subjects):
    worlds, replicates = scaled(50, 4), sized(999, 299)  # of 100 all but two were found
    rng = np.random.default_rng([33, len(scores)])
    pattern = model = both = 0
    for number in range(worlds):
        run = a_world(rng, subjects, scores=scores, injected=injected)
        findings = patterns.explain(run, replicates=replicates, seed=number).findings
        names = findings.filter(pl.col("p_adjusted") <= 0.05)["group_a"]
        pattern += "light dim and size small" in names.to_list()
        findings = error_model.explain(run, seed=number, check_trees=10, bootstrap=200).findings
        model += claims(findings) > 0
        both += {"light", "size"} <= set(findings["attribute"].drop_nulls())
    row = {
        "worlds": f"{scores}, {injected:g} less for small people in dim light",
        "subjects": subjects,
        "pattern confirmed, %": round(pattern / worlds, 4),
        "something to explain, %": round(model / worlds, 4),
        "light and size both chosen, %": round(both / worlds, 4),
    }
    record(f"discovery-planted-{scores.replace(' ', '-')}", [row], worlds=worlds,
           replicates=replicates)  # fmt: skip
    assert row["pattern confirmed, %"] >= 0.75, row
    assert row["something to explain, %"] >= 0.75, row


def published_forest(run, seed):
    """Fit a forest as published, settings left as scikit-learn has them: R² on itself, age's share.

    What stands in place of importances that add up to 1: the share of the one attribute that has
    sixty values and nothing to say.
    """
    from sklearn.ensemble import RandomForestRegressor

    wide = run.attributes.pivot("attribute", index="unit_id", values="value")
    wide = wide.join(run.scores.select("unit_id", "value"), on="unit_id")
    numbers = wide.select(pl.col("age").cast(pl.Float64))
    words = wide.drop("unit_id", "value", "age").to_dummies()
    x, y = np.column_stack([numbers.to_numpy(), words.to_numpy()]), wide["value"].to_numpy()
    forest = RandomForestRegressor(n_estimators=20, random_state=seed).fit(x, y)
    return forest.score(x, y), forest.feature_importances_[0]


def _named(scores, *, uneven):
    return f"{scores}, {'five to fifteen' if uneven else 'ten'} photos"
