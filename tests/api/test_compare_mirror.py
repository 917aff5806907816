"""B against A is A against B with the sign changed: a law over random pairs of models."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api.side_by_side import side_by_side

KEY = ["kind", "metric", "label", "threshold", "attribute", "group_a"]
ROUNDING = 1e-12
MODELS = ("old", "new", "third")
FEW = {"replicates": 100, "min_units": 20, "min_clusters": 5}


def people(rng, n=420, clusters=70):
    """Draw people of clusters, with attributes of the cluster and of the photo, and a truth."""
    home = rng.integers(0, clusters, n)
    return pl.DataFrame(
        {
            "id": [f"p{k:04d}" for k in range(n)],
            "home": [f"h{k:02d}" for k in home],
            "tone": rng.choice(["dark", "light", "medium"], clusters)[home],
            "light": rng.choice(["day", "night"], n),
            "truth": rng.choice(["x", "y"], n),
            "weight": rng.choice([0.5, 1.0, 3.0], clusters)[home],
            "stratum": np.where(home < clusters // 2, "north", "south"),
        }
    )


def scored(rng, who, name):
    """Draw whom a model is right about, less often in some homes; rows in their own order."""
    homes = who["home"].rank("dense").to_numpy() - 1
    chance = rng.uniform(0.7, 0.9) + rng.normal(0, 0.1, homes.max() + 1)[homes]
    value = (rng.random(who.height) < chance).astype(float)
    held = who.select(unit_id="id", cluster_id="home", model=pl.lit(name))
    return held.with_columns(value=pl.Series(value)).sample(fraction=1.0, shuffle=True, seed=7)


def audited(world, models=2, *, again=1, alone=False, **settings):
    """Audit models on the same people; ``again``: each trained with that many seeds."""
    rng = np.random.default_rng(world)
    who = people(rng)
    said = {"by": ["tone", "light"], **FEW, **settings}
    groups = who.select("tone", "light", "weight", "stratum", unit_id="id")
    lost = ["cluster_id"] if alone else []
    return [
        [isolux.audit(scored(rng, who, name).drop(lost), groups, **said).run for _ in range(again)]
        for name in MODELS[:models]
    ]


def answered(folder, seed):
    """Audit two models' answers by several metrics, which are no means, from files."""
    rng = np.random.default_rng(seed)
    who = people(rng)
    who.write_csv(folder / "people.csv")
    other = pl.when(pl.col("truth") == "x").then(pl.lit("y")).otherwise(pl.lit("x"))
    runs = []
    for name in MODELS[:2]:
        right = pl.Series(rng.random(who.height) < rng.uniform(0.7, 0.9))
        said = who.select("id", label=pl.when(right).then("truth").otherwise(other))
        said.sample(fraction=1.0, shuffle=True, seed=7).write_csv(folder / f"{name}.csv")
        runs.append(
            isolux.audit(
                f"table:{folder / 'people.csv'}", predictions=str(folder / f"{name}.csv"),
                target="truth", id="id", by=["tone", "tone*light"], cluster="home",
                metric=["accuracy", "balanced_accuracy", "recall"], **FEW,
            ).run
        )  # fmt: skip
    return runs


def assert_mirrored(forth, back):
    assert forth.height == back.height
    # A gap is that of the same two groups in either order.
    assert_same_numbers(
        forth, back, {"value": ("value", -1), "low": ("high", -1), "high": ("low", -1)}
    )


def assert_same_numbers(forth, back, ends):
    key = [*KEY, *{"group_b"} & set(forth.columns)]
    both = forth.join(back, on=key, how="inner", nulls_equal=True, suffix="_back")
    assert both.height == forth.height
    pairs = {**ends, "p_value": ("p_value", 1), "p_adjusted": ("p_adjusted", 1),
             "detectable": ("detectable", 1)}  # fmt: skip
    for column, (other, sign) in pairs.items():
        ours, theirs = both[column], both[f"{other}_back"] * sign
        assert ours.is_null().equals(theirs.is_null()), column
        assert np.allclose(ours.fill_null(0), theirs.fill_null(0), atol=ROUNDING, rtol=0), column
    assert both["status"].equals(both["status_back"].alias("status"))


