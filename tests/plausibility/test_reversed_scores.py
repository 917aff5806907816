"""Scores that are lower the surer the model is."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.plausibility import AuditInputs, reversed_scores
from tests.plausibility._shapes import Scene, detect, draw_scene


def _detect(scene: Scene, scores: list[float]) -> AuditInputs:
    return detect(scene.people, scene.predicted, scene.races, scores=scores)


def build_broken_inputs() -> AuditInputs:
    scene = draw_scene(n_false=2)
    return _detect(scene, [1 - score for score in scene.scores])


def test_who_is_found_has_the_lower_scores() -> None:
    """Right boxes score .5 to 1, wrong ones .1 to .7: of 100 pairs 2/60 · .2/.5 · 50 are reversed,
    so that 1 - score is the other way round in 97 of 100 pairs."""
    (caution,) = reversed_scores.check(build_broken_inputs())
    assert caution.startswith("Predictions of 'm' that find nobody have higher scores than those")
    assert "(9" in caution


@pytest.mark.parametrize(("n_images", "n_false"), [(60, 4), (10, 1)])
def test_scores_that_say_nothing_raise_no_alarm(n_images: int, n_false: int) -> None:
    """In half of such audits the area is below a half; three standard errors exclude them."""
    for seed in range(12):
        scene = draw_scene(n_images, n_false=n_false, seed=seed)
        scores = np.random.default_rng(seed).uniform(size=len(scene.scores)).tolist()
        assert reversed_scores.check(_detect(scene, scores)) == []


def test_sure_predictions_of_people_who_are_not_scored_are_left_out() -> None:
    """Whoever only takes part in matching is found with high scores, and nobody else wrongly."""
    scene = draw_scene(40, 6, n_false=0)
    judged = [k % 3 == 0 for k in range(len(scene.people))]
    scores = [0.5 if judged[k] else 0.9 for k in scene.person]
    inputs = detect(
        scene.people, scene.predicted, scene.races, scores=scores,
        people_columns={"judged": judged},
    )  # fmt: skip
    assert reversed_scores.check(inputs) == []
