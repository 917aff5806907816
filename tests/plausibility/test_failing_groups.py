"""A group whose predictions are missing or in other words, and groups that are served badly."""

from __future__ import annotations

import numpy as np

from isolux.plausibility import AuditInputs, failing_groups
from tests.plausibility._inputs import classify
from tests.plausibility._shapes import detect, draw_scene

SCENE = draw_scene()


def build_broken_inputs() -> AuditInputs:
    is_present = [p is None or SCENE.races[p] != "A" for p in SCENE.person]
    predicted = [box for box, ok in zip(SCENE.predicted, is_present, strict=True) if ok]
    return detect(SCENE.people, predicted, SCENE.races)


def test_a_detector_without_the_boxes_of_a_group() -> None:
    (caution,) = failing_groups.check(build_broken_inputs())
    n = SCENE.races.count("A")
    assert f" of 'm' is 0.2 % for {n:,} people of race 'A', and " in caution
    assert caution.endswith("Are their predictions in the file, and in the same words?")


def test_labels_of_a_group_in_another_language() -> None:
    rng = np.random.default_rng(0)
    truth, race = rng.choice(["cat", "dog"], 200), rng.choice(["A", "B"], 200)
    answers = np.where(race == "A", np.where(truth == "cat", "gatto", "cane"), truth)
    inputs = classify(truth.tolist(), answers.tolist(), race.tolist(), metrics=["accuracy"])
    (caution,) = failing_groups.check(inputs)
    assert caution.startswith("Accuracy of 'm' is 0.0 % for ")


def test_a_group_of_which_one_in_five_is_found_is_served_badly() -> None:
    is_present = [
        k % 5 == 0 or p is None or SCENE.races[p] != "A" for k, p in enumerate(SCENE.person)
    ]
    predicted = [box for box, ok in zip(SCENE.predicted, is_present, strict=True) if ok]
    assert failing_groups.check(detect(SCENE.people, predicted, SCENE.races)) == []
