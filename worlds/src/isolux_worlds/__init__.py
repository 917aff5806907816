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

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isolux_worlds.photo_world import (
        PRESETS,
        PhotoWorld,
        WorldSettings,
        draw_people,
        preset,
        read_world,
    )
    from isolux_worlds.populations.demo import demo_population, demo_settings
    from isolux_worlds.populations.planted import planted_rates, planted_record
    from isolux_worlds.populations.population import Attribute, Effect, Model, Population
    from isolux_worlds.populations.rates import RateWorlds, simulate_crossed, simulate_rates
    from isolux_worlds.populations.world import World, model_table, simulate, write_csv
    from isolux_worlds.scenes.confounded import confounded_scene
    from isolux_worlds.scenes.detector import Detector
    from isolux_worlds.scenes.planted_boxes import planted_detection, planted_detection_record
    from isolux_worlds.scenes.scene import Scene, SceneAttribute
    from isolux_worlds.scenes.scene_world import SceneWorld, simulate_scene

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

_HOME = {
    "Attribute": "populations.population",
    "Detector": "scenes.detector",
    "Effect": "populations.population",
    "Model": "populations.population",
    "PRESETS": "photo_world",
    "PhotoWorld": "photo_world",
    "Population": "populations.population",
    "RateWorlds": "populations.rates",
    "Scene": "scenes.scene",
    "SceneAttribute": "scenes.scene",
    "SceneWorld": "scenes.scene_world",
    "World": "populations.world",
    "WorldSettings": "photo_world",
    "confounded_scene": "scenes.confounded",
    "demo_population": "populations.demo",
    "demo_settings": "populations.demo",
    "draw_people": "photo_world",
    "model_table": "populations.world",
    "planted_detection": "scenes.planted_boxes",
    "planted_detection_record": "scenes.planted_boxes",
    "planted_rates": "populations.planted",
    "planted_record": "populations.planted",
    "preset": "photo_world",
    "read_world": "photo_world",
    "simulate": "populations.world",
    "simulate_crossed": "populations.rates",
    "simulate_rates": "populations.rates",
    "simulate_scene": "scenes.scene_world",
    "write_csv": "populations.world",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: the program's help needs none of it."""
    if name in _HOME:
        value = getattr(importlib.import_module(f"isolux_worlds.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'isolux_worlds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
