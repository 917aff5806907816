"""Answers of a model that isolux ran: run now, or read from the directory that keeps them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.io.hashing import sha256_file
from isolux.predictions import join
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError, SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import AuditSpec

if TYPE_CHECKING:
    from isolux.engine import Progress
    from isolux.verbs.predict import Predicted

Watched = Callable[[], AbstractContextManager["tuple[Progress | None, Callable[[], bool] | None]"]]
"""Gives, while a model runs, what is told of its progress and what stops it after a shard."""

_IMPORTED = "imported:"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class FromModel:
    """A model's answers with the people whom they are about, and how they came to be.

    ``dataset`` lacks the images that the model never saw: no one in them was missed by it.
    """

    dataset: Dataset
    predictions: pl.DataFrame
    notes: tuple[str, ...]
    inputs: dict[str, str]
    record: dict[str, Any]


def with_imported(spec: AuditSpec) -> AuditSpec:
    """Take ``--model imported:FILE`` for ``--predictions FILE``, and refuse two sources of answers.

    A name without a family (``--model cnn``) beside ``--predictions`` is that of one of its models.
    """
    model, file = spec.model.spec, spec.predictions.file
    if model is None:
        return spec
    if file is not None and ":" not in model:
        return spec.updated(model=None, answers=None, model_name=model)
    column = spec.predictions.prediction_column
    if file is not None or (column is not None and not model.startswith(_IMPORTED)):
        raise SpecError(
            "a model is run and answers are given as well",
            expected="--model, or --predictions or --prediction-column",
            found=f"--model {model} and "
            + (f"--predictions {file}" if file is not None else f"--prediction-column {column}"),
        )
    if not model.startswith(_IMPORTED):
        return spec
    return spec.updated(model=None, predictions=model.removeprefix(_IMPORTED))


def answers_of_model(
    spec: AuditSpec, dataset: Dataset, watched: Watched | None = None
) -> FromModel | None:
    """Run the model that a spec names, or read what was predicted; None: neither is asked for."""
    file = spec.predictions.file
    if spec.model.spec is None and file is None:
        return None
    # What runs models is loaded where there are answers of one.
    from isolux.verbs.audit.stale import on_changes
    from isolux.verbs.predict import is_answers, predict_people, read_predicted

    if spec.model.spec is not None:
        with (watched or _unwatched)() as (tell, stop):
            found = predict_people(
                spec, dataset, out=spec.model.answers, tell=tell, stop=stop,
                check=lambda kind: _refuse_other_kind(spec.task.name, kind),
            )  # fmt: skip
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


def _unwatched() -> AbstractContextManager[tuple[None, None]]:
    return nullcontext((None, None))


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
