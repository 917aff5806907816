"""Running a model over a dataset's pictures: shards that are committed one by one, and resumed.

``list_pictures`` says which pictures are looked at and whom each shows; ``shards_of`` cuts them
into shards, always the same; ``run_local`` predicts the shards that a ``Store`` lacks, on this
machine: threads read and prepare pictures ahead of the model. A shard is one Parquet file, written
under a temporary name and renamed: the rename is the commit. Its key is content (the pictures'
bytes, everything that moves the model's answers, settings, code), so nothing that changed meets an
earlier answer, and what did not change is not done again.

An executor decides where shards are computed and nothing else: ``run_local`` in this process,
``run_apart`` in others, of this machine or on Ray. Whatever it is, the files are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from isolux.engine.apart import run_apart
from isolux.engine.looking import Looked, Looker
from isolux.engine.pictures import PictureOf, list_pictures
from isolux.engine.settings import Failures, Progress, Ran, Settings
from isolux.engine.shards import Shard, shards_of
from isolux.engine.store import RUN_FILE, Gathered, Store, short
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model

__all__ = [
    "RUN_FILE",
    "Gathered",
    "PictureOf",
    "Progress",
    "Ran",
    "Settings",
    "Shard",
    "Store",
    "list_pictures",
    "run_apart",
    "run_local",
    "shards_of",
]


# The executor of one process: it predicts the shards that a store lacks, and commits each.


def run_local(
    model: Model,
    shards: Sequence[Shard],
    folder: PictureFolder,
    store: Store,
    run_key: str,
    settings: Settings,
    *,
    report: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Ran:
    """Predict the shards that the store lacks, and commit each of them."""
    committed = store.committed()
    expected = sum(len(shard.pictures) for shard in shards if shard.index not in committed)
    predictor = Looker(model, folder, run_key, settings, expected=expected)
    try:
        return _LocalRun(predictor, shards, store, report or (lambda *_: None)).done(
            stop or (lambda: False)
        )
    finally:
        predictor.close()


@dataclass
class _LocalRun:
    looker: Looker
    shards: Sequence[Shard]
    store: Store
    tell: Progress
    keys: dict[int, str] = field(default_factory=dict)
    computed: int = 0
    pictures: int = 0
    answered: int = 0

    def __post_init__(self) -> None:
        self.total = sum(len(shard.pictures) for shard in self.shards)
        looks = sum(len(p.units) for shard in self.shards for p in shard.pictures)
        self.failures = Failures(looks, self.looker.settings.max_failures, self.store.folder)
        self.there = self.store.committed()

    def done(self, stop: Callable[[], bool]) -> Ran:
        results = self.looker.looked(self._missing(), self._report_progress)
        while not stop() and (shard_predictions := next(results, None)) is not None:
            self._commit(shard_predictions)
        keys = [(s, self.keys[s.index]) for s in self.shards if s.index in self.keys]
        is_complete = len(keys) == len(self.shards)
        return Ran(keys, self.computed, self.pictures, is_complete, self.looker.answerer.batch)

    def _missing(self) -> Iterator[Shard]:
        """Yield the shards that must be computed; count the others as finished."""
        for shard in self.shards:
            if self._is_committed(shard):
                self._report_progress()
            else:
                yield shard

    def _is_committed(self, shard: Shard) -> bool:
        """Return whether a shard was committed with the same content key."""
        settled_shards = self.store.settled(shard, self.there.get(shard.index, ()))
        if not settled_shards:
            return False
        key = self.looker.key(shard)
        n_failed = settled_shards.get(short(key))
        if n_failed is None:
            return False
        self._record_key(shard, key)
        self.failures.earlier(n_failed)
        return True

    def _commit(self, shard_predictions: Looked) -> None:
        self.store.commit(shard_predictions.shard, shard_predictions.key, shard_predictions.table)
        self._record_key(shard_predictions.shard, shard_predictions.key)
        self.computed += 1
        self.pictures += len(shard_predictions.shard.pictures)
        self._report_progress()
        self.failures.count(shard_predictions.table)

    def _record_key(self, shard: Shard, key: str) -> None:
        self.keys[shard.index] = key
        self.answered += len(shard.pictures)

    def _report_progress(self, n_partial: int = 0) -> None:
        """Report progress; ``n_partial`` images of the current shard are finished."""
        self.tell(self.answered + n_partial, self.total, self.pictures + n_partial)
