"""Small pictures on disk, the people in them, and callables that answer by brightness."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.engine import (
    InputUnit,
    PredictionSettings,
    ShardStore,
    list_source_images,
    predict_missing_shards_in_process,
    split_into_shards,
)
from isolux.engine.source_images import find_image_folder
from isolux.models import wrap_callable_as_model

INFO = DatasetInfo(title="Greys", summary="Grey pictures.", references=())


def paint(folder: Path, n: int) -> Dataset:
    """Write grey pictures 000.png, …: picture k is as bright as 5 k, modulo 256."""
    folder.mkdir(exist_ok=True)
    for k in range(n):
        grey = np.full((6, 8, 3), 5 * k % 256, np.uint8)
        Image.fromarray(grey).save(folder / f"{k:03}.png")
    names = [f"{k:03}.png" for k in range(n)]
    people = pl.DataFrame({"instance_id": names, "image_id": names})
    return Dataset("greys", INFO, people, root=str(folder))


def brightness(pictures):
    """Label each picture by its own mean: the answer tells which picture it is about."""
    return [str(int(one.mean())) for one in pictures]


class Counting:
    """A callable that remembers how many pictures it was shown, and in what batches."""

    def __init__(self, answer=brightness):
        self.answer, self.batches = answer, []

    def __call__(self, pictures):
        self.batches.append(len(pictures))
        return self.answer(pictures)

    @property
    def shown(self):
        return sum(self.batches)


def run(dataset, folder, function=brightness, *, version="1", shard_size=4, run_key="k",
        input_unit: InputUnit = "image", stop=None, tell=None, **settings):  # fmt: skip
    """Predict a dataset with a callable; give the store, what ran and what was gathered."""
    model = wrap_callable_as_model(function, name="net", version=version)
    pictures = list_source_images(dataset, model.predicts, input_unit)
    shards = split_into_shards(pictures, shard_size)
    how = PredictionSettings(**{"batch": 3, "max_failures": 1.0, **settings})
    store = ShardStore(folder)
    with store.lock():
        store.write_record({"state": "unfinished", "shards": len(shards)})
        ran = predict_missing_shards_in_process(
            model, shards, find_image_folder(dataset), store, run_key + model.key, how,
            stop=stop, report=tell,
        )  # fmt: skip
        gathered = store.collect(model.predicts, ran.keys, "net") if ran.is_complete else None
    return store, ran, gathered
