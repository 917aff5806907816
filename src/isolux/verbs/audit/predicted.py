"""Answers of a model that isolux ran: run now, or read from the directory that keeps them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.engine.pictures import Picture, hash_picture, list_pictures, picture_folder
from isolux.io.hashing import sha256_file
from isolux.io.picture_folder import PictureFolder
from isolux.predictions import join
from isolux.verbs.audit.inputs import Watched
from isolux.verbs.crop import crop_pictures
from isolux.verbs.predict import Predicted, is_answers, predict_people, read_predicted
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import IsoluxError, JoinError, SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import AuditSpec

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class FromModel:
    """A model's answers with the people whom they are about, and how they came to be."""

    dataset: Dataset
    predictions: pl.DataFrame
    notes: tuple[str, ...]
    inputs: dict[str, str]
    record: dict[str, Any]


def answers_of_model(
    spec: AuditSpec, dataset: Dataset, watched: Watched | None
) -> FromModel | None:
    """Run the model that a spec names, or read what was predicted; None: neither is asked for."""
    file = spec.predictions.file
    if spec.model.spec is not None:
        with nullcontext((None, None)) if watched is None else watched() as (tell, stop):
            found = predict_people(
                spec,
                dataset,
                out=spec.model.answers,
                tell=tell,
                stop=stop,
                check=lambda kind: _refuse_other_kind(spec.task.name, kind),
            )
    elif file is not None and is_answers(file):
        found = read_predicted(file)
        _refuse_other_kind(spec.task.name, found.record["model"]["predicts"])
        found = replace(found, notes=(*on_changes(found, dataset), *found.notes))
    else:
        return None
    inputs = dict(dataset.inputs)
    if found.folder is not None:
        path = found.folder / "predictions.parquet"
        inputs[str(path)] = sha256_file(path)
    record = {key: found.record[key] for key in ("model", "settings", "key", "pictures")}
    if "instance_id" in found.predictions.columns:
        # Of a model that looked at these very rows, their numbers are ids.
        own = replace(dataset, ids_are_rows=False) if spec.model.spec is not None else dataset
        predictions, notes = join(own, found.predictions, id_from=spec.predictions.id_from)
        return FromModel(dataset, predictions, (*found.notes, *notes), inputs, record)
    seen, notes = _seen(dataset, found)
    predictions = found.predictions.filter(pl.col("image_id").is_in(_images_of(seen).implode()))
    return FromModel(seen, predictions, (*found.notes, *notes), inputs, record)


def _refuse_other_kind(task: str, kind: str) -> None:
    """Refuse a model whose answers the task cannot judge, before hours of running it."""
    wanted = registry.task_info(task).predictions
    if (wanted == "labels") != (kind == "labels"):
        raise SpecError(
            f"the task {task} does not judge what this model answers",
            expected="labels" if wanted == "labels" else "a model that answers with what it judges",
            found=kind,
            hint="`isolux list tasks` says what each task judges",
        )


def _images_of(dataset: Dataset) -> pl.Series:
    """List the images of a dataset: answers may be about more, of people who withdrew since."""
    tables = [t for t in (dataset.images, dataset.instances) if "image_id" in t.columns]
    return pl.concat([t["image_id"].cast(pl.String) for t in tables]).unique()


def _seen(dataset: Dataset, found: Predicted) -> tuple[Dataset, tuple[str, ...]]:
    """Leave out images that the model did not see, and who is in them."""
    answered = found.looks.filter(pl.col("reason").is_null())["image_id"].unique()
    own = dataset.instances["image_id"].cast(pl.String)
    if len(own) and not own.is_in(answered.implode()).any():
        first = found.looks["image_id"].head(_SHOWN).to_list()
        raise JoinError(
            "the model answered for no image of these people",
            expected=f"images such as {own.head(_SHOWN).to_list()!r}",
            found=f"answers about {first!r}",
        )
    kept = own.is_in(answered.implode()).fill_null(value=False)
    images = dataset.images
    if "image_id" in images.columns:
        images = images.filter(pl.col("image_id").cast(pl.String).is_in(answered.implode()))
    left = int((~kept).sum())
    stays = dataset.instances.filter(kept)
    ids = stays["instance_id"].cast(pl.String).implode()
    attributes = dataset.attributes.filter(
        (pl.col("unit_kind") != "instance") | pl.col("unit_id").is_in(ids)
    )
    notes: tuple[str, ...] = ()
    if left:
        notes = (
            Caution(
                f"{left:,} of {len(own):,} people are in images that the model did not see and"
                " are left out: they were not missed by it."
            ),
        )
    return replace(dataset, instances=stays, images=images, attributes=attributes), notes


_LOOKED_AT = 1000  # pictures whose bytes are compared: of more, as many evenly spread
_NOT_LOOKED_AT = (
    "The pictures are not at hand: whether the answers are about them as they are now was not"
    " looked at."
)
_HASH = re.compile(r"[0-9a-f]{64}")


def on_changes(found: Predicted, dataset: Dataset) -> list[str]:
    """Compare what kept answers rest on with what is there now."""
    return [*_on_pictures(found, dataset), *_on_model(found.record), *_on_people(found, dataset)]


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
