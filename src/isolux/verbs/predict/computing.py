"""Where a model's shards are computed: in this process, in others of this machine, or on Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isolux.engine import Progress, Ran, Settings, Shard, Store, run_apart, run_local
from isolux.engine.apart import refuse_in_memory
from isolux.engine.pieces import Executor, executor_of
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model
from isolux.vocabulary.spec import AuditSpec


def executor_for(spec: AuditSpec, model: Model) -> Executor | None:
    """Choose where shards are computed: None in this process, else by workers or by Ray."""
    engine = spec.engine
    engine.refuse_what_only_ray_takes()
    if engine.name == "local" and not engine.workers:
        return None
    refuse_in_memory(model)
    return executor_of(
        engine.name, engine.workers, engine.address, cpus=engine.cpus, gpus=engine.gpus
    )


def run_shards(
    executor: Executor | None,
    spec: AuditSpec,
    model: Model,
    shards: Sequence[Shard],
    folder: PictureFolder,
    store: Store,
    key: str,
    how: Settings,
    tell: Progress | None,
    stop: Callable[[], bool] | None,
) -> Ran:
    """Compute the shards that the store lacks; see ``run_local`` and ``run_apart``."""
    if executor is None:
        return run_local(model, shards, folder, store, key, how, tell=tell, stop=stop)
    return run_apart(
        executor, model, spec.model.option, shards, folder, store, key, how,
        retries=spec.engine.retries, tell=tell, stop=stop,
    )  # fmt: skip
