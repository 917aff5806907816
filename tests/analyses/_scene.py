"""A small audit of a detector in a made-up scene: two tones, small people found less often."""

from __future__ import annotations

import isolux
from isolux.core.containers import Run, Scores
from isolux.tasks import score
from isolux_worlds import Detector, Effect, Scene
from isolux_worlds.scenes.scene import SceneAttribute
from isolux_worlds.scenes.scene_world import simulate_scene

TONES = SceneAttribute(name="tone", shares={"a": 0.5, "b": 0.3, "c": 0.2})


def scores_and_people(metrics=(), **detector):
    scene = Scene(clusters=300, attributes=(TONES,), occluded=0.3, side_px=64.0)
    effects = (Effect({"size": "small"}, -1.5), Effect({"tone": "b"}, -0.5))
    drawn = Detector(name="m", base_rate=0.7, effects=effects, **detector)
    world = simulate_scene(scene, drawn, seed=5)
    return score("detection", world.dataset, world.predictions, metrics=metrics), world.dataset


def scene_run(by=("tone",), metrics=(), **settings) -> tuple[Run, Scores]:
    scores, people = scores_and_people(metrics)
    done = isolux.audit(scores, people, by=list(by), replicates=100, seed=0, **settings)
    return done.run, scores
