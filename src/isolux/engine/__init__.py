"""Running a model over a dataset's pictures: shards that are committed one by one, and resumed.

``list_source_images`` says which pictures are looked at and whom each shows; ``split_into_shards``
cuts them into shards, always the same; ``predict_missing_shards_in_process`` predicts the shards
that a ``ShardStore`` lacks, on this machine: threads read and prepare pictures ahead of the model.
Before the first shard ten pictures are tried, and a model that answers all of them alike is said.
A shard is one Parquet file, written under a temporary name and renamed: the rename is the commit.
Its key is content (the pictures' bytes, everything that moves the model's answers, settings, code),
so nothing that changed meets an earlier answer, and what did not change is not done again.

An executor decides where shards are computed and nothing else:
``predict_missing_shards_in_process`` in this process, ``predict_missing_shards_remotely`` in
others, of this machine or on Ray. Whatever it is, the files are the same.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from isolux.core.progress import report_line
from isolux.engine.remote_prediction import predict_missing_shards_remotely
from isolux.engine.settings import Failures, PredictionSettings, Progress, RunOutcome
from isolux.engine.shard_predictor import ShardPredictions, ShardPredictor
from isolux.engine.shards import Shard, split_into_shards
from isolux.engine.source_images import InputUnit, list_source_images
from isolux.engine.store import (
    RUN_FILE,
    CollectedPredictions,
    ShardStore,
    shorten_key_for_file_name,
)
from isolux.engine.trial import choose_trial_images, describe_uniform_answers
from isolux.io.image_folder import ImageFolder
from isolux.models import Model

__all__ = [
    "RUN_FILE",
    "CollectedPredictions",
    "InputUnit",
    "PredictionSettings",
    "Progress",
    "RunOutcome",
    "Shard",
    "ShardStore",
    "list_source_images",
    "predict_missing_shards_in_process",
    "predict_missing_shards_remotely",
    "split_into_shards",
]


# The executor of one process: it predicts the shards that a store lacks, and commits each.


def predict_missing_shards_in_process(
    model: Model,
    shards: Sequence[Shard],
    folder: ImageFolder,
    store: ShardStore,
    run_key: str,
    settings: PredictionSettings,
    *,
    report: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> RunOutcome:
    """Predict the shards that the store lacks, and commit each of them."""
    committed = store.list_committed_keys()
    expected = sum(len(shard.images) for shard in shards if shard.index not in committed)
    predictor = ShardPredictor(model, folder, run_key, settings, expected=expected)
    try:
        with _report_end_of_process(model.name):
            return _LocalRun(predictor, shards, store, report or (lambda *_: None)).execute(
                stop or (lambda: False)
            )
    finally:
        predictor.close()


_SAME_ANSWER_ADVICE = (
    "If the pictures differ in what the model should see, they are not prepared as in its training"
    " (mean, std, scale, colours, size), or the names of its classes are in another order."
)
_END_OF_PROCESS = (
    "isolux: the process ended while {!r} was answering: the model ended it (os._exit, or a crash"
    " of its code), or the system did (no memory). Finished shards are kept. --workers 1 runs the"
    " model in another process, goes on when that ends, and says in which shard."
)


@contextmanager
def _report_end_of_process(model_name: str) -> Iterator[None]:
    """Have a shell say that this process ended, which nothing within it can say."""
    shell = shutil.which("sh")
    if shell is None:  # pragma: no cover - Windows
        yield
        return
    script = 'read -r _ || printf "%s\\n" "$1" >&2'  # the pipe ends with the process
    reporter = subprocess.Popen(  # noqa: S603 - our own words
        [shell, "-c", script, "sh", _END_OF_PROCESS.format(model_name)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        yield
    finally:
        with suppress(OSError):
            reporter.communicate(b"done\n")


@dataclass
class _LocalRun:
    predictor: ShardPredictor
    shards: Sequence[Shard]
    store: ShardStore
    report: Progress
    key_by_index: dict[int, str] = field(default_factory=dict)
    n_computed: int = 0
    n_computed_images: int = 0
    n_finished_images: int = 0

    def __post_init__(self) -> None:
        self.total = sum(len(shard.images) for shard in self.shards)
        inferences = sum(len(p.units) for shard in self.shards for p in shard.images)
        self.failures = Failures(
            inferences, self.predictor.settings.max_failures, self.store.folder
        )
        self.there = self.store.list_committed_keys()

    def execute(self, stop: Callable[[], bool]) -> RunOutcome:
        if not self.there:
            self._warn_of_uniform_answers()
        results = self.predictor.predict_shards(
            self._iterate_missing_shards(), self._report_progress
        )
        while not stop() and (shard_predictions := next(results, None)) is not None:
            self._commit_predictions(shard_predictions)
        keys = [
            (s, self.key_by_index[s.index]) for s in self.shards if s.index in self.key_by_index
        ]
        is_complete = len(keys) == len(self.shards)
        return RunOutcome(
            keys, self.n_computed, self.n_computed_images, is_complete, self.predictor.caller.batch
        )

    def _warn_of_uniform_answers(self) -> None:
        """Try ten pictures, and say at once if all of them get the same answer."""
        responses = self.predictor.predict_trial(choose_trial_images(self.shards))
        warning = describe_uniform_answers(responses, self.predictor.model.predicts, self.total)
        if warning is not None:
            report_line(f"{warning} {_SAME_ANSWER_ADVICE}")

    def _iterate_missing_shards(self) -> Iterator[Shard]:
        """Yield the shards that must be computed; count the others as finished."""
        for shard in self.shards:
            if self._is_committed(shard):
                self._report_progress()
            else:
                yield shard

    def _is_committed(self, shard: Shard) -> bool:
        """Return whether a shard was committed with the same content key."""
        settled_shards = self.store.select_keys_without_retry(
            shard, self.there.get(shard.index, ())
        )
        if not settled_shards:
            return False
        key = self.predictor.compute_key(shard)
        n_failed = settled_shards.get(shorten_key_for_file_name(key))
        if n_failed is None:
            return False
        self._record_content_key(shard, key)
        self.failures.add_earlier_failures(n_failed)
        return True

    def _commit_predictions(self, shard_predictions: ShardPredictions) -> None:
        self.store.commit(shard_predictions.shard, shard_predictions.key, shard_predictions.table)
        self._record_content_key(shard_predictions.shard, shard_predictions.key)
        self.n_computed += 1
        self.n_computed_images += len(shard_predictions.shard.images)
        self._report_progress()
        self.failures.add_shard_failures(shard_predictions.table)

    def _record_content_key(self, shard: Shard, key: str) -> None:
        self.key_by_index[shard.index] = key
        self.n_finished_images += len(shard.images)

    def _report_progress(self, n_partial: int = 0) -> None:
        """Report progress; ``n_partial`` images of the current shard are finished."""
        self.report(
            self.n_finished_images + n_partial, self.total, self.n_computed_images + n_partial
        )
