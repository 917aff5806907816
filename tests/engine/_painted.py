"""Small pictures on disk, the people in them, and callables that answer by brightness."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux.engine import PictureOf, Settings, Store, list_pictures, run_local, shards_of
from isolux.engine.pictures import picture_folder
from isolux.models import callable_model
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.info import DatasetInfo

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
        picture_of: PictureOf = "image", stop=None, tell=None, **settings):  # fmt: skip
    """Predict a dataset with a callable; give the store, what ran and what was gathered."""
    model = callable_model(function, name="net", version=version)
    pictures = list_pictures(dataset, model.predicts, picture_of)
    shards = shards_of(pictures, shard_size)
    how = Settings(**{"batch": 3, "max_failures": 1.0, **settings})
    store = Store(folder)
    with store.opened():
        store.write_record({"state": "unfinished", "shards": len(shards)})
        ran = run_local(
            model, shards, picture_folder(dataset), store, run_key + model.key, how,
            stop=stop, report=tell,
        )  # fmt: skip
        gathered = store.gather(model.predicts, ran.keys, "net") if ran.whole else None
    return store, ran, gathered
