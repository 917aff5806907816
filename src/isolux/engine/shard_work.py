"""One shard of a model's run as a piece of work: what a process or node is given, and what it does.

The command tells in JSON which model it opened and what its answers depend on. A worker opens the
same once, and refuses to answer where what it has is another: weights, packages, isolux itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from isolux.engine import pictures as of_pictures
from isolux.engine.looking import Looker
from isolux.engine.pictures import Picture
from isolux.engine.pieces.piece import Tables
from isolux.engine.settings import Settings
from isolux.engine.shards import Shard
from isolux.engine.store import short
from isolux.io import images
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model, open_model, source_hash
from isolux.vocabulary.errors import IsoluxError

OPEN = "isolux.engine.shard_work:open_shard_model"
PREDICT = "isolux.engine.shard_work:predict_shard"

_SHOWN = 3
_opened: dict[str, Looker] = {}
"""The model of this process, by what it was asked for: the next shard finds it open."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which model a worker opens, and how; all of it JSON.

    Parameters
    ----------
    model, options, name
        As ``open_model`` takes them.
    key : str
        Of the model that the command opened.
    versions : mapping of str to str
        Packages that it ran on.
    code : str
        Hash of what opens pictures.
    run_key : str
        Of all that is the same for each shard.
    pictures, here : str
        The folder of the pictures, and the one that the command was started in.
    settings : mapping
        Of ``Settings``.
    """

    model: str
    options: Sequence[str]
    name: str
    key: str
    versions: Mapping[str, str]
    code: str
    run_key: str
    pictures: str
    here: str
    settings: Mapping[str, Any]


def given(shard: Shard) -> dict[str, Any]:
    """Write a shard as JSON has it."""
    return {"index": shard.index, "shard": msgspec.to_builtins(shard.pictures)}


def code_hash() -> str:
    """Return one SHA-256 of the code that opens pictures."""
    return source_hash(of_pictures, images)


def open_shard_model(asked: Mapping[str, Any]) -> Tables:
    """Open the model before the first shard comes, which has a time limit."""
    _looker(asked)
    return {}


def predict_shard(
    asked: Mapping[str, Any],
    index: int,
    shard: Sequence[Mapping[str, Any]],
    settled: Sequence[str] = (),
) -> Tables:
    """Predict one shard, wherever an executor runs this."""
    looker = _looker(asked)
    whole = Shard(index, msgspec.convert(shard, tuple[Picture, ...]))
    if settled:
        key = looker.key(whole)
        if short(key) in settled:
            return {"made": pl.DataFrame({"key": [key], "batch": [looker.answerer.batch]})}
    (looked,) = looker.looked([whole])
    made = pl.DataFrame({"key": [looked.key], "batch": [looker.answerer.batch]})
    return {"made": made, "looks": looked.table}


def _looker(told: Mapping[str, Any]) -> Looker:
    """Open what is asked for, once a process."""
    name = json.dumps(told, sort_keys=True)
    if name not in _opened:
        for other in list(_opened):  # the memory holds one model
            _opened.pop(other).close()
        asked = Asked(**told)
        _go_to(asked.here)
        model = open_model(asked.model, asked.options, name=asked.name)
        _refuse_other(model, asked)
        settings = Settings(**asked.settings)
        _opened[name] = Looker(model, PictureFolder(asked.pictures), asked.run_key, settings)
    return _opened[name]


def _go_to(folder: str) -> None:
    """Work where the command was started: modules and weights may be named from there."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise IsoluxError(
            "a worker does not see the folder that the command was started in",
            expected="the same folders on each node, by the same paths",
            found=error.strerror,
            where=folder,
            hint="start the command in a folder that all nodes share",
        ) from error


def _refuse_other(model: Model, asked: Asked) -> None:
    """Refuse answers of another model, other packages or another isolux than the command has."""
    if model.key == asked.key and code_hash() == asked.code:
        return
    packages = sorted(set(asked.versions) | set(model.versions))
    told = [
        f"{name} {model.versions.get(name, 'absent')}, not {asked.versions.get(name, 'absent')}"
        for name in packages
        if model.versions.get(name) != asked.versions.get(name)
    ]
    raise IsoluxError(
        "a worker has another model, or other code, than the command",
        expected=f"the same {asked.model} on each node, with the same packages and isolux",
        found="; ".join(told[:_SHOWN]) or "other weights, settings or code",
        where=os.uname().nodename if hasattr(os, "uname") else "a node",
    )
