"""Populations whose disparities are planted, hence known.

``Population -> simulate -> World``: a table of people as a newcomer would have it, and the true
rate of every group. ``simulate_rates`` draws thousands of worlds at once, as sums, for laws.
"""

from __future__ import annotations

from isolux.synthetic.demo import demo_population, demo_settings
from isolux.synthetic.planted import planted_rates, planted_record
from isolux.synthetic.population import Attribute, Effect, Model, Population
from isolux.synthetic.rates import RateWorlds, simulate_crossed, simulate_rates
from isolux.synthetic.world import World, model_table, simulate, write_csv

__all__ = [
    "Attribute",
    "Effect",
    "Model",
    "Population",
    "RateWorlds",
    "World",
    "demo_population",
    "demo_settings",
    "model_table",
    "planted_rates",
    "planted_record",
    "simulate",
    "simulate_crossed",
    "simulate_rates",
    "write_csv",
]
