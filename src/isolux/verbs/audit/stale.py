"""Whether kept answers are still about what is there: pictures, people, the model's files.

A directory of answers says what it rests on. Pictures that were replaced since, or a network that
was trained further, give other answers than those that are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isolux.engine.pictures import Picture, hash_picture, list_pictures, picture_folder
from isolux.io.hashing import sha256_file
from isolux.io.picture_folder import PictureFolder
from isolux.verbs.crop import crop_pictures
from isolux.verbs.predict import Predicted
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import IsoluxError, JoinError
from isolux.vocabulary.notes import Caution

_LOOKED_AT = 1000  # pictures whose bytes are compared: of more, as many evenly spread
_SHOWN = 3
_NOT_LOOKED_AT = (
    "The pictures are not at hand: whether the answers are about them as they are now was not"
    " looked at."
)
_HASH = re.compile(r"[0-9a-f]{64}")


def on_changes(found: Predicted, dataset: Dataset) -> list[str]:
    """Compare what kept answers rest on with what is there now."""
    return [
        *_on_pictures(found, dataset), *_on_model(found.record), *_on_people(found, dataset)
    ]  # fmt: skip


def _on_pictures(found: Predicted, dataset: Dataset) -> list[str]:
    looks = found.looks.drop_nulls("sha256").unique("image_id", maintain_order=True)
    known = dict(looks.select("image_id", "sha256").iter_rows())
    try:
        pictures, folder = _pictures(found.record, dataset)
    except IsoluxError:
        return [_NOT_LOOKED_AT]
    same = [one for one in pictures if one.image_id in known and one.path is not None]
    if not same:
        return []
    at = np.unique(np.linspace(0, len(same) - 1, min(len(same), _LOOKED_AT)).astype(int))
    now = {same[k].image_id: hash_picture(same[k], folder) for k in at}
    gone = [name for name, sha in now.items() if sha is None]
    other = [name for name, sha in now.items() if sha not in (None, known[name])]
    if len(gone) == len(now):
        return [_NOT_LOOKED_AT]
    what = f"of {len(now):,} pictures" + (" looked at" if len(now) < len(same) else "")
    if 2 * len(other) >= len(now):
        raise JoinError(
            "the answers are about other pictures than those that are there",
            expected="the pictures that the model saw, byte for byte",
            found=f"{len(other):,} {what} differ: {_listed(other)}",
            where=str(found.folder),
            hint=_again(found),
        )
    notes: list[str] = []
    if other:
        notes.append(
            Caution(
                f"{len(other):,} {what} changed after the model saw them ({_listed(other)}): their"
                f" answers are about what they were. {_again(found).capitalize()}."
            )
        )
    if gone:
        notes.append(f"{len(gone):,} {what} that the model saw are not there: {_listed(gone)}.")
    return notes


def _pictures(record: Mapping[str, Any], dataset: Dataset) -> tuple[list[Picture], PictureFolder]:
    settings = record["settings"]
    crops = settings.get("crops")
    if crops is not None:
        return crop_pictures(dataset, crops)
    listed = list_pictures(dataset, record["model"]["predicts"], settings["picture_of"])
    return listed, picture_folder(dataset)


def _on_model(record: Mapping[str, Any]) -> list[str]:
    hashes = set(_HASH.findall(json.dumps(record["model"]["identity"])))
    changed = [str(file) for file in _files(record) if sha256_file(file) not in hashes]
    if not changed:
        return []
    return [
        Caution(
            f"{', '.join(changed[:_SHOWN])} changed after {record['model']['spec']} gave these"
            " answers: they are those of the model as it was."
        )
    ]


def _files(record: Mapping[str, Any]) -> Iterator[Path]:
    """List the model's own files, as far as its name and its settings say where they are."""
    family, _, what = str(record["model"]["spec"]).partition(":")
    named = [item.partition("=")[2] for item in record["settings"].get("option") or ()]
    own = record["model"]["identity"].get("own") or {}
    if family == "onnx":
        beside = own["weights"].get("external", ())
        named += [what, *(str(Path(what).parent / name) for name in beside)]
    if family == "hf":
        named += [str(Path(what) / name) for name in own["files"]]
    if family == "python":  # a module of the working folder
        named.append(what.rpartition(":")[0].replace(".", "/") + ".py")
        named = [value.rpartition("=")[2] for value in named]
    for value in dict.fromkeys(named):
        try:
            file = Path(value).expanduser()
            if value and file.is_file():
                yield file
        except (OSError, ValueError, RuntimeError):
            continue


def _on_people(found: Predicted, dataset: Dataset) -> list[str]:
    """Caution where boxes were cut out by a table that is another one now."""
    before = found.record["dataset"]["inputs"]
    changed = [f for f, sha in dataset.inputs.items() if f in before and before[f] != sha]
    if not changed:
        return []
    told = f"{', '.join(changed[:_SHOWN])} changed after the model answered"
    if found.record["settings"]["picture_of"] == "person":
        return [Caution(f"{told}: if boxes changed, it saw other parts of the pictures.")]
    return [f"{told}: answers are joined by ids, so people's ids must be the same."]


def _again(found: Predicted) -> str:
    return f"predict again: isolux predict --resume {found.folder}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
