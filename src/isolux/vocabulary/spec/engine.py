"""Settings of where shards are computed: in this process, in others, or on a cluster."""

from __future__ import annotations

from typing import Literal

from isolux.vocabulary.spec.stage import Stage, setting

__all__ = ["Engine"]


class Engine(Stage):
    """Where and how shards are computed. None of these moves a number."""

    name: Literal["local", "ray"] = setting(
        "local", "where shards are computed: on this machine, or on a cluster by Ray", flat="engine"
    )
    address: str | None = setting(
        None,
        "of --engine ray: the cluster's address, such as 10.0.0.1:6379; default: one of its own",
    )
    workers: int = setting(
        0, "processes that compute shards side by side; 0: this one, with all its threads", ge=0
    )
    retries: int = setting(2, "how often a shard is tried again whose worker was lost", ge=0)
    sums: str | None = setting(
        None,
        "a folder that keeps what was counted in each shard, so that an audit that was stopped "
        "goes on from there; default: nothing is kept",
    )
