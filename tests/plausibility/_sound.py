"""Sound audits on which no check may raise an alarm: by task, builders by what is special of them.

Groups that differ strongly, rare classes, poor models and 20 people are sound data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl

from isolux.plausibility import AuditInputs
from tests.contracts._other_people import CASES
from tests.plausibility._inputs import classify, make_dataset, make_inputs, predict_numbers
from tests.plausibility._shapes import Scene, detect, draw_scene, mask, pose

CLASSES = np.array(["0-2", "3-9", "10-19", "20-29", "30-39"])


def _races(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(["A", "B", "C"], n, p=[0.5, 0.4, 0.1])


def _classify(
    n: int, accuracy: dict[str, float], shares: tuple[float, ...], seed: int = 0
) -> AuditInputs:
    rng = np.random.default_rng(seed)
    race = _races(n, rng)
    truth = rng.choice(CLASSES[: len(shares)], n, p=shares)
    is_right = rng.random(n) < np.array([accuracy[r] for r in race])
    answers = np.where(is_right, truth, rng.choice(CLASSES[: len(shares)], n))
    return classify(truth.tolist(), answers.tolist(), race.tolist())


def _estimate(task: str, n: int, errors: dict[str, float], seed: int = 0) -> AuditInputs:
    rng = np.random.default_rng(seed)
    race = _races(n, rng)
    truth = rng.integers(1, 90, n).astype(float)
    numbers = truth + rng.normal(0, [errors[r] for r in race])
    if task == "number":
        return predict_numbers(task, numbers.tolist(), race.tolist())
    return predict_numbers(task, numbers.clip(0, 110).tolist(), race.tolist(), truth.tolist())


def _detect(scene: Scene, **options: object) -> AuditInputs:
    return detect(scene.people, scene.predicted, scene.races, scores=scene.scores, **options)


def _detect_classes(scene: Scene, wrong: float, **options: object) -> AuditInputs:
    """Three classes, one of them rare; a share of labels is wrong."""
    rng = np.random.default_rng(1)
    classes = rng.choice(["person", "car", "dog"], len(scene.people), p=[0.6, 0.35, 0.05]).tolist()
    labels = [
        str(rng.choice(["person", "car", "dog"]))
        if k is None or rng.random() < wrong
        else classes[k]
        for k in scene.person
    ]
    return _detect(scene, classes=classes, labels=labels, **options)


_SCENES: dict[str, Callable[[], Scene]] = {
    "plain": draw_scene,
    "groups that differ": lambda: draw_scene(found={"A": 0.95, "B": 0.3}),
    "a poor model": lambda: draw_scene(found={"A": 0.2, "B": 0.2}, noise=0.15),
    "20 people": lambda: draw_scene(20, 1),
    "a crowd": lambda: draw_scene(10, 25),
    "many false alarms": lambda: draw_scene(n_false=10),
}


def _verify(n: int, separation: dict[str, float], seed: int = 0, **options: float) -> AuditInputs:
    """Two photos of each of ``n`` people, and as many impostors; cosines to two digits."""
    rng = np.random.default_rng(seed)
    race = np.repeat(_races(n, rng), 2)
    subjects = np.repeat(np.arange(n), 2)
    dataset = make_dataset(
        {"race": race.tolist()}, {"subject_id": [f"s{k}" for k in subjects.tolist()]}
    )
    first = np.arange(0, 2 * n, 2)
    other = np.concatenate([first + 1, (first + 3) % (2 * n)])
    first = np.concatenate([first, first])
    is_genuine = subjects[first] == subjects[other]
    centre = np.where(is_genuine, [separation[r] for r in race[first]], 0.05)
    pairs = pl.DataFrame(
        {"model": "m", "instance_id": [f"p{k}" for k in first.tolist()],
         "other_id": [f"p{k}" for k in other.tolist()],
         "score": rng.normal(centre, 0.12).clip(-1, 1).round(2)}
    )  # fmt: skip
    return make_inputs("face_verification", dataset, pairs, **options)


_ALIKE = {"A": 0.85, "B": 0.85, "C": 0.85}
_UNLIKE = {"A": 0.95, "B": 0.9, "C": 0.45}
_EVEN = (0.2,) * 5


def _ground() -> AuditInputs:
    case = CASES["grounding"][1](np.random.default_rng(1))
    attribute = case.dataset.attributes["attribute"].unique().sort()[0]
    return make_inputs("grounding", case.dataset, case.predictions, by=attribute, **case.options)


_BUILDERS: dict[str, dict[str, Callable[[], AuditInputs]]] = {
    "classification": {
        "plain": lambda: _classify(600, _ALIKE, _EVEN),
        "groups that differ": lambda: _classify(600, _UNLIKE, _EVEN),
        "a rare class": lambda: _classify(600, _ALIKE, (0.6, 0.3, 0.08, 0.01, 0.01)),
        "a poor model": lambda: _classify(600, dict.fromkeys("ABC", 0.2), _EVEN),
        "a near perfect model": lambda: _classify(600, dict.fromkeys("ABC", 0.99), _EVEN),
        "20 people": lambda: _classify(20, _ALIKE, (0.5, 0.5)),
        "20 people, all right": lambda: _classify(20, dict.fromkeys("ABC", 1.0), (0.5, 0.5)),
    },
    **{
        task: {
            "plain": lambda task=task: _estimate(task, 400, dict.fromkeys("ABC", 6.0)),
            "groups that differ": lambda task=task: _estimate(
                task, 400, {"A": 3.0, "B": 6.0, "C": 20.0}
            ),
            "20 people": lambda task=task: _estimate(task, 20, dict.fromkeys("ABC", 6.0)),
        }
        for task in ("regression", "age_estimation", "number")
    },
    "detection": {
        **{name: lambda draw=draw: _detect(draw()) for name, draw in _SCENES.items()},
        "classes": lambda: _detect_classes(draw_scene(), 0.1),
        "classes, poorly told apart": lambda: _detect_classes(draw_scene(), 0.6),
        "people among classes": lambda: _detect_classes(
            draw_scene(), 0.1, person_label="person", person_class="person"
        ),
        "jobs, found as persons": lambda: _detect(
            scene := draw_scene(),
            classes=["nurse", "guard", "painter"] * (len(scene.people) // 3),
            labels=["person"] * len(scene.predicted),
        ),
    },
    "face_detection": {
        name: lambda draw=draw: _detect(draw(), task="face_detection")
        for name, draw in _SCENES.items()
    },
    "segmentation": {
        name: lambda draw=draw: mask(draw())
        for name, draw in _SCENES.items()
        if name not in ("a crowd", "many false alarms")
    },
    "keypoints": {name: lambda draw=draw: pose(draw()) for name, draw in _SCENES.items()},
    "open_vocabulary": {
        "classes": lambda: _detect_classes(draw_scene(), 0.1, task="open_vocabulary")
    },
    "grounding": {"phrases": _ground},
    "face_verification": {
        "plain": lambda: _verify(300, dict.fromkeys("ABC", 0.6), threshold=0.35),
        "groups that differ": lambda: _verify(300, {"A": 0.7, "B": 0.6, "C": 0.2}, threshold=0.35),
        "20 people": lambda: _verify(20, dict.fromkeys("ABC", 0.6), threshold=0.35),
    },
}
"""A check of a task that is not here adds sound data of it."""

SOUND = {
    task: {name: cache(build) for name, build in builders.items()}
    for task, builders in _BUILDERS.items()
}
"""Each built once: every check is asked."""
