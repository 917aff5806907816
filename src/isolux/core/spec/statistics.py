"""Settings of uncertainty: how clusters are resampled, intervals made, small groups withheld."""

from __future__ import annotations

from typing import Literal

from isolux.core.spec.stage import SettingsStage, setting

IntervalMethod = Literal["score", "logit-t", "percentile", "bca", "wilson", "clopper-pearson"]


class Bootstrap(SettingsStage):
    """How clusters are resampled: the weights' law, how many replicates, which seed."""

    interval: IntervalMethod = setting("score", "how intervals are made")
    level: float = setting(0.95, "the intervals' level", gt=0.5, lt=1.0)
    replicates: int = setting(2000, "bootstrap and null replicates", ge=100)
    weights: Literal["poisson", "multinomial"] = setting(
        "multinomial", "the bootstrap's weights", flag=False
    )
    seed: int = setting(0, "seed of every random number", ge=0)


class Statistics(Bootstrap):
    """How sure a group's number is, and from which size a group has one."""

    min_units: int = setting(50, "smallest group that is judged, in units", ge=1)
    min_clusters: int = setting(10, "smallest group that is judged, in clusters", ge=1)
