"""Worlds: their table, their seeds, and the laws that they keep."""

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import OutputError
from isolux_worlds import (
    Attribute,
    Effect,
    Model,
    Population,
    demo_population,
    simulate,
    write_csv,
)
from isolux_worlds._random_streams import beta_quantile_from_mean_and_icc, build_named_rng

TARGET = Attribute(name="job", shares={"cook": 0.5, "smith": 0.3, "baker": 0.2})
TONE = Attribute(name="tone", shares={"1": 0.5, "2": 0.3, "3": 0.2}, adjacent=0.4, unknown=0.1)
LIGHT = Attribute(name="light", shares={"bright": 0.6, "dim": 0.4}, varies="photo")


def population(*models, **changes):
    settings = {"subjects": 2000, "photos": (1, 6), "target": TARGET, "icc": 0.3}
    return Population(**(settings | {"attributes": (TONE, LIGHT), "models": models} | changes))


MODEL = Model(name="m", base_rate=0.8, effects=(Effect({"light": "dim"}, -0.2),))


def right(people, model="m"):
    return people.select(hit=pl.col("job") == pl.col(f"prediction_{model}"))["hit"].to_numpy()


def test_the_table_is_one_row_per_photo():
    world = simulate(population(MODEL), 3)
    people = world.people
    assert people.columns == [
        "photo", "subject", "tone", "light", "job", "prediction_m", "score_m"
    ]  # fmt: skip
    assert people["photo"].n_unique() == people.height
    assert people["subject"].n_unique() == 2000
    counts = people.group_by("subject").len()["len"]
    assert (counts.min(), counts.max()) == (1, 6)
    assert set(people["job"]) == set(people["prediction_m"]) == set(TARGET.shares)
    assert people["score_m"].is_between(1 / 3, 1).all()
    assert set(people["tone"].drop_nulls()) == {"1", "2", "3", "1;2", "2;3"}


def test_a_subject_keeps_what_varies_by_subject_and_only_that():
    people = simulate(population(MODEL, photos=6), 3).people
    values = people.group_by("subject").agg(pl.all().n_unique())
    assert values["tone"].max() == 1
    assert values["job"].max() == 1
    # Six photos all in one light: .6^6 + .4^6 = .05 of subjects
    assert values["light"].mean() == pytest.approx(1.95, abs=0.05)


def test_the_same_seed_gives_the_same_world_and_another_another():
    first, again, other = (simulate(population(MODEL), seed).people for seed in (5, 5, 6))
    assert first.equals(again)
    assert not first.equals(other)


def test_another_model_or_attribute_leaves_the_others_draws_as_they_were():
    alone = simulate(population(MODEL), 5).people
    more = Model(name="second", base_rate=0.5)
    region = Attribute(name="region", shares={"a": 0.5, "b": 0.5})
    wider = simulate(population(MODEL, more, attributes=(region, TONE, LIGHT)), 5).people
    assert wider.select(alone.columns).equals(alone)


def test_shares_are_kept():
    people = simulate(population(MODEL, subjects=6000, photos=1), 8).people
    assert people["light"].value_counts(normalize=True, name="p").filter(light="dim")[
        "p"
    ].item() == pytest.approx(0.4, abs=0.03)
    assert people["tone"].is_null().mean() == pytest.approx(0.1, abs=0.02)
    # 1 and 2 together: .5 * .4 of those recorded
    assert (people["tone"] == "1;2").sum() / 6000 == pytest.approx(0.2 * 0.9, abs=0.025)


@pytest.mark.law
def test_injected_rates_are_what_simulation_gives():
    # 40 worlds of the demonstration: about 130,000 photos of 24,000 subjects. Bounds are 5
    # standard errors of the mean over worlds; a wrong effect is 20 of them or more.
    demo = demo_population()
    injected = simulate(demo, 0).injected_effects.filter(attribute="lighting", metric="accuracy")
    for model in ("aurora", "borealis"):
        of_world = pl.concat(
            simulate(demo, seed)
            .people.group_by("lighting")
            .agg(hit=(pl.col("occupation") == pl.col(f"prediction_{model}")).mean())
            for seed in range(40)
        )
        found = of_world.group_by("lighting").agg(
            mean=pl.col("hit").mean(), error=pl.col("hit").std() / 40**0.5
        )
        both = injected.filter(model=model).join(found, left_on="group", right_on="lighting")
        assert both.height == 3
        z = ((both["mean"] - both["value"]) / both["error"]).to_list()
        assert np.abs(z).max() < 5, z


