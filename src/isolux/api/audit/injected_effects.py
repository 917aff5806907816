"""Injected effects of a synthetic population, read from its ``injected.json``.

The report then shows the true value of each group next to its estimate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.io.frames import refuse_unless_file

_MAX_FILE_BYTES = 1 << 26
_EXPECTED_FILE = (
    "the injected.json that `isolux synthesize` writes: "
    '{"tasks": {…}, "models": {NAME: {"groups": […]}}}'
)


def read_injected_effects(
    path: str | Path, *, task: str, by: Sequence[str], model: str | None
) -> list[dict[str, Any]]:
    """Read the injected effects of the audited task, model and attributes."""
    contents = _parse_injected_effects(Path(path).expanduser())
    models, tasks = contents["models"], contents["tasks"]
    if model is None and len(models) > 1:
        raise SpecError(
            "several models' truths are injected",
            expected="--model-name, one of " + ", ".join(models),
            found="none",
            where=str(path),
        )
    name = next(iter(models)) if model is None else model
    if name not in models:
        raise UnknownNameError("injected model", name, models, where=str(path))
    if task not in tasks:
        raise SpecError(
            f"no value of the task {task} is injected exactly",
            expected="one of " + ", ".join(tasks),
            found=task,
            hint="leave injected out: injected.json says which groups are served worse",
        )
    try:
        measure = {key: tasks[task][key] for key in ("metric", "threshold")}
        rows = _build_effect_rows(models[name], by)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed_effects_error(path, f"{type(error).__name__} at {error}") from error
    return [measure | row for row in rows]


def _parse_injected_effects(path: Path) -> dict[str, Any]:
    contents: dict[str, Any]
    refuse_unless_file(path)
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise _malformed_effects_error(path, "a file of more than 64 MiB")
        contents = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=str(path)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise _malformed_effects_error(path, str(error).splitlines()[0][:120]) from error
    models = contents.get("models") if isinstance(contents, dict) else None
    if not isinstance(models, dict) or not models:
        raise _malformed_effects_error(path, "no models in it")
    if not isinstance(contents.get("tasks"), dict):
        raise _malformed_effects_error(
            path, "no metric of any task; written by an older isolux: write it again"
        )
    return contents


def _malformed_effects_error(path: object, description: str) -> FileError:
    return FileError(
        "this file does not say what was injected",
        expected=_EXPECTED_FILE,
        found=description,
        where=str(path),
    )


def _build_effect_rows(truths: Mapping[str, Any], by: Sequence[str]) -> list[dict[str, Any]]:
    """Build one row per group value, and one per largest difference of a grouping."""
    audit_names: dict[tuple[str, str], tuple[str, str]] = {}
    rows: list[dict[str, Any]] = []
    for group in truths["groups"]:
        audit_name = (
            None if group["attribute"] is None else _find_audited_attribute_and_group(group, by)
        )
        if audit_name is None:
            continue
        audit_names[group["attribute"], group["group"]] = audit_name
        if "*" not in audit_name[0]:
            rows.append(
                {"attribute": audit_name[0], "group": audit_name[1], "value": float(group["value"])}
            )
    for gap in truths["widest"]:
        pair = [audit_names.get((gap["attribute"], gap[end])) for end in ("group_a", "group_b")]
        if pair[0] is not None and pair[1] is not None and pair[0] != pair[1]:
            rows.append(
                {
                    "attribute": pair[0][0],
                    "kind": "difference",
                    "group_a": pair[0][1],
                    "group_b": pair[1][1],
                    "value": float(gap["value"]),
                    "note": str(gap["note"]),
                }
            )
    return rows


def _find_audited_attribute_and_group(
    group: Mapping[str, Any], by: Sequence[str]
) -> tuple[str, str] | None:
    """Name a group as the audit does: by the data's attributes, else the population's."""
    candidates = [group["in_data"], {"attribute": group["attribute"], "values": group["values"]}]
    for candidate in candidates:
        if candidate is not None and candidate["attribute"] in by and all(candidate["values"]):
            return candidate["attribute"], " × ".join(candidate["values"])
    return None
