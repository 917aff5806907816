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

from isolux.engine.apart import run_apart
from isolux.engine.local import run_local
from isolux.engine.pictures import PictureOf, list_pictures
from isolux.engine.settings import Progress, Ran, Settings
from isolux.engine.shards import Shard, shards_of
from isolux.engine.store import RUN_FILE, Gathered, Store

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
