"""Settings of where shards are computed: in this process, in others, or on a cluster."""

from __future__ import annotations

from typing import Literal

from isolux.core.errors import SpecError
from isolux.core.spec.stage import SettingsStage, setting

_RAY_SETTINGS = ("address", "cpus", "gpus")


class Engine(SettingsStage):
    """Where and how shards are computed. None of these moves a number."""

    name: Literal["local", "ray"] = setting(
        "local",
        "where shards are computed: on this machine, or on a cluster with Ray",
        flat="engine",
        needs=("model", "shards"),
    )
    address: str | None = setting(
        None,
        "with --engine ray: the cluster's address, such as 10.0.0.1:6379; default: start a "
        "cluster on this machine",
        flag=False,
        needs=("engine",),
    )
    workers: int = setting(
        0,
        "number of processes that compute shards in parallel; 0: this process, with all its "
        "threads; with Ray: as many as the cluster has room for",
        ge=0,
        flag=False,
        needs=("model", "shards"),
    )
    cpus: int = setting(
        1, "with --engine ray: cores per worker", ge=1, flag=False, needs=("engine",)
    )
    gpus: float = setting(
        0.0,
        "with --engine ray: GPUs per worker; 0.5: two share one",
        ge=0,
        flag=False,
        needs=("engine",),
    )
    retries: int = setting(
        2,
        "how often to retry a shard whose worker was lost",
        ge=0,
        flag=False,
        needs=("model", "shards"),
    )
    sums: str | None = setting(
        None,
        "a folder that keeps the counts of each shard, so that an interrupted audit can resume; "
        "default: nothing is kept",
        flag=False,
        needs=("shards",),
    )

    def refuse_ray_only_settings(self) -> None:
        """Refuse settings that would do nothing, as a cluster's address without ``--engine ray``.

        Raises
        ------
        SpecError
        """
        explicit_names = [name for name in _RAY_SETTINGS if name in self.model_fields_set]
        if self.name != "ray" and explicit_names:
            raise SpecError(
                f"the setting {explicit_names[0]!r} is of --engine ray; these shards are "
                f"computed here",
                expected="--engine ray with it",
                found=f"--engine {self.name}",
                hint="the setting workers computes in several processes of this machine",
            )
