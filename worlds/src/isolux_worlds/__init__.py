"""Synthetic populations whose disparities are injected, hence known.

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
    from isolux_worlds.populations.injected_effects import injected_effects_record, injected_rates
    from isolux_worlds.populations.population import Attribute, Effect, Model, Population
    from isolux_worlds.populations.rates import RateWorlds, simulate_crossed, simulate_rates
    from isolux_worlds.populations.world import World, simulate, write_csv
    from isolux_worlds.scenes.scene import Detector, Scene, SceneAttribute, confounded_scene
    from isolux_worlds.scenes.scene_world import SceneWorld, simulate_scene
    from isolux_worlds.scenes.true_recall import injected_recall, injected_recall_record

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
    "injected_effects_record",
    "injected_rates",
    "injected_recall",
    "injected_recall_record",
    "preset",
    "read_world",
    "simulate",
    "simulate_crossed",
    "simulate_rates",
    "simulate_scene",
    "write_csv",
]

_MODULES = (
    "populations.population",
    "populations.rates",
    "populations.injected_effects",
    "populations.world",
    "populations.demo",
    "scenes.scene",
    "scenes.true_recall",
    "scenes.scene_world",
    "photo_world",
)


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: the program's help needs none of it."""
    for module in _MODULES if name in __all__ else ():
        public_object = importlib.import_module(f"isolux_worlds.{module}")
        if name in public_object.__all__:
            return globals().setdefault(name, getattr(public_object, name))
    raise AttributeError(f"module 'isolux_worlds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
