"""Reads damaged inputs, one a line of standard input, and says what became of each.

In: ``{"reader": "datasets/coco", "seed": 7}``. Out: ``{"seed": 7, "did": "refused" | "read" |
"unnamed", "said": …, "seconds": …, "mib": …}``. The parent sees to it that a line comes in time.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from isolux.datasets import load
from isolux.engine.store import Store
from isolux.io import run_directory
from isolux.models.onnx import load as load_model
from isolux.people.withdrawal import read_withdrawn
from isolux.policy.reading import read_policy
from isolux.verbs.audit import audit, read_settings
from isolux.verbs.audit.planted import read_planted
from isolux.vocabulary.errors import IsoluxError
from isolux.vocabulary.spec import parse_spec
from tests._sheets import frame_rows, write_ods, write_xlsx
from tests.contracts._hostile import MUTATIONS, OF_TEXT, damage
from tests.contracts._plugins import PLUGINS, Plugin
from tests.contracts._samples import answers_file, dataset_file
from tests.faults._memory import peak_mib
from tests.models._networks import mean_colours

KINDS = (*MUTATIONS, *OF_TEXT, *OF_TEXT, "bytes changed", "cut off")
Reader = tuple[Callable[[Path], Path], Callable[[Path], object]]


def _run(folder: Path) -> Path:
    who = pl.DataFrame({"unit_id": [f"p{i}" for i in range(40)], "light": ["day", "dusk"] * 20})
    scores = who.select("unit_id", value=pl.Series([1.0, 0.0, 1.0, 1.0] * 10))
    return run_directory.save(audit(scores, who, by="light", replicates=100).run, folder / "run")


def _text(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


_PEOPLE = pl.DataFrame(
    {"id": [f"p{i}" for i in range(40)], "light": ["day", "dusk"] * 20, "age": [*range(20, 60)]}
)


def _table(ending: str) -> Reader:
    def write(folder: Path) -> Path:
        path = folder / f"people.{ending}"
        if ending == "xlsx":
            return write_xlsx(path, {"people": frame_rows(_PEOPLE)})
        if ending == "ods":
            return write_ods(path, {"people": frame_rows(_PEOPLE)})
        {"parquet": _PEOPLE.write_parquet, "arrow": _PEOPLE.write_ipc}.get(
            ending, _PEOPLE.write_ndjson
        )(path)
        return path

    return write, lambda path: load("table", path)


def _answers(folder: Path) -> Path:
    store = Store(folder / "net")
    with store.opened():
        store.write_record({"state": "finished", "shards": 1})
    for name in ("predictions", "looks"):
        _PEOPLE.write_parquet(folder / "net" / f"{name}.parquet")
    return folder / "net"


def _network(folder: Path) -> Path:
    weights, offsets = [[1, 0], [0, 1], [1, 1]], [0, 0.1]
    return mean_colours(
        folder / "tiny.onnx", weights, offsets, answers="labels", labels=["day", "night"]
    )


def _loaded(path: Path) -> object:
    return load_model(str(path))


_ENDINGS = ("xlsx", "ods", "parquet", "jsonl", "arrow")
_POLICY = "policy: 1\nrules:\n- {metric: accuracy, attribute: light, within: 5 points}\n"
_PLANTED = {
    "tasks": {"classification": {"metric": "accuracy", "threshold": None}},
    "models": {"m": {"groups": [{"attribute": "tone", "group": "A", "values": ["A"], "value": 0.9,
                                 "in_data": None}], "widest": []}},
}  # fmt: skip

OTHERS: dict[str, Reader] = {
    "run": (_run, run_directory.load),
    "withdrawn": (_text("gone.csv", "subject_id\ns1\ns2\n"), read_withdrawn),
    "withdrawn text": (_text("gone.txt", "# since May\ns1\ns2\n"), read_withdrawn),
    "settings": (
        _text("audit.yaml", "data: table:a.csv\nby: [race]\nstatistics: {level: 0.9}\n"),
        lambda path: parse_spec(read_settings(path)),
    ),
    "policy": (_text("policy.yaml", _POLICY), read_policy),
    "answers of a model": (_answers, lambda path: Store(path).whole()),
    **{
        f"table {ending}": _table(ending) for ending in ("xlsx", "ods", "parquet", "jsonl", "arrow")
    },
    **(
        {"network": (_network, lambda path: load_model(str(path)))}
        if find_spec("onnxruntime")
        else {}
    ),
    "planted": (
        _text("planted.json", json.dumps(_PLANTED)),
        lambda path: read_planted(path, task="classification", by=["tone"], model=None),
    ),
}


def readers() -> list[str]:
    """Name every reader."""
    plugins = [str(p) for p in PLUGINS if p.room in ("datasets", "predictions")]
    return [*plugins, *(f"others/{name}" for name in OTHERS)]


def reader(name: str) -> Reader:
    """Give what writes a whole sample, and what reads it."""
    room, _, own = name.partition("/")
    if room == "others":
        return OTHERS[own]
    plugin = Plugin(room, own)
    if room == "datasets":
        return (lambda folder: dataset_file(plugin, folder)), (lambda path: load(own, path))
    return (lambda folder: answers_file(plugin, folder)), plugin.module.read


class Sample:
    """A whole sample of one reader, and copies of it that are damaged."""

    def __init__(self, name: str, folder: Path) -> None:
        write, self.read = reader(name)
        self.folder, self.whole = folder / "damaged", folder / "whole"
        self.whole.mkdir(parents=True)
        self.inner = write(self.whole).relative_to(self.whole)
        (folder / "outside").mkdir()
        self.outside = folder / "outside"

    def damaged(self, seed: int) -> Path:
        """Damage one file of a fresh copy, once or up to three times."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.whole, self.folder, symlinks=True)
        chance = random.Random(seed)  # noqa: S311 - a test's chance
        for _ in range(chance.choice((1, 1, 2, 3))):
            try:
                damage(
                    self.folder / self.inner, chance.choice(KINDS), chance.randrange(1 << 30),
                    self.outside,
                )  # fmt: skip
            except (OSError, ValueError, IndexError, RecursionError, csv.Error):
                break  # what is damaged already cannot always be damaged again
        return self.folder / self.inner


def tried(sample: Sample, seed: int) -> dict[str, Any]:
    """Read one damaged input."""
    path = sample.damaged(seed)
    began = time.monotonic()
    did, said = "read", ""
    try:
        sample.read(path)
    except IsoluxError as error:
        did = "refused"
        said = "" if error.problem else "no words"
    except BaseException as error:  # noqa: BLE001 - which it is, is what is asked
        did, said = "unnamed", f"{type(error).__name__}: {error}"[:300]
    return {
        "seed": seed,
        "did": did,
        "said": said,
        "seconds": time.monotonic() - began,
        "mib": peak_mib(),
    }


def main() -> None:
    """Answer each line; what a library prints meanwhile is no answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as top:
        samples: dict[str, Sample] = {}
        for line in sys.stdin:
            told = json.loads(line)
            name = told["reader"]
            if name not in samples:
                samples[name] = Sample(name, Path(top) / str(len(samples)))
            print(json.dumps(tried(samples[name], told["seed"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
