"""The record of a prediction run, ``predict.json``, and its key.

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

from isolux.core.containers import Dataset
from isolux.core.errors import OutputError
from isolux.core.notes import Caution
from isolux.core.spec import AuditSpec, ModelRun
from isolux.engine import source_images as of_pictures
from isolux.engine.source_images import SourceImage, count_units
from isolux.io import images
from isolux.io.images import BACKGROUND
from isolux.models import PERSON_PREDICTIONS, Model, hash_module_sources

_MAX_LISTED_REASONS = 3
_STAGES = ("people", "model")
_READER_SETTINGS = ("readers", "reader_processes")


def compute_run_key(model: Model, settings: ModelRun) -> str:
    """Compute the key of a run: SHA-256 of all that its shards have in common."""
    key_inputs = {
        "model": model.key,
        "predicts": model.predicts,
        "input_unit": settings.input_unit,
        "box_factor": settings.box_factor,
        "batch": settings.batch,
        "code": hash_module_sources(of_pictures, images),
    }
    return hashlib.sha256(json.dumps(key_inputs, sort_keys=True).encode()).hexdigest()


def build_record(
    spec: AuditSpec,
    settings: ModelRun,
    dataset: Dataset,
    model: Model,
    images: Sequence[SourceImage],
    n_shards: int,
    key: str,
) -> dict[str, Any]:
    """Build the record: model, settings, inputs and all else that predictions depend on."""
    spec_settings = spec.said()
    recorded_names = {name for stage in _STAGES for name in _flat_setting_names(spec, stage)} | {
        "model_name"
    }
    try:
        isolux = version("isolux")
    except PackageNotFoundError:
        isolux = ""
    return {
        "isolux": isolux,
        "spec": {
            name: _tuple_to_list(spec_settings[name])
            for name in spec_settings
            if name in recorded_names and name != "answers"
        },
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
        "settings": settings.model_dump(mode="json", exclude={"answers", *_READER_SETTINGS}),
        "background": BACKGROUND,
        "key": key,
        "shards": n_shards,
        "pictures": len(images),
        "inferences": count_units(images),
    }


def _flat_setting_names(spec: AuditSpec, stage: str) -> list[str]:
    from isolux.core.spec import map_fields_to_flag_names

    return list(map_fields_to_flag_names(type(getattr(spec, stage))).values())


def _tuple_to_list(setting: Any) -> Any:
    return list(setting) if isinstance(setting, tuple) else setting


def refuse_other_run(
    recorded_run: Mapping[str, Any],
    current_run: Mapping[str, Any],
    *,
    overwrite: bool,
    folder: Path,
) -> None:
    """Refuse a prediction directory of other data or of another model."""
    differing_settings = [
        (setting, recorded, current)
        for setting, recorded, current in (
            (
                "data",
                _recorded_setting(recorded_run, "data"),
                _recorded_setting(current_run, "data"),
            ),
            (
                "model",
                _recorded_setting(recorded_run, "model"),
                _recorded_setting(current_run, "model"),
            ),
        )
        if recorded != current
    ]
    if differing_settings and not overwrite:
        setting, recorded, current = differing_settings[0]
        raise OutputError(
            f"this directory holds answers about other {setting}"
            if setting == "data"
            else "this directory holds the answers of another model",
            expected=str(recorded),
            found=str(current),
            where=str(folder),
            hint="choose another path, or replace them with --overwrite (overwrite=True)",
        )


def _recorded_setting(record: Mapping[str, Any], name: str) -> Any:
    return (record.get("spec") or {}).get(name)


def count_inference_failures_by_reason(inferences: pl.DataFrame) -> list[dict[str, Any]]:
    """Count inferences without a prediction by reason, most frequent first."""
    missing = inferences.filter(pl.col("reason").is_not_null())
    counts = missing.group_by("reason", "fault").len("inferences")
    return counts.sort("inferences", "reason", descending=[True, False]).to_dicts()


def build_notes(
    record: Mapping[str, Any],
    inferences: pl.DataFrame,
    *,
    n_earlier: int = 0,
    folder: Path | None = None,
) -> tuple[str, ...]:
    """Build the notes of a prediction run, with a caution on missing predictions first."""
    model = record["model"]
    versions = ", ".join(f"{k} {v}" for k, v in sorted(model["versions"].items()))
    notes: list[str] = []
    if record.get("unturned"):
        notes.append(Caution(record["unturned"]))
    missing = record.get("unanswered") or []
    if missing:
        n = sum(row["inferences"] for row in missing)
        reasons = "; ".join(
            f"{row['reason']} ({row['inferences']:,})" for row in missing[:_MAX_LISTED_REASONS]
        )
        suffix = "; …" if len(missing) > _MAX_LISTED_REASONS else ""
        units = "people" if model["predicts"] in PERSON_PREDICTIONS else "images"
        notes.append(
            Caution(
                f"{n:,} of {inferences.height:,} {units} have no answer of {model['name']!r}"
                " and are not"
                f" judged: {reasons}{suffix}."
            )
        )
    n, batch = record["pictures"], record["settings"]["batch"]
    spec = _shorten_model_name(model["spec"])
    notes.append(f"isolux ran {spec} over {n:,} pictures, {batch} at a time, with {versions}.")
    if n_earlier:
        notes.append(_note_or_caution_on_reuse(record, n_earlier, folder))
    return (*notes, *model["notes"])


def _note_or_caution_on_reuse(
    record: Mapping[str, Any], n_earlier: int, folder: Path | None
) -> str:
    """Note reused predictions; a caution where changed weights would go unnoticed."""
    n, spec = record["pictures"], _shorten_model_name(record["model"]["spec"])
    message = f"{n_earlier:,} of {n:,} pictures were answered before, in {folder}, and not again:"
    if not _has_unknown_weights(record["model"]["identity"]):
        return f"{message} neither they nor {spec} and its settings have changed since."
    return Caution(
        f"{message} nothing says whether the weights of {spec} are still those. Name their"
        " file as a"
        " setting of the factory, give --model-option version=…, or predict into another directory."
    )


def _has_unknown_weights(identity: Mapping[str, Any]) -> bool:
    """Return whether a model is a callable without known weight files."""
    own_identity = identity.get("own") or {}
    if identity.get("family") != "python" or own_identity.get("own") or own_identity.get("version"):
        return False
    return not any(isinstance(v, Mapping) for v in (own_identity.get("settings") or {}).values())


def _shorten_model_name(spec: str) -> str:
    """Shorten a model's name: without absolute folders of this machine."""
    family, _, checkpoint = spec.partition(":")
    return f"{family}:{Path(checkpoint).name}" if Path(checkpoint).is_absolute() else spec