@pytest.mark.law
@pytest.mark.parametrize("icc", [0.0, 0.2, 0.5])
def test_the_intra_class_correlation_is_recovered(icc):
    # 5 photos each, all at one rate p: cov of two photos of a subject is icc * p (1 - p).
    flat = Model(name="m", base_rate=0.7)
    people = simulate(population(flat, subjects=20_000, photos=5, icc=icc), 11).people
    hits = right(people).reshape(20_000, 5).astype(float)
    between = np.var(hits.mean(axis=1), ddof=1)
    rate = hits.mean()
    # Var(mean of 5) = p (1 - p) (1 + 4 icc) / 5
    found = (5 * between / (rate * (1 - rate)) - 1) / 4
    assert rate == pytest.approx(0.7, abs=0.02)
    assert found == pytest.approx(icc, abs=0.02)


@pytest.mark.law
def test_photos_in_different_light_keep_their_own_mean_and_hang_together():
    people = simulate(population(MODEL, subjects=20_000, photos=2, icc=0.3), 4).people
    hits = right(people).reshape(-1, 2).astype(float)
    dim = (people["light"] == "dim").to_numpy().reshape(-1, 2)
    assert hits[dim].mean() == pytest.approx(0.6, abs=0.025)
    assert hits[~dim].mean() == pytest.approx(0.8, abs=0.02)
    mixed = dim[:, 0] & ~dim[:, 1]
    together = np.corrcoef(hits[mixed].T)[0, 1]
    # Quantiles of two Betas at one uniform are nearly, not wholly, alike: a little below .3.
    assert 0.2 < together < 0.36


@pytest.mark.law
def test_a_hard_subject_is_hard_for_both_models_when_they_hang_together():
    models = tuple(Model(name=n, base_rate=0.7) for n in ("a", "b"))
    for icc, low, high in ((0.0, -0.05, 0.05), (0.4, 0.32, 0.48)):
        people = simulate(population(*models, subjects=10_000, photos=1, icc=icc), 2).people
        together = np.corrcoef(right(people, "a"), right(people, "b"))[0, 1]
        assert low < together < high


def test_wrong_answers_follow_the_confusions():
    # Wrong about a cook: smith 3 times in 4; wrong about a smith: uniformly cook or baker.
    confused = Model(name="m", base_rate=0.0, confusions={"cook": {"smith": 3.0, "baker": 1.0}})
    people = simulate(population(confused, subjects=8000, photos=1), 1).people
    share = (
        people.group_by("job", "prediction_m")
        .len()
        .with_columns(p=pl.col("len") / pl.col("len").sum().over("job"))
    )
    of = {(job, said): p for job, said, _, p in share.iter_rows()}
    assert ("cook", "cook") not in of
    assert of["cook", "smith"] == pytest.approx(0.75, abs=0.04)
    assert of["smith", "baker"] == pytest.approx(0.5, abs=0.06)


def test_streams_of_different_names_are_independent():
    draws = np.array([build_named_rng(0, "a", str(i)).normal(size=400) for i in range(200)])
    # Were streams shifted copies or correlated, the variance of the mean would not be 1 / 200.
    assert np.var(draws.mean(axis=0)) * 200 == pytest.approx(1.0, abs=0.4)
    assert not np.array_equal(build_named_rng(0, "a").random(4), build_named_rng(1, "a").random(4))
    assert np.array_equal(build_named_rng(0, "a").random(4), build_named_rng(0, "a").random(4))


def test_a_subjects_rate_at_the_edges_is_the_mean():
    mean = np.array([0.0, 1.0])
    assert beta_quantile_from_mean_and_icc(mean, 0.3, np.array([0.2, 0.9])).tolist() == [0.0, 1.0]
    assert beta_quantile_from_mean_and_icc(np.array([0.4]), 0.0, np.array([0.99])).tolist() == [0.4]


def test_a_file_comes_back_as_it_was_written(tmp_path):
    world = simulate(population(MODEL, subjects=50), 1)
    path = write_csv(world, tmp_path / "people.csv")
    text = {c: pl.String for c in world.people.columns if c != "score_m"}
    assert pl.read_csv(path, schema_overrides=text).equals(world.people)
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    world = simulate(population(MODEL, subjects=5), 1)
    with pytest.raises(OutputError, match=r"(?s)folder to write to does not exist.*nowhere"):
        write_csv(world, tmp_path / "nowhere" / "people.csv")
