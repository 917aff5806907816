"""What a run of a model rests on, written down: the content of ``predict.json``, and its key.

Nothing of when or how fast it ran stands in it: a resumed run is the same, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from isolux.engine import pictures as of_pictures
from isolux.engine.pictures import Picture, count_units
from isolux.io import images
from isolux.models import Model, source_hash
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import OutputError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import AuditSpec, ModelRun

_SHOWN = 3
_STAGES = ("people", "model")
_READERS = ("readers", "reader_processes")


def run_key(model: Model, settings: ModelRun) -> str:
    """Return the key of all that is the same for each shard of a run, 64 hex digits."""
    told = {
        "model": model.key,
        "predicts": model.predicts,
        "picture_of": settings.picture_of,
        "box_factor": settings.box_factor,
        "batch": settings.batch,
        "code": source_hash(of_pictures, images),
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def record_of(
    spec: AuditSpec,
    settings: ModelRun,
    dataset: Dataset,
    model: Model,
    pictures: Sequence[Picture],
    shards: int,
    key: str,
) -> dict[str, Any]:
    """Write down what is asked of which model, and all that its answers depend on."""
    said = spec.said()
    own = {name for stage in _STAGES for name in _flat_names(spec, stage)} | {"model_name"}
    try:
        isolux = version("isolux")
    except PackageNotFoundError:
        isolux = ""
    return {
        "isolux": isolux,
        "spec": {name: _plain(said[name]) for name in said if name in own and name != "answers"},
        "dataset": {"name": dataset.name, "inputs": dict(dataset.inputs)},
        "model": {
            "spec": model.spec,
            "name": model.name,
            "predicts": model.predicts,
            "title": model.info.title,
            "licence": model.info.licence,
            "identity": dict(model.identity),
            "versions": dict(model.versions),
            "notes": list(model.notes),
        },
        "settings": settings.model_dump(mode="json", exclude={"answers", *_READERS}),
        "key": key,
        "shards": shards,
        "pictures": len(pictures),
        "looks": count_units(pictures),
    }


def _flat_names(spec: AuditSpec, stage: str) -> list[str]:
    from isolux.vocabulary.spec import flat_names

    return list(flat_names(type(getattr(spec, stage))).values())


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def same_run(
    before: Mapping[str, Any], now: Mapping[str, Any], *, overwrite: bool, where: Path
) -> None:
    """Refuse to put answers about other data, or of another model, where some are."""
    told = [
        (what, then, today)
        for what, then, today in (
            ("data", _said(before, "data"), _said(now, "data")),
            ("model", _said(before, "model"), _said(now, "model")),
        )
        if then != today
    ]
    if told and not overwrite:
        what, then, today = told[0]
        raise OutputError(
            f"this directory holds answers about other {what}"
            if what == "data"
            else "this directory holds the answers of another model",
            expected=str(then),
            found=str(today),
            where=str(where),
            hint="choose another path, or replace them with --overwrite (overwrite=True)",
        )


def _said(record: Mapping[str, Any], name: str) -> Any:
    return (record.get("spec") or {}).get(name)


def unanswered(looks: pl.DataFrame) -> list[dict[str, Any]]:
    """Count looks without an answer by their reason, most frequent first."""
    missing = looks.filter(pl.col("reason").is_not_null())
    counts = missing.group_by("reason", "fault").len("looks")
    return counts.sort("looks", "reason", descending=[True, False]).to_dicts()


def notes_of(
    record: Mapping[str, Any], looks: pl.DataFrame, *, earlier: int = 0, where: Path | None = None
) -> tuple[str, ...]:
    """Say which model answered, and first of all what it did not answer."""
    model = record["model"]
    versions = ", ".join(f"{k} {v}" for k, v in sorted(model["versions"].items()))
    notes: list[str] = []
    missing = record.get("unanswered") or []
    if missing:
        n = sum(row["looks"] for row in missing)
        why = "; ".join(f"{row['reason']} ({row['looks']:,})" for row in missing[:_SHOWN])
        more = "; …" if len(missing) > _SHOWN else ""
        what = "people" if model["predicts"] in ("labels", "embeddings") else "images"
        notes.append(
            Caution(
                f"{n:,} of {looks.height:,} {what} have no answer of {model['name']!r} and are not"
                f" judged: {why}{more}."
            )
        )
    n, batch = record["pictures"], record["settings"]["batch"]
    spec = _short(model["spec"])
    notes.append(f"isolux ran {spec} over {n:,} pictures, {batch} at a time, with {versions}.")
    if earlier:
        notes.append(_reused(record, earlier, where))
    return (*notes, *model["notes"])


def _reused(record: Mapping[str, Any], earlier: int, where: Path | None) -> str:
    """Say that answers were taken from before, and first where a change would go unseen."""
    n, spec = record["pictures"], _short(record["model"]["spec"])
    told = f"{earlier:,} of {n:,} pictures were answered before, in {where}, and not again:"
    if not _unknown_weights(record["model"]["identity"]):
        return f"{told} neither they nor {spec} and its settings have changed since."
    return Caution(
        f"{told} nothing says whether the weights of {spec} are still those. Name their file as a"
        " setting of the factory, give --model-option version=…, or predict into another directory."
    )


def _unknown_weights(identity: Mapping[str, Any]) -> bool:
    """Whether a model is a callable whose files nothing names."""
    own = identity.get("own") or {}
    if identity.get("family") != "python" or own.get("own") or own.get("version"):
        return False
    return not any(isinstance(v, Mapping) for v in (own.get("settings") or {}).values())


def _short(spec: str) -> str:
    """Name a model without the folders that it lies in, which are this machine's."""
    family, _, what = spec.partition(":")
    return f"{family}:{Path(what).name}" if Path(what).is_absolute() else spec