SETTINGS = {
    "clusters": {},
    "rows": {"alone": True},
    "weights": {"weight": "weight"},
    "strata": {"strata": "stratum"},
    "weights and strata": {"weight": "weight", "strata": "stratum"},
    "percentile": {"interval": "percentile"},
    "holm": {"correction": "holm"},
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", SETTINGS)
def test_two_models_mirror_each_other(name, seed):
    (a,), (b,) = audited(seed, **SETTINGS[name])
    forth, back = isolux.compare(a, b), isolux.compare(b, a)
    assert set(forth.disparities["kind"]) == {"model_difference", "gap_change"}
    assert_mirrored(forth.disparities, back.disparities)
    names = forth.run.group_metrics["model"].unique(maintain_order=True).to_list()
    assert names == ["old", "new"]  # the first that was given stands first
    of = ["model", "metric", "label", "attribute", "values"]
    assert forth.run.group_metrics.sort(of).equals(back.run.group_metrics.sort(of))


@pytest.mark.parametrize("name", ["clusters", "weights and strata"])
def test_models_of_several_seeds_mirror_each_other(name):
    runs = audited(3, again=2, **SETTINGS[name])
    old, new = runs
    forth = side_by_side({"old": old, "new": new}).changes
    assert_mirrored(forth, side_by_side({"new": new, "old": old}).changes)
    # One seed of one of them, and the seeds in another order.
    alone = side_by_side({"old": old[:1], "new": new}).changes
    assert_mirrored(alone, side_by_side({"new": new[::-1], "old": old[:1]}).changes)


def test_three_models_mirror_each_other_in_any_order():
    a, b, c = (own[0] for own in audited(4, models=3))
    forth, back = side_by_side([a, b, c]).changes, side_by_side([c, b, a]).changes
    for one, two in (("old", "new"), ("old", "third"), ("new", "third")):
        assert_mirrored(
            forth.filter(model_a=one, model_b=two), back.filter(model_a=two, model_b=one)
        )


def test_metrics_that_are_no_means_mirror_too(tmp_path):
    a, b = answered(tmp_path, 6)
    assert_mirrored(isolux.compare(a, b).disparities, isolux.compare(b, a).disparities)


def test_where_the_order_matters_it_is_said():
    (a,), (b,) = audited(1)
    (other,), _ = audited(1, seed=7, level=0.9)
    said = "The two were audited by other settings: level (0.9 and 0.95), seed (7 and 0)."
    told = isolux.compare(other, b).run.record["notes"]
    assert f"{said} Those of old, which is named first, are used for both." in told
    assert not any("other settings" in note for note in isolux.compare(a, b).run.record["notes"])
    (alone,), _ = audited(1, alone=True)
    warned = isolux.compare(alone, b).run.record["warnings"]
    assert any("other clusters (rows and subject): those of the first" in w for w in warned)
    itself = isolux.compare(a, a)
    assert itself.run.record["warnings"][0].startswith("Both are one run")
    assert not any("one run" in text for text in isolux.compare(a, b).run.record["warnings"])


def test_of_several_models_each_setting_that_differs_is_said_once():
    (other,), (a,), (b,) = (own[:1] for own in audited(1, models=3, seed=7, level=0.9))
    _, (same,), (third,) = (own[:1] for own in audited(1, models=3))
    told = isolux.side_by_side([other, same, third]).record["notes"]
    said = "old was audited by other settings than new and third: level (0.9 and 0.95), seed (7"
    assert [note for note in told if "other settings" in note] == [
        f"{said} and 0). Those of old, which is named first, are used for all."
    ]
    assert not any("other" in n for n in isolux.side_by_side([other, a, b]).record["notes"])
    (alone,), _, _ = (own[:1] for own in audited(1, models=3, alone=True))
    warned = isolux.side_by_side([alone, same, third]).record["warnings"]
    assert warned[0].startswith("old goes by other clusters than new and third (rows and subject)")


def test_the_same_values_in_other_people_mirror_too():
    """Both models are right as often: the order is then told by who they are right about."""
    rng = np.random.default_rng(5)
    who = people(rng).select("id", "tone", "home")
    value = np.repeat([1.0, 0.0], [300, 120])
    runs = [
        isolux.audit(
            who.select(unit_id="id", cluster_id="home", model=pl.lit("net"),
                       value=pl.Series(rng.permutation(value))),
            who.select(unit_id="id", tone="tone"), by="tone", replicates=199,
        ).run
        for _ in range(2)
    ]  # fmt: skip
    a, b = runs
    assert_mirrored(isolux.compare(a, b).disparities, isolux.compare(b, a).disparities)
