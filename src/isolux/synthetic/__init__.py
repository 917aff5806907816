"""Populations whose disparities are planted, hence known.

``Population -> simulate -> World``: a table of people as a newcomer would have it, and the true
rate of every group. ``Scene, Detector -> simulate_scene -> SceneWorld``: people in images, the
boxes that a detector drew, and the true recall of every group. ``simulate_rates`` draws thousands
of worlds at once, as sums, for laws.

``WorldSettings -> draw_people -> PhotoWorld``: households whose people are photographed, with
attributes that hang together; ``drawing/`` paints their photos,
``layouts/`` writes them as a dataset's own files, ``predictors/`` answers as models would.
"""

from __future__ import annotations

from isolux.synthetic.confounded import confounded_scene
from isolux.synthetic.demo import demo_population, demo_settings
from isolux.synthetic.detector import Detector
from isolux.synthetic.photo_world import (
    PRESETS,
    PhotoWorld,
    WorldSettings,
    draw_people,
    preset,
    read_world,
)
from isolux.synthetic.planted import planted_rates, planted_record
from isolux.synthetic.planted_boxes import planted_detection, planted_detection_record
from isolux.synthetic.population import Attribute, Effect, Model, Population
from isolux.synthetic.rates import RateWorlds, simulate_crossed, simulate_rates
from isolux.synthetic.scene_world import SceneWorld, simulate_scene
from isolux.synthetic.scenes import Scene, SceneAttribute
from isolux.synthetic.world import World, model_table, simulate, write_csv

__all__ = [
    "PRESETS",
    "Attribute",
    "Detector",
    "Effect",
    "Model",
    "PhotoWorld",
    "Population",
    "RateWorlds",
    "Scene",
    "SceneAttribute",
    "SceneWorld",
    "World",
    "WorldSettings",
    "confounded_scene",
    "demo_population",
    "demo_settings",
    "draw_people",
    "model_table",
    "planted_detection",
    "planted_detection_record",
    "planted_rates",
    "planted_record",
    "preset",
    "read_world",
    "simulate",
    "simulate_crossed",
    "simulate_rates",
    "simulate_scene",
    "write_csv",
]
