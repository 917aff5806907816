"""Settings of where shards are computed: in this process, in others, or on a cluster."""

from __future__ import annotations

from typing import Literal

from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec.stage import Stage, setting

__all__ = ["Engine"]

_OF_RAY = ("address", "cpus", "gpus")


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
        0,
        "processes that compute shards side by side; 0: this one, with all its threads; of Ray as "
        "many as the cluster has room for",
        ge=0,
    )
    cpus: int = setting(1, "of --engine ray: cores that each worker takes", ge=1)
    gpus: float = setting(
        0.0, "of --engine ray: GPUs that each worker takes; 0.5: two share one", ge=0
    )
    retries: int = setting(2, "how often a shard is tried again whose worker was lost", ge=0)
    sums: str | None = setting(
        None,
        "a folder that keeps what was counted in each shard, so that an audit that was stopped "
        "goes on from there; default: nothing is kept",
    )

    def refuse_what_only_ray_takes(self) -> None:
        """Refuse settings that would do nothing, as a cluster's address without ``--engine ray``.

        Raises
        ------
        SpecError
        """
        said = [name for name in _OF_RAY if name in self.model_fields_set]
        if self.name != "ray" and said:
            raise SpecError(
                f"--{said[0]} is of --engine ray, and shards are computed on this machine",
                expected="--engine ray with it",
                found=f"--engine {self.name}",
                hint="--workers N computes in N processes of this machine",
            )
