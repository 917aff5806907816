"""Answers: chances by hand, means that the copula keeps, and the injected correlation."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.errors import UnknownNameError
from isolux_worlds.photo_world.injected_effects import (
    compute_person_rates,
    compute_probability_correct,
    draw_correlated_outcomes,
    draw_is_right,
)
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import ModelSettings, parse_world, preset


def model(**changes):
    return ModelSettings.model_validate({"name": "m", "base_rate": 0.8} | changes)


def test_chances_by_hand():
    # logit .8 = ln 4; less 1 where it is dim, less .5 more for tones 9 and 10 there.
    effects = [
        {"where": {"lighting": "dimly_lit"}, "size": -1.0},
        {"where": {"lighting": "dimly_lit", "skin_tone": ["9", "10"]}, "size": -0.5},
    ]
    world = draw_people(parse_world({"name": "w", "households": 200}))
    found = compute_person_rates(world, model(effects=effects))
    people = world.people
    for row, rate in zip(people.iter_rows(named=True), found, strict=True):
        logit = np.log(4)
        if row["lighting"] == "dimly_lit":
            logit -= 1.5 if row["skin_tone"] in ("9", "10") else 1.0
        assert rate == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-12)


def test_without_effects_everybody_has_the_base_rate():
    world = draw_people(preset("fair").model_copy(update={"households": 5}))
    assert (
        compute_person_rates(world, "aurora").tolist() == [pytest.approx(0.8)] * world.people.height
    )
    assert compute_probability_correct(model(), {}, {}).shape == ()


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9])
def test_means_stay_as_injected_whatever_the_correlation(correlation):
    # 60,000 subjects of ten photos: at .9 about 60,000 independent answers, se .002.
    n, photos = 60_000, 10
    subject = np.repeat(np.arange(n), photos)
    for rate in (0.1, 0.5, 0.97):
        answers = draw_correlated_outcomes(
            np.full(n * photos, rate), subject, n, model(correlation=correlation), seed=1
        )
        assert answers.mean() == pytest.approx(rate, abs=0.009)


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.6])
def test_two_answers_about_a_subject_agree_as_often_as_the_copula_says(correlation):
    from scipy.special import ndtri
    from scipy.stats import multivariate_normal

    n, one, two = 400_000, 0.8, 0.6
    subject = np.repeat(np.arange(n), 2)
    answers = draw_correlated_outcomes(
        np.tile([one, two], n), subject, n, model(correlation=correlation), seed=2
    ).reshape(n, 2)
    covariance = [[1, correlation], [correlation, 1]]
    both = multivariate_normal(cov=covariance).cdf([ndtri(one), ndtri(two)])
    # A share of about .5 of 400,000: se .0008.
    assert answers.all(axis=1).mean() == pytest.approx(both, abs=0.004)
    if not correlation:
        assert both == pytest.approx(one * two, abs=1e-6)


def test_subjects_are_hard_for_all_models_and_streams_but_answers_differ():
    settings = preset("fair").model_copy(update={"households": 3000})
    world = draw_people(settings)
    strong = model(name="a", correlation=0.8)
    first = draw_is_right(world, strong)
    assert (first == draw_is_right(world, strong)).all()
    other = draw_is_right(world, strong, stream_name="detection")
    assert (first != other).any()
    alike = np.corrcoef(first, other)[0, 1]
    apart = np.corrcoef(
        draw_is_right(world, model()), draw_is_right(world, model(), stream_name="x")
    )[0, 1]
    assert alike > 0.3
    assert abs(apart) < 0.05
    assert (draw_is_right(world, model(name="b", correlation=0.8)) != first).any()


def test_a_model_that_is_not_there_is_named():
    world = draw_people(preset("fair").model_copy(update={"households": 2}))
    with pytest.raises(UnknownNameError, match="no model named 'nobody'"):
        compute_person_rates(world, "nobody")
